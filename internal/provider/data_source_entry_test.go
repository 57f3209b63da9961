package provider

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
)

// Entries of whatever id are read as they are stored, and their output is good as the input of another entry (cases.md 16):
// what is stored is equal, and the plan after it is empty.
func TestEntryDataSource_hostileIDs(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(t *testing.T, s scenario) {
		s.newTable(t)
		for _, id := range hostile {
			// Python's spelling, and a partial state.
			s.meltano(t, id, fmt.Sprintf(`{"singer_state": {"bookmarks": {%s: {"f": 1.0, "lsn": 18446744073709551615}}}}`, quoteJSON(t, id)), `{"singer_state": {"bookmarks": {"p": null}}}`)
		}
		const body = `
data "clickhousestate_entry" "e" {
  for_each = local.ids
  state_id = each.value
}

resource "clickhousestate_entry" "copy" {
  for_each        = local.ids
  state_id        = "copy of ${each.value}"
  completed_state = data.clickhousestate_entry.e[each.key].completed_state
  partial_state   = data.clickhousestate_entry.e[each.key].partial_state
}

output "merged" {
  value = [for name, e in data.clickhousestate_entry.e : name if e.merged_state != clickhousestate_entry.copy[name].merged_state]
}
`
		s.run(t,
			resource.TestStep{
				Config:            s.config(hostileConfig(body)),
				ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownOutputValue("merged", knownvalue.ListExact(nil))},
				PostApplyFunc: func() {
					rows := s.live(t)
					if len(rows) != 2*len(hostile) {
						t.Errorf("%d live rows, want %d", len(rows), 2*len(hostile))
					}
					for name, id := range hostile {
						from, to := rows[id], rows["copy of "+id]
						if text(from.completed) != text(to.completed) || text(from.partial) != text(to.partial) {
							t.Errorf("%s: copied %s and %s as %s and %s", name, text(from.completed), text(from.partial), text(to.completed), text(to.partial))
						}
					}
				},
			},
			resource.TestStep{Config: s.config(hostileConfig(body)), ConfigPlanChecks: noChanges()},
			resource.TestStep{Config: s.config("# a destroy")}, // the test framework's own knows no for_each
		)
	})
}

func TestEntryDataSource(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	s.newTable(t)
	s.exec(t, "CREATE TABLE "+s.database+".other AS "+s.database+".state")
	s.meltano(t, entryID, nil, nil)
	s.meltano(t, "gone", `{"singer_state": {}}`, nil)
	s.insert(t, "(state_id, is_deleted)", "gone", uint8(1))
	s.meltano(t, "broken", `["secret"]`, nil)
	one := func(lines string) string {
		return s.config(fmt.Sprintf("data \"clickhousestate_entry\" \"e\" {\n%s\n}\n", lines))
	}
	const e = "data.clickhousestate_entry.e"
	s.run(t,
		resource.TestStep{
			Config:           one(fmt.Sprintf("state_id = %q", entryID)),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(e, tfjsonpath.New("database"), knownvalue.StringExact(s.database)),
				statecheck.ExpectKnownValue(e, tfjsonpath.New("table"), knownvalue.StringExact("state")),
				statecheck.ExpectKnownValue(e, tfjsonpath.New("completed_state"), knownvalue.Null()),
				statecheck.ExpectKnownValue(e, tfjsonpath.New("partial_state"), knownvalue.Null()),
				statecheck.ExpectKnownValue(e, tfjsonpath.New("merged_state"), knownvalue.StringExact("{}")),
				statecheck.ExpectKnownValue(e, tfjsonpath.New("version"), knownvalue.NumberFunc(known)),
				statecheck.ExpectKnownValue(e, tfjsonpath.New("updated_at"), knownvalue.StringRegexp(regexp.MustCompile(`^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`))),
			},
		},
		// Meltano cannot read it; Terraform shows it.
		resource.TestStep{
			Config: one(`state_id = "broken"`),
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(e, tfjsonpath.New("completed_state"), knownvalue.StringExact(`["secret"]`)),
				statecheck.ExpectKnownValue(e, tfjsonpath.New("merged_state"), knownvalue.Null()),
			},
		},
		resource.TestStep{
			Config:      one(`state_id = "gone"`),
			ExpectError: refused(`Unable to read state entry`),
		},
		resource.TestStep{
			Config:      one(`state_id = "never written"`),
			ExpectError: refused(`No entry is stored there: no pipeline has written it yet, or it was deleted.`),
		},
		resource.TestStep{
			Config:      one(fmt.Sprintf("state_id = %q\ntable = %q", entryID, "other")),
			ExpectError: refused(fmt.Sprintf(`Tried to read entry %q in table %s/other on`, entryID, s.database)),
		},
		resource.TestStep{
			Config:      one(fmt.Sprintf("state_id = %q\ntable = %q", entryID, "nowhere")),
			ExpectError: refused(fmt.Sprintf(`table %s/nowhere does not exist`, s.database)),
		},
		resource.TestStep{Config: one(fmt.Sprintf("state_id = %q", entryID))}, // the last one is destroyed
	)
}
