// Package chconn talks to a ClickHouse server, over the native protocol or HTTP, in such a way that the rest of the program
// need not know which: statements with their values and rows, results, and errors that say what is certain and what is not.
//
// It is the only package that knows the driver. It knows no table of ours, and no Terraform.
package chconn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/cenkalti/backoff/v5"
	"github.com/google/uuid"
)

// clientName is who we are to the server.
const clientName = "terraform-provider-clickhousestate"

const (
	// retryFor bounds the repetition of what failed for want of a connection. With the default dial timeout, a statement
	// fails within 15 s of its start where there is no server.
	retryFor = 3 * time.Second
	// retryFirst is the first pause; later ones grow.
	retryFirst = 100 * time.Millisecond
)

// A Client runs statements on a server. It may be used by several goroutines at a time.
type Client struct {
	config Config
	tls    *tls.Config
	pool   *pool
	met    acquaintance
	totals totals
}

// New checks the config and fills in its defaults. It opens no connection: the first statement does. Its errors begin with
// the attribute at fault.
func New(config Config) (*Client, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	tlsConfig, err := config.tlsConfig()
	if err != nil {
		return nil, err
	}
	c := &Client{config: config, tls: tlsConfig}
	c.pool = newPool(config.MaxOpenConns, c.open)
	return c, nil
}

func (c *Client) open() (*session, error) { return newSession(c.config, c.tls) }

// String describes the connection, without the password.
func (c *Client) String() string {
	return describe(c.config.Host, c.config.Port, c.config.Protocol, c.config.Secure, c.config.Username)
}

// Close ends the connections; a statement on its way may end first.
func (c *Client) Close() error { return c.pool.close() }

// Query runs a statement that reads, and hands each row to scan, which must not use the client. A failed connection is
// tried again for a few seconds, with a new query id, as long as no row was handed out.
//
// Errors are those of scan, a *[ServerError], *[ConnectError] or *[NoAnswerError], or the context's, each wrapped with the
// operation.
func (c *Client) Query(ctx context.Context, s Statement, scan func(Row) error) error {
	ctx, cancel := c.limit(ctx, s)
	defer cancel()
	req, err := c.prepare(ctx, s)
	if err != nil {
		return err
	}
	return c.query(ctx, req, scan)
}

func (c *Client) query(ctx context.Context, req request, scan func(Row) error) error {
	read := func(ctx context.Context, db driver.Conn, x *exchange) error {
		rows, err := db.Query(ctx, req.text)
		if err != nil {
			return err
		}
		for rows.Next() {
			x.read++
			if err := scan(rows); err != nil {
				x.giveUp() // else Close would read to the end
				_ = rows.Close()
				return &scanError{err}
			}
		}
		if err := rows.Close(); err != nil {
			return err
		}
		return rows.Err()
	}
	_, err := c.repeat(ctx, req, read, func(x *exchange, err error) bool {
		return x.read == 0 && (errors.As(err, new(*NoAnswerError)) || transient(err))
	})
	return err
}

// Exec runs a statement that writes. It is repeated only while it certainly was not sent, for a few seconds.
// A *[NoAnswerError] leaves open whether it was carried out; other errors are those of [Client.Query].
func (c *Client) Exec(ctx context.Context, s Statement) (Result, error) {
	ctx, cancel := c.limit(ctx, s)
	defer cancel()
	if s.QueryID == "" {
		s.QueryID = uuid.NewString()
	}
	result := Result{QueryID: s.QueryID}
	req, err := c.prepare(ctx, s)
	if err != nil {
		return result, err
	}
	write := func(ctx context.Context, db driver.Conn, x *exchange) error {
		if err := db.Exec(ctx, req.text); err != nil || c.config.Protocol == Native {
			return err
		}
		return x.readSummary()
	}
	x, err := c.repeat(ctx, req, write, func(_ *exchange, err error) bool { return transient(err) })
	if err != nil {
		return result, err
	}
	result.WrittenRows = x.written.Load()
	return result, nil
}

// Kill asks the server to end a statement, and waits until it has. It uses a connection beside the others, so that it works
// while all are in use. A statement that runs no longer is no error. The user needs the right to read system.processes.
func (c *Client) Kill(ctx context.Context, queryID string) error {
	beside := &Client{config: c.config, tls: c.tls}
	beside.pool = newPool(1, beside.open)
	defer func() { _ = beside.Close() }() // nothing is under way there any more
	kill := Statement{Operation: "query.kill"}
	ctx, cancel := c.limit(ctx, kill)
	defer cancel()
	text, err := bind("KILL QUERY WHERE query_id = ? SYNC", []any{queryID})
	if err != nil {
		return err
	}
	// As a statement without rows: the driver takes an answer without any block for a broken connection.
	run := func(ctx context.Context, db driver.Conn, _ *exchange) error { return db.Exec(ctx, text) }
	_, err = beside.repeat(ctx, request{Statement: kill, text: text}, run, func(_ *exchange, err error) bool { return transient(err) })
	return err
}

// limit adds the statement's timeout.
func (c *Client) limit(ctx context.Context, s Statement) (context.Context, context.CancelFunc) {
	timeout := s.Timeout
	if timeout == 0 {
		timeout = c.config.QueryTimeout
	}
	return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %s: %w", timeout, context.DeadlineExceeded))
}

// A request is a statement ready to be sent.
type request struct {
	Statement
	text     string // with its arguments
	settings clickhouse.Settings
}

// prepare binds the statement, and learns which settings go with it.
func (c *Client) prepare(ctx context.Context, s Statement) (request, error) {
	text, err := bind(s.Text, s.Args)
	if err != nil {
		return request{}, fmt.Errorf("%s: bind: %w", s.Operation, err)
	}
	server, err := c.Server(ctx)
	if err != nil {
		return request{}, fmt.Errorf("%s: %w", s.Operation, err)
	}
	comment := clientName + "/" + c.config.Version + " " + s.Operation
	wanted := s.Settings
	if c.config.Quorum {
		wanted = maps.Clone(quorum)
		maps.Copy(wanted, s.Settings)
	}
	return request{Statement: s, text: text, settings: server.settingsFor(wanted, comment)}, nil
}

// A sendFunc sends a request through the driver and takes in the whole answer.
type sendFunc func(ctx context.Context, db driver.Conn, x *exchange) error

// repeat attempts the request, again where an error is worth it, and returns what became known of the last attempt.
func (c *Client) repeat(ctx context.Context, req request, send sendFunc, again func(*exchange, error) bool) (*exchange, error) {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval = retryFirst
	x, err := backoff.Retry(ctx, func() (*exchange, error) {
		x := &exchange{queryID: req.QueryID}
		if x.queryID == "" {
			x.queryID = uuid.NewString()
		}
		err := c.attempt(ctx, req, x, send)
		if errors.As(err, new(*NoAnswerError)) {
			req.QueryID = "" // it may be in use still
		}
		if err != nil && (ctx.Err() != nil || !again(x, err)) {
			err = backoff.Permanent(err)
		}
		return x, err
	}, backoff.WithBackOff(pauses), backoff.WithMaxElapsedTime(retryFor))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", req.Operation, err)
	}
	return x, nil
}

// attempt sends the request once.
func (c *Client) attempt(ctx context.Context, req request, x *exchange, send sendFunc) error {
	tables, err := externalTables(req.External)
	if err != nil {
		return err
	}
	session, err := c.pool.get(ctx)
	if err != nil {
		return err
	}
	defer c.pool.put(session)

	start := time.Now()
	running, giveUp := context.WithCancel(ctx)
	defer giveUp()
	x.giveUp = giveUp
	err = session.run(running, func(ctx context.Context, db driver.Conn) error {
		ctx = clickhouse.Context(withExchange(ctx, x),
			clickhouse.WithQueryID(x.queryID),
			clickhouse.WithSettings(req.settings),
			clickhouse.WithExternalTable(tables...),
			clickhouse.WithProgress(func(p *clickhouse.Progress) { x.written.Add(p.WroteRows) }),
		)
		return send(ctx, db, x)
	})
	err = c.explain(ctx, x, req.Statement, err)
	c.totals.add(req.Operation, x, time.Since(start))
	c.log(ctx, x, req.Statement, time.Since(start), err)
	return err
}

// log writes what was run, without any value: of an error of the server's only the code, of the caller's only that it was one.
func (c *Client) log(ctx context.Context, x *exchange, s Statement, duration time.Duration, err error) {
	if !c.config.Logger.Enabled(ctx, slog.LevelDebug) {
		return
	}
	attributes := []slog.Attr{
		slog.String("operation", s.Operation),
		slog.String("query_id", x.queryID),
		slog.String("protocol", string(c.config.Protocol)),
		slog.Duration("duration", duration),
		slog.Uint64("rows_read", x.read),
		slog.Uint64("rows_written", x.written.Load()),
		slog.String("text", s.Text),
	}
	var server *ServerError
	switch {
	case errors.As(err, &server):
		attributes = append(attributes, slog.Int("error_code", int(server.Code)), slog.String("error_name", server.Name))
	case errors.As(err, new(*ConnectError)), errors.As(err, new(*NoAnswerError)):
		attributes = append(attributes, slog.String("error", err.Error()))
	case err != nil:
		attributes = append(attributes, slog.Bool("given_up", true))
	}
	c.config.Logger.LogAttrs(ctx, slog.LevelDebug, "clickhouse statement", attributes...)
}
