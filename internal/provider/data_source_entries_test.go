package provider

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
)

// Only * and ? are wildcards (cases.md 15). One query answers, whatever the number of entries.
func TestEntriesDataSource_pattern(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(t *testing.T, s scenario) {
		s.newTable(t)
		for _, id := range []string{"dev:tap_a-to-t", "dev:tapXa-to-t", "dev:100%-to-t", "dev:100x-to-t", "gone"} {
			s.meltano(t, id, `{"singer_state": {"run": 1}}`, nil)
			s.meltano(t, id, `{"singer_state": {"run": 2}}`, nil)
		}
		s.insert(t, "(state_id, is_deleted)", "gone", uint8(1))
		all := []string{"dev:100%-to-t", "dev:100x-to-t", "dev:tapXa-to-t", "dev:tap_a-to-t"}

		var config strings.Builder
		var checks []statecheck.StateCheck
		for i, tt := range []struct {
			pattern string
			want    []string
		}{
			{`pattern = "dev:tap_a*"`, all[3:]},
			{`pattern = "dev:100%*"`, all[:1]},
			{`pattern = "dev:tap?a*"`, all[2:]},
			{`pattern = "*"`, all},
			{`# the default`, all},
			{`pattern = "dev:tap\\*"`, nil},
			{`pattern = "gone"`, nil},
		} {
			fmt.Fprintf(&config, "data \"clickhousestate_entries\" \"e%[1]d\" {\n  %[2]s\n}\noutput \"e%[1]d\" {\n  value = keys(data.clickhousestate_entries.e%[1]d.entries)\n}\n", i, tt.pattern)
			var ids []knownvalue.Check
			for _, id := range tt.want {
				ids = append(ids, knownvalue.StringExact(id))
			}
			checks = append(checks, statecheck.ExpectKnownOutputValue(fmt.Sprintf("e%d", i), knownvalue.ListExact(ids)))
		}
		one := tfjsonpath.New("entries").AtMapKey("dev:tap_a-to-t")
		checks = append(checks,
			statecheck.ExpectKnownValue("data.clickhousestate_entries.e0", one.AtMapKey("completed_state"), knownvalue.StringExact(`{"singer_state": {"run": 2}}`)),
			statecheck.ExpectKnownValue("data.clickhousestate_entries.e0", one.AtMapKey("merged_state"), knownvalue.StringExact(`{"singer_state":{"run":2}}`)),
			// An empty result is an empty map.
			statecheck.ExpectKnownValue("data.clickhousestate_entries.e6", tfjsonpath.New("entries"), knownvalue.MapExact(nil)),
		)
		s.run(t,
			resource.TestStep{
				Config:      s.config("data \"clickhousestate_entries\" \"e\" {\n  pattern = \"\"\n}\n"),
				ExpectError: refused("string length must be at least 1"),
			},
			resource.TestStep{
				Config:      s.config("data \"clickhousestate_entries\" \"e\" {\n  table = \"nowhere\"\n}\n"),
				ExpectError: refused(fmt.Sprintf(`Tried to list the entries "*" in table %s/nowhere on`, s.database)),
			},
			resource.TestStep{Config: s.config(config.String()), ConfigStateChecks: checks},
		)
	})
}

// Every id arrives as it is, as a key and with its own payload.
func TestEntriesDataSource_hostileIDs(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(t *testing.T, s scenario) {
		s.newTable(t)
		for _, id := range hostile {
			s.meltano(t, id, fmt.Sprintf(`{"singer_state": %s}`, quoteJSON(t, id)), nil)
		}
		const body = `
data "clickhousestate_entries" "all" {}

output "wrong" {
  value = [for name, id in local.ids : name if jsondecode(data.clickhousestate_entries.all.entries[id].completed_state).singer_state != id]
}
output "count" {
  value = length(data.clickhousestate_entries.all.entries)
}

# Each as a pattern finds itself.
data "clickhousestate_entries" "one" {
  for_each = local.ids
  pattern  = each.value
}
output "lost" {
  value = [for name, id in local.ids : name if !contains(keys(data.clickhousestate_entries.one[name].entries), id)]
}
`
		destroy := resource.TestStep{Config: s.config("# a destroy")} // the test framework's own knows no for_each
		s.run(t, resource.TestStep{
			Config: s.config(hostileConfig(body)),
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownOutputValue("wrong", knownvalue.ListExact(nil)),
				statecheck.ExpectKnownOutputValue("count", knownvalue.Int64Exact(int64(len(hostile)))),
				statecheck.ExpectKnownOutputValue("lost", knownvalue.ListExact(nil)),
			},
		}, destroy)
	})
}

func TestEntriesDataSource_updated(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolHTTP)
	s.newTable(t)
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for id, at := range map[string]time.Time{"a": noon.Add(-time.Millisecond), "b": noon, "c": noon.Add(time.Millisecond)} {
		s.insert(t, "(state_id, completed_state, updated_at, version)", id, `{"singer_state": {}}`, at, uint64(1))
	}
	config := func(lines string) string {
		return s.config("data \"clickhousestate_entries\" \"e\" {\n" + lines + "\n}\noutput \"ids\" {\n  value = join(\" \", keys(data.clickhousestate_entries.e.entries))\n}\n")
	}
	ids := func(lines, want string) resource.TestStep {
		return resource.TestStep{Config: config(lines), ConfigStateChecks: []statecheck.StateCheck{
			statecheck.ExpectKnownOutputValue("ids", knownvalue.StringExact(want)),
		}}
	}
	s.run(t,
		resource.TestStep{Config: config(`updated_before = "yesterday"`), ExpectError: refused("Invalid RFC3339 String Value")},
		ids(`updated_before = "2026-01-01T12:00:00Z"`, "a"),
		ids(`updated_after = "2026-01-01T13:30:00+01:30"`, "c"),
		ids("updated_after = \"2026-01-01T12:00:00Z\"\nupdated_before = \"2026-01-01T12:00:00.001Z\"", ""),
		ids(`updated_before = timeadd(plantimestamp(), "-24h")`, "a b c"),
	)
}
