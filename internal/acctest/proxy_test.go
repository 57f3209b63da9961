package acctest

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"
	"time"
)

// through is the shared server behind a proxy.
func through(t *testing.T, p *FaultyProxy) Endpoint {
	t.Helper()
	e := Server(t)
	e.Host, e.NativePort = p.Host, p.Port
	return e
}

func ping(conn interface{ Ping(context.Context) error }) error {
	return conn.Ping(context.Background())
}

func TestProxyCutAll(t *testing.T) {
	p := Proxy(t, Server(t).NativeAddr())
	conn := through(t, p).Conn(t)
	rows, err := conn.Query(t.Context(), "SELECT sleepEachRow(0.1) FROM numbers(600) SETTINGS max_block_size = 1, function_sleep_max_microseconds_per_block = 100000000")
	if err != nil {
		t.Fatal(err)
	}
	if !rows.Next() {
		t.Fatalf("no first row: %v", rows.Err())
	}
	p.CutAll()
	for rows.Next() {
	}
	if rows.Err() == nil {
		t.Error("a query outlived its connection")
	}
	_ = rows.Close() // it is broken
	if err := ping(through(t, p).Conn(t)); err != nil {
		t.Errorf("a new connection after the cut: %v", err)
	}
}

func TestProxyRefuse(t *testing.T) {
	p := Proxy(t, Server(t).NativeAddr())
	open := through(t, p).Conn(t)
	if err := ping(open); err != nil {
		t.Fatal(err)
	}
	p.Refuse(true)
	if err := ping(open); err != nil {
		t.Errorf("an open connection while new ones are refused: %v", err)
	}
	if err := ping(through(t, p).Conn(t)); err == nil {
		t.Error("a new connection was not refused")
	}
	p.Refuse(false)
	if err := ping(through(t, p).Conn(t)); err != nil {
		t.Errorf("a new connection afterwards: %v", err)
	}
}

func TestProxyStall(t *testing.T) {
	p := Proxy(t, Server(t).NativeAddr())
	conn := through(t, p).Conn(t)
	if err := ping(conn); err != nil {
		t.Fatal(err)
	}
	p.Stall(true)
	impatient, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := conn.Ping(impatient); err == nil {
		t.Error("an answer came through")
	}
	p.Stall(false)
	if err := ping(through(t, p).Conn(t)); err != nil {
		t.Errorf("a new connection afterwards: %v", err)
	}
}

// TestProxyCutAfter loses the answer to an INSERT that the server carries out.
func TestProxyCutAfter(t *testing.T) {
	table := Database(t) + ".t"
	seed := Conn(t)
	if err := seed.Exec(t.Context(), "CREATE TABLE "+table+" (n UInt64) ENGINE = MergeTree ORDER BY n"); err != nil {
		t.Fatal(err)
	}
	p := Proxy(t, Server(t).NativeAddr())
	conn := through(t, p).Conn(t)
	cuts := 0
	p.CutAfter(func(chunk []byte) bool {
		if !bytes.Contains(chunk, []byte("INSERT INTO")) {
			return false
		}
		cuts++
		p.CutAfter(nil) // once
		return true
	})
	if err := conn.Exec(t.Context(), "INSERT INTO "+table+" SELECT number FROM numbers(3)"); err == nil {
		t.Error("the answer came through")
	}
	var n uint64
	patient, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for n == 0 { // the lost answer may have been a first one, of progress
		if err := seed.QueryRow(patient, "SELECT count() FROM "+table).Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	if n != 3 || cuts != 1 {
		t.Errorf("%d rows after %d cuts, want 3 after 1", n, cuts)
	}
	if err := ping(conn); err != nil {
		t.Errorf("the pool does not recover: %v", err)
	}
}

// TestProxyCutEarly: a server that begins to answer before it has the whole request gets the rest of it.
func TestProxyCutEarly(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	request := make(chan string, 1)
	go func() {
		defer close(request)
		server, err := listener.Accept()
		if err != nil {
			return
		}
		defer func() { _ = server.Close() }()
		_ = server.SetDeadline(time.Now().Add(10 * time.Second))
		whole := make([]byte, len("begin, end"))
		if _, err := io.ReadFull(server, whole[:len("begin")]); err != nil {
			return
		}
		if _, err := server.Write([]byte("an answer")); err != nil {
			return
		}
		if _, err := io.ReadFull(server, whole[len("begin"):]); err == nil {
			request <- string(whole)
		}
	}()

	p := Proxy(t, listener.Addr().String())
	p.CutAfter(func(chunk []byte) bool { return bytes.HasPrefix(chunk, []byte("begin")) })
	client, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	_ = client.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := client.Write([]byte("begin")); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(client); len(answer) > 0 || err != nil {
		t.Errorf("got %q, %v, want the end of the connection", answer, err)
	}
	if _, err := client.Write([]byte(", end")); err != nil {
		t.Fatal(err)
	}
	if got := <-request; got != "begin, end" {
		t.Errorf("the server got %q", got)
	}
}

func TestProxyWithoutTarget(t *testing.T) {
	nobody := Proxy(t, "127.0.0.1:1")
	if err := ping(through(t, nobody).Conn(t)); err == nil {
		t.Error("a connection to nobody")
	}
}
