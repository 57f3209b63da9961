package lock_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/lock"
)

func TestMain(m *testing.M) { acctest.Main(m) }

// fixture is a state table and a lock table in a database of its own.
type fixture struct {
	state chsql.StateTable
	lock  chsql.LockTable
	// sql is a connection to look and act behind the locker's back.
	sql driver.Conn
}

// everywhere runs a test on both shapes of lock tables, over both protocols.
func everywhere(t *testing.T, test func(t *testing.T, f fixture, db *spy)) {
	for _, strict := range []bool{true, false} {
		for _, protocol := range chconn.Protocols() {
			t.Run(fmt.Sprintf("strict=%t/%s", strict, protocol), func(t *testing.T) {
				t.Parallel()
				test(t, newFixture(t, strict), connect(t, protocol))
			})
		}
	}
}

func newFixture(t *testing.T, strict bool) fixture {
	t.Helper()
	return newFixtureIn(t, acctest.Database(t), acctest.Conn(t), strict)
}

// newFixtureOn makes a fixture on another server than the shared one.
func newFixtureOn(t *testing.T, e acctest.Endpoint, strict bool) fixture {
	t.Helper()
	conn := e.Conn(t)
	if err := conn.Exec(t.Context(), "CREATE DATABASE test"); err != nil {
		t.Fatal(err)
	}
	return newFixtureIn(t, "test", conn, strict)
}

func newFixtureIn(t *testing.T, database string, conn driver.Conn, strict bool) fixture {
	t.Helper()
	f := fixture{
		state: chsql.StateTable{Table: chsql.Table{Database: database, Name: "state"}, Layout: chsql.Versioned},
		lock:  chsql.LockTable{Table: chsql.Table{Database: database, Name: "state_lock"}, Strict: strict, Holder: strict},
		sql:   conn,
	}
	f.exec(t, f.state.Create(chsql.Definition{}).Text)
	f.exec(t, f.lock.Create(chsql.Definition{}, true).Text)
	return f
}

func (f fixture) exec(t *testing.T, text string, args ...any) {
	t.Helper()
	if err := f.sql.Exec(context.Background(), text, args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// claims counts the claims in the lock table, stale ones included.
func (f fixture) claims(t *testing.T) (n uint64) {
	t.Helper()
	return f.count(t, "SELECT count() FROM "+f.lock.String())
}

func (f fixture) count(t *testing.T, text string) (n uint64) {
	t.Helper()
	if err := f.sql.QueryRow(context.Background(), text).Scan(&n); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return n
}

// claim puts a claim of another client, so many seconds old.
func (f fixture) claim(t *testing.T, stateID, lockID string, age int) {
	t.Helper()
	f.exec(t, "INSERT INTO "+f.lock.String()+" (state_id, lock_id, locked_at) VALUES (?, ?, now() - ?)", stateID, lockID, age)
}

// write is a fenced write of version over what has been seen, for each id.
func (f fixture) write(version, seen uint64, ids ...string) lock.Write {
	incoming := chconn.Table{Name: chsql.Incoming, Columns: []chconn.Column{
		{Name: "state_id", Type: "String"},
		{Name: "partial_state", Type: "Nullable(String)"},
		{Name: "completed_state", Type: "Nullable(String)"},
		{Name: "updated_at", Type: "DateTime64(3)"},
		{Name: "version", Type: "UInt64"},
		{Name: "is_deleted", Type: "UInt8"},
	}}
	for _, id := range ids {
		incoming.Rows = append(incoming.Rows, []any{id, (*string)(nil), (*string)(nil), time.UnixMilli(0), version, uint8(0)})
	}
	statement := func(q chsql.Query, external ...chconn.Table) chconn.Statement {
		if q.IDs != nil {
			external = append(external, chconn.Strings(chsql.IDs, "state_id", q.IDs).With("number", q.Numbers))
		}
		return chconn.Statement{Operation: "test", Text: q.Text, Args: q.Args, Settings: q.Settings, External: external}
	}
	return lock.Write{
		Insert: func(fence chsql.Fence) chconn.Statement {
			limit := uint64(0)
			if seen > 0 {
				limit = seen + 1
			}
			return statement(f.state.Write(fence, ids, slices.Repeat([]uint64{limit}, len(ids))), incoming)
		},
		Verify: func(fence chsql.Fence) chconn.Statement {
			return statement(f.state.Verify(fence, ids, slices.Repeat([]uint64{version}, len(ids))))
		},
		Rows: uint64(len(ids)),
	}
}

// spy is a real connection that counts statements, and runs a hook before each.
type spy struct {
	*chconn.Client
	protocol   chconn.Protocol
	statements atomic.Int64
	mu         sync.Mutex
	before     func(operation string)
	modes      []string
	// lose keeps the next INSERT of an operation from the server, and says that no answer came.
	lose string
}

func connect(t *testing.T, protocol chconn.Protocol) *spy {
	t.Helper()
	e := acctest.Server(t)
	port := e.NativePort
	if protocol == chconn.HTTP {
		port = e.HTTPPort
	}
	return connectTo(t, chconn.Config{Host: e.Host, Port: port, Protocol: protocol, Username: e.Username, Password: e.Password, Version: "test"})
}

func connectTo(t *testing.T, config chconn.Config) *spy {
	t.Helper()
	client, err := chconn.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return &spy{Client: client, protocol: config.Protocol}
}

// onStatement sets the hook.
func (s *spy) onStatement(hook func(operation string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = hook
}

func (s *spy) see(operation string) {
	s.statements.Add(1)
	s.mu.Lock()
	hook := s.before
	s.mu.Unlock()
	if hook != nil {
		hook(operation)
	}
}

func (s *spy) Query(ctx context.Context, st chconn.Statement, scan func(chconn.Row) error) error {
	s.see(st.Operation)
	return s.Client.Query(ctx, st, scan)
}

func (s *spy) Exec(ctx context.Context, st chconn.Statement) (chconn.Result, error) {
	s.see(st.Operation)
	s.mu.Lock()
	lost := s.lose == st.Operation
	if lost {
		s.lose = ""
	}
	if st.Operation == "lock.release" {
		s.modes = append(s.modes, st.Settings["lightweight_delete_mode"])
	}
	s.mu.Unlock()
	if lost {
		return chconn.Result{}, &chconn.NoAnswerError{QueryID: st.QueryID, Err: io.ErrUnexpectedEOF}
	}
	return s.Client.Exec(ctx, st)
}

// deleteModes lists how the releases deleted.
func (s *spy) deleteModes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.modes)
}

func locker(t *testing.T, db lock.DB, options lock.Options) *lock.Locker {
	t.Helper()
	l, err := lock.New(db, options)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// quick are options for tests in which somebody has to wait. Where a merge may hide claims, a settle must be
// longer than two statements take, also on a busy machine.
func (f fixture) quick() lock.Options {
	if !f.lock.Strict {
		return lock.Options{Timeout: 60 * time.Second, Settle: 2 * time.Second, RetryInterval: 50 * time.Millisecond}
	}
	return lock.Options{Timeout: 60 * time.Second, Settle: 100 * time.Millisecond, RetryInterval: 50 * time.Millisecond}
}

// impatient are options for tests in which somebody waits in vain.
func impatient() lock.Options {
	return lock.Options{Timeout: 400 * time.Millisecond, Settle: 100 * time.Millisecond, RetryInterval: 50 * time.Millisecond}
}

// short are options with leases that end within a test.
func (f fixture) short() lock.Options {
	o := f.quick()
	o.Scale = &lock.Scale{Stale: 12 * time.Second, Backdate: time.Second}
	return o
}
