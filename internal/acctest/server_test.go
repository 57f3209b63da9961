package acctest

import (
	"strings"
	"testing"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/embedded"
)

func TestMain(m *testing.M) { Main(m) }

func TestDatabase(t *testing.T) {
	name := Database(t)
	conn := Conn(t)
	var n uint64
	if err := conn.QueryRow(t.Context(), "SELECT count() FROM system.databases WHERE name = ?", name).Scan(&n); err != nil {
		t.Fatal(err)
	}
	if n != 1 {
		t.Errorf("%d databases called %s, want 1", n, name)
	}
}

func TestEndpointFromEnv(t *testing.T) {
	const none = "" // no error
	for _, test := range []struct {
		name string
		env  map[string]string
		want Endpoint
		err  string
	}{
		{"host alone", map[string]string{"CLICKHOUSE_HOST": "h"}, Endpoint{"h", 9000, 8123, "default", ""}, none},
		{"all", map[string]string{"CLICKHOUSE_HOST": "h", "CLICKHOUSE_PORT": "1", "CLICKHOUSESTATE_TEST_HTTP_PORT": "2", "CLICKHOUSE_USER": "u", "CLICKHOUSE_PASSWORD": "p", "CLICKHOUSE_PROTOCOL": "native"}, Endpoint{"h", 1, 2, "u", "p"}, none},
		{"HTTP alone", map[string]string{"CLICKHOUSE_HOST": "h", "CLICKHOUSE_PROTOCOL": "http"}, Endpoint{}, "CLICKHOUSE_PROTOCOL must be native"},
		{"no number", map[string]string{"CLICKHOUSE_HOST": "h", "CLICKHOUSE_PORT": "x"}, Endpoint{}, `CLICKHOUSE_PORT = "x" is no port`},
		{"no port", map[string]string{"CLICKHOUSE_HOST": "h", "CLICKHOUSESTATE_TEST_HTTP_PORT": "0"}, Endpoint{}, `CLICKHOUSESTATE_TEST_HTTP_PORT = "0" is no port`},
	} {
		got, err := endpointFromEnv(func(name string) string { return test.env[name] })
		if got != test.want && test.err == none {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
		if (err == nil) != (test.err == none) || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: error %v, want %q", test.name, err, test.err)
		}
	}
}

func TestDatabaseGoesAway(t *testing.T) {
	var name string
	t.Run("test", func(t *testing.T) { name = Database(t) })
	var n uint64
	if err := Conn(t).QueryRow(t.Context(), "SELECT count() FROM system.databases WHERE name = ?", name).Scan(&n); err != nil {
		t.Fatal(err)
	}
	if n != 0 || name == "" {
		t.Errorf("%d databases called %q after its test, want 0", n, name)
	}
}

func TestPrivateServer(t *testing.T) {
	s := PrivateServer(t, embedded.Options{Users: []embedded.User{{Name: "u", Password: "p"}}})
	e := EndpointOf(s)
	if e.NativePort == Server(t).NativePort {
		t.Error("it is the shared server")
	}
	e.Username, e.Password = "u", "p"
	if err := e.Conn(t).Ping(t.Context()); err != nil {
		t.Error(err)
	}
}
