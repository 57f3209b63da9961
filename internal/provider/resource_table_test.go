package provider

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
)

const tableT = "clickhousestate_table.t"

// table is the configuration of a table, with more lines in it.
func table(lines ...string) string {
	return fmt.Sprintf("resource \"clickhousestate_table\" \"t\" {\n%s\n}\n", strings.Join(lines, "\n"))
}

const unprotected = "  deletion_protection = false"

func (s scenario) comment(t *testing.T) (comment string) {
	t.Helper()
	if err := s.conn.QueryRow(t.Context(), "SELECT comment FROM system.tables WHERE database = ? AND name = 'state'", s.database).Scan(&comment); err != nil {
		t.Fatal(err)
	}
	return comment
}

func TestTable(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(t *testing.T, s scenario) {
		if err := s.conn.Exec(t.Context(), "DROP DATABASE "+s.database+" SYNC"); err != nil {
			t.Fatal(err)
		}
		s.run(t,
			resource.TestStep{Config: s.config(table(unprotected)), ExpectError: refused("let clickhousestate_table create it with create_database = true")},
			resource.TestStep{
				Config: s.config(table(unprotected, "  create_database = true", `  comment = ""`)),
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(tableT, tfjsonpath.New("id"), knownvalue.StringExact(s.database+"/state")),
					statecheck.ExpectKnownValue(tableT, tfjsonpath.New("layout"), knownvalue.StringExact("versioned")),
					statecheck.ExpectKnownValue(tableT, tfjsonpath.New("lock_layout"), knownvalue.StringExact("strict")),
					statecheck.ExpectKnownValue(tableT, tfjsonpath.New("lock_table"), knownvalue.StringExact("state_lock")),
					statecheck.ExpectKnownValue(tableT, tfjsonpath.New("comment"), knownvalue.StringExact("")),
					statecheck.ExpectKnownValue(tableT, tfjsonpath.New("engine_full"), knownvalue.StringRegexp(regexp.MustCompile(`^ReplacingMergeTree\(version, is_deleted\) ORDER BY state_id`))),
				},
				PostApplyFunc: func() { s.speaksMeltano(t) },
			},
			resource.TestStep{
				ResourceName: tableT, ImportState: true, ImportStateVerify: true,
				ImportStateVerifyIgnore: []string{"deletion_protection", "create_database"}, // no property of the table: imported as their defaults
			},
			// Comment and settings change in place.
			resource.TestStep{
				Config: s.config(table(unprotected, `  comment = "it's"`, "  settings = {\n    max_suspicious_broken_parts = \"7\"\n    min_bytes_for_wide_part = \"1000\"\n  }")),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction(tableT, plancheck.ResourceActionUpdate),
					plancheck.ExpectUnknownValue(tableT, tfjsonpath.New("engine_full")),
				}},
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(tableT, tfjsonpath.New("engine_full"), knownvalue.StringRegexp(regexp.MustCompile(`max_suspicious_broken_parts = 7`))),
				},
				PostApplyFunc: func() {
					if got := s.comment(t); got != "it's" {
						t.Errorf("comment is %q", got)
					}
				},
			},
			// Drift of what is configured comes back, a removed setting goes back to the default, an unset comment stays.
			resource.TestStep{
				PreConfig: func() {
					if err := s.conn.Exec(t.Context(), "ALTER TABLE "+s.database+".state MODIFY SETTING max_suspicious_broken_parts = 9, max_parts_in_total = 5000"); err != nil {
						t.Fatal(err)
					}
				},
				Config:           s.config(table(unprotected, "  settings = {\n    max_suspicious_broken_parts = \"7\"\n  }")),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(tableT, plancheck.ResourceActionUpdate)}},
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(tableT, tfjsonpath.New("comment"), knownvalue.StringExact("it's")),
					statecheck.ExpectKnownValue(tableT, tfjsonpath.New("settings"), knownvalue.MapExact(map[string]knownvalue.Check{"max_suspicious_broken_parts": knownvalue.StringExact("7")})),
					statecheck.ExpectKnownValue(tableT, tfjsonpath.New("engine_full"), withoutSetting("min_bytes_for_wide_part")),
				},
			},
			resource.TestStep{Config: s.config("# a destroy"), PostApplyFunc: func() {
				var left uint64
				if err := s.conn.QueryRow(t.Context(), "SELECT count() FROM system.tables WHERE database = ?", s.database).Scan(&left); err != nil {
					t.Fatal(err)
				}
				if left != 0 {
					t.Errorf("%d tables are left", left)
				}
			}},
		)
	})
}

// withoutSetting accepts an engine clause that does not name a setting.
func withoutSetting(name string) knownvalue.Check {
	return knownvalue.StringFunc(func(engine string) error {
		if strings.Contains(engine, name) {
			return fmt.Errorf("%s still names %s", engine, name)
		}
		return nil
	})
}

// speaksMeltano runs Meltano's own statements against the table: set, get, list, delete, set again.
func (s scenario) speaksMeltano(t *testing.T) {
	t.Helper()
	get := func(want string) {
		t.Helper()
		var completed *string
		if err := s.conn.QueryRow(t.Context(), "SELECT completed_state FROM "+s.database+".state FINAL WHERE state_id = 'dev:x' LIMIT 1").Scan(&completed); err != nil {
			t.Fatal(err)
		}
		if text(completed) != want {
			t.Errorf("Meltano reads %s, want %s", text(completed), want)
		}
	}
	s.meltano(t, "dev:x", `{"singer_state": {"a": 1}}`, nil)
	s.meltano(t, "dev:x", `{"singer_state": {"a": 2}}`, nil)
	get(`{"singer_state": {"a": 2}}`)
	if n := s.count(t, "state FINAL WHERE state_id LIKE 'dev:%'"); n != 1 {
		t.Errorf("Meltano lists %d, want 1", n)
	}
	s.meltanoDelete(t, "dev:x")
	if n := s.count(t, "state FINAL"); n != 0 {
		t.Errorf("%d rows after Meltano's delete", n)
	}
	s.meltano(t, "dev:x", `{"singer_state": {"a": 3}}`, nil)
	get(`{"singer_state": {"a": 3}}`)
}

func TestTable_protected(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	const trigger = "resource \"terraform_data\" \"v\" {\n  input = %d\n}\n"
	replaced := "  lifecycle {\n    replace_triggered_by = [terraform_data.v]\n  }"
	protected := refused("is protected from deletion")
	s.run(t,
		resource.TestStep{Config: s.config(table(replaced) + fmt.Sprintf(trigger, 1)), ConfigStateChecks: []statecheck.StateCheck{
			statecheck.ExpectKnownValue(tableT, tfjsonpath.New("deletion_protection"), knownvalue.Bool(true)),
		}},
		resource.TestStep{Config: s.config("# a destroy"), PlanOnly: true, ExpectError: protected},
		resource.TestStep{Config: s.config(table(replaced) + fmt.Sprintf(trigger, 2)), PlanOnly: true, ExpectError: protected},
		// A tainted table is planned as a create; the destroy half of the apply refuses.
		resource.TestStep{Taint: []string{tableT}, Config: s.config(table()), ExpectError: protected, PreConfig: func() { s.meltano(t, entryID, "{}", nil) }},
		// One that was dropped behind Terraform's back needs no protection any more.
		resource.TestStep{
			PreConfig: func() {
				s.stored(t, "{}", "NULL")
				for _, name := range []string{"state", "state_lock"} {
					if err := s.conn.Exec(t.Context(), "DROP TABLE "+s.database+"."+name+" SYNC"); err != nil {
						t.Fatal(err)
					}
				}
			},
			RefreshState: true, ExpectNonEmptyPlan: true,
		},
		resource.TestStep{Config: s.config("# nothing")},
		resource.TestStep{Config: s.config(table())},
		resource.TestStep{Config: s.config(table(unprotected))},
	)
}

// A table that is not just as declared is never touched.
func TestTable_foreign(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	create := func(columns, engine string) func() {
		return func() {
			for _, statement := range []string{
				"DROP TABLE IF EXISTS %s.state SYNC",
				"CREATE TABLE %s.state (" + columns + ") ENGINE = " + engine,
			} {
				if err := s.conn.Exec(t.Context(), fmt.Sprintf(statement, s.database)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	const odd = "MergeTree ORDER BY state_id"
	const meltanoColumns = "state_id String, partial_state Nullable(String), completed_state Nullable(String), updated_at DateTime64(3) DEFAULT now64(3)"
	s.run(t,
		resource.TestStep{
			PreConfig:   create(meltanoColumns, odd),
			Config:      s.config(table(unprotected)),
			ExpectError: refused("because it has another shape"),
		},
		resource.TestStep{Config: s.config(table(unprotected)), ResourceName: tableT, ImportState: true, ImportStateId: s.database + "/state", ExpectError: refused("because it has another shape")},
		resource.TestStep{Config: s.config(entry(issues("T0"))), ExpectError: refused("because it has another shape")},
		// Of the right shape, but somebody's.
		resource.TestStep{
			PreConfig: func() {
				if err := s.conn.Exec(t.Context(), "DROP TABLE "+s.database+".state SYNC"); err != nil {
					t.Fatal(err)
				}
				s.newTable(t)
				s.meltano(t, entryID, "{}", nil)
			},
			Config:      s.config(table(unprotected)),
			ExpectError: refused("terraform import <address> '" + s.database + "/state'"),
		},
		// Empty and just as declared: a create whose answer was lost.
		resource.TestStep{PreConfig: func() { s.meltanoDelete(t, entryID) }, Config: s.config(table(unprotected))},
	)
}
