package chconn_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
)

// newGateway serves HTTP in front of the shared server, and returns how to reach it.
func newGateway(t *testing.T, handler func(server http.Handler) http.Handler) chconn.Config {
	t.Helper()
	e := acctest.Server(t)
	server := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: e.HTTPAddr()})
	gateway := httptest.NewServer(handler(server))
	t.Cleanup(gateway.Close)
	config := configOf(e, chconn.HTTP)
	addr, _ := gateway.Listener.Addr().(*net.TCPAddr)
	config.Port = addr.Port
	return config
}

func TestHTTPPath(t *testing.T) {
	for _, tc := range []struct{ served, path, hint string }{
		{"/ch/", "/ch/", ""},
		{"/ch/", "ch/", ""},
		{"/ch", "/ch", ""},
		{"/ch", "ch", ""},
		{"/a b/ü", "/a b/ü", ""},
		{"/", "", ""},
		{"/", "/", ""},
		{"/ch/", "/ch", "check http_path, host and port"}, // a redirection, which is not followed
		{"/ch", "/other", "check http_path, host and port"},
		{"/ch", "", "check http_path, host and port"},
	} {
		config := newGateway(t, func(server http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case tc.served:
					r.URL.Path, r.URL.RawPath = "/", ""
					server.ServeHTTP(w, r)
				case strings.TrimSuffix(tc.served, "/"):
					http.Redirect(w, r, tc.served, http.StatusPermanentRedirect)
				default:
					http.NotFound(w, r)
				}
			})
		})
		config.HTTPPath = tc.path
		c := newClient(t, config)
		if tc.hint != "" {
			wantConnectError(t, c, config, tc.hint)
		} else if err := selectOne(c); err != nil {
			t.Errorf("%q served, %q asked for: %v", tc.served, tc.path, err)
		}
	}
}

// The server itself knows one path.
func TestHTTPPathOfServer(t *testing.T) {
	config := configOf(acctest.Server(t), chconn.HTTP)
	config.HTTPPath = "/nosuch"
	wantConnectError(t, newClient(t, config), config, "check http_path, host and port")
}

// Whatever answers in place of the server is told from it.
func TestForeignAnswers(t *testing.T) {
	t.Parallel() // it waits more than it works
	for _, tc := range []struct {
		status int
		hint   string
	}{
		{http.StatusOK, "check host, port and http_path"},
		{http.StatusNoContent, "check host, port and http_path"},
		{http.StatusFound, "check http_path, host and port"},
		{http.StatusUnauthorized, "a gateway refused the request"},
		{http.StatusForbidden, "a gateway refused the request"},
		{http.StatusNotFound, "check http_path, host and port"},
		{http.StatusBadGateway, "a gateway cannot reach the server"},
		{http.StatusServiceUnavailable, "a gateway cannot reach the server"},
	} {
		var followed atomic.Bool
		elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Store(true) }))
		t.Cleanup(elsewhere.Close)
		config := newGateway(t, func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if tc.status == http.StatusFound {
					w.Header().Set("Location", elsewhere.URL+"/login?token=s3cret")
				}
				w.WriteHeader(tc.status)
				if tc.status != http.StatusNoContent {
					_, _ = w.Write([]byte("<html>welcome</html>"))
				}
			})
		})
		config.Password = "s3cret"
		wantConnectError(t, newClient(t, config), config, tc.hint)
		if followed.Load() {
			t.Error("the redirection was followed")
		}
	}
}

// A gateway that fails after the statement went through it leaves open what became of it.
func TestGatewayFailsLater(t *testing.T) {
	for _, tc := range []struct {
		name    string
		answer  func(w http.ResponseWriter)
		certain bool // not carried out
	}{
		{"gateway timeout", func(w http.ResponseWriter) { w.WriteHeader(http.StatusGatewayTimeout) }, false},
		{"too large", func(w http.ResponseWriter) { w.WriteHeader(http.StatusRequestEntityTooLarge) }, true},
		{"no summary", func(w http.ResponseWriter) { w.Header().Set("X-ClickHouse-Query-Id", "x") }, false},
	} {
		var failing atomic.Bool
		config := newGateway(t, func(server http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if failing.Load() {
					tc.answer(w)
				} else {
					server.ServeHTTP(w, r)
				}
			})
		})
		c := newClient(t, config)
		if err := selectOne(c); err != nil {
			t.Fatal(err)
		}
		failing.Store(true)
		err := selectOne(c)
		if lost := errors.As(err, new(*chconn.NoAnswerError)); lost == tc.certain {
			t.Errorf("%s: %v", tc.name, err)
		}
		if certain := errors.As(err, new(*chconn.ConnectError)); certain != tc.certain {
			t.Errorf("%s: %v", tc.name, err)
		}
		failing.Store(false)
		if err := selectOne(c); err != nil {
			t.Errorf("%s: then: %v", tc.name, err)
		}
	}
}

// Every statement leaves a line, and no value in it.
func TestLog(t *testing.T) {
	database := acctest.Database(t)
	for _, protocol := range chconn.Protocols() {
		var log bytes.Buffer
		config := configOf(acctest.Server(t), protocol)
		config.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		c := newClient(t, config)
		exec(t, c, "CREATE OR REPLACE TABLE "+database+".t (id String) ENGINE = MergeTree ORDER BY id")
		log.Reset()
		_, err := c.Exec(context.Background(), chconn.Statement{
			Operation: "entry.write", QueryID: "log-" + string(protocol),
			Text: "INSERT INTO " + database + ".t SELECT concat(id, ?) FROM incoming", Args: []any{"s3cret"},
			External: []chconn.Table{{Name: "incoming", Columns: []chconn.Column{{Name: "id", Type: "String"}}, Rows: [][]any{{"hidden"}, {"payload"}}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := one(t, c, "SELECT toString(count()) FROM "+database+".t WHERE id != ?", "s3cret"); got != "2" {
			t.Fatalf("%s rows", got)
		}
		_, err = c.Exec(context.Background(), chconn.Statement{Operation: "entry.refuse", Text: "SELECT throwIf(1, ?)", Args: []any{"s3cret"}})
		if err == nil {
			t.Fatal("no error")
		}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		for i, want := range []string{
			"level=DEBUG msg=\"clickhouse statement\" operation=entry.write query_id=log-" + string(protocol) + " protocol=" + string(protocol) + " duration=",
			" operation=test.column ",
			" operation=entry.refuse ",
		} {
			if i >= len(lines) || !strings.Contains(lines[i], want) {
				t.Fatalf("the log has %q, want %s", lines, want)
			}
		}
		if !strings.Contains(lines[0], " rows_written=2 ") || !strings.Contains(lines[1], " rows_read=1 ") || !strings.Contains(lines[2], " error_code=395 ") {
			t.Errorf("the log has %q", lines)
		}
		for _, secret := range []string{"s3cret", "hidden", "payload"} {
			if strings.Contains(log.String(), secret) {
				t.Errorf("%s is in the log: %s", secret, log.String())
			}
		}
	}
}
