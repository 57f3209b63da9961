package lock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/lock"
)

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

// TestReleaseAllEndsWork: the end of the process cancels what is under way, waits for its release, and lets nothing
// in any more.
func TestReleaseAllEndsWork(t *testing.T) {
	everywhere(t, func(t *testing.T, f fixture, db *spy) {
		l := locker(t, db, f.quick())
		entered, ended := make(chan struct{}), make(chan error, 2)
		go func() {
			ended <- l.Do(t.Context(), f.lock, []string{"x"}, func(ctx context.Context, _ *lock.Held) error {
				close(entered)
				<-ctx.Done()
				return context.Cause(ctx)
			})
		}()
		<-entered
		f.claim(t, "y", "ffffffff-0000-4000-8000-000000000001", 0)
		waiting := make(chan struct{})
		var once sync.Once
		db.onStatement(func(string) { once.Do(func() { close(waiting) }) })
		go func() {
			_, err := l.Hold(t.Context(), f.lock, []string{"y"}, 0)
			ended <- err
		}()
		<-waiting
		if err := l.ReleaseAll(t.Context(), 10*time.Second); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := <-ended; err == nil {
				t.Error("it went on")
			}
		}
		if n := f.count(t, "SELECT count() FROM "+f.lock.String()+" WHERE lock_id < '1'"); n != 0 {
			t.Errorf("%d claims left", n)
		}
		if err := l.Do(t.Context(), f.lock, []string{"x"}, func(context.Context, *lock.Held) error { return nil }); err == nil {
			t.Error("let in after the end")
		}
	})
}
