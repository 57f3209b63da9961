package statestore_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest/meltano"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

// upgradeSteps are the steps at which an upgrade of both tables may end.
var upgradeSteps = []string{
	"lock table created", "claims copied", "lock tables exchanged", "dropped",
	"created", "copied", "locked", "caught up", "marked", "exchanged", "late rows",
}

var errCrash = errors.New("crash")

// crashAt ends the upgrade when the step is reached for the n-th time, and counts the steps.
func crashAt(step string, n int, seen map[string]int) func(string) error {
	return func(reached string) error {
		seen[reached]++
		if reached == step && seen[reached] == n {
			return errCrash
		}
		return nil
	}
}

// A writer is a Meltano client that writes while the table is upgraded.
type writer struct {
	*meltano.Backend
	// last is what it has stored of each state_id.
	last map[string]int
}

func (w *writer) set(ctx context.Context, id string, n int) error {
	err := w.Set(ctx, id, counter(n))
	if err == nil {
		w.last[id] = n
	}
	return err
}

func counter(n int) meltano.State {
	return meltano.State{Completed: map[string]any{"singer_state": map[string]any{"n": n}}}
}

// locked counts up the bookmarks of some ids, each time under their lock, as runs of a pipeline do.
func (w *writer) locked(ctx context.Context, ids []string) error {
	for n := 1; ctx.Err() == nil; n++ {
		lock, err := w.AcquireLock(context.WithoutCancel(ctx), ids[n%len(ids)])
		if errors.Is(err, meltano.ErrLocked) {
			continue
		}
		if err == nil {
			err = errors.Join(w.set(context.WithoutCancel(ctx), lock.StateID, n), lock.Release(context.WithoutCancel(ctx)))
		}
		if err != nil {
			return err
		}
		time.Sleep(300 * time.Millisecond) // until its next run
	}
	return nil
}

// unlocked stores one new id after the other, and takes no lock.
func (w *writer) unlocked(ctx context.Context) error {
	for n := 1; ctx.Err() == nil; n++ {
		if err := w.set(context.WithoutCancel(ctx), fmt.Sprintf("new:%d", n), n); err != nil {
			return err
		}
		time.Sleep(3 * time.Millisecond) // it is not alone
	}
	return nil
}

// TestUpgrade upgrades a table that Meltano made, with 1,000 entries in it, while pipelines write, and is interrupted
// at each step in turn. Whatever happens, each entry is what was stored last.
func TestUpgrade(t *testing.T) {
	// Each step is run with each way of ending: once, and a second time while the repetition is under way.
	var runs [][2]string
	for i, step := range upgradeSteps {
		runs = append(runs, [2]string{step, ""}, [2]string{step, upgradeSteps[(i+3)%len(upgradeSteps)]})
	}
	runs = append(runs, [2]string{})
	for i, crashes := range runs {
		t.Run(fmt.Sprintf("%s, then %s", crashes[0], crashes[1]), func(t *testing.T) {
			t.Parallel()
			upgradeOnce(t, chconn.Protocols()[i%2], crashes)
		})
	}
}

func upgradeOnce(t *testing.T, protocol chconn.Protocol, crashes [2]string) {
	ctx, conn, database := t.Context(), acctest.Conn(t), acctest.Database(t)
	peer := func() *writer {
		options := meltano.Options{Database: database, Table: "state", Settle: 300 * time.Millisecond, Retry: 200 * time.Millisecond}
		return &writer{meltano.New(acctest.Conn(t), options), map[string]int{}}
	}
	first := peer()
	if err := first.CreateTables(ctx); err != nil {
		t.Fatal(err)
	}
	exec(t, conn, "INSERT INTO "+database+`.state (state_id, partial_state, completed_state) SELECT 'dev:' || number, if(number % 3 = 0, '{"singer_state": {"p": 1}}', NULL), '{"singer_state": {"n": 0}}' FROM numbers(1000)`)
	exec(t, conn, "ALTER TABLE "+database+".state MODIFY COMMENT 'it''s ours [x]'")
	// One is locked by a run that does not end, and whose claim has to be carried over.
	exec(t, conn, "INSERT INTO "+database+".state_lock (state_id, lock_id) VALUES ('dev:unknown', 'zz')")
	s, err := statestore.Open(statestore.Config{
		Connection: connection(acctest.Server(t), protocol),
		Lock:       statestore.LockOptions{Timeout: time.Minute, Settle: 300 * time.Millisecond, RetryInterval: 100 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	id := statestore.TableIdentity{Database: database, Name: "state"}
	before, err := s.Table(ctx, id)
	if err != nil {
		t.Fatal(err)
	}

	writing, stop := context.WithCancel(ctx)
	runs, others := peer(), peer()
	var group sync.WaitGroup
	failed := make([]error, 2)
	group.Go(func() { failed[0] = runs.locked(writing, []string{"dev:1", "dev:2", "dev:3"}) })
	group.Go(func() { failed[1] = others.unlocked(writing) })

	change := statestore.TableChange{Layout: statestore.LayoutVersioned, LockLayout: statestore.LayoutStrict}
	for attempt, step := range append(crashes[:], "") {
		if step == "" && attempt < 2 {
			continue
		}
		now, err := s.Table(ctx, id) // as Terraform refreshes first
		if err != nil {
			t.Fatal(err)
		}
		s.AtStep(crashAt(step, 1, map[string]int{}))
		_, err = s.AlterTable(ctx, now.TableIdentity, change)
		if step == "" && err != nil || step != "" && err != nil && !errors.Is(err, errCrash) {
			t.Errorf("attempt %d, crash at %q: %v", attempt, step, err)
		}
	}
	stop()
	group.Wait()
	if err := errors.Join(failed...); err != nil {
		t.Error(err)
	}

	after, err := s.Table(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	if after.Layout != statestore.LayoutVersioned || after.LockLayout != statestore.LayoutStrict || after.Upgrading || after.LockUpgrading ||
		after.Comment != "it's ours [x]" || after.UUID == before.UUID || after.LockUUID == before.LockUUID {
		t.Errorf("after the upgrade: %+v", after)
	}
	if n := count(t, conn, "SELECT count() FROM system.tables WHERE database = ?", database); n != 2 {
		t.Errorf("%d tables, want 2", n)
	}
	if n := count(t, conn, "SELECT count() FROM "+database+".state_lock WHERE lock_id = 'zz'"); n != 1 {
		t.Errorf("%d claims of the run that goes on, want 1", n)
	}
	if n := count(t, conn, "SELECT count() FROM "+database+".state_lock WHERE lock_id != 'zz'"); n != 0 {
		t.Errorf("%d other claims are left", n)
	}
	checkUpgraded(t, s, database, runs.last, others.last)
}

// TestUpgradeBetween: what pipelines change between the copy and the exchange, and what arrives in the old table after it.
func TestUpgradeBetween(t *testing.T) {
	bothProtocols(t, func(t *testing.T, protocol chconn.Protocol) {
		ctx, conn, database := t.Context(), acctest.Conn(t), acctest.Database(t)
		peer := meltano.New(acctest.Conn(t), meltano.Options{Database: database, Table: "state"})
		if err := peer.CreateTables(ctx); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"deleted", "moved", "late", "untouched"} {
			if err := peer.Set(ctx, id, counter(1)); err != nil {
				t.Fatal(err)
			}
		}
		s := open(t, protocol)
		s.AtStep(func(step string) error {
			switch step {
			case "copied":
				return errors.Join(peer.Delete(ctx, "deleted"), peer.Set(ctx, "moved", counter(2)))
			case "exchanged": // INSERTs that were on their way
				return conn.Exec(ctx, "INSERT INTO "+database+`.state_upgrade (state_id, completed_state) VALUES
					('late', '{"singer_state": {"n": 2}}'), ('new', '{"singer_state": {"n": 2}}')`)
			}
			return nil
		})
		now, err := s.Table(ctx, statestore.TableIdentity{Database: database, Name: "state"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.AlterTable(ctx, now.TableIdentity, statestore.TableChange{Layout: statestore.LayoutVersioned, LockLayout: statestore.LayoutStrict}); err != nil {
			t.Fatal(err)
		}
		entries, err := s.List(ctx, database, "state", statestore.Filter{Pattern: "*"})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, e := range entries {
			got[e.StateID] = *e.Completed
		}
		want := map[string]string{
			"moved": `{"singer_state": {"n": 2}}`, "late": `{"singer_state": {"n": 2}}`, "new": `{"singer_state": {"n": 2}}`,
			"untouched": `{"singer_state": {"n": 1}}`,
		}
		if !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// checkUpgraded checks every entry: what pipelines have stored, and what nobody has touched.
func checkUpgraded(t *testing.T, s *statestore.Store, database string, stored ...map[string]int) {
	t.Helper()
	want := map[string]int{}
	for i := range 1000 {
		want[fmt.Sprintf("dev:%d", i)] = 0
	}
	for _, more := range stored {
		if len(more) == 0 {
			t.Error("a pipeline has stored nothing: the test tests nothing")
		}
		for id, n := range more {
			want[id] = n
		}
	}
	entries, err := s.List(t.Context(), database, "state", statestore.Filter{Pattern: "*"})
	if err != nil {
		t.Fatal(err)
	}
	var wrong []string
	for _, e := range entries {
		n, ok := want[e.StateID]
		if text := fmt.Sprintf(`{"singer_state": {"n": %d}}`, n); !ok || e.Completed == nil || *e.Completed != text {
			wrong = append(wrong, e.StateID)
		}
		delete(want, e.StateID)
	}
	for id := range want {
		wrong = append(wrong, id)
	}
	if slices.Sort(wrong); len(wrong) > 0 {
		t.Errorf("%d of %d entries are wrong or missing, such as %s", len(wrong), len(entries), strings.Join(wrong[:min(5, len(wrong))], ", "))
	}
}
