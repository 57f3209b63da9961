package statestore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

// TestDeleteIsFenced deletes nothing once the lock is lost, or while another claims it as well, and leaves nothing
// behind that would delete later.
func TestDeleteIsFenced(t *testing.T) {
	everywhere(t, func(t *testing.T, w where) {
		ctx, conn, s := t.Context(), acctest.Conn(t), w.open(t)
		at := w.table(t, s)
		created, err := s.Create(ctx, at, text(`{"singer_state": {}}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		claims := at.Database + ".state_lock"
		hold, err := s.Hold(ctx, at.Database, at.Table, []string{at.StateID}, 0)
		if err != nil {
			t.Fatal(err)
		}
		unchanged := func() {
			t.Helper()
			if found, err := s.Read(ctx, at); err != nil || found.Version != created.Entry.Version {
				t.Errorf("reads %+v, %v", found, err)
			}
		}
		// A rival that does not go, and one that does.
		exec(t, conn, "INSERT INTO "+claims+" (state_id, lock_id) VALUES (?, 'rival')", at.StateID)
		done := make(chan error, 1)
		go func() {
			_, err := s.Delete(ctx, at, created.Entry.Version)
			done <- err
		}()
		select {
		case err := <-done:
			t.Errorf("beside a rival: %v", err)
		case <-time.After(time.Second): // Its retries go on for 30 s.
		}
		unchanged()
		exec(t, conn, "DELETE FROM "+claims+" WHERE lock_id = 'rival' SETTINGS lightweight_deletes_sync = 2")
		if w.lockLayout == statestore.LayoutMeltano {
			// A merge may have left the rival's claim only: then the lock is lost.
			if err := <-done; err != nil && !errors.As(err, new(*statestore.LostError)) {
				t.Errorf("after a rival: %v", err)
			}
		} else if err := <-done; err != nil {
			t.Errorf("after a rival: %v", err)
		}
		_ = hold.Release(ctx) // lost, perhaps

		// A lock that somebody has broken.
		at.StateID = "dev:broken"
		if created, err = s.Create(ctx, at, text(`{"singer_state": {}}`), nil); err != nil {
			t.Fatal(err)
		}
		if hold, err = s.Hold(ctx, at.Database, at.Table, []string{at.StateID}, 0); err != nil {
			t.Fatal(err)
		}
		exec(t, conn, "DELETE FROM "+claims+" WHERE 1 SETTINGS lightweight_deletes_sync = 2")
		if _, err := s.Delete(ctx, at, created.Entry.Version); !errors.As(err, new(*statestore.LostError)) {
			t.Errorf("under a broken lock: %v", err)
		}
		unchanged()
		_ = hold.Release(ctx) // lost
		for start := time.Now(); count(t, conn, "SELECT count() FROM system.mutations WHERE database = ? AND table = 'state' AND NOT is_done", at.Database) > 0; {
			if time.Since(start) > 20*time.Second {
				t.Fatal("a mutation does not end")
			}
		}
		unchanged()
	})
}

// TestDeleteMany deletes more than one statement can name, beside entries that change and entries that stay.
func TestDeleteMany(t *testing.T) {
	ctx, conn := t.Context(), acctest.Conn(t)
	w := where{protocol: chconn.HTTP, layout: statestore.LayoutMeltano, lockLayout: statestore.LayoutStrict}
	s := w.open(t)
	at := w.table(t, s)
	exec(t, conn, "INSERT INTO "+quoted(at)+" (state_id, completed_state) SELECT 'dev:' || number, '{}' FROM numbers(300)")
	done := make(chan error)
	for i := range 250 {
		at := at
		at.StateID = fmt.Sprintf("dev:%d", i)
		go func() {
			found, err := s.Read(ctx, at)
			switch {
			case err != nil:
			case i%10 == 0:
				_, err = s.Update(ctx, at, found.Version, statestore.Set(text(`{"changed": 1}`)), statestore.Keep())
			default:
				_, err = s.Delete(ctx, at, found.Version)
			}
			done <- err
		}()
	}
	for range 250 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n := count(t, conn, "SELECT count() FROM "+quoted(at)+" FINAL"); n != 75 {
		t.Errorf("%d entries, want 75", n)
	}
	if n := count(t, conn, "SELECT count() FROM "+quoted(at)+" FINAL WHERE completed_state = '{\"changed\": 1}'"); n != 25 {
		t.Errorf("%d changed, want 25", n)
	}
}

// TestDeleteInParts: deletes without tombstones are more than one statement. When the lock is lost after the first, what is
// gone is said to be gone, and the rest is not.
func TestDeleteInParts(t *testing.T) {
	bothProtocols(t, func(t *testing.T, protocol chconn.Protocol) {
		const entries, first = 150, 100
		ctx, conn, log := t.Context(), acctest.Conn(t), &statements{}
		s, err := statestore.Open(statestore.Config{Connection: connection(acctest.Server(t), protocol), Logger: slog.New(log)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close(context.Background()) })
		at := where{protocol, statestore.LayoutMeltano, statestore.LayoutStrict}.table(t, s)
		exec(t, conn, "INSERT INTO "+quoted(at)+fmt.Sprintf(" (state_id, completed_state) SELECT 'dev:' || number, '{}' FROM numbers(%d)", entries))
		var edits []statestore.Edit
		for i := range entries {
			edits = append(edits, statestore.Edit{StateID: fmt.Sprintf("dev:%d", i), Verb: statestore.EditClear})
		}
		log.stop("entries.apply.verify")
		go func() {
			<-log.stopped
			exec(t, conn, "DELETE FROM "+at.Database+".state_lock WHERE 1 SETTINGS lightweight_deletes_sync = 2")
			close(log.goOn)
		}()
		applied, err := s.Apply(ctx, at.Database, at.Table, edits)
		var failed *statestore.ApplyError
		if !errors.As(err, &failed) || failed.Done != first || len(failed.Errs) != entries-first || !errors.As(err, new(*statestore.LostError)) {
			t.Fatalf("got %v", err)
		}
		if n := count(t, conn, "SELECT count() FROM "+quoted(at)+" FINAL"); n != entries-first || len(applied) != first {
			t.Errorf("%d entries are left, and %d are said to be deleted", n, len(applied))
		}
	})
}

// TestDeleteStuck: where mutations do not come to an end, a delete gives up in time, without losing its lock, and says so.
func TestDeleteStuck(t *testing.T) {
	bothProtocols(t, func(t *testing.T, protocol chconn.Protocol) {
		ctx, conn := t.Context(), acctest.Conn(t)
		s, err := statestore.Open(statestore.Config{Connection: connection(acctest.Server(t), protocol), Lock: statestore.LockOptions{
			StaleAfter: 10 * time.Second, Timeout: 6 * time.Second, Settle: 200 * time.Millisecond,
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close(context.Background()) })
		at := where{protocol, statestore.LayoutMeltano, statestore.LayoutStrict}.table(t, s)
		created, err := s.Create(ctx, at, text(`{"singer_state": {}}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		exec(t, conn, "SYSTEM STOP MERGES "+quoted(at))
		var uncertain *statestore.UncertainError
		if _, err = s.Delete(ctx, at, created.Entry.Version); !errors.As(err, &uncertain) || errors.As(err, new(*statestore.LostError)) ||
			uncertain.Stored != created.Entry.Version {
			t.Errorf("got %v", err)
		}
		if n := locks(t, at); n != 0 {
			t.Errorf("%d claims left", n)
		}
		// What is still queued finds no claim of ours.
		exec(t, conn, "SYSTEM START MERGES "+quoted(at))
		for start := time.Now(); count(t, conn, "SELECT count() FROM system.mutations WHERE database = ? AND table = 'state' AND NOT is_done", at.Database) > 0; {
			if time.Since(start) > 20*time.Second {
				t.Fatal("a mutation does not end")
			}
		}
		if found, err := s.Read(ctx, at); err != nil || found.Version != created.Entry.Version {
			t.Errorf("reads %+v, %v", found, err)
		}
	})
}
