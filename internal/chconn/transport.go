package chconn

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"
)

// idleHTTP is how long an idle HTTP connection is kept: less than any server keeps it (3 s on old ones), so that no
// statement is sent into a connection that the server is about to close.
const idleHTTP = 2 * time.Second

// An exchange is what becomes known of one attempt at a statement.
type exchange struct {
	queryID string
	// giveUp ends the attempt.
	giveUp context.CancelFunc
	// read counts the rows handed out.
	read uint64
	// written counts the rows that the server says it wrote.
	written atomic.Uint64
	// sent: over HTTP, the statement may have reached the server.
	sent atomic.Bool
	// summary is the server's account of the statement, over HTTP.
	summary atomic.Pointer[string]
}

// exchangeKey finds the exchange in a request's context.
type exchangeKey struct{}

// withExchange lets the transport find the exchange.
func withExchange(ctx context.Context, x *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

const summaryHeader = "X-ClickHouse-Summary"

// readSummary learns how many rows were written. Over the native protocol the driver counts them.
func (x *exchange) readSummary() error {
	header := x.summary.Load()
	if header == nil || *header == "" {
		return fmt.Errorf("the answer has no %s header; does a gateway remove it?", summaryHeader)
	}
	var summary struct {
		WrittenRows uint64 `json:"written_rows,string"`
	}
	if err := json.Unmarshal([]byte(*header), &summary); err != nil {
		return fmt.Errorf("read the %s header: %w", summaryHeader, err)
	}
	x.written.Store(summary.WrittenRows)
	return nil
}

// transport is the driver's HTTP transport and what it lacks: one way to authenticate, an account of what was sent and
// written, and a look at who answers.
type transport struct {
	*http.Transport // CloseIdleConnections included, which the driver closes a connection with
	username        string
	password        string
	certificate     bool // the client certificate says who we are
}

func newTransport(c Config, next *http.Transport) *transport {
	next.IdleConnTimeout = idleHTTP
	return &transport{
		Transport:   next,
		username:    c.Username,
		password:    c.Password,
		certificate: c.TLS.ClientCert != "" && c.Password == "",
	}
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	x, observed := ctx.Value(exchangeKey{}).(*exchange)
	if observed {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			GotConn: func(httptrace.GotConnInfo) { x.sent.Store(true) },
		})
	}
	req = req.Clone(ctx)
	if !t.certificate {
		// With TLS the driver uses headers, which lose a space at the end of a password, and asks for authentication by
		// certificate when there is no password.
		for _, name := range []string{"X-ClickHouse-User", "X-ClickHouse-Key", "X-ClickHouse-SSL-Certificate-Auth"} {
			req.Header.Del(name)
		}
		req.SetBasicAuth(t.username, t.password)
	}
	resp, err := t.Transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if answer := foreign(resp); answer != nil {
		_ = resp.Body.Close() // not an answer to read
		return nil, answer
	}
	if observed {
		summary := resp.Header.Get(summaryHeader)
		x.summary.Store(&summary)
	}
	return resp, nil
}

// A foreignError is an HTTP answer that no ClickHouse server gave to a statement.
type foreignError struct {
	status   int
	location string // of a redirection, without its query
	native   bool   // the native port of a ClickHouse server gave it
}

func (e *foreignError) Error() string {
	text := fmt.Sprintf("HTTP status %d %s, not from a ClickHouse server", e.status, http.StatusText(e.status))
	if e.location != "" {
		text += ", which points to " + e.location
	}
	return text
}

// foreign tells whether someone else than ClickHouse answered. A redirection is never followed: it would carry the
// password elsewhere.
func foreign(resp *http.Response) *foreignError {
	for name := range resp.Header {
		if strings.HasPrefix(name, "X-Clickhouse-") {
			return nil
		}
	}
	start := make([]byte, 256)
	n, _ := io.ReadFull(resp.Body, start) // what cannot be read now cannot be read later either
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(start[:n]), resp.Body), resp.Body}
	if resp.StatusCode != http.StatusOK && bytes.HasPrefix(start, []byte("Code: ")) {
		return nil // an exception, though without a header
	}
	answer := &foreignError{status: resp.StatusCode, native: bytes.Contains(start, []byte("is for clickhouse-client"))}
	if location, err := resp.Location(); err == nil {
		location.RawQuery, location.User, location.Fragment = "", nil, ""
		answer.location = location.String()
	}
	return answer
}
