package provider

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/bookmark"
)

// hostile are state_ids, and payload strings, that break what pastes values into text.
var hostile = map[string]string{
	"quote":       `it's "quoted"`,
	"backslash":   `a\b\\n`,
	"tab":         "tab\tx",
	"newline":     "two\nlines\r\n",
	"question":    "what?",
	"at":          "@p",
	"dollar":      "$1 $$x$$ ${y} %{z}",
	"parameter":   "{x:String}",
	"backtick":    "`x`",
	"wildcards":   "dev:héé/ü%_",
	"trailing":    "trailing ",
	"emoji":       "🦆\U0001F468\u200d\U0001F469",
	"control":     "bell\x07 and \x7f",
	"long":        strings.Repeat("x", 1000),
	"replacement": "\ufffd",
}

const neighbour = "it"

// hostileConfig declares an entry for each hostile id, whose payload holds the id as key and value.
func hostileConfig(bookmark string, blocks ...string) string {
	var ids strings.Builder
	for _, name := range slices.Sorted(maps.Keys(hostile)) {
		fmt.Fprintf(&ids, "    %s = %s\n", name, hclQuote(hostile[name]))
	}
	return fmt.Sprintf("locals {\n  ids = {\n%s  }\n}\n%s\n%s", ids.String(), strings.Join(blocks, "\n"), bookmark)
}

const hostileEntries = `
resource "clickhousestate_entry" "e" {
  for_each        = local.ids
  state_id        = each.value
  completed_state = jsonencode({ singer_state = { bookmarks = { (each.value) = { value = each.value, run = %d } } } })
}
`

func TestEntry_hostileIDs(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(t *testing.T, s scenario) {
		s.newTable(t)
		const theirs = `{"singer_state": {"it's": "a\\b"}}`
		s.meltano(t, neighbour, theirs, theirs)
		before := s.live(t)[neighbour]

		// asDeclared compares the bytes that are stored, as the server itself shows them.
		asDeclared := func(run int) func() {
			return func() {
				rows := s.hex(t)
				if len(rows) != len(hostile)+1 {
					t.Errorf("%d live rows, want %d", len(rows), len(hostile)+1)
				}
				for name, id := range hostile {
					want := fmt.Sprintf(`{"singer_state":{"bookmarks":{%[1]s:{"run":%[2]d,"value":%[1]s}}}}`, quoteJSON(t, id), run)
					if got := rows[id]; !bookmark.Equal(got, want) {
						t.Errorf("%s: stored %q, want %q", name, got, want)
					}
				}
				if got := s.live(t)[neighbour]; got.version != before.version || text(got.completed) != theirs || text(got.partial) != theirs {
					t.Errorf("the neighbour was touched: %v", got)
				}
			}
		}
		imports := fmt.Sprintf("import {\n  for_each = local.ids\n  to = clickhousestate_entry.e[each.key]\n  id = \"%s/state/${each.value}\"\n}\n", s.database)
		s.run(t,
			resource.TestStep{Config: s.config(hostileConfig(fmt.Sprintf(hostileEntries, 1))), PostApplyFunc: asDeclared(1)},
			resource.TestStep{Config: s.config(hostileConfig(fmt.Sprintf(hostileEntries, 2))), PostApplyFunc: asDeclared(2)},
			resource.TestStep{Config: s.config("removed {\n  from = clickhousestate_entry.e\n  lifecycle {\n    destroy = false\n  }\n}\n"), PostApplyFunc: asDeclared(2)},
			resource.TestStep{
				Config:           s.config(hostileConfig(fmt.Sprintf(hostileEntries, 2), imports)),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{importsOnly(len(hostile))}},
				PostApplyFunc:    asDeclared(2),
			},
			resource.TestStep{Config: s.config("# a destroy"), PostApplyFunc: func() {
				if rows := s.hex(t); len(rows) != 1 || rows[neighbour] != theirs {
					t.Errorf("live rows are %q, want the neighbour's alone", rows)
				}
			}},
		)
	})
}

// hex returns the live completed states by state_id, as the server writes their bytes.
func (s scenario) hex(t *testing.T) map[string]string {
	t.Helper()
	found, err := s.conn.Query(t.Context(), "SELECT hex(state_id), hex(completed_state) FROM "+s.database+".state FINAL")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = found.Close() }()
	rows := map[string]string{}
	for found.Next() {
		var id, completed string
		if err := found.Scan(&id, &completed); err != nil {
			t.Fatal(err)
		}
		rows[unhex(t, id)] = unhex(t, completed)
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

func unhex(t *testing.T, digits string) string {
	t.Helper()
	raw, err := hex.DecodeString(digits)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func quoteJSON(t *testing.T, s string) string {
	t.Helper()
	quoted, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(quoted)
}

// The entries of a real export, as the example in examples/complete declares them.
func TestEntry_export(t *testing.T) {
	t.Parallel()
	const file = "../../examples/complete/state-export.json"
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var export map[string]map[string]json.RawMessage
	if err := json.Unmarshal(raw, &export); err != nil {
		t.Fatal(err)
	}
	path, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`
resource "clickhousestate_entry" "e" {
  for_each        = jsondecode(file(%q))
  state_id        = each.key
  completed_state = each.value.completed == null ? null : jsonencode(each.value.completed)
  partial_state   = each.value.partial == null ? null : jsonencode(each.value.partial)
}
`, path)
	eachProtocol(t, func(t *testing.T, s scenario) {
		s.newTable(t)
		asExported := func() {
			rows := s.live(t)
			if len(rows) != 20 || len(export) != 20 {
				t.Errorf("%d live rows of %d in the export, want 20", len(rows), len(export))
			}
			integers := 0
			for id, want := range export {
				got := rows[id]
				for _, state := range []struct{ want, got string }{{string(want["completed"]), text(got.completed)}, {string(want["partial"]), text(got.partial)}} {
					if !bookmark.Equal(orEmpty(state.got), orEmpty(state.want)) {
						t.Errorf("%s: stored %s, want %s", id, state.got, state.want)
					}
					integers += strings.Count(state.got, "18446744073709551615")
				}
			}
			if want := strings.Count(string(raw), "18446744073709551615"); integers != want || want == 0 {
				t.Errorf("found the largest integer %d times, want %d", integers, want)
			}
		}
		s.run(t,
			resource.TestStep{Config: s.config(config), PostApplyFunc: asExported},
			// Written again by Meltano, in the file's own spelling and order of keys.
			resource.TestStep{
				PreConfig: func() {
					for id, state := range export {
						s.meltano(t, id, nullIfEmpty(state["completed"]), nullIfEmpty(state["partial"]))
					}
				},
				Config:           s.config(config),
				ConfigPlanChecks: noChanges(),
				PostApplyFunc:    asExported,
			},
			resource.TestStep{Config: s.config("# a destroy")}, // the test framework's own knows no for_each
		)
	})
}

// orEmpty returns {} for the state that is none, in SQL or in JSON.
func orEmpty(state string) string {
	if state == "NULL" || state == "null" {
		return "{}"
	}
	return state
}

// nullIfEmpty returns what Meltano stores.
func nullIfEmpty(state json.RawMessage) any {
	if bookmark.IsEmpty(orEmpty(string(state))) {
		return nil
	}
	return string(state)
}

// Values whose spelling changes on the way, while they stay the same.
func TestEntry_spelling(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	s.newTable(t)
	config := func(v string) string {
		return s.config(`
resource "clickhousestate_entry" "numbers" {
  state_id        = "numbers"
  completed_state = jsonencode({ singer_state = { bookmarks = { t = { lsn = 18446744073709551615, v = ` + v + `, min = -9223372036854775808, f = 1.0, g = 0.10, h = 1e3 } } } })
}
resource "clickhousestate_entry" "text" {
  state_id        = "text"
  completed_state = "{\"singer_state\":{\"b\":\"<x>&é\",\"a\":[1,2]}}"
}
resource "clickhousestate_entry" "empty" {
  state_id        = "empty"
  completed_state = jsonencode({})
}
resource "clickhousestate_entry" "unset" {
  state_id = "unset"
}
resource "clickhousestate_entry" "null_inside" {
  state_id        = "null_inside"
  completed_state = jsonencode({ singer_state = { currently_syncing = null } })
}
resource "clickhousestate_entry" "bare" {
  state_id        = "bare"
  completed_state = jsonencode({ singer_state = {} })
}
`)
	}
	s.run(t,
		resource.TestStep{
			Config: config("9007199254740993"),
			PostApplyFunc: func() {
				rows := s.live(t)
				for _, want := range []string{`"lsn":18446744073709551615`, `"v":9007199254740993`, `"min":-9223372036854775808`} {
					if got := text(rows["numbers"].completed); !strings.Contains(got, want) {
						t.Errorf("stored %s, want %s in it", got, want)
					}
				}
				for id, want := range map[string]string{
					"text": `{"singer_state":{"b":"<x>&é","a":[1,2]}}`, "empty": "NULL", "unset": "NULL",
					"null_inside": `{"singer_state":{"currently_syncing":null}}`, "bare": `{"singer_state":{}}`,
				} {
					if got := text(rows[id].completed); got != want {
						t.Errorf("%s: stored %s, want %s", id, got, want)
					}
				}
			},
		},
		resource.TestStep{
			PreConfig: func() { // as Python spells them
				s.meltano(t, "numbers", `{"singer_state": {"bookmarks": {"t": {"h": 1000.0, "g": 0.1, "f": 1, "min": -9223372036854775808, "v": 9007199254740993, "lsn": 18446744073709551615}}}}`, nil)
				s.meltano(t, "text", `{"singer_state": {"a": [1, 2], "b": "<x>&\u00e9"}}`, nil)
				s.meltano(t, "empty", nil, nil)
				s.meltano(t, "unset", nil, nil)
				s.meltano(t, "null_inside", `{"singer_state": {"currently_syncing": null}}`, nil)
				s.meltano(t, "bare", `{"singer_state": {}}`, nil)
			},
			Config:           config("9007199254740993"),
			ConfigPlanChecks: noChanges(),
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue("clickhousestate_entry.text", tfjsonpath.New("completed_state"), knownvalue.StringExact(`{"singer_state":{"b":"<x>&é","a":[1,2]}}`)),
				statecheck.ExpectKnownValue("clickhousestate_entry.empty", tfjsonpath.New("completed_state"), knownvalue.StringExact("{}")),
				statecheck.ExpectKnownValue("clickhousestate_entry.unset", tfjsonpath.New("completed_state"), knownvalue.Null()),
			},
		},
		resource.TestStep{
			PreConfig: func() {
				s.meltano(t, "text", `{"singer_state": {"a": [2, 1], "b": "<x>&\u00e9"}}`, nil) // an array's order counts
				s.meltano(t, "null_inside", `{"singer_state": {}}`, nil)                        // null is not absent
			},
			Config: config("9007199254740992"),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectResourceAction("clickhousestate_entry.numbers", plancheck.ResourceActionUpdate),
				plancheck.ExpectResourceAction("clickhousestate_entry.text", plancheck.ResourceActionUpdate),
				plancheck.ExpectResourceAction("clickhousestate_entry.null_inside", plancheck.ResourceActionUpdate),
				plancheck.ExpectResourceAction("clickhousestate_entry.empty", plancheck.ResourceActionNoop),
				plancheck.ExpectResourceAction("clickhousestate_entry.unset", plancheck.ResourceActionNoop),
				plancheck.ExpectResourceAction("clickhousestate_entry.bare", plancheck.ResourceActionNoop),
			}},
		},
	)
}

// importsOnly fails unless the plan imports so many resources and changes nothing.
type importsOnly int

func (want importsOnly) CheckPlan(_ context.Context, req plancheck.CheckPlanRequest, resp *plancheck.CheckPlanResponse) {
	got := 0
	for _, change := range req.Plan.ResourceChanges {
		if change.Change.Importing == nil || !change.Change.Actions.NoOp() {
			resp.Error = fmt.Errorf("%s is planned as %v", change.Address, change.Change.Actions)
			return
		}
		got++
	}
	if got != int(want) {
		resp.Error = fmt.Errorf("%d imports, want %d", got, want)
	}
}
