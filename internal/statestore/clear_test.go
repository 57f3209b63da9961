package statestore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

func TestClear(t *testing.T) {
	everywhere(t, func(t *testing.T, w where) {
		ctx, s, conn := t.Context(), w.open(t), acctest.Conn(t)
		at := w.table(t, s)
		for _, id := range []string{"dev:tap_a-to-t", "dev:tapXa-to-t", "dev:100%-to-t", "dev:100x-to-t", `dev:it's \ "x"?`} {
			exec(t, conn, "INSERT INTO "+quoted(at)+" (state_id, completed_state) VALUES (?, '{}')", id)
		}
		managed := at
		managed.StateID = "dev:tap_a-managed"
		if _, err := s.Create(ctx, managed, text(`{"singer_state": {}}`), nil); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			pattern string
			matched int
			left    []string
		}{
			{"dev:tapYa*", 0, []string{"dev:100%-to-t", "dev:100x-to-t", `dev:it's \ "x"?`, "dev:tapXa-to-t", "dev:tap_a-managed", "dev:tap_a-to-t"}},
			// cases.md 15: only what the pattern says, literally.
			{"dev:tap_a*", 2, []string{"dev:100%-to-t", "dev:100x-to-t", `dev:it's \ "x"?`, "dev:tapXa-to-t"}},
			{"dev:100%*", 1, []string{"dev:100x-to-t", `dev:it's \ "x"?`, "dev:tapXa-to-t"}},
			{`dev:it's \ "x"?`, 1, []string{"dev:100x-to-t", "dev:tapXa-to-t"}},
			{"*", 2, nil},
			{"*", 0, nil},
		} {
			cleared, err := s.Clear(ctx, at.Database, at.Table, tt.pattern)
			if err != nil || len(cleared) != tt.matched {
				t.Errorf("%q: got %v, %v, want %d deleted", tt.pattern, cleared, err, tt.matched)
			}
			if got := ids(t, s, at, statestore.Filter{Pattern: "*"}); strings.Join(got, "\n") != strings.Join(tt.left, "\n") {
				t.Errorf("%q: left %q, want %q", tt.pattern, got, tt.left)
			}
		}
		tombstones := map[statestore.Layout]uint64{statestore.LayoutVersioned: 6}[w.layout]
		if n := count(t, conn, "SELECT uniqExact(state_id) FROM "+quoted(at)); n != tombstones {
			t.Errorf("%d tombstones, want %d", n, tombstones)
		}
		if n := locks(t, at); n != 0 {
			t.Errorf("%d claims left", n)
		}
		// It is not the store's own any more.
		if _, err := s.Create(ctx, managed, text(`{"singer_state": {}}`), nil); err != nil {
			t.Errorf("create after a clear: %v", err)
		}
		var missing *statestore.NoTableError
		if _, err := s.Clear(ctx, at.Database, "other", "*"); !errors.As(err, &missing) {
			t.Errorf("a clear of no table: %v", err)
		}
	})
}

// One entry is busy: nothing of its batch is deleted, and nothing of ours is left.
func TestClearBusy(t *testing.T) {
	everywhere(t, func(t *testing.T, w where) {
		ctx, conn := t.Context(), acctest.Conn(t)
		s, err := statestore.Open(statestore.Config{
			Connection: connection(acctest.Server(t), w.protocol),
			Lock:       statestore.LockOptions{Timeout: time.Second, Settle: 100 * time.Millisecond, RetryInterval: 100 * time.Millisecond},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close(context.Background()) })
		at := w.table(t, s)
		exec(t, conn, "INSERT INTO "+quoted(at)+" (state_id, completed_state) SELECT 'dev:' || toString(number), '{\"singer_state\": {}}' FROM numbers(100)")
		const theirs = "00000000-0000-4000-8000-000000000001"
		exec(t, conn, "INSERT INTO `"+at.Database+"`.state_lock (state_id, lock_id) VALUES ('dev:41', ?)", theirs)

		cleared, err := s.Clear(ctx, at.Database, at.Table, "dev:*")
		var busy *statestore.BusyError
		if !errors.As(err, &busy) || busy.StateID != "dev:41" || busy.LockID != theirs || !strings.HasPrefix(err.Error(), "0 of 100 entries are done; ") {
			t.Errorf("got %v, want dev:41 to be busy", err)
		}
		if len(cleared) != 0 || len(live(t, s, at)) != 100 || locks(t, at) != 1 {
			t.Errorf("got %v, %d live and %d claims, want nothing deleted and only theirs", cleared, len(live(t, s, at)), locks(t, at))
		}

		exec(t, conn, "DELETE FROM `"+at.Database+"`.state_lock WHERE lock_id = ?", theirs)
		if cleared, err := s.Clear(ctx, at.Database, at.Table, "dev:*"); err != nil || len(cleared) != 100 {
			t.Errorf("once it is free: %d deleted, %v", len(cleared), err)
		}
	})
}

// What this store holds already is deleted under that lock, which stays.
func TestClearHeld(t *testing.T) {
	t.Parallel()
	ctx, s, conn := t.Context(), open(t, chconn.Native), acctest.Conn(t)
	at := table(t, s)
	exec(t, conn, "INSERT INTO "+quoted(at)+" (state_id, completed_state) SELECT 'dev:' || toString(number), '{\"singer_state\": {}}' FROM numbers(10)")
	hold, err := s.Hold(ctx, at.Database, at.Table, []string{"dev:3", "dev:4", "absent"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if cleared, err := s.Clear(ctx, at.Database, at.Table, "*"); err != nil || len(cleared) != 10 {
		t.Errorf("got %v, %v, want 10 deleted", cleared, err)
	}
	if n := locks(t, at); n != 3 {
		t.Errorf("%d claims, want those of the hold", n)
	}
	if err := hold.Release(ctx); err != nil {
		t.Error(err)
	}
}

// More than a batch.
func TestClearMany(t *testing.T) {
	bothLayouts(t, testClearMany)
}

func testClearMany(t *testing.T, w where) {
	ctx, s, conn := t.Context(), w.open(t), acctest.Conn(t)
	at := w.table(t, s)
	many := map[statestore.Layout]int{statestore.LayoutVersioned: statestore.MaxBatchRows + 1500, statestore.LayoutMeltano: 1250}[w.layout]
	exec(t, conn, fmt.Sprintf("INSERT INTO %s (state_id, completed_state) SELECT 'dev:' || toString(number), '{\"singer_state\": {}}' FROM numbers(%d)", quoted(at), many))
	cleared, err := s.Clear(ctx, at.Database, at.Table, "dev:*")
	if err != nil || len(cleared) != many {
		t.Errorf("%d deleted, %v, want %d", len(cleared), err, many)
	}
	if n := len(live(t, s, at)); n != 0 {
		t.Errorf("%d are live", n)
	}
	if n := locks(t, at); n != 0 {
		t.Errorf("%d claims left", n)
	}
}

// A pipeline stores its state while the clear waits for its lock: that is deleted, too, for nobody was promised a version.
func TestClearMoved(t *testing.T) {
	t.Parallel()
	ctx, s, conn := t.Context(), open(t, chconn.Native), acctest.Conn(t)
	at := table(t, s)
	set := "INSERT INTO " + quoted(at) + " (state_id, completed_state) VALUES (?, '{}')"
	exec(t, conn, set, at.StateID)
	lockTable := "`" + at.Database + "`.state_lock"
	exec(t, conn, "INSERT INTO "+lockTable+" (state_id, lock_id) VALUES (?, 'theirs')", at.StateID)
	type answer struct {
		cleared map[string]statestore.Written
		err     error
	}
	done := make(chan answer)
	go func() {
		cleared, err := s.Clear(ctx, at.Database, at.Table, "*")
		done <- answer{cleared, err}
	}()
	asked := "SELECT count() FROM system.query_log WHERE type = 'QueryFinish' AND has(databases, ?) AND position(log_comment, 'lock.claim') > 0"
	for start := time.Now(); count(t, conn, asked, at.Database) == 0; exec(t, conn, "SYSTEM FLUSH LOGS query_log") {
		if time.Since(start) > time.Minute {
			t.Fatal("it does not ask for the lock")
		}
	}
	exec(t, conn, set, at.StateID)
	exec(t, conn, set, "dev:new")
	exec(t, conn, "DELETE FROM "+lockTable+" WHERE lock_id = 'theirs'")
	if a := <-done; a.err != nil || len(a.cleared) != 1 {
		t.Errorf("got %v, %v, want one deleted", a.cleared, a.err)
	}
	if got := ids(t, s, at, statestore.Filter{Pattern: "*"}); len(got) != 1 || got[0] != "dev:new" {
		t.Errorf("left %q, want what is new", got)
	}
}
