package provider

import (
	"context"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
)

const (
	entryE  = "clickhousestate_entry.e"
	entryID = "dev:tap-github-to-target-clickhouse"
)

// entry is the configuration of one entry, with more lines in it.
func entry(lines ...string) string {
	return fmt.Sprintf("resource \"clickhousestate_entry\" \"e\" {\n  state_id = %q\n%s\n}\n", entryID, strings.Join(lines, "\n"))
}

// issues is a completed state whose only bookmark has the given value.
func issues(value string) string {
	return fmt.Sprintf("  completed_state = jsonencode({ singer_state = { bookmarks = { issues = { replication_key_value = %q } } } })", value)
}

func plans(action plancheck.ResourceActionType) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(entryE, action)}}
}

func noChanges() resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}
}

// stored fails unless the entry is stored with these payloads.
func (s scenario) stored(t *testing.T, completed, partial string) row {
	t.Helper()
	found, ok := s.live(t)[entryID]
	if !ok {
		t.Fatalf("no live row of %s", entryID)
	}
	if text(found.completed) != completed || text(found.partial) != partial {
		t.Errorf("stored %s and %s, want %s and %s", text(found.completed), text(found.partial), completed, partial)
	}
	return found
}

func TestEntry(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(t *testing.T, s scenario) {
		s.newTable(t)
		var before uint64
		s.run(t,
			resource.TestStep{
				Config: s.config(entry(issues("T0"))),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction(entryE, plancheck.ResourceActionCreate),
					plancheck.ExpectKnownValue(entryE, tfjsonpath.New("id"), knownvalue.StringExact(s.database+"/state/"+entryID)),
					plancheck.ExpectKnownValue(entryE, tfjsonpath.New("partial_state"), knownvalue.Null()),
				}},
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(entryE, tfjsonpath.New("database"), knownvalue.StringExact(s.database)),
					statecheck.ExpectKnownValue(entryE, tfjsonpath.New("table"), knownvalue.StringExact("state")),
					statecheck.ExpectKnownValue(entryE, tfjsonpath.New("updated_at"), knownvalue.StringRegexp(regexp.MustCompile(`^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`))),
					statecheck.ExpectKnownValue(entryE, tfjsonpath.New("merged_state"), knownvalue.StringExact(`{"singer_state":{"bookmarks":{"issues":{"replication_key_value":"T0"}}}}`)),
				},
				PostApplyFunc: func() {
					before = s.stored(t, `{"singer_state":{"bookmarks":{"issues":{"replication_key_value":"T0"}}}}`, "NULL").version
				},
			},
			resource.TestStep{ResourceName: entryE, ImportState: true, ImportStateVerify: true},
			// Neither the spelling of the JSON nor timeouts are in the row.
			resource.TestStep{
				Config: s.config(entry(`  completed_state = "{ \"singer_state\": {\"bookmarks\":{\"issues\":{\"replication_key_value\":\"\\u0054\\u0030\"}}} }"`, `  timeouts = { update = "1m" }`)),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction(entryE, plancheck.ResourceActionUpdate),
					plancheck.ExpectKnownValue(entryE, tfjsonpath.New("version"), knownvalue.NumberFunc(known)),
				}},
				PostApplyFunc: func() {
					if got := s.stored(t, `{"singer_state":{"bookmarks":{"issues":{"replication_key_value":"T0"}}}}`, "NULL").version; got != before {
						t.Errorf("version is %d, want %d as before", got, before)
					}
					if rows := s.count(t, "state"); rows != 1 {
						t.Errorf("%d rows, want 1", rows)
					}
				},
			},
			// A pipeline ran: what is declared comes back, and what is not declared stays.
			resource.TestStep{
				PreConfig: func() {
					s.meltano(t, entryID, `{"singer_state": {"bookmarks": {"issues": {"replication_key_value": "T5"}}}}`, `{"singer_state": {"b": 2}}`)
				},
				Config: s.config(entry(issues("T0"), `  timeouts = { update = "1m" }`)),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction(entryE, plancheck.ResourceActionUpdate),
					plancheck.ExpectKnownValue(entryE, tfjsonpath.New("partial_state"), knownvalue.StringExact(`{"singer_state": {"b": 2}}`)),
					onlyChanges{"completed_state", "merged_state", "updated_at", "version"},
				}},
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(entryE, tfjsonpath.New("partial_state"), knownvalue.StringExact(`{"singer_state": {"b": 2}}`)),
					statecheck.ExpectKnownValue(entryE, tfjsonpath.New("merged_state"), knownvalue.StringExact(`{"singer_state":{"b":2,"bookmarks":{"issues":{"replication_key_value":"T0"}}}}`)),
				},
				PostApplyFunc: func() {
					s.stored(t, `{"singer_state":{"bookmarks":{"issues":{"replication_key_value":"T0"}}}}`, `{"singer_state": {"b": 2}}`)
				},
			},
			// Declared empty is erased.
			resource.TestStep{
				Config:           s.config(entry(issues("T1"), `  partial_state = jsonencode({})`)),
				ConfigPlanChecks: plans(plancheck.ResourceActionUpdate),
				PostApplyFunc: func() {
					s.stored(t, `{"singer_state":{"bookmarks":{"issues":{"replication_key_value":"T1"}}}}`, "NULL")
				},
			},
			// Meltano's delete leaves nothing, not even a tombstone.
			resource.TestStep{
				PreConfig:        func() { s.meltanoDelete(t, entryID) },
				Config:           s.config(entry(issues("T1"))),
				ConfigPlanChecks: plans(plancheck.ResourceActionCreate),
			},
			resource.TestStep{Config: s.config("# nothing"), PostApplyFunc: func() {
				if live := s.live(t); len(live) != 0 {
					t.Errorf("still live: %v", live)
				}
				if locks := s.count(t, "state_lock"); locks != 0 {
					t.Errorf("%d claims are left", locks)
				}
			}},
			// Over the tombstone.
			resource.TestStep{Config: s.config(entry(issues("T2")))},
		)
	})
}

// onlyChanges fails unless the plan changes exactly these attributes of the entry, or makes them unknown.
type onlyChanges []string

func (want onlyChanges) CheckPlan(_ context.Context, req plancheck.CheckPlanRequest, resp *plancheck.CheckPlanResponse) {
	for _, change := range req.Plan.ResourceChanges {
		if change.Address != entryE {
			continue
		}
		before, _ := change.Change.Before.(map[string]any)
		after, _ := change.Change.After.(map[string]any)
		unknown, _ := change.Change.AfterUnknown.(map[string]any)
		var got []string
		for name := range before {
			if unknown[name] == true || !reflect.DeepEqual(before[name], after[name]) {
				got = append(got, name)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			resp.Error = fmt.Errorf("the plan changes %q, want %q", got, want)
		}
		return
	}
	resp.Error = fmt.Errorf("%s is not in the plan", entryE)
}
