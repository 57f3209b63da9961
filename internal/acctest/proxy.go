package acctest

import (
	"net"
	"sync"
	"testing"
)

// FaultyProxy is a TCP proxy that can fail as networks do. Every knob may be turned at any time; it acts on the connections
// that are open, too.
type FaultyProxy struct {
	// Addr is host:port to connect to; Host and Port are its parts.
	Addr string
	Host string
	Port int

	dial func() (net.Conn, error) // to the target
	busy sync.WaitGroup

	matching sync.Mutex // held during a call of match, which may turn knobs
	mu       sync.Mutex // guards what follows
	match    func(chunk []byte) bool
	refuse   bool
	stall    bool
	links    map[*link]struct{} // nil after the end
}

// link is a proxied connection.
type link struct {
	client halfCloser
	server net.Conn
	cut    bool // the answers are lost from now on; guarded by FaultyProxy.mu
}

// halfCloser is a connection that can end in one direction: a [*net.TCPConn] or [*tls.Conn].
type halfCloser interface {
	net.Conn
	CloseWrite() error
}

func (l *link) close() {
	_ = l.client.Close()
	_ = l.server.Close()
}

// Proxy starts a proxy in front of host:port. It ends with the test.
func Proxy(tb testing.TB, target string) *FaultyProxy {
	tb.Helper()
	return newProxy(tb, target, func(l net.Listener) net.Listener { return l })
}

func newProxy(tb testing.TB, target string, wrap func(net.Listener) net.Listener) *FaultyProxy {
	tb.Helper()
	ctx := tb.Context()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("listen: %v", err)
	}
	addr, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		tb.Fatalf("listen: %v is no TCP address", listener.Addr())
	}
	listener = wrap(listener)
	p := &FaultyProxy{
		Addr: addr.String(), Host: addr.IP.String(), Port: addr.Port,
		dial:  func() (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", target) },
		links: map[*link]struct{}{},
	}
	p.busy.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // closed
			}
			p.busy.Go(func() { p.serve(client) })
		}
	})
	tb.Cleanup(func() {
		_ = listener.Close()
		p.mu.Lock()
		for l := range p.links {
			l.close()
		}
		p.links = nil // from now on connect makes no more
		p.mu.Unlock()
		p.busy.Wait()
	})
	return p
}

// CutAll closes the connections that are open now. New ones work.
func (p *FaultyProxy) CutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.close()
	}
}

// Refuse closes new connections as soon as they are made, until it is called with false.
func (p *FaultyProxy) Refuse(yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = yes
}

// Stall swallows the server's answers, until it is called with false. What was swallowed is lost.
func (p *FaultyProxy) Stall(yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stall = yes
}

// CutAfter loses the answer to a request. When a chunk from a client matches, the server still gets it, and whatever the
// client sends after it; but instead of the server's next answer the client finds the end of the connection. The server does
// not notice. A chunk is what one read returns. Calls do not overlap; nil ends the cutting.
func (p *FaultyProxy) CutAfter(match func(chunk []byte) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.match = match
}

func (p *FaultyProxy) serve(client net.Conn) {
	l, ok := p.connect(client)
	if !ok {
		_ = client.Close()
		return
	}
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.links, l)
	}()
	var upload sync.WaitGroup
	upload.Go(func() { p.upload(l) })
	p.download(l)
	upload.Wait()
}

func (p *FaultyProxy) connect(client net.Conn) (*link, bool) {
	p.mu.Lock()
	refuse := p.refuse
	p.mu.Unlock()
	if refuse {
		return nil, false
	}
	half, ok := client.(halfCloser)
	if !ok {
		return nil, false
	}
	server, err := p.dial()
	if err != nil {
		return nil, false
	}
	l := &link{client: half, server: server}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.links == nil {
		_ = server.Close()
		return nil, false
	}
	p.links[l] = struct{}{}
	return l, true
}

const chunkSize = 64 << 10

// upload passes requests on, until the client is gone. A server that owes a lost answer stays connected: it would notice,
// and might not carry out the request.
func (p *FaultyProxy) upload(l *link) {
	buf := make([]byte, chunkSize)
	for {
		n, err := l.client.Read(buf)
		if n > 0 {
			if p.matches(buf[:n]) {
				p.mu.Lock()
				l.cut = true
				p.mu.Unlock()
			}
			if _, err := l.server.Write(buf[:n]); err != nil {
				l.close()
				return
			}
		}
		if err != nil {
			p.mu.Lock()
			cut := l.cut
			p.mu.Unlock()
			if !cut {
				l.close()
			}
			return
		}
	}
}

func (p *FaultyProxy) matches(chunk []byte) bool {
	p.mu.Lock()
	match := p.match
	p.mu.Unlock()
	if match == nil {
		return false
	}
	p.matching.Lock()
	defer p.matching.Unlock()
	return match(chunk)
}

// download passes answers on, until the server is gone.
func (p *FaultyProxy) download(l *link) {
	defer l.close()
	buf := make([]byte, chunkSize)
	for {
		n, err := l.server.Read(buf)
		if n > 0 {
			p.mu.Lock()
			cut, stall := l.cut, p.stall
			p.mu.Unlock()
			switch {
			case cut:
				// Not closed: the server sends its first packets before it has the whole request.
				_ = l.client.CloseWrite()
			case stall:
			default:
				if _, err := l.client.Write(buf[:n]); err != nil {
					return
				}
			}
		}
		if err != nil {
			return
		}
	}
}
