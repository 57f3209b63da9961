package provider

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
)

// The numbers themselves are those of statestore's tests and of the guide; this is how they come out.
func TestTableDataSource(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(t *testing.T, s scenario) {
		const data = "data \"clickhousestate_table\" \"t\" {}\n"
		expect := func(attribute string, want knownvalue.Check) statecheck.StateCheck {
			return statecheck.ExpectKnownValue("data.clickhousestate_table.t", tfjsonpath.New(attribute), want)
		}
		s.run(t,
			resource.TestStep{Config: s.config(data), ExpectError: refused("table " + s.database + "/state does not exist")},
			resource.TestStep{
				PreConfig: func() {
					s.newTable(t)
					s.do(t, "SYSTEM STOP MERGES DB.state")
					s.meltano(t, "dev:a", `{"singer_state": {}}`, nil)
					s.meltano(t, "dev:a", `{"singer_state": {}}`, nil)
					s.do(t, "INSERT INTO DB.state (state_id, is_deleted) VALUES ('dev:b', 1)")
				},
				Config: s.config(data),
				ConfigStateChecks: []statecheck.StateCheck{
					expect("database", knownvalue.StringExact(s.database)),
					expect("name", knownvalue.StringExact("state")),
					expect("layout", knownvalue.StringExact("versioned")),
					expect("lock_layout", knownvalue.StringExact("strict")),
					expect("engine", knownvalue.StringExact("ReplacingMergeTree")),
					expect("uuid", knownvalue.NotNull()),
					expect("live_entries", knownvalue.Int64Exact(1)),
					expect("tombstones", knownvalue.Int64Exact(1)),
					expect("raw_rows", knownvalue.Int64Exact(3)),
					expect("unmerged_versions", knownvalue.Int64Exact(1)),
					expect("oldest_unmerged_seconds", knownvalue.Int64Func(func(n int64) error { return nil })),
					expect("ahead_seconds", knownvalue.Int64Exact(0)),
					expect("active_parts", knownvalue.Int64Exact(3)),
					expect("bytes_on_disk", knownvalue.Int64Func(func(n int64) error { return nil })),
					expect("converged", knownvalue.Bool(false)),
				},
			},
			// Without a lock table it can be looked at all the same.
			resource.TestStep{
				PreConfig:         func() { s.do(t, "DROP TABLE DB.state_lock SYNC") },
				Config:            s.config(data),
				ConfigStateChecks: []statecheck.StateCheck{expect("lock_layout", knownvalue.Null()), expect("raw_rows", knownvalue.Int64Exact(3))},
			},
		)
	})
}
