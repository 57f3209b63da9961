package chconn_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"
)

// A relay passes connections on to a server, over TLS if told so, and can behave as a bad network does.
type relay struct {
	target   string
	listener net.Listener

	mu       sync.Mutex
	accepted int
	open     []net.Conn
	silent   bool // take connections and leave it at that
	hangUps  int  // close so many connections at once
	mute     bool // swallow what the server says
	deaf     bool // take one piece from the client, and no more
	taken    int  // bytes from the clients
}

// newRelay listens on a free port until the test ends. A nil config means: no TLS.
func newRelay(t *testing.T, target string, config *tls.Config) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	r := &relay{target: target, listener: listener}
	t.Cleanup(func() {
		_ = listener.Close()
		r.cut()
	})
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			r.mu.Lock()
			r.accepted++
			r.open = append(r.open, conn)
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
	defer func() { _ = client.Close() }()
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
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, conn := range r.open {
		_ = conn.Close()
	}
	r.open = nil
}

// count returns how many connections were accepted.
func (r *relay) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.accepted
}

// An authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         string
}

// A pair is PEM text.
type pair struct{ cert, key string }

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "test authority"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{certificate, key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))}
}

// issue signs a certificate for a host name or an address, for server and client alike.
func (a *authority) issue(t *testing.T, host string) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: host},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pair{
		cert: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		key:  string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})),
	}
}

// server is a TLS server's configuration with this certificate.
func (p pair) server(t *testing.T) *tls.Config {
	t.Helper()
	certificate, err := tls.X509KeyPair([]byte(p.cert), []byte(p.key))
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
}
