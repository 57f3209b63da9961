package chconn_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
)

// A station is a client whose connections pass a relay, and one beside it that sees what really happened.
type station struct {
	c, direct *chconn.Client
	relay     *relay
	protocol  chconn.Protocol
	table     string
}

// onBadNetwork runs a test over each protocol, with a connection that is open already and an empty table.
func onBadNetwork(t *testing.T, test func(t *testing.T, s station)) {
	t.Helper()
	e := acctest.Server(t)
	table := acctest.Database(t) + ".t"
	for _, protocol := range chconn.Protocols() {
		t.Run(string(protocol), func(t *testing.T) {
			target := e.NativeAddr()
			if protocol == chconn.HTTP {
				target = e.HTTPAddr()
			}
			s := station{protocol: protocol, relay: newRelay(t, target), direct: newClient(t, configOf(e, protocol)), table: table}
			config := configOf(e, protocol)
			config.Port = s.relay.port()
			s.c = newClient(t, config)
			exec(t, s.direct, "CREATE OR REPLACE TABLE "+table+" (id String, payload String) ENGINE = MergeTree ORDER BY id")
			if err := selectOne(s.c); err != nil {
				t.Fatal(err)
			}
			test(t, s)
		})
	}
}

// insert writes a row.
func (s station) insert(id, payload string, timeout time.Duration) chconn.Statement {
	return chconn.Statement{
		Operation: "test.insert", QueryID: id, Timeout: timeout,
		Text: "INSERT INTO " + s.table + " SELECT id, payload FROM incoming",
		External: []chconn.Table{{
			Name:    "incoming",
			Columns: []chconn.Column{{Name: "id", Type: "String"}, {Name: "payload", Type: "String"}},
			Rows:    [][]any{{id, payload}},
		}},
	}
}

// longStatement runs for a minute, unless it is ended.
const longStatement = "SELECT sleepEachRow(1) FROM numbers(60) SETTINGS max_block_size = 1"

// wantNoAnswer checks an error for its type, its id, and why.
func wantNoAnswer(t *testing.T, err error, id string, why error) {
	t.Helper()
	var lost *chconn.NoAnswerError
	if !errors.As(err, &lost) || lost.QueryID != id || why != nil && !errors.Is(err, why) {
		t.Errorf("%v, want a NoAnswerError for %s because of %v", err, id, why)
	}
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still not: %s", what)
		}
	}
}

// running tells whether the server runs a statement.
func running(t *testing.T, c *chconn.Client, id string) bool {
	t.Helper()
	return one(t, c, "SELECT toString(count()) FROM system.processes WHERE query_id = ?", id) == "1"
}

func TestAnswerLost(t *testing.T) {
	onBadNetwork(t, func(t *testing.T, s station) {
		s.relay.set(func(r *relay) { r.mute = true })
		id := uuid.NewString()
		result, err := s.c.Exec(context.Background(), s.insert(id, "x", 500*time.Millisecond))
		wantNoAnswer(t, err, id, context.DeadlineExceeded)
		if !strings.Contains(err.Error(), "no answer within 500ms") || result.QueryID != id {
			t.Errorf("%v, %s", err, result.QueryID)
		}
		eventually(t, "written all the same", func() bool {
			return one(t, s.direct, "SELECT toString(count()) FROM "+s.table+" WHERE id = ?", id) == "1"
		})
		s.relay.set(func(r *relay) { r.mute = false })
		if _, err := s.c.Exec(context.Background(), s.insert(uuid.NewString(), "y", 0)); err != nil {
			t.Errorf("then: %v", err)
		}
	})
}

func TestCallerGivesUp(t *testing.T) {
	onBadNetwork(t, func(t *testing.T, s station) {
		lockLost := errors.New("lock lost")
		for _, tc := range []struct {
			name string
			run  func(ctx context.Context, id string) error
		}{
			{"exec", func(ctx context.Context, id string) error {
				_, err := s.c.Exec(ctx, chconn.Statement{Operation: "test", Text: longStatement, QueryID: id})
				return err
			}},
			{"query", func(ctx context.Context, id string) error {
				return s.c.Query(ctx, chconn.Statement{Operation: "test", Text: longStatement, QueryID: id}, func(chconn.Row) error { return nil })
			}},
		} {
			id := uuid.NewString()
			ctx, cancel := context.WithCancelCause(context.Background())
			failed := make(chan error)
			go func() { failed <- tc.run(ctx, id) }()
			eventually(t, "running", func() bool { return running(t, s.direct, id) })
			start := time.Now()
			cancel(lockLost)
			err := <-failed
			if took := time.Since(start); took > time.Second {
				t.Errorf("%s: it took %s", tc.name, took)
			}
			wantNoAnswer(t, err, id, context.Canceled)
			wantNoAnswer(t, err, id, lockLost)
			if err := s.direct.Kill(context.Background(), id); err != nil {
				t.Errorf("kill: %v", err)
			}
			if running(t, s.direct, id) {
				t.Errorf("%s: still running after Kill", tc.name)
			}
			if err := selectOne(s.c); err != nil {
				t.Errorf("%s: then: %v", tc.name, err)
			}
		}
	})
}

// Before it is sent, a statement that is given up is certain not to be carried out.
func TestGivenUpBeforeSent(t *testing.T) {
	e := acctest.Server(t)
	for _, protocol := range chconn.Protocols() {
		config := configOf(e, protocol)
		config.MaxOpenConns = 1
		c := newClient(t, config)
		done, cancel := context.WithCancel(context.Background())
		cancel()
		statement := chconn.Statement{Operation: "test", Text: "SELECT 1", Timeout: 50 * time.Millisecond}
		_, err := c.Exec(done, statement)
		if errors.As(err, new(*chconn.NoAnswerError)) || !errors.Is(err, context.Canceled) {
			t.Errorf("%s, not connected: %v", protocol, err)
		}

		id := uuid.NewString()
		busy, release := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() {
			_, err := c.Exec(busy, chconn.Statement{Operation: "test", Text: longStatement, QueryID: id})
			ended <- err
		}()
		observer := newClient(t, config)
		eventually(t, "running", func() bool { return running(t, observer, id) })
		if _, err = c.Exec(context.Background(), statement); errors.As(err, new(*chconn.NoAnswerError)) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s, no free connection: %v", protocol, err)
		}
		if _, err = c.Exec(done, statement); errors.As(err, new(*chconn.NoAnswerError)) || !errors.Is(err, context.Canceled) {
			t.Errorf("%s, no free connection: %v", protocol, err)
		}
		// Kill needs no free connection; the statement ends with the server's word.
		if err := c.Kill(context.Background(), id); err != nil {
			t.Errorf("%s: %v", protocol, err)
		}
		var server *chconn.ServerError
		if err := <-ended; !errors.As(err, &server) || server.Code != chconn.CodeQueryWasCancelled {
			t.Errorf("%s: %v, want error 394", protocol, err)
		}
		release()
	}
}

// A statement that has ended is not there to be killed, which is no error.
func TestKillEnded(t *testing.T) {
	onBoth(t, func(t *testing.T, c *chconn.Client) {
		if err := c.Kill(context.Background(), uuid.NewString()); err != nil {
			t.Error(err)
		}
	})
}

// A statement that was given up while it was being delivered is never delivered later.
func TestNotDeliveredLater(t *testing.T) {
	random := make([]byte, 32<<20) // no compression makes it fit into the buffers on the way
	if _, err := rand.Read(random); err != nil {
		t.Fatal(err)
	}
	payload := string(random)
	onBadNetwork(t, func(t *testing.T, s station) {
		before := 0
		s.relay.set(func(r *relay) { r.deaf, before = true, r.taken })
		id := uuid.NewString()
		ctx, cancel := context.WithCancel(context.Background())
		failed := make(chan error)
		go func() {
			_, err := s.c.Exec(ctx, s.insert(id, payload, 0))
			failed <- err
		}()
		eventually(t, "being sent", func() (sent bool) {
			s.relay.set(func(r *relay) { sent = r.taken > before })
			return sent
		})
		start := time.Now()
		cancel()
		err := <-failed
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("it took %s", took)
		}
		wantNoAnswer(t, err, id, context.Canceled)
		s.relay.set(func(r *relay) { r.deaf = false })
		if _, err := s.c.Exec(context.Background(), s.insert("next", "y", 0)); err != nil {
			t.Errorf("then: %v", err)
		}
		eventually(t, "not running", func() bool { return !running(t, s.direct, id) })
		if got := one(t, s.direct, "SELECT toString(groupArray(id)) FROM "+s.table); got != "['next']" {
			t.Errorf("written: %s", got)
		}
	})
}

// A broken connection: a read is tried again, a write is not, and neither after rows were handed out.
func TestConnectionBreaks(t *testing.T) {
	onBadNetwork(t, func(t *testing.T, s station) {
		breakWhileRunning := func(id string) {
			eventually(t, "running", func() bool { return running(t, s.direct, id) })
			s.relay.cut()
		}

		id := uuid.NewString()
		go breakWhileRunning(id)
		rows := 0
		slow := chconn.Statement{Operation: "test.read", Text: "SELECT sleepEachRow(0.5) FROM numbers(2)", QueryID: id}
		if err := s.c.Query(context.Background(), slow, func(chconn.Row) error { rows++; return nil }); err != nil || rows != 2 {
			t.Errorf("a read: %d rows, %v", rows, err)
		}

		slow.QueryID = uuid.NewString()
		go breakWhileRunning(slow.QueryID)
		_, err := s.c.Exec(context.Background(), slow)
		wantNoAnswer(t, err, slow.QueryID, nil)
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a write: %v", err)
		}

		rows = 0
		err = s.c.Query(context.Background(), chconn.Statement{Operation: "test.read", Text: "SELECT number FROM numbers(30000000)"}, func(chconn.Row) error {
			if rows++; rows == 1 {
				s.relay.cut()
			}
			return nil
		})
		if !errors.As(err, new(*chconn.NoAnswerError)) || rows == 0 || rows >= 30_000_000 {
			t.Errorf("a read of many rows: %d rows, %v", rows, err)
		}
	})
}

// A connection that broke while nobody used it is replaced before anything is sent.
func TestIdleConnectionBreaks(t *testing.T) {
	onBadNetwork(t, func(t *testing.T, s station) {
		for i := range 10 {
			s.relay.hangUp()
			if s.protocol == chconn.HTTP { // a native connection is looked at when it is used next
				eventually(t, "closed by the client", func() bool { return s.relay.connections() == 0 })
			}
			if _, err := s.c.Exec(context.Background(), s.insert(fmt.Sprint(i), "x", 0)); err != nil {
				t.Errorf("%d: %v", i, err)
			}
		}
	})
}

// firstLine is a log that tells when it has one.
type firstLine chan struct{}

func (l firstLine) Write(p []byte) (int, error) {
	select {
	case l <- struct{}{}:
	default:
	}
	return len(p), nil
}

// While there is certainly no connection, a write is repeated: a server that starts again is waited for.
func TestServerRestarts(t *testing.T) {
	e := acctest.Server(t)
	for _, protocol := range chconn.Protocols() {
		config := configOf(e, protocol)
		target := net.JoinHostPort(config.Host, strconv.Itoa(config.Port))
		r := newRelay(t, target)
		attempted := make(firstLine)
		config.Port, config.Logger = r.port(), slog.New(slog.NewTextHandler(attempted, &slog.HandlerOptions{Level: slog.LevelDebug}))
		c := newClient(t, config)
		if err := selectOne(c); err != nil {
			t.Fatal(err)
		}
		r.close()
		eventually(t, "closed", func() bool { return r.connections() == 0 })
		written := make(chan error)
		go func() { written <- selectOne(c) }()
		<-attempted
		newRelayAt(t, r.listener.Addr().String(), target)
		if err := <-written; err != nil {
			t.Errorf("%s: %v", protocol, err)
		}
	}
}

// The caller gives up in the middle of many rows.
func TestGivenUpAmongRows(t *testing.T) {
	onBadNetwork(t, func(t *testing.T, s station) {
		for range 3 {
			ctx, cancel := context.WithCancel(context.Background())
			rows := 0
			id := uuid.NewString()
			err := s.c.Query(ctx, chconn.Statement{Operation: "test", Text: "SELECT number FROM numbers(1000000)", QueryID: id}, func(chconn.Row) error {
				if rows++; rows == 100_000 {
					cancel()
				}
				return nil
			})
			wantNoAnswer(t, err, id, context.Canceled)
			if rows >= 1_000_000 {
				t.Errorf("%d rows", rows)
			}
		}
		if err := selectOne(s.c); err != nil {
			t.Errorf("then: %v", err)
		}
	})
}
