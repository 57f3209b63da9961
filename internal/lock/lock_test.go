package lock_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/lock"
)

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
