// Package acctest helps tests: a ClickHouse server for the test binary, databases that clean up after themselves, proxies
// that lose connections, and a TLS listener.
package acctest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/embedded"
)

// Endpoint is where a server answers, and for whom.
type Endpoint struct {
	Host                 string
	NativePort, HTTPPort int
	Username, Password   string
}

// NativeAddr is host:port of the native protocol.
func (e Endpoint) NativeAddr() string { return net.JoinHostPort(e.Host, strconv.Itoa(e.NativePort)) }

// HTTPAddr is host:port of HTTP.
func (e Endpoint) HTTPAddr() string { return net.JoinHostPort(e.Host, strconv.Itoa(e.HTTPPort)) }

// Conn opens a native connection that closes with the test.
func (e Endpoint) Conn(tb testing.TB) driver.Conn {
	tb.Helper()
	conn, err := clickhouse.Open(&clickhouse.Options{
		Addr:        []string{e.NativeAddr()},
		Auth:        clickhouse.Auth{Username: e.Username, Password: e.Password},
		DialTimeout: 30 * time.Second, // a busy machine is no failure
	})
	if err != nil {
		tb.Fatalf("open %s: %v", e.NativeAddr(), err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	return conn
}

// EndpointOf is the endpoint of an embedded server, for the user `default`.
func EndpointOf(s *embedded.Server) Endpoint {
	return Endpoint{Host: s.Host, NativePort: s.NativePort, HTTPPort: s.HTTPPort, Username: "default"}
}

// shared is the server of this test binary.
var shared struct {
	once     sync.Once
	embedded *embedded.Server
	endpoint Endpoint
	err      error
}

// Main is the TestMain of a package whose tests need a server:
//
//	func TestMain(m *testing.M) { acctest.Main(m) }
func Main(m *testing.M) {
	embedded.MaybeRunChild()
	code := m.Run()
	if shared.embedded != nil {
		shared.embedded.Stop()
	}
	if err := removeBuilt(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// Server is the server that all tests of the test binary share: the one that CLICKHOUSE_HOST, CLICKHOUSE_PORT (native),
// CLICKHOUSE_USER, CLICKHOUSE_PASSWORD and CLICKHOUSESTATE_TEST_HTTP_PORT name, or else an embedded one with a query log,
// started on first use. Without a server the test fails.
func Server(tb testing.TB) Endpoint {
	tb.Helper()
	shared.once.Do(func() {
		if os.Getenv("CLICKHOUSE_HOST") != "" {
			shared.endpoint, shared.err = endpointFromEnv(os.Getenv)
			return
		}
		if shared.embedded, shared.err = embedded.Start(context.Background(), embedded.Options{QueryLog: true}); shared.err == nil {
			shared.endpoint = EndpointOf(shared.embedded)
		}
	})
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	return shared.endpoint
}

func endpointFromEnv(getenv func(string) string) (Endpoint, error) {
	if p := getenv("CLICKHOUSE_PROTOCOL"); p != "" && p != "native" {
		return Endpoint{}, errors.New("the tests use both protocols: CLICKHOUSE_PROTOCOL must be native, CLICKHOUSE_PORT the native port, and " + embedded.HTTPPortEnv + " the HTTP port")
	}
	e := Endpoint{Host: getenv("CLICKHOUSE_HOST"), Username: getenv("CLICKHOUSE_USER"), Password: getenv("CLICKHOUSE_PASSWORD")}
	if e.Username == "" {
		e.Username = "default"
	}
	for _, port := range []struct {
		env   string
		value *int
		byDef int
	}{
		{"CLICKHOUSE_PORT", &e.NativePort, 9000},
		{embedded.HTTPPortEnv, &e.HTTPPort, 8123},
	} {
		text := getenv(port.env)
		if text == "" {
			*port.value = port.byDef
			continue
		}
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n == 0 {
			return Endpoint{}, fmt.Errorf("%s = %q is no port", port.env, text)
		}
		*port.value = int(n)
	}
	return e, nil
}

// Conn opens a native connection to the shared server: to seed tables, and to look behind the product's back.
func Conn(tb testing.TB) driver.Conn {
	tb.Helper()
	return Server(tb).Conn(tb)
}

// Database makes a database on the shared server that lives as long as the test, and returns its name.
func Database(tb testing.TB) string {
	tb.Helper()
	conn := Conn(tb)
	name := "test_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	if err := conn.Exec(context.Background(), "CREATE DATABASE "+name); err != nil {
		tb.Fatalf("create database %s: %v", name, err)
	}
	tb.Cleanup(func() {
		if err := conn.Exec(context.Background(), "DROP DATABASE IF EXISTS "+name+" SYNC"); err != nil {
			tb.Errorf("drop database %s: %v", name, err)
		}
	})
	return name
}

// PrivateServer starts an embedded server for this test alone, for special users and for crashes; it stops with the test.
// To start it again after Stop or Kill, give it a Dir (tb.TempDir()) and call PrivateServer with the server's Options.
func PrivateServer(tb testing.TB, opts embedded.Options) *embedded.Server {
	tb.Helper()
	s, err := embedded.Start(context.Background(), opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Stop)
	return s
}
