package provider

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest/meltano"
)

// do runs a statement behind the provider's back. DB stands for the scenario's database.
func (s scenario) do(t *testing.T, statement string) {
	t.Helper()
	s.exec(t, strings.ReplaceAll(statement, "DB", s.database))
}

// peer is a Meltano client on the scenario's table, which it makes.
func (s scenario) peer(t *testing.T) *meltano.Backend {
	t.Helper()
	peer := meltano.New(s.conn, meltano.Options{Database: s.database, Table: defaultTable})
	if err := peer.CreateTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	return peer
}

// entryIn is an entry in the table of this configuration.
func entryIn(stateID string, lines ...string) string {
	return fmt.Sprintf("resource \"clickhousestate_entry\" \"in\" {\n  table = clickhousestate_table.t.name\n  database = clickhousestate_table.t.database\n  state_id = %q\n%s\n}\n",
		stateID, strings.Join(lines, "\n"))
}

// bookmarks is a state of Meltano's.
func bookmarks(value string) meltano.State {
	return meltano.State{Completed: map[string]any{"singer_state": map[string]any{"bookmarks": map[string]any{"issues": map[string]any{"replication_key_value": value}}}}}
}

// A table that Meltano made is imported as it is, whatever else is in it, and nothing of it is a diff.
func TestTable_madeByMeltano(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(t *testing.T, s scenario) {
		peer := s.peer(t)
		for i := range 3 {
			if err := peer.Set(t.Context(), fmt.Sprintf("dev:tap-%d-to-b", i), bookmarks("T0")); err != nil {
				t.Fatal(err)
			}
		}
		s.do(t, "ALTER TABLE DB.state ADD COLUMN note String DEFAULT 'x'")
		s.do(t, "ALTER TABLE DB.state MODIFY COMMENT 'of the data team'")
		s.do(t, "ALTER TABLE DB.state MODIFY SETTING min_age_to_force_merge_seconds = 60")
		imported := "import {\n  to = " + tableT + "\n  id = \"" + s.database + "/state\"\n}\n"
		noop := resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(tableT, plancheck.ResourceActionNoop)}}
		s.run(t,
			resource.TestStep{
				Config:           s.config(table() + imported),
				ConfigPlanChecks: noop,
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(tableT, tfjsonpath.New("layout"), knownvalue.StringExact("meltano")),
					statecheck.ExpectKnownValue(tableT, tfjsonpath.New("lock_layout"), knownvalue.StringExact("meltano")),
					statecheck.ExpectKnownValue(tableT, tfjsonpath.New("comment"), knownvalue.StringExact("of the data team")),
					statecheck.ExpectKnownValue(tableT, tfjsonpath.New("settings"), knownvalue.Null()),
				},
			},
			resource.TestStep{Config: s.config(table(`  layout = "meltano"`, `  lock_layout = "meltano"`)), ConfigPlanChecks: noop},
			resource.TestStep{Config: s.config(table("  settings = {\n    min_age_to_force_merge_seconds = \"60\"\n  }")), ConfigPlanChecks: resource.ConfigPlanChecks{
				PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(tableT, plancheck.ResourceActionUpdate)},
			}},
			// Entries in it: cases.md, 7. One is adopted, changed and destroyed; Meltano finds what it should.
			resource.TestStep{
				Config: s.config(table("  settings = {\n    min_age_to_force_merge_seconds = \"60\"\n  }") + entryIn("dev:tap-1-to-b", issues("T0")) +
					"import {\n  to = clickhousestate_entry.in\n  id = \"" + s.database + "/state/dev:tap-1-to-b\"\n}\n"),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction("clickhousestate_entry.in", plancheck.ResourceActionNoop)}},
			},
			resource.TestStep{
				Config: s.config(table("  settings = {\n    min_age_to_force_merge_seconds = \"60\"\n  }") + entryIn("dev:tap-1-to-b", issues("T1"))),
				PostApplyFunc: func() {
					if got, err := peer.Get(t.Context(), "dev:tap-1-to-b"); err != nil || meltano.Dumps(got.Completed) != meltano.Dumps(bookmarks("T1").Completed) {
						t.Errorf("Meltano reads %v, %v", got, err)
					}
				},
			},
			resource.TestStep{
				Config: s.config(table("  settings = {\n    min_age_to_force_merge_seconds = \"60\"\n  }")),
				PostApplyFunc: func() {
					if got, err := peer.Get(t.Context(), "dev:tap-1-to-b"); !errors.Is(err, meltano.ErrNoState) {
						t.Errorf("after the destroy, Meltano reads %v, %v", got, err)
					}
					if err := peer.Set(t.Context(), "dev:tap-1-to-b", bookmarks("T2")); err != nil {
						t.Fatal(err)
					}
				},
			},
			resource.TestStep{Config: s.config("removed {\n  from = " + tableT + "\n  lifecycle {\n    destroy = false\n  }\n}\n"), PostApplyFunc: func() {
				if n := s.count(t, "state FINAL"); n != 3 {
					t.Errorf("%d entries are left, want 3", n)
				}
			}},
		)
	})
}

// Meltano's layouts are made when they are asked for, and Meltano works on them.
func TestTable_layouts(t *testing.T) {
	t.Parallel()
	for _, layout := range []string{"versioned", "meltano"} {
		for _, lockLayout := range []string{"strict", "meltano"} {
			t.Run(layout+" "+lockLayout, func(t *testing.T) {
				t.Parallel()
				s := newScenario(t, protocolNative)
				config := s.config(table(unprotected, fmt.Sprintf("  layout = %q", layout), fmt.Sprintf("  lock_layout = %q", lockLayout)))
				s.run(t, resource.TestStep{
					Config: config,
					ConfigStateChecks: []statecheck.StateCheck{
						statecheck.ExpectKnownValue(tableT, tfjsonpath.New("layout"), knownvalue.StringExact(layout)),
						statecheck.ExpectKnownValue(tableT, tfjsonpath.New("lock_layout"), knownvalue.StringExact(lockLayout)),
					},
					PostApplyFunc: func() {
						s.speaksMeltano(t)
						peer := s.peer(t) // It finds its tables there.
						lock, err := peer.AcquireLock(t.Context(), "dev:y")
						if err != nil {
							t.Fatal(err)
						}
						if err := lock.Release(t.Context()); err != nil {
							t.Error(err)
						}
					},
				})
			})
		}
	}
}

// Names that have to be quoted, everywhere: see cases.md, 17.
func TestTable_names(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(t *testing.T, s scenario) {
		for _, name := range []string{"meltano.state", "table", "back`tick", "a-b c", "what?", `back\slash`} {
			database := s.database + "-" + strings.Map(func(r rune) rune {
				if strings.ContainsRune("`?\\", r) {
					return '_'
				}
				return r
			}, name)
			names := fmt.Sprintf("  database = %s\n  name = %s", hclQuote(database), hclQuote(name))
			moved := fmt.Sprintf("  database = %s\n  name = %s", hclQuote(database), hclQuote(name+" 2"))
			t.Cleanup(func() { _ = s.conn.Exec(t.Context(), "DROP DATABASE IF EXISTS `"+database+"` SYNC") })
			inside := "resource \"clickhousestate_entry\" \"e\" {\n  database = clickhousestate_table.t.database\n  table = clickhousestate_table.t.name\n" +
				"  state_id = \"dev:x\"\n  completed_state = jsonencode({ singer_state = {} })\n}\n"
			s.run(t,
				resource.TestStep{Config: s.config(table(unprotected, "  create_database = true", names) + inside), PostApplyFunc: func() {
					var tables, lockTables uint64
					err := s.conn.QueryRow(t.Context(), "SELECT countIf(name = ?), countIf(name = ?) FROM system.tables WHERE database = ?", name, name+"_lock", database).Scan(&tables, &lockTables)
					if err != nil || tables != 1 || lockTables != 1 {
						t.Errorf("%q: %d tables and %d lock tables, %v", name, tables, lockTables, err)
					}
				}},
				resource.TestStep{
					ResourceName: tableT, ImportState: true, ImportStateVerify: true, ImportStateVerifyIgnore: []string{"deletion_protection", "create_database"},
				},
				resource.TestStep{Config: s.config(table(unprotected, "  create_database = true", moved) + inside)},
			)
		}
	})
}

// What a change of the table does stands in the plan, and it is never a replacement.
func TestTable_planTexts(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	inside := entry(issues("T0"), "  table = clickhousestate_table.t.name", "  database = clickhousestate_table.t.database")
	w := s.workspace(t, table(`  comment = "one"`)+inside)
	if output, code := w.Run(t, "apply", "-auto-approve"); code != 0 {
		t.Fatal(output)
	}
	version := s.live(t)[entryID].version
	for _, tt := range []struct {
		name, config string
		// code is what plan -detailed-exitcode says: 1 is refused, 2 is a change.
		code  int
		wants []string
	}{
		{"the same", table(`  comment = "one"`) + inside, 0, []string{"No changes"}},
		{"destroy", "", 1, []string{"State table " + s.database + "/state is protected from deletion", "deletion_protection = false"}},
		{"comment", table(`  comment = "two"`) + inside, 2, []string{"clickhousestate_table.t will be updated in-place", `~ comment`, `"one" -> "two"`, "0 to add, 1 to change, 0 to destroy"}},
		{"settings", table(`  comment = "one"`, "  settings = {\n    min_age_to_force_merge_seconds = \"60\"\n  }") + inside, 2, []string{
			"clickhousestate_table.t will be updated in-place", `+ "min_age_to_force_merge_seconds" = "60"`, "0 to add, 1 to change, 0 to destroy",
		}},
		{"layout", table(`  comment = "one"`, `  layout = "meltano"`) + inside, 1, []string{"Unable to change layout of state table " + s.database + "/state"}},
		{"lock_layout", table(`  comment = "one"`, `  lock_layout = "meltano"`) + inside, 1, []string{"Unable to change lock_layout of state table " + s.database + "/state"}},
		{"rename", table(`  comment = "one"`, `  name = "renamed"`) + inside, 2, []string{
			"clickhousestate_table.t will be updated in-place", "clickhousestate_entry.e will be updated in-place", `"state" -> "renamed"`, "0 to add, 2 to change, 0 to destroy",
			"State table " + s.database + "/state will be renamed", "Both tables move to " + s.database + "/renamed",
		}},
	} {
		w.Configure(t, s.config(tt.config))
		output, code := w.Run(t, "plan", "-detailed-exitcode")
		if code != tt.code {
			t.Errorf("%s: exit code %d, want %d", tt.name, code, tt.code)
		}
		for _, want := range tt.wants {
			if !strings.Contains(unwrap(output), want) {
				t.Errorf("%s: the plan does not say %q:\n%s", tt.name, want, output)
			}
		}
		if strings.Contains(output, "must be replaced") {
			t.Errorf("%s: a replacement is planned:\n%s", tt.name, output)
		}
	}
	// The last of them is the rename: the entry follows, and is not written.
	if output, code := w.Run(t, "apply", "-auto-approve"); code != 0 {
		t.Fatal(output)
	}
	if output, code := w.Run(t, "plan", "-detailed-exitcode"); code != 0 {
		t.Errorf("after the rename the plan is not empty:\n%s", output)
	}
	var now uint64
	if err := s.conn.QueryRow(t.Context(), "SELECT version FROM "+s.database+".renamed FINAL").Scan(&now); err != nil || now != version {
		t.Errorf("version is %d, was %d, %v", now, version, err)
	}
	// Renamed by hand, it is found again, and the plan is to put it back.
	s.do(t, "RENAME TABLE DB.renamed_lock TO DB.elsewhere_lock, DB.renamed TO DB.elsewhere")
	if output, code := w.Run(t, "plan", "-detailed-exitcode"); code != 2 || !strings.Contains(unwrap(output), `"elsewhere" -> "renamed"`) || !strings.Contains(output, "0 to destroy") {
		t.Errorf("renamed by hand:\n%s", output)
	}
}

// unwrap joins the lines that Terraform has wrapped, and leaves out the frame of its messages.
func unwrap(output string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(output, "│", " ")), " ")
}

// A lock table that is gone is made again.
func TestTable_noLockTable(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	s.run(t,
		resource.TestStep{Config: s.config(table(unprotected))},
		resource.TestStep{
			PreConfig:        func() { s.do(t, "DROP TABLE DB.state_lock SYNC") },
			Config:           s.config(table(unprotected)),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(tableT, plancheck.ResourceActionUpdate)}},
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(tableT, tfjsonpath.New("lock_layout"), knownvalue.StringExact("strict")),
			},
		},
	)
}
