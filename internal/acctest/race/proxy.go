package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// A proxy stands between workers and a port of the server, and cuts connections.
type proxy struct {
	listener net.Listener
	target   string
	wait     sync.WaitGroup

	mu sync.Mutex
	// pairs are the connections on their way: client and server.
	pairs map[*pair]struct{}
}

type pair struct{ client, server net.Conn }

func (p *pair) close() {
	_ = p.client.Close() // closing again does no harm
	_ = p.server.Close()
}

// newProxy listens on a free port of 127.0.0.1.
func newProxy(target string) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open a proxy: %w", err)
	}
	p := &proxy{listener: listener, target: target, pairs: map[*pair]struct{}{}}
	p.wait.Go(p.accept)
	return p, nil
}

// port is where the proxy listens.
func (p *proxy) port() int {
	addr, _ := p.listener.Addr().(*net.TCPAddr)
	return addr.Port
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		both := &pair{client: client, server: server}
		p.mu.Lock()
		p.pairs[both] = struct{}{}
		p.mu.Unlock()
		p.wait.Go(func() { p.carry(both, server, client) })
		p.wait.Go(func() { p.carry(both, client, server) })
	}
}

// carry copies one direction; its end is the end of both.
func (p *proxy) carry(both *pair, to, from net.Conn) {
	_, _ = io.Copy(to, from) // a cut is no error here
	both.close()
	p.mu.Lock()
	delete(p.pairs, both)
	p.mu.Unlock()
}

// cut breaks those connections that choose picks, and returns how many.
func (p *proxy) cut(choose func() bool) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for both := range p.pairs {
		if choose() {
			both.close()
			n++
		}
	}
	return n
}

// close breaks everything and stops listening.
func (p *proxy) close() {
	_ = p.listener.Close()
	p.cut(func() bool { return true })
	p.wait.Wait()
}
