package provider

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Entries follow their rows into a renamed table, and are not copied into another one.
func TestEntries_address(t *testing.T) {
	t.Parallel()
	eachForm(t, func(t *testing.T, s scenario, declare form) {
		entries := map[string]string{"dev:a": marked("T0"), "dev:b": marked("T0")}
		w := s.workspace(t, declare.of(entries))
		succeed(t, w, "apply -auto-approve", "1 added")
		w.Configure(t, s.config(declare.of(entries), `  table = "elsewhere"`))
		succeed(t, w, "plan -detailed-exitcode", "No changes")
		declare.configure(t, s, w, entries, `  table = "renamed"`)
		refuse(t, w, "apply -auto-approve", "Unable to move state entries", "table "+s.database+"/renamed does not exist")
		s.do(t, "RENAME TABLE DB.state TO DB.renamed, DB.state_lock TO DB.renamed_lock")
		s.exec(t, "INSERT INTO "+s.database+".renamed (state_id, completed_state) VALUES ('dev:b', ?)", mark("T5"))
		refuse(t, w, "apply -auto-approve -refresh=false", "Unable to move state entries", "which holds another version", "dev:b")
		s.exec(t, "DELETE FROM "+s.database+".renamed WHERE state_id = 'dev:b' AND completed_state = ?", mark("T5"))
		succeed(t, w, "apply -auto-approve -refresh=false", "1 changed")
		succeed(t, w, "plan -detailed-exitcode", "No changes")
		if rows := s.count(t, "renamed"); rows != 2 {
			t.Errorf("%d rows, want the two", rows)
		}
	})
}

// Entries of which a lock of the same configuration covers a part.
func TestEntries_underLock(t *testing.T) {
	t.Parallel()
	eachForm(t, func(t *testing.T, s scenario, declare form) {
		w := s.workspace(t, `ephemeral "clickhousestate_lock" "l" {
  state_ids = ["dev:a", "dev:b"]
}
`+declare.of(map[string]string{"dev:a": marked("T0"), "dev:b": marked("T0"), "dev:c": marked("T0")}, "  depends_on = [ephemeral.clickhousestate_lock.l]"), hasty)
		succeed(t, w, "apply -auto-approve", "1 added")
		s.holds(t, map[string]string{"dev:a": mark("T0"), "dev:b": mark("T0"), "dev:c": mark("T0")})
	})
}

// Entries of a table that Meltano made.
func TestEntries_layoutMeltano(t *testing.T) {
	t.Parallel()
	for declare, protocol := range map[form]string{formEntries: protocolHTTP, formExport: protocolNative} {
		t.Run(string(declare), func(t *testing.T) {
			t.Parallel()
			s := newScenario(t, protocol)
			peer := s.peer(t)
			has := func(want map[string]string) {
				t.Helper()
				ids, err := peer.List(t.Context(), "*")
				if err != nil {
					t.Fatal(err)
				}
				got := map[string]string{}
				for _, id := range ids {
					state, err := peer.Get(t.Context(), id)
					if err != nil {
						t.Fatal(err)
					}
					got[id] = fmt.Sprint(state.Completed)
				}
				if !maps.Equal(got, want) {
					t.Errorf("Meltano reads %v, want %v", got, want)
				}
			}
			read := func(value string) string { return fmt.Sprint(bookmarks(value).Completed) }
			w := s.workspace(t, declare.of(map[string]string{"dev:a": marked("T0"), "dev:b": marked("T0"), "dev:c": marked("T0")}))
			succeed(t, w, "apply -auto-approve", "1 added")
			has(map[string]string{"dev:a": read("T0"), "dev:b": read("T0"), "dev:c": read("T0")})
			declare.configure(t, s, w, map[string]string{"dev:a": marked("T1"), "dev:c": marked("T0"), "dev:d": marked("T0")})
			succeed(t, w, "apply -auto-approve", "1 changed")
			has(map[string]string{"dev:a": read("T1"), "dev:c": read("T0"), "dev:d": read("T0")})
			if err := peer.Set(t.Context(), "dev:c", bookmarks("T7")); err != nil {
				t.Fatal(err)
			}
			succeed(t, w, "plan", `"T7" -> "T0"`, "1 to change")
			succeed(t, w, "destroy -auto-approve", "1 destroyed")
			has(map[string]string{})
		})
	}
}

// Terraform writes a configuration of what is imported, in both forms; with one of them left, its plan is empty.
func TestEntries_generateConfig(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	s.newTable(t)
	s.meltano(t, "dev:a", mark("T0"), nil)
	s.meltano(t, "dev:b", mark("T0"), mark("T1"))
	w := s.workspace(t, "import {\n  to = "+entriesA+"\n  id = \""+s.database+"/state\"\n}\n")
	refuse(t, w, "plan -generate-config-out=generated.tf", "Exactly one of these attributes must be configured: [entries,export]")
	file := filepath.Join(w.Dir, "generated.tf")
	generated, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// An attribute of one line, or of several up to the line that closes it.
	without := func(attribute string) string {
		var kept []string
		inside := false
		for line := range strings.Lines(string(generated)) {
			if strings.HasPrefix(line, "  "+attribute+" ") {
				inside = strings.HasSuffix(line, "{\n") || strings.HasSuffix(line, "(\n")
				continue
			}
			if !inside {
				kept = append(kept, line)
			}
			inside = inside && line != "  }\n" && line != "  })\n"
		}
		return strings.Join(kept, "")
	}
	for _, attribute := range []string{"entries", "export"} {
		if err := os.WriteFile(file, []byte(without(attribute)), 0o600); err != nil {
			t.Fatal(err)
		}
		succeed(t, w, "plan", "Plan: 1 to import, 0 to add, 0 to change, 0 to destroy.")
	}
}
