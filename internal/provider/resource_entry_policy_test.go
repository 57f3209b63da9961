package provider

import (
	"fmt"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
)

// holds checks a text attribute of the entry in state.
func holds(attribute, want string) statecheck.StateCheck {
	return statecheck.ExpectKnownValue(entryE, tfjsonpath.New(attribute), knownvalue.StringExact(want))
}

// issuesState is what the function issues declares, as jsonencode and merged_state spell it.
func issuesState(value string) string {
	return fmt.Sprintf(`{"singer_state":{"bookmarks":{"issues":{"replication_key_value":%q}}}}`, value)
}

// A seed that takes over what a pipeline stored, and goes on beside it.
func TestEntry_seed(t *testing.T) {
	t.Parallel()
	const (
		seed    = `  write_policy = "seed"`
		p1, p2  = `{"singer_state":{"b":1}}`, `{"singer_state":{"b":2}}`
		partial = `  partial_state = jsonencode({ singer_state = { b = 2 } })`
		empty   = `  partial_state = jsonencode({})`
	)
	eachProtocol(t, func(t *testing.T, s scenario) {
		s.newTable(t)
		var version uint64
		ran := func(completed, partial any) func() { // a pipeline
			return func() {
				s.meltano(t, entryID, completed, partial)
				version = s.live(t)[entryID].version
			}
		}
		untouched := func(completed, partial string) func() {
			return func() {
				if got := s.stored(t, completed, partial).version; got != version {
					t.Errorf("version is %d, want %d: it was touched", got, version)
				}
			}
		}
		imports := fmt.Sprintf("import {\n  to = %s\n  id = \"%s/state/%s\"\n}\n", entryE, s.database, entryID)
		s.run(t,
			// Import as a seed: the declaration is older, and nothing is written.
			resource.TestStep{
				PreConfig: ran(issuesState("T5"), p1),
				Config:    s.config(imports + entry(issues("T0"), seed)),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction(entryE, plancheck.ResourceActionUpdate),
					plancheck.ExpectKnownValue(entryE, tfjsonpath.New("partial_state"), knownvalue.Null()),
					plancheck.ExpectKnownValue(entryE, tfjsonpath.New("merged_state"), knownvalue.StringExact(`{"singer_state":{"b":1,"bookmarks":{"issues":{"replication_key_value":"T5"}}}}`)),
				}},
				ConfigStateChecks: []statecheck.StateCheck{holds("completed_state", issuesState("T0")), holds("write_policy", "seed")},
				PostApplyFunc:     untouched(issuesState("T5"), p1),
			},
			// What the pipeline stores is no change, and shows.
			resource.TestStep{
				PreConfig:         ran(issuesState("T6"), p2),
				Config:            s.config(entry(issues("T0"), seed)),
				ConfigPlanChecks:  noChanges(),
				ConfigStateChecks: []statecheck.StateCheck{holds("completed_state", issuesState("T0"))},
				PostApplyFunc:     untouched(issuesState("T6"), p2),
			},
			// Its options are no reason to write the seed.
			resource.TestStep{
				Config:            s.config(entry(issues("T0"), seed, `  on_rewind = "error"`, `  timeouts = { update = "1m" }`)),
				ConfigPlanChecks:  plans(plancheck.ResourceActionUpdate),
				ConfigStateChecks: []statecheck.StateCheck{holds("merged_state", `{"singer_state":{"b":2,"bookmarks":{"issues":{"replication_key_value":"T6"}}}}`)},
				PostApplyFunc:     untouched(issuesState("T6"), p2),
			},
			// One payload is declared anew: the other one stays the pipeline's, not the old seed.
			resource.TestStep{
				PreConfig: ran(issuesState("T7"), nil),
				Config:    s.config(entry(issues("T0"), seed, partial, `  on_rewind = "error"`)),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction(entryE, plancheck.ResourceActionUpdate),
					plancheck.ExpectKnownValue(entryE, tfjsonpath.New("merged_state"), knownvalue.StringExact(`{"singer_state":{"b":2,"bookmarks":{"issues":{"replication_key_value":"T7"}}}}`)),
				}},
				PostApplyFunc: func() { s.stored(t, issuesState("T7"), p2) },
			},
			resource.TestStep{
				Config:           s.config(entry(issues("T0"), seed, empty)),
				ConfigPlanChecks: plans(plancheck.ResourceActionUpdate),
				PostApplyFunc:    func() { s.stored(t, issuesState("T7"), "NULL") },
			},
			// No longer declared is the pipeline's own.
			resource.TestStep{
				PreConfig: ran(issuesState("T8"), p1),
				Config:    s.config(entry(seed)),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction(entryE, plancheck.ResourceActionUpdate),
					plancheck.ExpectKnownValue(entryE, tfjsonpath.New("completed_state"), knownvalue.Null()),
				}},
				PostApplyFunc: untouched(issuesState("T8"), p1),
			},
			// Declared empty, after it was not declared, erases what is stored.
			resource.TestStep{
				Config:           s.config(entry(seed, empty)),
				ConfigPlanChecks: plans(plancheck.ResourceActionUpdate),
				PostApplyFunc:    func() { s.stored(t, issuesState("T8"), "NULL") },
			},
			// To enforce, with another declaration: this writes nothing, and the next plan shows the drift.
			resource.TestStep{
				PreConfig:          ran(issuesState("T9"), p1),
				Config:             s.config(entry(issues("T3"))),
				ConfigPlanChecks:   plans(plancheck.ResourceActionUpdate),
				PostApplyFunc:      untouched(issuesState("T9"), p1),
				ExpectNonEmptyPlan: true,
			},
			resource.TestStep{
				Config:           s.config(entry(issues("T3"))),
				ConfigPlanChecks: plans(plancheck.ResourceActionUpdate),
				PostApplyFunc:    func() { s.stored(t, issuesState("T3"), p1) },
			},
			// And back, beside a drift.
			resource.TestStep{
				PreConfig:        ran(issuesState("T9"), p1),
				Config:           s.config(entry(issues("T3"), seed)),
				ConfigPlanChecks: plans(plancheck.ResourceActionUpdate),
				PostApplyFunc:    untouched(issuesState("T9"), p1),
			},
			// Gone is no bookmark: it is sown again.
			resource.TestStep{
				PreConfig:        func() { s.meltanoDelete(t, entryID) },
				Config:           s.config(entry(issues("T3"), seed, partial)),
				ConfigPlanChecks: plans(plancheck.ResourceActionCreate),
				PostApplyFunc:    func() { s.stored(t, issuesState("T3"), p2) },
			},
		)
	})
}

// A plan that does not refresh after a switch knows that its state does not hold the row.
func TestEntry_switchedUnrefreshed(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	s.newTable(t)
	const partial = `{"singer_state": {"b": 1}}`
	w := s.workspace(t, entry(issues("T0"), `  write_policy = "seed"`))
	succeeds(t, w, "apply", "-auto-approve")
	s.meltano(t, entryID, issuesState("T5"), partial)
	w.Configure(t, s.config(entry(issues("T0"))))
	succeeds(t, w, "apply", "-auto-approve")
	w.Configure(t, s.config(entry(issues("T6"))))
	succeeds(t, w, "apply", "-auto-approve", "-refresh=false")
	s.stored(t, issuesState("T6"), partial)
	w.Configure(t, s.config(entry(issues("T6"))))
	if _, code := w.Run(t, "plan", "-detailed-exitcode"); code != 0 {
		t.Errorf("plan ended with %d, want 0: no changes", code)
	}
}

// ignore_changes keeps the payload of the prior state, which must not come back over a newer one.
func TestEntry_ignoreChanges(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	s.newTable(t)
	const partial = `{"singer_state":{"b":2}}`
	ignored := func(more ...string) string {
		return s.config(entry(append(more, issues("T0"), "  lifecycle {\n    ignore_changes = [completed_state]\n  }")...))
	}
	s.run(t,
		resource.TestStep{Config: s.config(entry(issues("T0")))},
		resource.TestStep{
			PreConfig:        func() { s.meltano(t, entryID, issuesState("T5"), nil) },
			Config:           ignored(),
			ConfigPlanChecks: noChanges(),
		},
		resource.TestStep{
			PreConfig:        func() { s.meltano(t, entryID, issuesState("T6"), nil) },
			Config:           ignored(`  partial_state = jsonencode({ singer_state = { b = 2 } })`),
			ConfigPlanChecks: plans(plancheck.ResourceActionUpdate),
			PostApplyFunc:    func() { s.stored(t, issuesState("T6"), partial) },
		},
		resource.TestStep{
			Config: ignored(`  partial_state = jsonencode({ singer_state = { b = 3 } })`),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectResourceAction(entryE, plancheck.ResourceActionUpdate),
				betweenPlanAndApply(func() { s.meltano(t, entryID, issuesState("T7"), nil) }),
			}},
			ExpectError: refused("changed since it was planned"),
		},
		resource.TestStep{
			PreConfig:        func() { s.stored(t, issuesState("T7"), "NULL") },
			Config:           ignored(),
			ConfigPlanChecks: noChanges(),
		},
	)
}

// A destroy that retains touches nothing, and needs no server.
func TestEntry_retain(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	s.newTable(t)
	retained := entry(issues("T0"), `  deletion_policy = "retain"`)
	w := s.workspace(t, retained)
	succeeds(t, w, "apply", "-auto-approve")
	s.meltano(t, entryID, issuesState("T5"), nil)
	before := s.stored(t, issuesState("T5"), "NULL").version

	elsewhere := s
	elsewhere.NativePort = 1
	w.Configure(t, elsewhere.config(retained))
	output := succeeds(t, w, "destroy", "-auto-approve", "-json", "-refresh=false")
	if said := diagnostics(t, output); len(said) > 1 || len(said) == 1 && said[0].Summary != "Provider development overrides are in effect" {
		t.Errorf("got %v, want no diagnostics", said)
	}
	if got := s.stored(t, issuesState("T5"), "NULL").version; got != before {
		t.Errorf("version is %d, want %d: it was touched", got, before)
	}

	// What was retained is there: a create refuses it, a seed goes on from it.
	w.Configure(t, s.config(retained))
	if output, code := w.Run(t, "apply", "-auto-approve"); code == 0 {
		t.Errorf("a create over what was retained succeeded:\n%s", output)
	}
	w.Configure(t, s.config(entry(issues("T0"), `  write_policy = "seed"`)))
	succeeds(t, w, "apply", "-auto-approve")
	if got := s.stored(t, issuesState("T5"), "NULL").version; got != before {
		t.Errorf("version is %d, want %d: it was touched", got, before)
	}
}

// Where a new resource takes over an entry before the old one goes, the entry is not deleted under it.
func TestEntry_createBeforeDestroy(t *testing.T) {
	t.Parallel()
	for _, policy := range []writePolicy{policyEnforce, policySeed} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			s := newScenario(t, protocolNative)
			s.newTable(t)
			config := entry(issues("T0"), fmt.Sprintf("  write_policy = %q", policy), "  lifecycle {\n    create_before_destroy = true\n  }")
			w := s.workspace(t, config)
			succeeds(t, w, "apply", "-auto-approve")
			stored := issuesState("T0")
			if policy == policySeed {
				stored = issuesState("T9")
				s.meltano(t, entryID, stored, nil)
			}
			before := s.stored(t, stored, "NULL").version
			expects(t, "a replacement", entriesSaid(t, w, 0, "apply", "-auto-approve", "-replace="+entryE), "was there already", "was left as it is")
			if got := s.stored(t, stored, "NULL").version; got != before {
				t.Errorf("version is %d, want %d: it was touched", got, before)
			}
			succeeds(t, w, "plan", "-detailed-exitcode")
		})
	}
}
