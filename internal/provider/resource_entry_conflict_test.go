package provider

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
)

// betweenPlanAndApply is a plan check that checks nothing: it does what others do while a plan waits to be applied.
type betweenPlanAndApply func()

func (do betweenPlanAndApply) CheckPlan(context.Context, plancheck.CheckPlanRequest, *plancheck.CheckPlanResponse) {
	do()
}

// refused matches an error as Terraform prints it, wrapped and framed.
func refused(words ...string) *regexp.Regexp {
	pattern := strings.Join(words, " ")
	pattern = regexp.QuoteMeta(pattern)
	return regexp.MustCompile(`(?s)` + strings.ReplaceAll(pattern, " ", `[\s│]+`))
}

func TestEntry_movedSincePlanned(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	s.newTable(t)
	const newer = `{"singer_state":{"bookmarks":{"issues":{"replication_key_value":"T9"}}}}`
	move := resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{betweenPlanAndApply(func() { s.meltano(t, entryID, newer, nil) })}}
	moved := refused("changed since it was planned")
	untouched := func() {
		s.stored(t, newer, "NULL")
		if locks := s.count(t, "state_lock"); locks != 0 {
			t.Errorf("%d claims are left", locks)
		}
	}
	s.run(t,
		resource.TestStep{Config: s.config(entry(issues("T0")))},
		resource.TestStep{Config: s.config(entry(issues("T1"))), ConfigPlanChecks: move, ExpectError: moved},
		resource.TestStep{PreConfig: untouched, Config: s.config("# a destroy"), ConfigPlanChecks: move, ExpectError: moved},
		// The failed destroy has brought the state up to date: Terraform 1.11 does not refresh here before it plans.
		resource.TestStep{PreConfig: untouched, Config: s.config("# a destroy"), PostApplyFunc: func() {
			if rows := s.live(t); len(rows) != 0 {
				t.Errorf("still live: %v", rows)
			}
		}},
		resource.TestStep{Config: s.config(entry(issues("T1")))},
		// Deleted while the plan waits: an update must not bring it back, a destroy has nothing left to do.
		resource.TestStep{
			Config:           s.config(entry(issues("T2"))),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{betweenPlanAndApply(func() { s.meltanoDelete(t, entryID) })}},
			ExpectError:      refused("deleted since it was planned"),
		},
		resource.TestStep{Config: s.config(entry(issues("T2"))), ConfigPlanChecks: plans(plancheck.ResourceActionCreate)},
		resource.TestStep{
			Config:           s.config("# a destroy"),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{betweenPlanAndApply(func() { s.meltanoDelete(t, entryID) })}},
		},
	)
}

func TestEntry_exists(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	s.newTable(t)
	const theirs = `{"singer_state": {"bookmarks": {"issues": {"replication_key_value": "M"}}}}`
	var before uint64
	twice := entry(issues("M")) + strings.ReplaceAll(entry(issues("M")), `"e"`, `"again"`)
	s.run(t,
		resource.TestStep{
			PreConfig: func() {
				s.meltano(t, entryID, theirs, nil)
				before = s.stored(t, theirs, "NULL").version
			},
			Config:      s.config(entry(issues("T0"))),
			ExpectError: refused("terraform import <address> '" + s.database + "/state/" + entryID + "'"),
		},
		resource.TestStep{
			PreConfig: func() {
				if got := s.stored(t, theirs, "NULL").version; got != before {
					t.Errorf("version is %d, want %d: it was touched", got, before)
				}
				if locks := s.count(t, "state_lock"); locks != 0 {
					t.Errorf("%d claims are left", locks)
				}
			},
			// What is declared is what is there: one takes it over, the other one is a mistake.
			Config:      s.config(twice),
			ExpectError: refused("If another resource of this configuration declares it, remove one of the two."),
		},
	)
}

func TestEntry_versionFromTheFuture(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	s.newTable(t)
	future := uint64(time.Now().Add(10 * time.Minute).UnixMicro())
	above := func(floor uint64) func() {
		return func() {
			rows := s.live(t)
			if len(rows) != 1 || rows[entryID].version <= floor {
				t.Errorf("live rows are %v, want one above %d", rows, floor)
			}
		}
	}
	insert := func(version uint64, deleted uint8) func() {
		return func() {
			s.insert(t, "(state_id, completed_state, version, is_deleted)", entryID, `{"singer_state":{}}`, version, deleted)
		}
	}
	s.run(t,
		resource.TestStep{PreConfig: insert(future, 1), Config: s.config(entry(issues("T0"))), PostApplyFunc: above(future)},
		resource.TestStep{PreConfig: insert(2*future, 0), Config: s.config(entry(issues("T1"))), PostApplyFunc: above(2 * future)},
		resource.TestStep{Config: s.config("# a destroy"), PostApplyFunc: func() {
			if rows := s.live(t); len(rows) != 0 {
				t.Errorf("still live: %v", rows)
			}
		}},
	)
}

// An entry follows its row into a renamed table, and is not copied into another one.
func TestEntry_address(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	s.newTable(t)
	rename := func(from, to string) func() {
		return func() {
			for _, suffix := range []string{"", "_lock"} {
				if err := s.conn.Exec(t.Context(), fmt.Sprintf("RENAME TABLE %[1]s.%[2]s%[4]s TO %[1]s.%[3]s%[4]s", s.database, from, to, suffix)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	onlyState := resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
		plancheck.ExpectResourceAction(entryE, plancheck.ResourceActionUpdate),
		betweenPlanAndApply(rename("state", "renamed")),
	}}
	s.run(t,
		resource.TestStep{Config: s.config(entry(issues("T0")))},
		// A changed default moves nothing that is there.
		resource.TestStep{Config: s.config(entry(issues("T0")), `  table = "elsewhere"`), ConfigPlanChecks: noChanges()},
		resource.TestStep{Config: s.config(entry(issues("T0"), `  table = "elsewhere"`)), ExpectError: refused("rows are not copied from table to table")},
		resource.TestStep{Config: s.config(entry(issues("T0"), `  table = "renamed"`)), ConfigPlanChecks: onlyState, PostApplyFunc: func() {
			if rows := s.count(t, "renamed"); rows != 1 {
				t.Errorf("%d rows, want the one", rows)
			}
		}},
		resource.TestStep{Config: s.config(entry(issues("T0"), `  table = "renamed"`)), ConfigPlanChecks: noChanges()},
		resource.TestStep{ResourceName: entryE, ImportState: true, ImportStateId: s.database + "/renamed", ExpectError: refused("Invalid import id")},
	)
}
