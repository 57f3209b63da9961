package provider

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest/meltano"
)

// A table that Meltano made, with 1,000 entries: import it, change an entry, destroy one, and upgrade both tables while
// Meltano writes. What is interrupted on the way is statestore's TestUpgrade.
func TestTable_upgrade(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolHTTP)
	peer := meltano.New(s.conn, meltano.Options{Database: s.database, Table: defaultTable, Settle: 300 * time.Millisecond, Retry: 100 * time.Millisecond})
	if err := peer.CreateTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.do(t, `INSERT INTO DB.state (state_id, completed_state) SELECT 'dev:' || number, '{"singer_state": {"bookmarks": {"issues": {"replication_key_value": "T0"}}}}' FROM numbers(1000)`)
	imports := ""
	for to, id := range map[string]string{tableT: "", "clickhousestate_entry.a": "/dev:1", "clickhousestate_entry.b": "/dev:2"} {
		imports += fmt.Sprintf("import {\n  to = %s\n  id = \"%s/state%s\"\n}\n", to, s.database, id)
	}
	in := func(name, id, value string) string {
		return strings.Replace(entryIn(id, issues(value)), `"in"`, fmt.Sprintf("%q", name), 1)
	}
	w := s.workspace(t, table()+in("a", "dev:1", "T0")+in("b", "dev:2", "T0")+imports)
	run := func(code int, wants []string, args ...string) {
		t.Helper()
		output, got := w.Run(t, args...)
		if got != code {
			t.Fatalf("%v: exit code %d, want %d:\n%s", args, got, code, output)
		}
		for _, want := range wants {
			if !strings.Contains(unwrap(output), want) {
				t.Errorf("%v: it does not say %q:\n%s", args, want, output)
			}
		}
		if strings.Contains(output, "must be replaced") {
			t.Errorf("a replacement:\n%s", output)
		}
	}
	empty := func() {
		t.Helper()
		run(0, []string{"No changes"}, "plan", "-detailed-exitcode")
	}
	run(0, []string{"3 imported, 0 added, 0 changed, 0 destroyed"}, "apply", "-auto-approve")
	empty()
	w.Configure(t, s.config(table()+in("a", "dev:1", "T1")))
	run(0, []string{"0 added, 1 changed, 1 destroyed"}, "apply", "-auto-approve")

	// One pipeline runs all the time.
	writing, stop := context.WithCancel(t.Context())
	done, last := make(chan error, 1), 0
	go func() {
		done <- func() error {
			for n := 1; writing.Err() == nil; n++ {
				lock, err := peer.AcquireLock(t.Context(), "dev:3")
				if err == nil {
					err = errors.Join(peer.Set(t.Context(), "dev:3", bookmarks(fmt.Sprintf("T%d", n))), lock.Release(t.Context()))
					last = n
				}
				if err != nil {
					return err
				}
				time.Sleep(time.Second) // until its next run
			}
			return nil
		}()
	}()
	// The entry changes in the same apply: the upgrade keeps its version.
	w.Configure(t, s.config(table(`  layout = "versioned"`, `  lock_layout = "strict"`)+in("a", "dev:1", "T2")))
	run(2, []string{
		"clickhousestate_table.t will be updated in-place", `"meltano" -> "versioned"`, `"meltano" -> "strict"`, "0 to add, 2 to change, 0 to destroy",
		"State table " + s.database + "/state will be upgraded", "Lock table " + s.database + "/state will be upgraded", "for more than 30 s fails",
	}, "plan", "-detailed-exitcode")
	run(0, []string{"0 added, 2 changed, 0 destroyed"}, "apply", "-auto-approve")
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	empty()

	rows := s.live(t)
	if len(rows) != 999 {
		t.Errorf("%d entries, want 999", len(rows))
	}
	for i := range 1000 {
		id, want := fmt.Sprintf("dev:%d", i), "T0"
		switch i {
		case 1:
			want = "T2"
		case 2:
			if _, found := rows[id]; found {
				t.Errorf("%s is back", id)
			}
			continue
		case 3:
			want = fmt.Sprintf("T%d", last)
		}
		if !strings.Contains(text(rows[id].completed), fmt.Sprintf("%q", want)) {
			t.Errorf("%s is %s, want %s", id, text(rows[id].completed), want)
		}
	}
	// There is no way back.
	w.Configure(t, s.config(table(`  layout = "meltano"`, `  lock_layout = "strict"`)+in("a", "dev:1", "T2")))
	run(1, []string{"Unable to change layout of state table", "There is no way back"}, "plan")
}

// An upgrade that would lose something is refused, with every reason, and leaves everything as it is.
func TestTable_noUpgrade(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	s.peer(t)
	s.do(t, "ALTER TABLE DB.state ADD COLUMN note String")
	s.do(t, "CREATE MATERIALIZED VIEW DB.audit ENGINE = MergeTree ORDER BY state_id AS SELECT state_id FROM DB.state")
	s.do(t, "CREATE TABLE DB.state_lock_upgrade (x Int8) ENGINE = Memory")
	w := s.workspace(t, table(`  layout = "versioned"`)+"import {\n  to = "+tableT+"\n  id = \""+s.database+"/state\"\n}\n")
	output, code := w.Run(t, "apply", "-auto-approve")
	for _, want := range []string{"Unable to update state table", "columns that a new table would not have: note", "views read from it, and would go on with the old table: audit"} {
		if !strings.Contains(unwrap(output), want) || code != 1 {
			t.Errorf("it does not say %q:\n%s", want, output)
		}
	}
	w.Configure(t, s.config(table(`  lock_layout = "strict"`)))
	if output, code := w.Run(t, "apply", "-auto-approve"); code != 1 || !strings.Contains(unwrap(output), "under the name state_lock_upgrade, which another table has") {
		t.Errorf("beside somebody else's table:\n%s", output)
	}
	if n := s.count(t, "state_lock_upgrade"); n != 0 {
		t.Errorf("%d rows", n)
	}
}

// A provider that is killed in the middle of an upgrade leaves the old table in use. The plan says that something is
// left to finish, and the next apply does it.
func TestTable_upgradeKilled(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	peer := s.peer(t)
	for _, id := range []string{"dev:1", "dev:2"} {
		if err := peer.Set(t.Context(), id, bookmarks("T0")); err != nil {
			t.Fatal(err)
		}
	}
	w := s.workspace(t, table()+"import {\n  to = "+tableT+"\n  id = \""+s.database+"/state\"\n}\n")
	if output, code := w.Run(t, "apply", "-auto-approve"); code != 0 {
		t.Fatal(output)
	}
	// It waits for a lock once it has copied.
	s.foreign(t, "dev:1", foreignLockID, 0)
	w.Configure(t, s.config(table(`  layout = "versioned"`)))
	apply := w.Start(t, "apply", "-auto-approve")
	await(t, time.Minute, "the copy is there", func() bool {
		return apply.Running() && s.tables(t, "state_upgrade") == 1 && s.count(t, "state_upgrade") == 2
	})
	children, err := exec.Command("pgrep", "-P", fmt.Sprint(apply.Process.Pid)).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, child := range strings.Fields(string(children)) {
		pid, err := strconv.Atoi(child)
		if err != nil {
			t.Fatal(err)
		}
		process, err := os.FindProcess(pid)
		if err != nil {
			t.Fatal(err)
		}
		signal(t, os.Kill, process)
	}
	if output, code := apply.Wait(t); code == 0 {
		t.Fatalf("the apply of a killed provider succeeds:\n%s", output)
	}
	if err := peer.Set(t.Context(), "dev:2", bookmarks("T1")); err != nil { // Pipelines go on.
		t.Fatal(err)
	}
	s.unlock(t)
	output, code := w.Run(t, "plan", "-detailed-exitcode")
	for _, want := range []string{"Upgrade of state table " + s.database + "/state is not finished", `"meltano" -> "versioned"`} {
		if code != 2 || !strings.Contains(unwrap(output), want) {
			t.Errorf("the plan does not say %q:\n%s", want, output)
		}
	}
	if output, code := w.Run(t, "apply", "-auto-approve"); code != 0 {
		t.Fatal(output)
	}
	if output, code := w.Run(t, "plan", "-detailed-exitcode"); code != 0 || strings.Contains(output, "not finished") {
		t.Errorf("after that:\n%s", output)
	}
	if rows := s.live(t); len(rows) != 2 || !strings.Contains(text(rows["dev:1"].completed), `"T0"`) || !strings.Contains(text(rows["dev:2"].completed), `"T1"`) || s.tables(t, "state_upgrade") != 0 {
		t.Errorf("stored is %v", rows)
	}
}

// tables counts the tables of a name in the scenario's database.
func (s scenario) tables(t *testing.T, name string) (n uint64) {
	t.Helper()
	if err := s.conn.QueryRow(t.Context(), "SELECT count() FROM system.tables WHERE database = ? AND name = ?", s.database, name).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
