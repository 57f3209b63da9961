package provider

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/bookmark"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

// numbered are n entries, whose ids sort by number, with one value.
func numbered(n int, value string) map[string]string {
	entries := make(map[string]string, n)
	for i := range n {
		entries[number(i)] = marked(value)
	}
	return entries
}

func number(i int) string { return fmt.Sprintf("dev:tap-%05d-to-b", i) }

const hasty = `  lock = { timeout = "2s", settle = "200ms" }`

// cases.md 24: what is there already is not overwritten, and all of it is named.
func TestEntries_exists(t *testing.T) {
	t.Parallel()
	eachForm(t, func(t *testing.T, s scenario, declare form) {
		s.meltano(t, "dev:a", mark("T5"), nil)
		s.meltano(t, "dev:b", mark("T5"), nil)
		s.insert(t, "(state_id, is_deleted)", "dev:c", uint8(1))
		before := s.live(t)
		entries := map[string]string{"dev:a": marked("T0"), "dev:b": marked("T0"), "dev:c": marked("T0"), "dev:d": marked("T0")}
		w := s.workspace(t, declare.of(entries))
		refuse(t, w, "apply -auto-approve", "Unable to create state entries", "Live entries are there already", `"dev:a"`, `"dev:b"`, "No entry was changed.",
			"terraform import <address> '"+s.database+"/state/*'")
		s.holds(t, map[string]string{"dev:a": mark("T5"), "dev:b": mark("T5")})
		if after := s.live(t); after["dev:a"].version != before["dev:a"].version {
			t.Error("dev:a was touched")
		}
		// Nothing is in the state: what the next apply finds as declared is taken over.
		entries["dev:a"], entries["dev:b"] = marked("T5"), marked("T5")
		declare.configure(t, s, w, entries)
		succeed(t, w, "apply -auto-approve", `State entries "dev:a" and 1 more were there already`, "1 added, 0 changed")
		succeed(t, w, "plan -detailed-exitcode", "No changes")

		// Two resources that claim one entry.
		w = s.workspace(t, strings.ReplaceAll(declare.of(map[string]string{"dev:z": marked("T0")}), `"a"`, `"first"`)+
			strings.ReplaceAll(declare.of(map[string]string{"dev:z": marked("T0"), "dev:y": marked("T0")}), `"a"`, `"second"`))
		refuse(t, w, "apply -auto-approve", `"dev:z"`, "already exists", "If another resource declares them, remove one of the two.")
	})
}

// cases.md 26: one of a hundred is locked, and the others wait with it.
func TestEntries_busy(t *testing.T) {
	t.Parallel()
	eachForm(t, func(t *testing.T, s scenario, declare form) {
		const n = 100
		unlocked := func() {
			t.Helper()
			if claims := s.claims(t); len(claims) != 1 {
				t.Errorf("%d claims, want the foreign one alone", len(claims))
			}
			s.unlock(t)
		}
		stored := map[string]string{}
		w := s.workspace(t, declare.of(numbered(n, "T0")), hasty)
		s.foreign(t, number(41), foreignLockID, 0)
		refuse(t, w, "apply -auto-approve", "Unable to create state entries", number(41), foreignLockID, "No entry was changed.")
		unlocked()
		s.holds(t, stored)
		succeed(t, w, "plan", "1 to add, 0 to change, 0 to destroy")
		succeed(t, w, "apply -auto-approve", "1 added")
		for i := range n {
			stored[number(i)] = mark("T0")
		}
		s.holds(t, stored)

		w.Configure(t, s.config(declare.of(numbered(n, "T1")), hasty))
		s.foreign(t, number(41), foreignLockID, 0)
		refuse(t, w, "apply -auto-approve", "Unable to update state entries", number(41), foreignLockID)
		unlocked()
		s.holds(t, stored)
		succeed(t, w, "plan", "0 to add, 1 to change, 0 to destroy")
		succeed(t, w, "apply -auto-approve", "1 changed")

		s.foreign(t, number(41), foreignLockID, 0)
		refuse(t, w, "destroy -auto-approve", "Unable to delete state entries", number(41), foreignLockID)
		unlocked()
		if count := stateOf(t, w, entriesA)["entry_count"]; count != float64(n) {
			t.Errorf("the state has %v entries, want all", count)
		}
		succeed(t, w, "destroy -auto-approve", "1 destroyed")
		s.holds(t, map[string]string{})
	})
}

// Values that are not known in a plan are no error, and one of a hundred that is gone is a change of that one.
func TestEntries_unknown(t *testing.T) {
	t.Parallel()
	eachForm(t, func(t *testing.T, s scenario, declare form) {
		entries := numbered(100, "T0")
		for _, i := range []int{1, 50, 99} {
			entries[number(i)] = `{ completed = { singer_state = { at = terraform_data.d.id } } }`
		}
		w := s.workspace(t, "resource \"terraform_data\" \"d\" {}\n"+declare.of(entries))
		succeed(t, w, "apply -auto-approve", "2 added")
		succeed(t, w, "plan -detailed-exitcode", "No changes")
		s.meltanoDelete(t, number(50))
		output := succeed(t, w, "plan", `+ "`+number(50)+`"`, "0 to add, 1 to change, 0 to destroy")
		if strings.Contains(output, number(51)) {
			t.Errorf("others are shown:\n%s", output)
		}
		succeed(t, w, "apply -auto-approve", "1 changed")
		if live := s.live(t); len(live) != 100 {
			t.Errorf("%d live", len(live))
		}
	})
}

// cases.md 21: a thousand entries are written together, and one that changes alone.
func TestEntries_thousand(t *testing.T) {
	t.Parallel()
	eachForm(t, func(t *testing.T, s scenario, declare form) {
		const n = 1000
		entries := numbered(n, "T0")
		w := s.workspace(t, declare.of(entries))
		succeed(t, w, "apply -auto-approve", "1 added")
		if rows := s.count(t, "state"); rows != n {
			t.Errorf("%d rows, want %d", rows, n)
		}
		entries[number(500)] = marked("T1")
		declare.configure(t, s, w, entries)
		succeed(t, w, "apply -auto-approve", "1 changed")
		if rows := s.written(t, "entries.apply.write"); rows != n+1 {
			t.Errorf("%d rows were written, want %d and 1", rows, n)
		}
		before := s.operations(t, "entries.read")
		succeed(t, w, "plan -detailed-exitcode", "No changes")
		if reads := s.operations(t, "entries.read") - before; reads != 1 {
			t.Errorf("%d queries of a refresh, want 1", reads)
		}
		for _, table := range []string{"state", "state_lock"} {
			var parts uint64
			if err := s.conn.QueryRow(t.Context(), "SELECT count() FROM system.parts WHERE active AND database = ? AND table = ?", s.database, table).Scan(&parts); err != nil {
				t.Fatal(err)
			}
			if parts > 10 {
				t.Errorf("%s has %d active parts", table, parts)
			}
		}
		if locks := s.count(t, "state_lock"); locks != 0 {
			t.Errorf("%d claims are left", locks)
		}
	})
}

// operations counts the statements of an operation in the scenario's database, as the query log has them.
func (s scenario) operations(t *testing.T, operation string) (n uint64) {
	t.Helper()
	s.exec(t, "SYSTEM FLUSH LOGS")
	if err := s.conn.QueryRow(t.Context(), "SELECT count() FROM system.query_log WHERE type = 'QueryFinish' AND endsWith(log_comment, ?) AND has(databases, ?)",
		" "+operation, s.database).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// written sums up the rows that the statements of an operation have written.
func (s scenario) written(t *testing.T, operation string) (n uint64) {
	t.Helper()
	s.exec(t, "SYSTEM FLUSH LOGS")
	if err := s.conn.QueryRow(t.Context(), "SELECT sum(written_rows) FROM system.query_log WHERE type = 'QueryFinish' AND endsWith(log_comment, ?) AND has(databases, ?)",
		" "+operation, s.database).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// An update of more than one batch that fails between two of them: the state holds what is written.
func TestEntries_betweenBatches(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	s.newTable(t)
	const n = statestore.MaxBatchRows + 10
	// From a file, since Terraform takes its time to evaluate as much configuration.
	declare := func(w *acctest.Workspace, value string) {
		t.Helper()
		all := make(map[string]bookmark.Entry, n)
		for i := range n {
			all[number(i)] = bookmark.Entry{Completed: mark(value)}
		}
		if err := os.WriteFile(filepath.Join(w.Dir, "export.json"), []byte(bookmark.FormatExport(all)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := s.workspace(t, `resource "clickhousestate_entries" "a" {
  export    = file("export.json")
  on_rewind = "allow"
}
`, hasty)
	declare(w, "T0")
	s.foreign(t, number(n-1), foreignLockID, 0)
	refuse(t, w, "apply -auto-approve", number(n-1), foreignLockID, fmt.Sprintf("%d of them are written", statestore.MaxBatchRows), "but not in the state")
	s.unlock(t)
	succeed(t, w, "apply -auto-approve", fmt.Sprintf("State entries %q and %d more were there already", number(0), statestore.MaxBatchRows-1), "1 added")

	declare(w, "T1")
	s.foreign(t, number(n-1), foreignLockID, 0)
	refuse(t, w, "apply -auto-approve", number(n-1), foreignLockID, fmt.Sprintf("%d of them are done", statestore.MaxBatchRows), "so in the state")
	s.unlock(t)
	output := succeed(t, w, "plan -refresh=false", "0 to add, 1 to change, 0 to destroy")
	if got := strings.Count(output, `"T0" -> "T1"`); got != 10 {
		t.Errorf("the plan shows %d changes, want the 10 that are missing", got)
	}
	before := s.live(t)
	succeed(t, w, "apply -auto-approve", "1 changed")
	after := s.live(t)
	for i := range n {
		if text(after[number(i)].completed) != mark("T1") || i < statestore.MaxBatchRows && after[number(i)].version != before[number(i)].version {
			t.Fatalf("%s: version %d after %d, %s", number(i), after[number(i)].version, before[number(i)].version, text(after[number(i)].completed))
		}
	}
	s.foreign(t, number(n-1), foreignLockID, 0)
	refuse(t, w, "destroy -auto-approve", number(n-1), foreignLockID, fmt.Sprintf("%d of them are done", statestore.MaxBatchRows))
	s.unlock(t)
	if left := stateOf(t, w, entriesA)["entry_count"]; left != float64(10) {
		t.Errorf("the state has %v entries, want the 10 that are left", left)
	}
	succeed(t, w, "destroy -auto-approve", "1 destroyed")
	s.holds(t, map[string]string{})
}
