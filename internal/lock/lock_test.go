package lock_test

import (
	"context"
	"errors"
	"fmt"
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
		state: chsql.StateTable{Table: chsql.Table{Database: database, Name: "state"}},
		lock:  chsql.LockTable{Table: chsql.Table{Database: database, Name: "state_lock"}, Strict: strict, Holder: strict},
		sql:   conn,
	}
	f.exec(t, f.state.Create("", nil).Text)
	if strict {
		f.exec(t, f.lock.Create(true).Text)
	} else {
		// As Meltano's backend makes it.
		f.exec(t, "CREATE TABLE "+f.lock.String()+` (state_id String, lock_id String, locked_at DateTime DEFAULT now())
			ENGINE = ReplacingMergeTree(locked_at) ORDER BY state_id TTL locked_at + INTERVAL 300 SECOND`)
	}
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
		{Name: "seen", Type: "UInt64"},
	}}
	for _, id := range ids {
		incoming.Rows = append(incoming.Rows, []any{id, (*string)(nil), (*string)(nil), time.UnixMilli(0), version, uint8(0), seen})
	}
	statement := func(q chsql.Query, external ...chconn.Table) chconn.Statement {
		if q.IDs != nil {
			external = append(external, chconn.Strings(chsql.IDs, "state_id", q.IDs))
		}
		return chconn.Statement{Operation: "test", Text: q.Text, Args: q.Args, Settings: q.Settings, External: external}
	}
	return lock.Write{
		Insert: func(fence chsql.Fence) chconn.Statement { return statement(f.state.Write(fence, ids), incoming) },
		Verify: func(fence chsql.Fence) chconn.Statement { return statement(f.state.Verify(fence, ids, version)) },
		Rows:   uint64(len(ids)),
	}
}

// spy is a real connection that counts statements, and runs a hook before each.
type spy struct {
	*chconn.Client
	protocol   chconn.Protocol
	statements atomic.Int64
	mu         sync.Mutex
	before     func(operation string)
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
	return s.Client.Exec(ctx, st)
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

func TestHoldAndRelease(t *testing.T) {
	everywhere(t, func(t *testing.T, f fixture, db *spy) {
		ids := []string{"b", "a", "it's\t\\?", "a"}
		l := locker(t, db, lock.Options{})
		err := l.Do(t.Context(), f.lock, ids, func(ctx context.Context, held *lock.Held) error {
			if n := f.claims(t); n != 3 {
				t.Errorf("%d claims while held, want one for each of 3 state_ids", n)
			}
			return held.Write(ctx, f.write(7, 0, "a", "b"))
		})
		if err != nil {
			t.Fatal(err)
		}
		if n := f.claims(t); n != 0 {
			t.Errorf("%d claims left", n)
		}
		if n := f.count(t, "SELECT count() FROM "+f.state.String()+" WHERE version = 7"); n != 2 {
			t.Errorf("%d rows written, want 2", n)
		}
	})
}

// TestStatements holds the number of statements of an uncontended cycle. Reading what is stored comes on top.
func TestStatements(t *testing.T) {
	f := newFixture(t, true)
	db := connect(t, chconn.Native)
	l := locker(t, db, lock.Options{})
	for version := range uint64(3) {
		db.statements.Store(0)
		err := l.Do(t.Context(), f.lock, []string{"a"}, func(ctx context.Context, held *lock.Held) error {
			return held.Write(ctx, f.write(version+1, version, "a"))
		})
		if err != nil {
			t.Fatal(err)
		}
		if n := db.statements.Load(); n != 6 {
			t.Errorf("%d statements, want 6: claim, read, write, verify, release, read back", n)
		}
	}
}

func TestBusy(t *testing.T) {
	everywhere(t, func(t *testing.T, f fixture, db *spy) {
		const foreign = "00000000-0000-4000-8000-000000000001"
		f.claim(t, "x", foreign, 100)
		err := locker(t, db, impatient()).Do(t.Context(), f.lock, []string{"w", "x"}, func(context.Context, *lock.Held) error {
			t.Error("held beside a live claim")
			return nil
		})
		var busy *lock.BusyError
		if !errors.As(err, &busy) {
			t.Fatalf("got %v, want a *BusyError", err)
		}
		if busy.StateID != "x" || busy.LockID != foreign {
			t.Errorf("busy names %q and %q", busy.StateID, busy.LockID)
		}
		if age := busy.Now.Sub(busy.Since); age < 100*time.Second || age > 110*time.Second || busy.Stale.Sub(busy.Since) != lock.Stale {
			t.Errorf("busy since %s, stale %s, now %s", busy.Since, busy.Stale, busy.Now)
		}
		if n := f.count(t, "SELECT countIf(lock_id = '"+foreign+"') * 10 + count() FROM "+f.lock.String()); n != 11 {
			t.Errorf("the foreign claim is not the only one left: %d", n)
		}
	})
}

// TestTakeOver waits for a dead client's claim to become stale, and not less.
func TestTakeOver(t *testing.T) {
	everywhere(t, func(t *testing.T, f fixture, db *spy) {
		const dead = "00000000-0000-4000-8000-000000000001"
		f.claim(t, "x", dead, 9)
		err := locker(t, db, f.short()).Do(t.Context(), f.lock, []string{"x"}, func(context.Context, *lock.Held) error {
			age := f.count(t, "SELECT toUInt64(now() - max(locked_at)) FROM "+f.lock.String()+" WHERE lock_id = '"+dead+"'")
			// A merge may have dropped the stale claim already, which leaves an age since 1970.
			if age <= 12 {
				t.Errorf("took over a claim %d s old", age)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// TestRivalDuringDecision lets a larger claim of another be waited out, and gives way to a smaller one.
func TestRivalDuringDecision(t *testing.T) {
	for _, tt := range []struct{ name, rival string }{
		{"larger", "ffffffff-0000-4000-8000-000000000001"},
		{"smaller", "00000000-0000-0000-0000-000000000000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, f fixture, db *spy) {
				var once sync.Once
				reads := 0
				db.onStatement(func(operation string) {
					if operation != "lock.read" {
						return
					}
					once.Do(func() { f.claim(t, "x", tt.rival, -1) })
					if reads++; reads == 3 {
						f.exec(t, "DELETE FROM "+f.lock.String()+" WHERE lock_id = '"+tt.rival+"'")
					}
				})
				err := locker(t, db, f.quick()).Do(t.Context(), f.lock, []string{"x"}, func(context.Context, *lock.Held) error {
					if n := f.count(t, "SELECT count() FROM "+f.lock.String()+" WHERE lock_id = '"+tt.rival+"'"); n != 0 {
						t.Error("held beside the rival")
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if reads < 3 {
					t.Errorf("decided after %d reads, before the rival was gone", reads)
				}
			})
		})
	}
}

func TestLostLockWritesNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, f fixture, db *spy) {
		err := locker(t, db, f.quick()).Do(t.Context(), f.lock, []string{"x"}, func(ctx context.Context, held *lock.Held) error {
			f.exec(t, "DELETE FROM "+f.lock.String()+" WHERE 1")
			err := held.Write(ctx, f.write(1, 0, "x"))
			if again := held.Write(ctx, f.write(2, 0, "x")); !errors.As(again, new(*lock.LostError)) {
				t.Errorf("a second write: %v", again)
			}
			select {
			case <-ctx.Done():
			case <-time.After(5 * time.Second):
			}
			if !errors.As(context.Cause(ctx), new(*lock.LostError)) {
				t.Errorf("the work's context: %v", context.Cause(ctx))
			}
			return err
		})
		if !errors.As(err, new(*lock.LostError)) {
			t.Fatalf("got %v, want a *LostError", err)
		}
		if n := f.count(t, "SELECT count() FROM "+f.state.String()); n != 0 {
			t.Errorf("%d rows written without a lock", n)
		}
	})
}

func TestWriteWaitsOutARival(t *testing.T) {
	everywhere(t, func(t *testing.T, f fixture, db *spy) {
		const rival = "ffffffff-0000-4000-8000-000000000001"
		sends := 0
		db.onStatement(func(operation string) {
			if operation != "test" {
				return
			}
			if sends++; sends == 3 {
				f.exec(t, "DELETE FROM "+f.lock.String()+" WHERE lock_id = '"+rival+"'")
			}
		})
		err := locker(t, db, f.quick()).Do(t.Context(), f.lock, []string{"x"}, func(ctx context.Context, held *lock.Held) error {
			f.claim(t, "x", rival, 0)
			return held.Write(ctx, f.write(1, 0, "x"))
		})
		if err != nil {
			t.Fatal(err)
		}
		if sends < 4 {
			t.Errorf("%d statements for the write: it did not wait for the rival", sends)
		}
		if n := f.count(t, "SELECT count() FROM "+f.state.String()); n != 1 {
			t.Errorf("%d rows, want 1", n)
		}
	})
}

func TestMovedWritesNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, f fixture, db *spy) {
		err := locker(t, db, f.quick()).Do(t.Context(), f.lock, []string{"x", "y"}, func(ctx context.Context, held *lock.Held) error {
			f.exec(t, "INSERT INTO "+f.state.String()+" (state_id, version) VALUES ('y', 5)")
			return held.Write(ctx, f.write(9, 0, "x", "y"))
		})
		if !errors.Is(err, lock.ErrMoved) {
			t.Fatalf("got %v, want ErrMoved", err)
		}
		if n := f.count(t, "SELECT count() FROM "+f.state.String()); n != 1 {
			t.Errorf("%d rows, want the pipeline's alone", n)
		}
	})
}

func TestReleaseAfterCancel(t *testing.T) {
	everywhere(t, func(t *testing.T, f fixture, db *spy) {
		ctx, cancel := context.WithCancel(t.Context())
		err := locker(t, db, f.quick()).Do(ctx, f.lock, []string{"x"}, func(ctx context.Context, held *lock.Held) error {
			cancel()
			return held.Write(ctx, f.write(1, 0, "x"))
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want context.Canceled", err)
		}
		if n := f.claims(t); n != 0 {
			t.Errorf("%d claims left", n)
		}
	})
}

// TestLease holds a lock for longer than its lease, beside a client that sweeps as Meltano does.
func TestLease(t *testing.T) {
	everywhere(t, func(t *testing.T, f fixture, db *spy) {
		err := locker(t, db, f.short()).Do(t.Context(), f.lock, []string{"x"}, func(ctx context.Context, held *lock.Held) error {
			for until := time.Now().Add(15 * time.Second); time.Now().Before(until); {
				f.exec(t, "DELETE FROM "+f.lock.String()+" WHERE locked_at < now() - 12")
				if f.claims(t) == 0 {
					t.Fatal("the claim was swept")
				}
				if err := ctx.Err(); err != nil {
					t.Fatalf("lock lost: %v", context.Cause(ctx))
				}
			}
			return held.Write(ctx, f.write(1, 0, "x"))
		})
		if err != nil {
			t.Fatal(err)
		}
		if n := f.claims(t); n != 0 {
			t.Errorf("%d claims left", n)
		}
	})
}

// TestLoss tells the work that its lock is gone, without a write that would notice.
func TestLoss(t *testing.T) {
	everywhere(t, func(t *testing.T, f fixture, db *spy) {
		err := locker(t, db, f.short()).Do(t.Context(), f.lock, []string{"x"}, func(ctx context.Context, _ *lock.Held) error {
			for until := time.Now().Add(30 * time.Second); ctx.Err() == nil; {
				if time.Now().After(until) {
					return errors.New("not told")
				}
				// Again and again: a renewal on its way brings a claim back that is deleted at that moment.
				f.exec(t, "DELETE FROM "+f.lock.String()+" WHERE 1")
			}
			return context.Cause(ctx)
		})
		if !errors.As(err, new(*lock.LostError)) {
			t.Fatalf("got %v, want a *LostError", err)
		}
	})
}

// TestOneAtATime lets two lockers, with two callers each, increment one counter.
func TestOneAtATime(t *testing.T) {
	everywhere(t, func(t *testing.T, f fixture, db *spy) {
		options := f.quick()
		lockers := []*lock.Locker{locker(t, db, options), locker(t, connect(t, chconn.Native), options)}
		var inside, total atomic.Int64
		var group sync.WaitGroup
		for i := range 4 {
			group.Go(func() {
				for done := 0; done < 2; {
					err := lockers[i%2].Do(t.Context(), f.lock, []string{"x"}, func(ctx context.Context, held *lock.Held) error {
						if inside.Add(1) != 1 {
							t.Error("two inside at once")
						}
						defer inside.Add(-1)
						seen := f.count(t, "SELECT max(version) FROM "+f.state.String())
						if err := held.Write(ctx, f.write(seen+1, seen, "x")); err != nil {
							return err
						}
						total.Add(1)
						return nil
					})
					switch {
					case err == nil:
						done++
					case !f.lock.Strict && errors.As(err, new(*lock.LostError)):
						// A merge took the holder's claim for a rival's. It wrote nothing.
					default:
						t.Error(err)
						return
					}
				}
			})
		}
		group.Wait()
		if got := f.count(t, "SELECT max(version) FROM "+f.state.String()); got != 8 || total.Load() != 8 {
			t.Errorf("counter at %d after %d increments, want 8", got, total.Load())
		}
		if n := f.claims(t); n != 0 {
			t.Errorf("%d claims left", n)
		}
	})
}

// TestHold lets writes of one locker run under a lock that it holds already, and those of another wait.
func TestHold(t *testing.T) {
	everywhere(t, func(t *testing.T, f fixture, db *spy) {
		ctx := t.Context()
		l := locker(t, db, f.quick())
		hold, err := l.Hold(ctx, f.lock, []string{"x", "y"}, 0)
		if err != nil {
			t.Fatal(err)
		}
		for version := range uint64(2) {
			err := l.Do(ctx, f.lock, []string{"x"}, func(ctx context.Context, held *lock.Held) error {
				return held.Write(ctx, f.write(version+1, version, "x"))
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if n := f.claims(t); n != 2 {
			t.Errorf("%d claims while held, want 2: writes share them", n)
		}
		err = locker(t, db, impatient()).Do(ctx, f.lock, []string{"y"}, func(context.Context, *lock.Held) error { return nil })
		var busy *lock.BusyError
		if !errors.As(err, &busy) || busy.LockID != hold.LockID() {
			t.Errorf("another locker: %v", err)
		}
		if _, err := l.Hold(ctx, f.lock, []string{"y", "z"}, 0); !errors.As(err, &busy) || busy.Waited != 0 {
			t.Errorf("a second hold: %v", err)
		}
		if err := hold.Release(ctx); err != nil {
			t.Fatal(err)
		}
		if n := f.claims(t); n != 0 {
			t.Errorf("%d claims left", n)
		}
	})
}

// TestReleaseWaitsForWork: what shares a hold need not be ordered before its release.
func TestReleaseWaitsForWork(t *testing.T) {
	everywhere(t, func(t *testing.T, f fixture, db *spy) {
		l := locker(t, db, f.quick())
		hold, err := l.Hold(t.Context(), f.lock, []string{"x"}, 0)
		if err != nil {
			t.Fatal(err)
		}
		released := make(chan error, 1)
		err = l.Do(t.Context(), f.lock, []string{"x"}, func(ctx context.Context, held *lock.Held) error {
			go func() { released <- hold.Release(t.Context()) }()
			select {
			case err := <-released:
				t.Fatalf("released under the work: %v", err)
			case <-time.After(300 * time.Millisecond):
			}
			return held.Write(ctx, f.write(1, 0, "x"))
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := <-released; err != nil {
			t.Fatal(err)
		}
		if n := f.claims(t); n != 0 {
			t.Errorf("%d claims left", n)
		}
	})
}

// TestLostHold remembers that a hold was lost: nothing is written under it, and its release says so.
func TestLostHold(t *testing.T) {
	everywhere(t, func(t *testing.T, f fixture, db *spy) {
		ctx := t.Context()
		l := locker(t, db, f.quick())
		hold, err := l.Hold(ctx, f.lock, []string{"x"}, 0)
		if err != nil {
			t.Fatal(err)
		}
		f.exec(t, "DELETE FROM "+f.lock.String()+" WHERE 1")
		if err := hold.Renew(ctx); !errors.As(err, new(*lock.LostError)) {
			t.Errorf("renew: %v", err)
		}
		err = l.Do(ctx, f.lock, []string{"x"}, func(context.Context, *lock.Held) error {
			t.Error("work ran under a lost lock")
			return nil
		})
		if !errors.As(err, new(*lock.LostError)) {
			t.Errorf("do: %v", err)
		}
		if err := hold.Release(ctx); !errors.As(err, new(*lock.LostError)) {
			t.Errorf("release: %v", err)
		}
	})
}

func TestReleaseAll(t *testing.T) {
	f := newFixture(t, true)
	l := locker(t, connect(t, chconn.Native), f.quick())
	for _, id := range []string{"x", "y"} {
		if _, err := l.Hold(t.Context(), f.lock, []string{id}, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.ReleaseAll(t.Context(), 5*time.Second); err != nil {
		t.Fatal(err)
	}
	if n := f.claims(t); n != 0 {
		t.Errorf("%d claims left", n)
	}
}

func TestBreak(t *testing.T) {
	everywhere(t, func(t *testing.T, f fixture, db *spy) {
		ctx := t.Context()
		l := locker(t, db, f.quick())
		hold, err := locker(t, db, f.quick()).Hold(ctx, f.lock, []string{"it's", "other"}, 0)
		if err != nil {
			t.Fatal(err)
		}
		var notHeld *lock.NotHeldError
		if _, err := l.Break(ctx, f.lock, "it's", "another"); !errors.As(err, &notHeld) || len(notHeld.Held) != 1 || notHeld.Held[0].LockID != hold.LockID() {
			t.Fatalf("break of another lock_id: %v", err)
		}
		claims, err := l.Claims(ctx, f.lock, nil)
		if err != nil || len(claims) != 2 || claims[0].StateID != "it's" || claims[0].Stale || claims[0].Age < 0 {
			t.Fatalf("claims: %+v, %v", claims, err)
		}
		broken, err := l.Break(ctx, f.lock, "it's", hold.LockID())
		if err != nil || broken != claims[0] && broken.LockID != claims[0].LockID {
			t.Fatalf("broke %+v, %v", broken, err)
		}
		if n := f.claims(t); n != 1 {
			t.Errorf("%d claims left, want that on the other state_id", n)
		}
		if err := hold.Renew(ctx); !errors.As(err, new(*lock.LostError)) {
			t.Errorf("renewal of a broken lock: %v", err)
		}
	})
}

// TestBreakStatement runs what a *BusyError offers to people.
func TestBreakStatement(t *testing.T) {
	f := newFixture(t, true)
	f.claim(t, `a\b'c`, "00000000-0000-4000-8000-000000000001", 0)
	f.claim(t, `a\b'c`, "00000000-0000-4000-8000-000000000002", 0)
	f.claim(t, "other", "00000000-0000-4000-8000-000000000001", 0)
	err := locker(t, connect(t, chconn.Native), impatient()).Do(t.Context(), f.lock, []string{`a\b'c`}, func(context.Context, *lock.Held) error { return nil })
	var busy *lock.BusyError
	if !errors.As(err, &busy) {
		t.Fatal(err)
	}
	f.exec(t, busy.Break)
	if n := f.claims(t); n != 2 {
		t.Errorf("%d claims left, want the 2 others", n)
	}
}
