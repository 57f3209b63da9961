package provider

import (
	"fmt"
	"strings"
	"testing"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
)

// configure replaces the entries, with more lines in their resource.
func (f form) configure(t *testing.T, s scenario, w *acctest.Workspace, entries map[string]string, lines ...string) {
	t.Helper()
	w.Configure(t, s.config(f.of(entries, lines...)))
}

const (
	seeds  = `  write_policy = "seed"`
	retain = `  deletion_policy = "retain"`
)

func TestEntries_seed(t *testing.T) {
	t.Parallel()
	eachForm(t, func(t *testing.T, s scenario, declare form) {
		s.meltano(t, "dev:a", mark("2026-02-01"), nil)
		w := s.workspace(t, declare.of(map[string]string{"dev:a": marked("2026-01-01"), "dev:b": marked("2026-01-01")}, seeds))
		succeed(t, w, "apply -auto-approve", `State entry "dev:a" was there already`, "1 added")
		s.holds(t, map[string]string{"dev:a": mark("2026-02-01"), "dev:b": mark("2026-01-01")})
		// Pipelines run.
		s.meltano(t, "dev:a", mark("2026-03-01"), nil)
		s.meltano(t, "dev:b", mark("2026-03-01"), `{"singer_state": {"bookmarks": {"pulls": {"since": 1}}}}`)
		succeed(t, w, "plan -detailed-exitcode", "No changes")
		// One declaration changes: the other one stays the pipeline's. What is set back is what is stored.
		declare.configure(t, s, w, map[string]string{"dev:a": marked("2026-01-01"), "dev:b": marked("2026-01-02")}, seeds)
		output := succeed(t, w, "apply -auto-approve", "1 changed", `State entry "dev:b" would be set back`)
		if strings.Contains(output, `"dev:a" would be`) {
			t.Errorf("dev:a is said to be set back:\n%s", output)
		}
		s.holds(t, map[string]string{"dev:a": mark("2026-03-01"), "dev:b": mark("2026-01-02")})
		if partial := text(s.live(t)["dev:b"].partial); partial != `{"singer_state": {"bookmarks": {"pulls": {"since": 1}}}}` {
			t.Errorf("the partial state is %s, want the pipeline's", partial)
		}
		// Cleared, it starts again where it is declared to.
		s.meltanoDelete(t, "dev:a")
		succeed(t, w, "apply -auto-approve", "1 changed")
		s.holds(t, map[string]string{"dev:a": mark("2026-01-01"), "dev:b": mark("2026-01-02")})
	})
}

// A switch of the write policy writes no payload.
func TestEntries_switch(t *testing.T) {
	t.Parallel()
	eachForm(t, func(t *testing.T, s scenario, declare form) {
		entries := map[string]string{"dev:a": marked("2026-01-01"), "dev:b": marked("2026-01-01")}
		w := s.workspace(t, declare.of(entries, seeds))
		succeed(t, w, "apply -auto-approve", "1 added")
		s.meltano(t, "dev:a", mark("2026-02-01"), nil)
		stored := map[string]string{"dev:a": mark("2026-02-01"), "dev:b": mark("2026-01-01")}

		declare.configure(t, s, w, entries)
		succeed(t, w, "apply -auto-approve", "will be held to their declaration", "1 changed")
		s.holds(t, stored)
		// Without a refresh the state holds a declaration still; what is set back is what is stored.
		declare.configure(t, s, w, map[string]string{"dev:a": marked("2026-01-02"), "dev:b": marked("2026-01-01")})
		succeed(t, w, "plan -refresh=false", `State entry "dev:a" would be set back`, "from 2026-02-01 to 2026-01-02")
		declare.configure(t, s, w, entries)
		succeed(t, w, "plan", `State entry "dev:a" would be set back`, "1 to change")

		declare.configure(t, s, w, entries, seeds)
		succeed(t, w, "apply -auto-approve", "keep what is stored", "1 changed")
		s.holds(t, stored)
		succeed(t, w, "plan -detailed-exitcode", "No changes")
		// What is new is written in a switch as well.
		entries["dev:c"] = marked("2026-01-01")
		stored["dev:c"] = mark("2026-01-01")
		declare.configure(t, s, w, entries)
		succeed(t, w, "apply -auto-approve", "1 changed")
		s.holds(t, stored)
	})
}

func TestEntries_retain(t *testing.T) {
	t.Parallel()
	eachForm(t, func(t *testing.T, s scenario, declare form) {
		w := s.workspace(t, declare.of(map[string]string{"dev:a": marked("T0"), "dev:b": marked("T0")}, retain))
		succeed(t, w, "apply -auto-approve", "1 added")
		declare.configure(t, s, w, map[string]string{"dev:a": marked("T0")}, retain)
		if output := succeed(t, w, "apply -auto-approve", "1 changed"); strings.Contains(output, "Warning: State") {
			t.Errorf("forgetting warns:\n%s", output)
		}
		succeed(t, w, "destroy -auto-approve", "1 destroyed")
		s.holds(t, map[string]string{"dev:a": mark("T0"), "dev:b": mark("T0")})
	})
}

func TestEntries_onRewind(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	s.newTable(t)
	entries, stored := map[string]string{}, map[string]string{}
	for i := range listedIDs + 5 {
		id := fmt.Sprintf("dev:tap-%02d", i)
		entries[id], stored[id] = marked("2026-01-01"), mark("2026-02-01")
	}
	const strict = `  on_rewind = "error"`
	w := s.workspace(t, formExport.of(entries, strict))
	succeed(t, w, "apply -auto-approve", "1 added")
	refuse(t, w, "destroy -auto-approve", fmt.Sprintf(`State entries "dev:tap-00" and %d more would lose all their bookmarks`, len(entries)-1))
	for id, completed := range stored {
		s.meltano(t, id, completed, nil)
	}
	refuse(t, w, "apply -auto-approve", `State entry "dev:tap-00" would be set back`, `5 more state entries in table`)
	s.holds(t, stored)
	formExport.configure(t, s, w, map[string]string{"dev:tap-00": `{ completed = ` + mark("2026-02-01") + ` }`}, strict)
	refuse(t, w, "apply -auto-approve", fmt.Sprintf(`State entries "dev:tap-01" and %d more would lose all their bookmarks`, len(entries)-2))
	s.holds(t, stored)
	formExport.configure(t, s, w, entries, `  on_rewind = "allow"`)
	if output := succeed(t, w, "apply -auto-approve", "1 changed"); strings.Contains(output, "Warning: State") {
		t.Errorf("what is allowed is warned of:\n%s", output)
	}
}

// Foreign entries are shown, and then removed.
func TestEntries_exclusive(t *testing.T) {
	t.Parallel()
	eachForm(t, func(t *testing.T, s scenario, declare form) {
		const exclusive = "  exclusive = true"
		s.meltano(t, "dev:old", mark("T5"), nil)
		entries := map[string]string{"dev:a": marked("T0")}
		w := s.workspace(t, declare.of(entries, retain))
		succeed(t, w, "apply -auto-approve", "1 added")
		succeed(t, w, "plan -detailed-exitcode", "No changes")
		// The switch deletes nothing that was not shown.
		declare.configure(t, s, w, entries, retain, exclusive)
		succeed(t, w, "apply -auto-approve", "1 changed")
		s.holds(t, map[string]string{"dev:a": mark("T0"), "dev:old": mark("T5")})
		succeed(t, w, "plan", `State entry "dev:old" would lose all its bookmarks`, `- "dev:old"`, "set exclusive = false", "1 to change")
		s.meltano(t, "dev:new", mark("T6"), nil)
		succeed(t, w, "plan -out=p", `State entries "dev:new" and 1 more would lose all their bookmarks`)
		// What moved since the plan, or came only later, stays.
		s.meltano(t, "dev:new", mark("T7"), nil)
		refuse(t, w, "apply p", `"dev:new"`, "changed since it was planned")
		succeed(t, w, "plan -out=p")
		s.meltano(t, "dev:later", mark("T8"), nil)
		succeed(t, w, "apply p", "1 changed")
		s.holds(t, map[string]string{"dev:a": mark("T0"), "dev:later": mark("T8")})
		// Declared as it is, it stays without a write.
		before := s.live(t)["dev:later"].version
		entries["dev:later"] = marked("T8")
		declare.configure(t, s, w, entries, retain, exclusive)
		succeed(t, w, "apply -auto-approve")
		succeed(t, w, "plan -detailed-exitcode", "No changes")
		if after := s.live(t)["dev:later"].version; after != before {
			t.Error("dev:later was written")
		}
	})
}

// Terraform hands on nothing of what is tainted, and nothing is deleted.
func TestEntries_tainted(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	s.newTable(t)
	w := s.workspace(t, formEntries.of(map[string]string{"dev:a": marked("2026-01-01")}, seeds))
	succeed(t, w, "apply -auto-approve", "1 added")
	s.meltano(t, "dev:a", mark("2026-02-01"), nil)
	succeed(t, w, "taint "+entriesA)
	expects(t, "a tainted one", entriesSaid(t, w, 1, "apply", "-auto-approve"), `error: State entry "dev:a" is tainted: `, "terraform untaint")
	s.holds(t, map[string]string{"dev:a": mark("2026-02-01")})
	succeed(t, w, "untaint "+entriesA)
	succeed(t, w, "plan -detailed-exitcode", "No changes")
}

// A replacement, which -replace asks for, says what it would set back, and writes what is declared.
func TestEntries_replace(t *testing.T) {
	t.Parallel()
	eachForm(t, func(t *testing.T, s scenario, declare form) {
		w := s.workspace(t, declare.of(map[string]string{"dev:a": marked("2026-01-01"), "dev:b": marked("2026-01-01")}))
		succeed(t, w, "apply -auto-approve", "1 added")
		declare.configure(t, s, w, map[string]string{"dev:a": marked("2026-01-02"), "dev:c": marked("2026-01-01")})
		s.meltano(t, "dev:a", mark("2026-02-01"), nil)
		before := s.live(t)
		output, code := w.Run(t, "plan", "-replace="+entriesA)
		for _, want := range []string{`State entry "dev:a" would be set back`, "from 2026-02-01 to 2026-01-02", `State entry "dev:b" would lose all its bookmarks`, "change it in place"} {
			if !strings.Contains(output, want) {
				t.Errorf("it said\n%s\nwant %q", output, want)
			}
		}
		if code != 1 || s.live(t)["dev:a"].version != before["dev:a"].version || s.live(t)["dev:b"].version != before["dev:b"].version {
			t.Errorf("it ended with %d, or wrote", code)
		}
		declare.configure(t, s, w, map[string]string{"dev:a": marked("2026-01-02"), "dev:c": marked("2026-01-01")}, `  on_rewind = "allow"`)
		succeed(t, w, "apply -auto-approve -replace="+entriesA, "1 added, 0 changed, 1 destroyed")
		s.holds(t, map[string]string{"dev:a": mark("2026-01-02"), "dev:c": mark("2026-01-01")})
		succeed(t, w, "plan -detailed-exitcode", "No changes")
	})
}
