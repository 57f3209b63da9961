package chconn_test

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// A relay passes connections on to a server, counts them, and can behave as a bad network does.
type relay struct {
	target   string
	listener net.Listener

	mu       sync.Mutex
	accepted int
	open     map[net.Conn]struct{}
	silent   bool // take connections and leave it at that
	hangUps  int  // close so many connections at once
	mute     bool // swallow what the server says
	deaf     bool // take one piece from the client, and no more
	taken    int  // bytes from the clients
}

// newRelay listens on a free port until the test ends.
func newRelay(t *testing.T, target string) *relay {
	t.Helper()
	return newRelayAt(t, "127.0.0.1:0", target)
}

func newRelayAt(t *testing.T, addr, target string) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{target: target, listener: listener, open: map[net.Conn]struct{}{}}
	t.Cleanup(r.close)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			r.mu.Lock()
			r.accepted++
			r.open[conn] = struct{}{}
			r.mu.Unlock()
			go r.serve(conn)
		}
	}()
	return r
}

func (r *relay) port() int {
	addr, _ := r.listener.Addr().(*net.TCPAddr)
	return addr.Port
}

func (r *relay) serve(client net.Conn) {
	if r.is(&r.silent) {
		return // open until the test ends
	}
	defer func() {
		_ = client.Close()
		r.set(func(r *relay) { delete(r.open, client) })
	}()
	if r.hangsUp() {
		return
	}
	server, err := net.Dial("tcp", r.target)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	go func() {
		defer func() { _ = server.Close() }()
		r.pass(server, client, func(n int) {
			r.set(func(r *relay) { r.taken += n })
			for r.is(&r.deaf) {
				time.Sleep(time.Millisecond)
			}
		})
	}()
	r.pass(client, server, func(int) {
		if r.is(&r.mute) {
			_, _ = io.Copy(io.Discard, server)
		}
	})
}

// pass copies until either side ends, piece by piece. Each may be held up on its way.
func (r *relay) pass(to, from net.Conn, hold func(bytes int)) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		hold(n)
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (r *relay) is(flag *bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return *flag
}

func (r *relay) hangsUp() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hangUps--
	return r.hangUps >= 0
}

// set changes how the relay behaves from now on.
func (r *relay) set(change func(*relay)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(r)
}

// cut closes every connection.
func (r *relay) cut() {
	r.set(func(r *relay) {
		for conn := range r.open {
			_ = conn.Close()
		}
	})
}

// hangUp ends every connection as a server does: it says no more, and the client may close.
func (r *relay) hangUp() {
	r.set(func(r *relay) {
		for conn := range r.open {
			if tcp, ok := conn.(*net.TCPConn); ok {
				_ = tcp.CloseWrite()
			}
		}
	})
}

// close takes no more connections, and closes those that there are.
func (r *relay) close() {
	_ = r.listener.Close()
	r.cut()
}

// connections returns how many are open.
func (r *relay) connections() (n int) {
	r.set(func(r *relay) { n = len(r.open) })
	return n
}

// count returns how many connections were accepted.
func (r *relay) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.accepted
}
