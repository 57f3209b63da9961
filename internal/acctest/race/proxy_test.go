package main

import (
	"io"
	"net"
	"strconv"
	"testing"
)

func TestProxy(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		for {
			conn, err := echo.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}()
		}
	}()
	p, err := newProxy(echo.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port())))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	answers := func(conn net.Conn) bool {
		if _, err := conn.Write([]byte("x")); err != nil {
			return false
		}
		_, err := io.ReadFull(conn, make([]byte, 1))
		return err == nil
	}
	first, second := dial(), dial()
	if !answers(first) || !answers(second) {
		t.Fatal("no answer through the proxy")
	}
	if n := p.cut(func() bool { return false }); n != 0 || !answers(first) {
		t.Errorf("%d connections cut, none was chosen", n)
	}
	if n := p.cut(func() bool { return true }); n != 2 || answers(first) || answers(second) {
		t.Errorf("%d connections cut, both were chosen", n)
	}
	if third := dial(); !answers(third) {
		t.Error("no answer through a new connection")
	}
	p.close()
}
