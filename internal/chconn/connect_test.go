package chconn_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/embedded"
)

// tooLong is when a wrong configuration must long have been told.
const tooLong = 15 * time.Second

// selectOne sends a statement.
func selectOne(c *chconn.Client) error {
	_, err := c.Exec(context.Background(), chconn.Statement{Operation: "test", Text: "SELECT 1"})
	return err
}

// wantConnectError checks that an error says what was used and what to change, in time, and without the password.
func wantConnectError(t *testing.T, c *chconn.Client, config chconn.Config, hint string) {
	t.Helper()
	start := time.Now()
	err := selectOne(c)
	if took := time.Since(start); took > tooLong {
		t.Errorf("it took %s", took)
	}
	var connect *chconn.ConnectError
	if !errors.As(err, &connect) {
		t.Fatalf("%v, want a ConnectError", err)
	}
	if connect.Host != config.Host || connect.Port != config.Port || connect.Protocol != config.Protocol || connect.TLS != config.Secure || connect.User != config.Username {
		t.Errorf("%+v, want what was used", connect)
	}
	if want := "test: no " + c.String() + ": "; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s...", err, want)
	}
	if !strings.HasPrefix(connect.Hint, hint) || hint == "" {
		t.Errorf("%v\nwant the hint %s...", err, hint)
	}
	if config.Password != "" && strings.Contains(err.Error(), config.Password) {
		t.Errorf("the password is in %v", err)
	}
}

// TestMatrix speaks each protocol, with TLS and without, to each kind of port.
func TestMatrix(t *testing.T) {
	t.Parallel() // it waits more than it works
	e := acctest.Server(t)
	nativeProxy, httpProxy := acctest.TLSProxy(t, e.NativeAddr(), acctest.TLSOptions{}), acctest.TLSProxy(t, e.HTTPAddr(), acctest.TLSOptions{})
	nativePort, httpPort, nativeTLS, httpTLS := e.NativePort, e.HTTPPort, nativeProxy.Port, httpProxy.Port
	for _, tc := range []struct {
		protocol chconn.Protocol
		secure   bool
		port     int
		hint     string
	}{
		{chconn.Native, false, nativePort, ""},
		{chconn.Native, false, nativeTLS, "the port may speak TLS: set secure = true, or use port 9000"},
		{chconn.Native, false, httpPort, `the port speaks HTTP: set protocol = "http", or use port 9000`},
		{chconn.Native, false, httpTLS, "the port may speak TLS: set secure = true, or use port 9000"},
		{chconn.Native, true, nativePort, "the port does not speak TLS: set secure = false, or use port 9440"},
		{chconn.Native, true, nativeTLS, ""},
		{chconn.Native, true, httpPort, "the port does not speak TLS: set secure = false, or use port 9440"},
		{chconn.Native, true, httpTLS, `the port speaks HTTP: set protocol = "http", or use port 9440`},
		{chconn.HTTP, false, nativePort, `the port speaks the native protocol: set protocol = "native", or use port 8123`},
		{chconn.HTTP, false, nativeTLS, "the port may speak TLS: set secure = true, or use port 8123"},
		{chconn.HTTP, false, httpPort, ""},
		{chconn.HTTP, false, httpTLS, "the port may speak TLS: set secure = true, or use port 8123"},
		{chconn.HTTP, true, nativePort, "the port does not speak TLS: set secure = false, or use port 8443"},
		{chconn.HTTP, true, nativeTLS, `the port speaks the native protocol: set protocol = "native", or use port 8443`},
		{chconn.HTTP, true, httpPort, "the port does not speak TLS: set secure = false, or use port 8443"},
		{chconn.HTTP, true, httpTLS, ""},
	} {
		config := configOf(e, tc.protocol)
		config.Port, config.Secure = tc.port, tc.secure
		if tc.secure {
			config.TLS.CACert = nativeProxy.CACert + httpProxy.CACert
		}
		c := newClient(t, config)
		if tc.hint != "" {
			wantConnectError(t, c, config, tc.hint)
		} else if err := selectOne(c); err != nil {
			t.Error(err)
		}
	}
}

// The usual ports tell more than what comes back from them.
func TestPortHints(t *testing.T) {
	for _, tc := range []struct {
		protocol chconn.Protocol
		secure   bool
		port     int
		failure  string
		want     string
	}{
		{chconn.Native, false, 8123, "unexpected packet [72]", `8123 is the usual port for HTTP without TLS: set protocol = "http", or use port 9000, the usual one for the native protocol without TLS`},
		{chconn.Native, false, 8443, "EOF", `8443 is the usual port for HTTP with TLS: set protocol = "http" and secure = true, or use port 9000, the usual one for the native protocol without TLS`},
		{chconn.Native, false, 9440, "EOF", `9440 is the usual port for the native protocol with TLS: set secure = true, or use port 9000, the usual one for the native protocol without TLS`},
		{chconn.Native, true, 9000, "no answer", `9000 is the usual port for the native protocol without TLS: set secure = false, or use port 9440, the usual one for the native protocol with TLS`},
		{chconn.HTTP, false, 9000, "EOF", `9000 is the usual port for the native protocol without TLS: set protocol = "native", or use port 8123, the usual one for HTTP without TLS`},
		{chconn.HTTP, true, 9440, "EOF", `9440 is the usual port for the native protocol with TLS: set protocol = "native", or use port 8443, the usual one for HTTP with TLS`},
		{chconn.HTTP, true, 8123, "EOF", `8123 is the usual port for HTTP without TLS: set secure = false, or use port 8443, the usual one for HTTP with TLS`},
		// An alert of a TLS server.
		{chconn.Native, false, 9000, "[handshake] unexpected packet [21] from server", "the port speaks TLS: set secure = true, or use port 9000, the usual one for the native protocol without TLS"},
		{chconn.HTTP, false, 8123, `malformed HTTP response "\x15\x03\x01\x00\x02\x02"`, "the port speaks TLS: set secure = true, or use port 8123, the usual one for HTTP without TLS"},
		{chconn.HTTP, false, 8123, `malformed HTTP response "\x02"`, `the port does not speak HTTP: set protocol = "native", or use port 8123, the usual one for HTTP without TLS`},
		{chconn.HTTP, false, 8123, "no answer", "check that the server can be reached and that the port speaks HTTP without TLS"},
	} {
		got := chconn.Hint(chconn.Config{Host: "h", Port: tc.port, Protocol: tc.protocol, Secure: tc.secure}, tc.failure)
		if got != tc.want {
			t.Errorf("%s, TLS %t, port %d, %s:\n%s, want\n%s", tc.protocol, tc.secure, tc.port, tc.failure, got, tc.want)
		}
	}
}

func TestTLS(t *testing.T) {
	e := acctest.EndpointOf(acctest.PrivateServer(t, embedded.Options{Users: []embedded.User{{Name: "tf", Password: "pw"}}}))
	e.Username, e.Password = "tf", "pw"
	for _, protocol := range chconn.Protocols() {
		addr := e.NativeAddr()
		if protocol == chconn.HTTP {
			addr = e.HTTPAddr()
		}
		good, other := acctest.TLSProxy(t, addr, acctest.TLSOptions{}), acctest.TLSProxy(t, addr, acctest.TLSOptions{})
		named := acctest.TLSProxy(t, addr, acctest.TLSOptions{ServerName: "ch.example"})
		mutual := acctest.TLSProxy(t, addr, acctest.TLSOptions{RequireClientCert: true})
		for _, tc := range []struct {
			server *acctest.TLSServer
			tls    chconn.TLS
			hint   string
		}{
			{good, chconn.TLS{CACert: good.CACert}, ""},
			{good, chconn.TLS{CACert: other.CACert + good.CACert}, ""},
			{good, chconn.TLS{}, "set tls.ca_cert"},
			{good, chconn.TLS{CACert: other.CACert}, "set tls.ca_cert"},
			{good, chconn.TLS{InsecureSkipVerify: true}, ""},
			{named, chconn.TLS{CACert: named.CACert}, "set tls.server_name"},
			{named, chconn.TLS{CACert: named.CACert, ServerName: "ch.example"}, ""},
			{named, chconn.TLS{CACert: named.CACert, ServerName: "other.example"}, "set tls.server_name"},
			{mutual, chconn.TLS{CACert: mutual.CACert}, "the server refused the handshake: it may ask for a certificate (tls.client_cert and tls.client_key)"},
			{mutual, chconn.TLS{CACert: mutual.CACert, ClientCert: mutual.ClientCert, ClientKey: mutual.ClientKey}, ""},
		} {
			config := configOf(e, protocol)
			config.Port, config.Secure, config.TLS = tc.server.Port, true, tc.tls
			c := newClient(t, config)
			if tc.hint != "" {
				wantConnectError(t, c, config, tc.hint)
			} else if err := selectOne(c); err != nil {
				t.Errorf("%s: %v", protocol, err)
			}
		}
	}
}

func TestPasswords(t *testing.T) {
	users := []embedded.User{
		{Name: "plain", Password: "pw"},
		{Name: "signs", Password: `p@ss:w/o#rd?%20&=+"'\`},
		{Name: "spaces", Password: " a b "},
		{Name: "foreign", Password: "pässwörd 🦆"},
		{Name: "long", Password: strings.Repeat("x", 300)},
		{Name: "none"},
	}
	e := acctest.EndpointOf(acctest.PrivateServer(t, embedded.Options{Users: users}))
	proxies := map[chconn.Protocol]*acctest.TLSServer{
		chconn.Native: acctest.TLSProxy(t, e.NativeAddr(), acctest.TLSOptions{}),
		chconn.HTTP:   acctest.TLSProxy(t, e.HTTPAddr(), acctest.TLSOptions{}),
	}
	for _, protocol := range chconn.Protocols() {
		for _, secure := range []bool{false, true} {
			config := configOf(e, protocol)
			if secure {
				config.Port, config.Secure, config.TLS.CACert = proxies[protocol].Port, true, proxies[protocol].CACert
			}
			for _, u := range users {
				config.Username, config.Password = u.Name, u.Password
				c := newClient(t, config)
				if got := one(t, c, "SELECT currentUser()"); got != u.Name {
					t.Errorf("%s, TLS %t: we are %s, want %s", protocol, secure, got, u.Name)
				}
			}
			for _, wrong := range []chconn.Config{{Username: "plain", Password: "wr0ng"}, {Username: "nobody", Password: "wr0ng"}, {Username: "plain"}} {
				config.Username, config.Password = wrong.Username, wrong.Password
				c := newClient(t, config)
				wantConnectError(t, c, config, "check username and password")
				var server *chconn.ServerError
				if err := selectOne(c); !errors.As(err, &server) || server.Code != chconn.CodeAuthenticationFailed {
					t.Errorf("%v, want error 516 inside", err)
				}
			}
		}
	}
}

func TestNobodyThere(t *testing.T) {
	t.Parallel() // it waits more than it works
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr, _ := listener.Addr().(*net.TCPAddr)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	for _, protocol := range chconn.Protocols() {
		config := chconn.Config{Host: "127.0.0.1", Port: addr.Port, Protocol: protocol, Username: "tf", Password: "s3cret"}
		wantConnectError(t, newClient(t, config), config, "nothing listens there: check host and port")
		config.Host = "no-such-host.invalid"
		wantConnectError(t, newClient(t, config), config, "check host")
	}
}

// A port that takes connections and says nothing. The failure stands for a while: of many statements each fails at once,
// and only one waits.
func TestSilence(t *testing.T) {
	t.Parallel() // it waits more than it works
	for _, protocol := range chconn.Protocols() {
		for _, secure := range []bool{false, true} {
			r := newRelay(t, "127.0.0.1:1")
			r.set(func(r *relay) { r.silent = true })
			config := chconn.Config{Host: "127.0.0.1", Port: r.port(), Protocol: protocol, Username: "tf", Secure: secure, DialTimeout: 300 * time.Millisecond}
			c := newClient(t, config)
			start := time.Now()
			var wg sync.WaitGroup
			for range 30 {
				wg.Go(func() {
					err := selectOne(c)
					if !errors.As(err, new(*chconn.ConnectError)) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer within the dial timeout of 300ms") {
						t.Errorf("%v, want a ConnectError for the timeout", err)
					}
				})
			}
			wg.Wait()
			wantConnectError(t, c, config, "check that the server can be reached")
			if took, n := time.Since(start), r.count(); took > 5*time.Second || n != 1 {
				t.Errorf("%s, TLS %t: 31 statements took %s and %d connections, want one", protocol, secure, took, n)
			}
			c.ForgetFailure()
			wantConnectError(t, c, config, "check that the server can be reached")
			if n := r.count(); n != 2 {
				t.Errorf("%d connections, want a second try", n)
			}
		}
	}
}

// The statement's own timeout ends the wait for a connection too, and the error still says where to.
func TestTimeoutWhileConnecting(t *testing.T) {
	for _, protocol := range chconn.Protocols() {
		r := newRelay(t, "127.0.0.1:1")
		r.set(func(r *relay) { r.silent = true })
		config := chconn.Config{Host: "127.0.0.1", Port: r.port(), Protocol: protocol, Username: "tf", QueryTimeout: 200 * time.Millisecond}
		c := newClient(t, config)
		if err := selectOne(c); !errors.Is(err, context.DeadlineExceeded) || errors.As(err, new(*chconn.NoAnswerError)) || !strings.Contains(err.Error(), c.String()) {
			t.Errorf("%s: %v", protocol, err)
		}
	}
}

// A server that is a little late is waited for.
func TestLateServer(t *testing.T) {
	t.Parallel() // it waits more than it works
	e := acctest.Server(t)
	for _, protocol := range chconn.Protocols() {
		target := e.NativeAddr()
		if protocol == chconn.HTTP {
			target = e.HTTPAddr()
		}
		r := newRelay(t, target)
		r.set(func(r *relay) { r.hangUps = 2 })
		config := configOf(e, protocol)
		config.Port = r.port()
		if err := selectOne(newClient(t, config)); err != nil {
			t.Errorf("%s: %v", protocol, err)
		}
		if n := r.count(); n != 3 {
			t.Errorf("%s: %d connections, want 3", protocol, n)
		}
	}
}

// Statements one after the other share a connection, and many at a time take no more than they may. (Now and then there is
// one more, because the driver has not put the last one back yet, or nothing was sent for two seconds.)
func TestConnectionsAreReused(t *testing.T) {
	e := acctest.Server(t)
	for _, protocol := range chconn.Protocols() {
		target := e.NativeAddr()
		if protocol == chconn.HTTP {
			target = e.HTTPAddr()
		}
		r := newRelay(t, target)
		config := configOf(e, protocol)
		config.Port, config.MaxOpenConns = r.port(), 3
		c := newClient(t, config)
		for i := range 100 {
			if got := one(t, c, "SELECT toString(?)", i); got != fmt.Sprint(i) {
				t.Errorf("SELECT %d = %s", i, got)
			}
			if err := selectOne(c); err != nil {
				t.Error(err)
			}
		}
		sequential := r.count()
		t.Logf("%s: 200 statements took %d connections", protocol, sequential)
		if sequential > 20 {
			t.Errorf("%s: 200 statements took %d connections", protocol, sequential)
		}
		var wg sync.WaitGroup
		for i := range 30 {
			wg.Go(func() {
				if got := one(t, c, "SELECT toString(?) FROM numbers(1) WHERE sleep(0.02) = 0", i); got != fmt.Sprint(i) {
					t.Errorf("SELECT %d = %s", i, got)
				}
			})
		}
		wg.Wait()
		if n := r.count() - sequential; n > 10 {
			t.Errorf("%s: 30 statements, 3 at a time, took %d more connections", protocol, n)
		}
	}
}

func TestClose(t *testing.T) {
	onBoth(t, func(t *testing.T, c *chconn.Client) {
		if err := selectOne(c); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if err := selectOne(c); err == nil || !strings.Contains(err.Error(), "the connection is closed") {
			t.Errorf("%v, want: the connection is closed", err)
		}
	})
}
