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

// creates are edits that create n entries.
func creates(n int) []statestore.Edit {
	edits := make([]statestore.Edit, n)
	for i := range edits {
		edits[i] = statestore.Edit{
			StateID:   fmt.Sprintf("dev:tap-%05d-to-target-b", i),
			Verb:      statestore.EditCreate,
			Completed: statestore.Set(text(fmt.Sprintf(`{"singer_state": {"a": %d}}`, i))),
			Partial:   statestore.Keep(),
		}
	}
	return edits
}

func apply(t *testing.T, s *statestore.Store, at statestore.Address, edits []statestore.Edit) map[string]statestore.Written {
	t.Helper()
	applied, err := s.Apply(t.Context(), at.Database, at.Table, edits)
	if err != nil {
		t.Fatal(err)
	}
	if len(applied) != len(edits) {
		t.Fatalf("applied %d of %d", len(applied), len(edits))
	}
	return applied
}

// live reads the entries of a table by state_id.
func live(t *testing.T, s *statestore.Store, at statestore.Address) map[string]statestore.Entry {
	t.Helper()
	found := map[string]statestore.Entry{}
	err := s.EachMatch(t.Context(), at.Database, at.Table, statestore.Filter{Pattern: "*"}, func(e statestore.Entry) { found[e.StateID] = e })
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestApply: creates, updates and deletes go together, in one INSERT each time.
func TestApply(t *testing.T) {
	bothProtocols(t, func(t *testing.T, protocol chconn.Protocol) {
		s, conn := open(t, protocol), acctest.Conn(t)
		at := table(t, s)
		rows := func() uint64 { return count(t, conn, "SELECT count() FROM "+quoted(at)) }
		created := apply(t, s, at, creates(250))
		id := func(i int) string { return creates(250)[i].StateID }
		if found := live(t, s, at); len(found) != 250 || found[id(7)].Version != created[id(7)].Entry.Version || *found[id(7)].Completed != `{"singer_state": {"a": 7}}` || found[id(7)].Partial != nil {
			t.Fatalf("%d live, the eighth %+v", len(found), found[id(7)])
		}
		if parts := count(t, conn, "SELECT uniqExact(_part) FROM "+quoted(at)); parts != 1 {
			t.Errorf("%d parts, want the one of one INSERT", parts)
		}
		edits := []statestore.Edit{
			{StateID: "new", Verb: statestore.EditSeed, Completed: statestore.Set(text(`{"singer_state": {}}`)), Partial: statestore.Keep()},
			{StateID: id(0), Verb: statestore.EditUpdate, Expect: created[id(0)].Entry.Version, Completed: statestore.Keep(), Partial: statestore.Set(text(`{"singer_state": {"p": 1}}`))},
			{StateID: id(1), Verb: statestore.EditUpdate, Expect: created[id(1)].Entry.Version, Completed: statestore.Set(text(`{"singer_state":{"a":1.0}}`)), Partial: statestore.Keep()},
			{StateID: id(2), Verb: statestore.EditDelete, Expect: created[id(2)].Entry.Version},
			{StateID: "never", Verb: statestore.EditDelete, Expect: 1},
		}
		applied := apply(t, s, at, edits)
		found := live(t, s, at)
		if len(found) != 250 || *found[id(0)].Partial != `{"singer_state": {"p": 1}}` || *found[id(0)].Completed != `{"singer_state": {"a": 0}}` ||
			found[id(0)].Version != applied[id(0)].Entry.Version || found["new"].Version != applied["new"].Entry.Version {
			t.Errorf("after the second apply: %d live, %+v", len(found), found[id(0)])
		}
		if _, ok := found[id(2)]; ok {
			t.Error("the deleted one is live")
		}
		if v := applied[id(1)].Entry.Version; v != created[id(1)].Entry.Version {
			t.Errorf("an equal payload was written again: version %d", v)
		}
		// The new one, the changed one and the tombstone.
		if n := rows(); n != 253 {
			t.Errorf("%d rows, want 250 and 3", n)
		}
		if n := locks(t, at); n != 0 {
			t.Errorf("%d claims left", n)
		}

		some := map[string]bool{}
		if err := s.Each(t.Context(), at.Database, at.Table, []string{id(5), id(2), "never", id(4)}, func(e statestore.Entry) { some[e.StateID] = true }); err != nil {
			t.Fatal(err)
		}
		if len(some) != 2 || !some[id(4)] || !some[id(5)] {
			t.Errorf("read %v, want the two live ones", some)
		}
	})
}

// TestApplyRefused: what refuses keeps its whole batch from being written, and each is named.
func TestApplyRefused(t *testing.T) {
	bothProtocols(t, func(t *testing.T, protocol chconn.Protocol) {
		s, conn := open(t, protocol), acctest.Conn(t)
		at := table(t, s)
		edits := creates(100)
		// Two are live, one of them as declared; of a third there is a tombstone only.
		for i, row := range []string{`{"singer_state": {"a": 0}}`, `{"singer_state": {"other": true}}`} {
			exec(t, conn, "INSERT INTO "+quoted(at)+" (state_id, completed_state) VALUES (?, ?)", edits[i].StateID, row)
		}
		exec(t, conn, "INSERT INTO "+quoted(at)+" (state_id, is_deleted) VALUES (?, 1)", edits[2].StateID)
		applied, err := s.Apply(t.Context(), at.Database, at.Table, edits)
		var failed *statestore.ApplyError
		var exists *statestore.ExistsError
		if !errors.As(err, &failed) || len(failed.Errs) != 1 || !errors.As(failed.Errs[0], &exists) || exists.Address.StateID != edits[1].StateID || len(applied) != 0 {
			t.Fatalf("applied %d, %v", len(applied), err)
		}
		if n := len(live(t, s, at)); n != 2 {
			t.Fatalf("%d live, want the two from before", n)
		}

		exec(t, conn, "DELETE FROM "+quoted(at)+" WHERE state_id = ?", edits[1].StateID)
		created := apply(t, s, at, edits)
		if !created[edits[0].StateID].TookOver || created[edits[2].StateID].TookOver {
			t.Errorf("took over %+v and %+v, want the first", created[edits[0].StateID], created[edits[2].StateID])
		}
		// Twice is a mistake, also where the payloads are equal.
		if _, err := s.Apply(t.Context(), at.Database, at.Table, edits); !errors.As(err, &failed) || len(failed.Errs) != 100 || failed.Total != 100 {
			t.Errorf("the second create: %v", err)
		}

		// A pipeline moves two of them after they were read.
		updates := make([]statestore.Edit, len(edits))
		for i, e := range edits {
			updates[i] = statestore.Edit{
				StateID: e.StateID, Verb: statestore.EditUpdate, Expect: created[e.StateID].Entry.Version,
				Completed: statestore.Set(text(`{"singer_state": {"b": 1}}`)), Partial: statestore.Keep(),
			}
		}
		for _, i := range []int{41, 42} {
			exec(t, conn, "INSERT INTO "+quoted(at)+" (state_id, completed_state) VALUES (?, ?)", edits[i].StateID, `{"singer_state": {"moved": 1}}`)
		}
		_, err = s.Apply(t.Context(), at.Database, at.Table, updates)
		var moved *statestore.MovedError
		if !errors.As(err, &failed) || len(failed.Errs) != 2 || !errors.As(failed.Errs[1], &moved) || moved.Address.StateID != edits[42].StateID {
			t.Errorf("update of what moved: %v", err)
		}
		for id, e := range live(t, s, at) {
			if strings.Contains(*e.Completed, `"b"`) {
				t.Fatalf("%s was written", id)
			}
		}
		if n := locks(t, at); n != 0 {
			t.Errorf("%d claims left", n)
		}
	})
}

// TestApplyVersions: entries of one batch are stored in different versions, one of them from the future, some not at all.
// Each is guarded by its own, whether they are few or many, and whatever they are called.
func TestApplyVersions(t *testing.T) {
	for _, tt := range []struct {
		name string
		n    int
		id   func(i int) string
	}{
		{"few", 12, func(i int) string { return creates(12)[i].StateID }},
		// With the new one as many as are bound, and about as long.
		{"hostile", 99, func(i int) string { return fmt.Sprintf("%s%03d", strings.Repeat("'\\", 75), i) }},
		{"many", 150, func(i int) string { return creates(150)[i].StateID }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bothProtocols(t, func(t *testing.T, protocol chconn.Protocol) { testApplyVersions(t, protocol, tt.n, tt.id) })
		})
	}
}

func testApplyVersions(t *testing.T, protocol chconn.Protocol, n int, id func(i int) string) {
	c := newCrowd(t, acctest.Server(t), acctest.Database(t), protocol, statestore.LockOptions{})
	s, at, conn := c.store, c.at, acctest.Conn(t)
	create := func(id string) statestore.Edit {
		return statestore.Edit{StateID: id, Verb: statestore.EditCreate, Completed: statestore.Set(text(changed)), Partial: statestore.Keep()}
	}
	var edits []statestore.Edit
	for i := range n {
		edits = append(edits, create(id(i)))
	}
	stored := apply(t, s, at, edits)
	update := func(i int, value string) statestore.Edit {
		return statestore.Edit{
			StateID: id(i), Verb: statestore.EditUpdate, Expect: stored[id(i)].Entry.Version,
			Completed: statestore.Set(text(value)), Partial: statestore.Keep(),
		}
	}

	// Three versions more, and two rows that no client of ours has written.
	for i := range 3 {
		for written, w := range apply(t, s, at, []statestore.Edit{update(i, `{"singer_state": {"b": 1}}`)}) {
			stored[written] = w
		}
	}
	future := uint64(time.Now().Add(time.Hour).UnixMicro())
	exec(t, conn, "INSERT INTO "+quoted(at)+" (state_id, completed_state, version) VALUES (?, '{}', ?)", id(3), future)
	exec(t, conn, "DELETE FROM "+quoted(at)+" WHERE state_id = ?", id(4))
	exec(t, conn, "INSERT INTO "+quoted(at)+" (state_id, completed_state, version) VALUES (?, '{}', 0)", id(4))
	for i, version := range map[int]uint64{3: future, 4: 0} {
		stored[id(i)] = statestore.Written{Entry: statestore.Entry{Version: version}}
	}

	edits = []statestore.Edit{create("new")}
	for i := range n {
		edits = append(edits, update(i, `{"singer_state": {"c": 1}}`))
	}
	stored = apply(t, s, at, edits)
	found := live(t, s, at)
	for i := range n {
		if e := found[id(i)]; *e.Completed != `{"singer_state": {"c": 1}}` || e.Version != stored[id(i)].Entry.Version || (e.Version == future+1) != (i == 3) {
			t.Errorf("entry %d: %s, version %d", i, *e.Completed, e.Version)
		}
	}
	if _, ok := found["new"]; !ok {
		t.Error("the new one is not there")
	}

	// One moves after it was read, one comes, one goes, and one goes while another comes with the least version there is:
	// nothing is written over any of them, nor beside them. What happens between the versions and the payloads is seen before
	// there is anything to write.
	const moved = `{"moved": 1}`
	came := "INSERT INTO " + quoted(at) + " (state_id, completed_state, version) VALUES ('other', ?, ?)"
	gone := "DELETE FROM " + quoted(at) + " WHERE state_id = ?"
	for round, after := range []string{"entries.apply.newest", "entries.apply.live"} {
		victims := 5 + 3*round
		for _, tt := range []struct {
			name    string
			happens func()
			errs    int
			writes  [2]int // by round
		}{
			{"moves", func() {
				exec(t, conn, "INSERT INTO "+quoted(at)+" (state_id, completed_state) VALUES (?, ?)", id(victims), moved)
			}, 1, [2]int{0, 1}},
			{"comes", func() { exec(t, conn, came, moved, 1) }, 1, [2]int{1, 1}},
			{"goes", func() { exec(t, conn, gone, id(victims+1)) }, 1, [2]int{0, 1}},
			{"goes and comes", func() {
				exec(t, conn, gone, id(victims+2))
				exec(t, conn, came, moved, 0)
			}, 2, [2]int{0, 1}},
		} {
			before := live(t, s, at)
			edits := []statestore.Edit{create("other")}
			for i := range n {
				if e, ok := before[id(i)]; ok && e.Version == stored[id(i)].Entry.Version {
					edits = append(edits, update(i, `{"singer_state": {"d": 1}}`))
				}
			}
			c.log.stop(after)
			done := make(chan error, 1)
			go func() {
				_, err := s.Apply(context.Background(), at.Database, at.Table, edits)
				done <- err
			}()
			c.log.await(t, done)
			tt.happens()
			close(c.log.goOn)
			var failed *statestore.ApplyError
			if err := <-done; !errors.As(err, &failed) || len(failed.Errs) != tt.errs || errors.As(failed.Errs[0], new(*statestore.UncertainError)) {
				t.Errorf("one %s after %s: %v", tt.name, after, err)
			}
			if writes := c.log.count("entries.apply.write"); writes != tt.writes[round] {
				t.Errorf("one %s after %s: %d writes that are refused, want %d", tt.name, after, writes, tt.writes[round])
			}
			for id, e := range live(t, s, at) {
				if strings.Contains(*e.Completed, `"d"`) || id == "other" && e.Version > 1 {
					t.Errorf("one %s after %s: %s was written", tt.name, after, id)
				}
			}
			exec(t, conn, "DELETE FROM "+quoted(at)+" WHERE state_id = 'other'")
		}
	}
}

// TestApplyBetweenBatches: what the batches before the failed one have written is returned, and nothing else is.
func TestApplyBetweenBatches(t *testing.T) {
	s, conn := open(t, chconn.Native), acctest.Conn(t)
	at := table(t, s)
	edits := creates(statestore.MaxBatchRows + 10)
	last := edits[len(edits)-1].StateID
	exec(t, conn, "INSERT INTO "+quoted(at)+" (state_id, completed_state) VALUES (?, ?)", last, `{"x": 1}`)
	applied, err := s.Apply(t.Context(), at.Database, at.Table, edits)
	var failed *statestore.ApplyError
	if !errors.As(err, &failed) || failed.Done != statestore.MaxBatchRows || len(applied) != failed.Done || !strings.Contains(err.Error(), last) {
		t.Fatalf("applied %d, %v", len(applied), err)
	}
	found := live(t, s, at)
	delete(found, last)
	if len(found) != len(applied) {
		t.Fatalf("%d live, %d applied", len(found), len(applied))
	}
	for id, e := range found {
		if applied[id].Entry.Version != e.Version {
			t.Fatalf("%s: %+v, applied %+v", id, e, applied[id])
		}
	}
	// Another process goes on where this one stopped.
	exec(t, conn, "DELETE FROM "+quoted(at)+" WHERE state_id = ?", last)
	again := apply(t, open(t, chconn.Native), at, edits)
	if !again[edits[0].StateID].TookOver || again[last].TookOver {
		t.Error("the first batch was not taken over, or the last one was")
	}
	if n := count(t, conn, "SELECT count() FROM "+quoted(at)); n != uint64(len(edits)) {
		t.Errorf("%d rows, want %d", n, len(edits))
	}
}

// TestApplyBusy: one entry that is locked keeps its batch waiting, and nothing is locked meanwhile.
func TestApplyBusy(t *testing.T) {
	s, err := statestore.Open(statestore.Config{
		Connection: connection(acctest.Server(t), chconn.Native),
		Lock:       statestore.LockOptions{Timeout: 3 * time.Second, Settle: 200 * time.Millisecond, RetryInterval: 200 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(context.Background()) }()
	at, conn := table(t, s), acctest.Conn(t)
	edits := creates(100)
	const theirs = "00000000-1111-4000-8000-000000000001"
	exec(t, conn, "INSERT INTO `"+at.Database+"`.state_lock (state_id, lock_id) VALUES (?, ?)", edits[41].StateID, theirs)
	applied, err := s.Apply(t.Context(), at.Database, at.Table, edits)
	var busy *statestore.BusyError
	if !errors.As(err, &busy) || busy.StateID != edits[41].StateID || busy.LockID != theirs || len(applied) != 0 {
		t.Fatalf("applied %d, %v", len(applied), err)
	}
	if n := locks(t, at); n != 1 {
		t.Errorf("%d claims, want theirs alone", n)
	}
	if n := count(t, conn, "SELECT count() FROM "+quoted(at)); n != 0 {
		t.Errorf("%d rows were written", n)
	}
}

// TestApplyUnderHolds: entries that a lock of this store covers are written under that.
func TestApplyUnderHolds(t *testing.T) {
	s := open(t, chconn.Native)
	at := table(t, s)
	edits := creates(30)
	for _, some := range [][]statestore.Edit{edits[3:7], edits[20:21]} {
		var ids []string
		for _, e := range some {
			ids = append(ids, e.StateID)
		}
		hold, err := s.Hold(t.Context(), at.Database, at.Table, ids, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = hold.Release(context.Background()) }()
	}
	apply(t, s, at, edits)
	if n := len(live(t, s, at)); n != len(edits) {
		t.Errorf("%d live, want %d", n, len(edits))
	}
	if n := locks(t, at); n != 5 {
		t.Errorf("%d claims, want those of the holds", n)
	}
}

// TestApplyDeletesWithoutTable: nothing is left to delete where the table is gone.
func TestApplyDeletesWithoutTable(t *testing.T) {
	s := open(t, chconn.Native)
	at := table(t, s)
	created := apply(t, s, at, creates(2))
	exec(t, acctest.Conn(t), "DROP TABLE "+quoted(at)+" SYNC")
	var deletes []statestore.Edit
	for id, written := range created {
		deletes = append(deletes, statestore.Edit{StateID: id, Verb: statestore.EditDelete, Expect: written.Entry.Version})
	}
	apply(t, s, at, deletes)
	var noTable *statestore.NoTableError
	if _, err := s.Apply(t.Context(), at.Database, at.Table, creates(1)); !errors.As(err, &noTable) {
		t.Errorf("create without a table: %v", err)
	}
}
