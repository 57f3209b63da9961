package chconn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// noReadTimeout replaces the driver's limit of 5 minutes for one answer: a statement has its own timer.
const noReadTimeout = 365 * 24 * time.Hour

// A session is a pool of the driver's, of one connection. One alone, so that it is known which socket a statement uses:
// a native statement is given up by closing its socket. The driver is not told, since it heeds a context only while it
// reads, would go on to deliver the statement, and panics if rows arrive at the wrong moment. With the socket closed,
// what the server has not got by now it never gets.
type session struct {
	db          driver.Conn
	native      bool
	tls         *tls.Config
	dialTimeout time.Duration

	mu sync.Mutex
	// sockets are those of native connections. Now and then the driver opens one while it has not yet put the last one
	// back, so they may be two.
	sockets map[*socket]struct{}
}

// A socket leaves its session when it is closed, by whomever.
type socket struct {
	*net.TCPConn // the driver looks for the file descriptor, to see if an idle connection is alive
	session      *session
}

// Close implements [net.Conn].
func (s *socket) Close() error {
	s.session.mu.Lock()
	delete(s.session.sockets, s)
	s.session.mu.Unlock()
	return s.TCPConn.Close()
}

// newSession opens nothing yet.
func newSession(c Config, tlsConfig *tls.Config) (*session, error) {
	s := &session{native: c.Protocol == Native, tls: tlsConfig, dialTimeout: c.DialTimeout, sockets: map[*socket]struct{}{}}
	options := &clickhouse.Options{
		Addr:         []string{c.addr()},
		Auth:         clickhouse.Auth{Username: c.Username, Password: c.Password},
		DialTimeout:  c.DialTimeout + time.Second, // ours comes first, see dial
		ReadTimeout:  noReadTimeout,
		MaxOpenConns: 1,
		MaxIdleConns: 1,
		DialStrategy: s.dial,
	}
	options.ClientInfo.Products = append(options.ClientInfo.Products, struct{ Name, Version string }{clientName, c.Version})
	switch c.Protocol {
	case Native:
		options.Protocol = clickhouse.Native
		options.DialContext = s.dialSocket
		options.Compression = &clickhouse.Compression{Method: clickhouse.CompressionLZ4}
	case HTTP:
		options.Protocol = clickhouse.HTTP
		options.TLS = tlsConfig
		options.HttpUrlPath = c.HTTPPath
		// The server answers when the statement has ended, so that the status and the summary are final. (Not a setting:
		// a user with readonly = 1 may say it too.) No compression: the driver would switch it on by a setting.
		options.Settings = clickhouse.Settings{"wait_end_of_query": 1}
		options.TransportFunc = func(next *http.Transport) (http.RoundTripper, error) { return newTransport(c, next), nil }
	}
	var err error
	s.db, err = clickhouse.Open(options)
	return s, err
}

// run uses the connection for one statement, until it is answered or the context is done.
func (s *session) run(ctx context.Context, use func(ctx context.Context, db driver.Conn) error) error {
	defer s.abortWith(ctx)()
	return use(driverContext{ctx, s.native}, s.db)
}

// abortWith closes the sockets when the context is done, unless the function that it returns was called before.
func (s *session) abortWith(ctx context.Context) (stop func()) {
	aborted := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		defer close(aborted)
		s.closeSockets()
	})
	return func() {
		if !cancel() {
			<-aborted // else it might close the sockets of the next statement
		}
	}
}

// dial is the driver's way to a connection that is ready to use. What fails here was certainly not sent.
func (s *session) dial(ctx context.Context, _ int, options *clickhouse.Options, dial clickhouse.Dial) (clickhouse.DialResult, error) {
	// Not the driver's own context: that one knows nothing of the statement's end, and its deadline would become a setting.
	statement, ok := ctx.Value(statementKey{}).(context.Context)
	if !ok {
		statement = ctx
	}
	ctx, cancel := context.WithTimeoutCause(statement, s.dialTimeout,
		fmt.Errorf("no answer within the dial timeout of %s: %w", s.dialTimeout, context.DeadlineExceeded))
	defer cancel()
	defer s.abortWith(ctx)()

	result, err := dial(dialContext{ctx}, options.Addr[0], options)
	if err == nil {
		return result, nil
	}
	s.closeSockets() // the driver leaves it open
	if cause := context.Cause(ctx); cause != nil && !errors.As(err, new(*clickhouse.Exception)) {
		err = cause
	}
	return result, &dialError{err}
}

// dialSocket opens the socket of a native connection, TLS included.
func (s *session) dialSocket(ctx context.Context, addr string) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil, fmt.Errorf("a %T where a TCP connection is expected", conn)
	}
	socket := &socket{tcp, s}
	s.mu.Lock()
	s.sockets[socket] = struct{}{}
	s.mu.Unlock()
	if err := ctx.Err(); err != nil { // done before there was a socket to close
		s.closeSockets()
		return nil, err
	}
	if s.tls == nil {
		return socket, nil
	}
	encrypted := tls.Client(socket, s.tls)
	if err := encrypted.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	return encrypted, nil
}

// closeSockets breaks off whatever the native connections are at.
func (s *session) closeSockets() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for socket := range s.sockets {
		_ = socket.TCPConn.Close() // there is nothing to save
	}
	clear(s.sockets)
}

// close ends the connection.
func (s *session) close() error { return s.db.Close() }

// dialError is a failure to get a connection ready.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// statementKey finds the statement's context in the driver's.
type statementKey struct{}

// driverContext is a statement's context as the driver may see it: without the deadline, for which the driver would add the
// setting max_execution_time, which a user with readonly = 1 may not change; and on a native connection without an end.
type driverContext struct {
	context.Context
	endless bool
}

func (c driverContext) Deadline() (time.Time, bool) { return time.Time{}, false }

func (c driverContext) Done() <-chan struct{} {
	if c.endless {
		return nil
	}
	return c.Context.Done()
}

func (c driverContext) Err() error {
	if c.endless {
		return nil
	}
	return c.Context.Err()
}

func (c driverContext) Value(key any) any {
	if key == (statementKey{}) {
		return c.Context
	}
	return c.Context.Value(key)
}

// dialContext is a context for opening a connection, without a deadline for the same reason, and without values: over HTTP
// the driver greets the server with a query, which must not run with the id, settings and tables of the statement.
type dialContext struct{ context.Context }

func (dialContext) Deadline() (time.Time, bool) { return time.Time{}, false }
func (dialContext) Value(any) any               { return nil }
