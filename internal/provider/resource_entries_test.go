package provider

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
)

const entriesA = "clickhousestate_entries.a"

// A form is one of the two ways to declare many entries.
type form string

const (
	formEntries form = "entries"
	formExport  form = "export"
)

// eachForm runs a test with both, each over another protocol.
func eachForm(t *testing.T, run func(t *testing.T, s scenario, declare form)) {
	t.Helper()
	for declare, protocol := range map[form]string{formEntries: protocolNative, formExport: protocolHTTP} {
		t.Run(string(declare), func(t *testing.T) {
			t.Parallel()
			s := newScenario(t, protocol)
			s.newTable(t)
			run(t, s, declare)
		})
	}
}

// of is the configuration of entries, with more lines in it. The values are what an export holds of each.
func (f form) of(entries map[string]string, lines ...string) string {
	items := make([]string, 0, len(entries))
	for _, id := range slices.Sorted(maps.Keys(entries)) {
		item := fmt.Sprintf("    %s = jsonencode(%s)", hclQuote(id), entries[id])
		if f == formExport {
			item = fmt.Sprintf("    %s = %s", hclQuote(id), entries[id])
		}
		items = append(items, item)
	}
	value := "{\n" + strings.Join(items, "\n") + "\n  }"
	if f == formExport {
		value = "jsonencode(" + value + ")"
	}
	return fmt.Sprintf("resource \"clickhousestate_entries\" \"a\" {\n  %s = %s\n%s\n}\n", f, value, strings.Join(lines, "\n"))
}

// mark is a bookmark of the stream issues, as a completed payload.
func mark(value string) string {
	return fmt.Sprintf(`{"singer_state":{"bookmarks":{"issues":{"replication_key_value":%q}}}}`, value)
}

// marked declares a completed payload with one bookmark, and nothing else.
func marked(value string) string { return `{ completed = ` + mark(value) + ` }` }

func plansEntries(action plancheck.ResourceActionType) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(entriesA, action)}}
}

// holds fails unless exactly these completed payloads are live, and no lock is left.
func (s scenario) holds(t *testing.T, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for id, found := range s.live(t) {
		got[id] = text(found.completed)
	}
	if !maps.Equal(got, want) {
		t.Errorf("stored %v, want %v", got, want)
	}
	if locks := s.count(t, "state_lock"); locks != 0 {
		t.Errorf("%d claims are left", locks)
	}
}

func count(entries int) []statecheck.StateCheck {
	return []statecheck.StateCheck{statecheck.ExpectKnownValue(entriesA, tfjsonpath.New("entry_count"), knownvalue.Int64Exact(int64(entries)))}
}

func TestEntries(t *testing.T) {
	t.Parallel()
	eachForm(t, func(t *testing.T, s scenario, declare form) {
		var versions map[string]row
		s.run(t,
			resource.TestStep{
				Config:            s.config(declare.of(map[string]string{"dev:a": marked("T0"), "dev:b": marked("T0"), `q"\é/%_`: marked("T0")})),
				ConfigPlanChecks:  plansEntries(plancheck.ResourceActionCreate),
				ConfigStateChecks: append(count(3), statecheck.ExpectKnownValue(entriesA, tfjsonpath.New("id"), knownvalue.StringExact(s.database+"/state"))),
				PostApplyFunc: func() {
					s.holds(t, map[string]string{"dev:a": mark("T0"), "dev:b": mark("T0"), `q"\é/%_`: mark("T0")})
					versions = s.live(t)
				},
			},
			resource.TestStep{
				ResourceName: entriesA, ImportState: true, ImportStateId: s.database + "/state", ImportStateVerify: true,
				ImportStateVerifyIgnore: []string{"entries", "entries.%", "entries.dev:a", "entries.dev:b", `entries.q"\é/%_`, "export"}, // see TestEntries_import
			},
			// Meltano spells it in its own way; and a pipeline's partial state is not declared.
			resource.TestStep{
				PreConfig: func() {
					s.meltano(t, "dev:a", strings.ReplaceAll(mark("T0"), ":", ": "), `{"singer_state": {"p": 1}}`)
				},
				Config:           s.config(declare.of(map[string]string{"dev:a": marked("T0"), "dev:b": marked("T0"), `q"\é/%_`: marked("T0")})),
				ConfigPlanChecks: noChanges(),
			},
			// One is added, one changed, one not declared any more: three rows.
			resource.TestStep{
				Config:            s.config(declare.of(map[string]string{"dev:a": marked("T1"), "dev:b": marked("T0"), "dev:c": marked("T2")})),
				ConfigPlanChecks:  plansEntries(plancheck.ResourceActionUpdate),
				ConfigStateChecks: count(3),
				PostApplyFunc: func() {
					s.holds(t, map[string]string{"dev:a": mark("T1"), "dev:b": mark("T0"), "dev:c": mark("T2")})
					now := s.live(t)
					if text(now["dev:a"].partial) != `{"singer_state": {"p": 1}}` {
						t.Errorf("the partial state is %s, want the pipeline's", text(now["dev:a"].partial))
					}
					if now["dev:b"].version != versions["dev:b"].version {
						t.Error("dev:b was written")
					}
				},
			},
			// Drift in one entry is put back, and a deleted one comes back.
			resource.TestStep{
				PreConfig: func() {
					s.meltano(t, "dev:b", mark("T9"), nil)
					s.meltanoDelete(t, "dev:c")
				},
				Config:           s.config(declare.of(map[string]string{"dev:a": marked("T1"), "dev:b": marked("T0"), "dev:c": marked("T2")})),
				ConfigPlanChecks: plansEntries(plancheck.ResourceActionUpdate),
				PostApplyFunc: func() {
					s.holds(t, map[string]string{"dev:a": mark("T1"), "dev:b": mark("T0"), "dev:c": mark("T2")})
				},
			},
			// Declared empty is erased.
			resource.TestStep{
				Config: s.config(declare.of(map[string]string{"dev:a": `{ completed = ` + mark("T1") + `, partial = {} }`, "dev:b": marked("T0"), "dev:c": marked("T2")})),
				PostApplyFunc: func() {
					if partial := s.live(t)["dev:a"].partial; partial != nil {
						t.Errorf("the partial state is %s, want none", *partial)
					}
				},
			},
			resource.TestStep{Config: s.config("# nothing"), PostApplyFunc: func() { s.holds(t, map[string]string{}) }},
			// Over the tombstones.
			resource.TestStep{Config: s.config(declare.of(map[string]string{"dev:a": marked("T3")}))},
		)
	})
}

// What is imported plans no change, in either form and whatever the spelling.
func TestEntries_import(t *testing.T) {
	t.Parallel()
	eachForm(t, func(t *testing.T, s scenario, declare form) {
		s.meltano(t, "prod:a", strings.ReplaceAll(mark("T0"), ":", ": "), nil)
		s.meltano(t, "prod:b", nil, mark("T1"))
		s.meltano(t, "prod:c", nil, "[broken")
		s.meltano(t, "dev:a", mark("T2"), nil)
		before := s.live(t)
		w := s.workspace(t, declare.of(map[string]string{"prod:a": marked("T0"), "prod:b": `{ partial = ` + mark("T1") + ` }`, "prod:c": `{}`}))
		succeed(t, w, "import "+entriesA+" "+s.database+"/state/prod:?", `State entry "prod:c" holds no pipeline state`)
		succeed(t, w, "plan -detailed-exitcode", "No changes")
		// What Meltano cannot read is replaced by what is declared.
		w.Configure(t, s.config(declare.of(map[string]string{"prod:a": marked("T0"), "prod:b": `{ partial = ` + mark("T1") + ` }`, "prod:c": `{ partial = {} }`})))
		succeed(t, w, "apply -auto-approve", "0 added, 1 changed, 0 destroyed")
		succeed(t, w, "plan -detailed-exitcode", "No changes")
		after := s.live(t)
		if after["prod:c"].partial != nil {
			t.Errorf("prod:c has the partial state %s", text(after["prod:c"].partial))
		}
		for _, id := range []string{"prod:a", "prod:b", "dev:a"} {
			if after[id].version != before[id].version {
				t.Errorf("%s was written", id)
			}
		}
		for _, id := range []string{s.database, s.database + "/", s.database + "/state/", "/state"} {
			if output, code := s.workspace(t, declare.of(nil)).Run(t, "import", entriesA, id); code == 0 || !strings.Contains(output, "Invalid import id") {
				t.Errorf("import of %q:\n%s", id, output)
			}
		}
		if output, code := s.workspace(t, declare.of(nil)).Run(t, "import", entriesA, s.database+"/state/nothing*"); code == 0 || !strings.Contains(output, "Cannot import non-existent remote object") {
			t.Errorf("import of nothing:\n%s", output)
		}
	})
}

// A plan shows the one entry that has drifted, and says what it would set back.
func TestEntries_drift(t *testing.T) {
	t.Parallel()
	eachForm(t, func(t *testing.T, s scenario, declare form) {
		entries := map[string]string{}
		for i := range 30 {
			entries[fmt.Sprintf("dev:tap-%02d", i)] = marked("2026-01-01")
		}
		w := s.workspace(t, declare.of(entries))
		succeed(t, w, "apply -auto-approve", "1 added")
		s.meltano(t, "dev:tap-07", mark("2026-02-01"), nil)
		output := succeed(t, w, "plan -out=p", `State entry "dev:tap-07" would be set back`,
			"issues: replication_key_value goes from 2026-02-01 to 2026-01-01 (31 days 0:00:00 back)", "1 to change")
		if n := strings.Count(output, `"2026-02-01"`); n != 1 {
			t.Errorf("the old value is shown %d times, want once:\n%s", n, output)
		}
		for _, other := range []string{"dev:tap-06", "dev:tap-08"} {
			if strings.Contains(output, other) {
				t.Errorf("%s is shown:\n%s", other, output)
			}
		}
		// Moved once more: the apply writes nothing.
		s.meltano(t, "dev:tap-07", mark("2026-03-01"), nil)
		refuse(t, w, "apply p", "Unable to update state entries", "No entry was changed.", `"dev:tap-07"`, "changed since it was planned")
		if got := text(s.live(t)["dev:tap-07"].completed); got != mark("2026-03-01") {
			t.Errorf("stored %s", got)
		}
		succeed(t, w, "destroy -auto-approve", `State entries "dev:tap-00" and 29 more would lose all their bookmarks`, "Destroy complete")
		s.holds(t, map[string]string{})
		succeed(t, w, "apply -auto-approve", "1 added")
		// A destroy of what has gone from the configuration is planned from the state before the refresh.
		s.meltano(t, "dev:tap-07", mark("2026-03-01"), nil)
		w.Configure(t, s.config("# nothing"))
		refuse(t, w, "apply -auto-approve", `"dev:tap-07"`, "changed since it was planned", "No entry was changed.")
		succeed(t, w, "apply -auto-approve", "1 destroyed")
		s.holds(t, map[string]string{})
	})
}

// The example, beside the table that it names.
func TestEntries_example(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolHTTP)
	s.newTable(t)
	w := s.exampleWorkspace(t, "resources/clickhousestate_entries/*.tf")
	if err := os.Remove(filepath.Join(w.Dir, "import-by-string-id.tf")); err != nil {
		t.Fatal(err)
	}
	// A stand-in for the table: its names are all that the example uses.
	example, err := os.ReadFile(filepath.Join(w.Dir, "resource.tf"))
	if err == nil {
		err = os.WriteFile(filepath.Join(w.Dir, "resource.tf"), []byte(strings.NewReplacer(
			"clickhousestate_table.state.database", strconv.Quote(s.database), "clickhousestate_table.state.name", `"state"`).Replace(string(example))), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	succeed(t, w, "apply -auto-approve", "2 added")
	succeed(t, w, "plan -detailed-exitcode", "No changes")
	if n, export := len(s.live(t)), stateOf(t, w, "clickhousestate_entries.project")["entry_count"]; float64(n-2) != export || n < 5 {
		t.Errorf("%d live, entry_count is %v", n, export)
	}
	s.meltano(t, "staging:tap-shop-to-target-clickhouse:orders", mark("T9"), nil)
	succeed(t, w, "plan -detailed-exitcode", "No changes")
	succeed(t, w, "destroy -auto-approve", "2 destroyed")
	if live := s.live(t); len(live) != 2 {
		t.Errorf("%d live, want the seeds", len(live))
	}
}

// refuse runs Terraform and fails unless it fails and says all the words.
func refuse(t *testing.T, w *acctest.Workspace, args string, words ...string) string {
	t.Helper()
	output, code := w.Run(t, strings.Fields(args)...)
	if code != 1 {
		t.Fatalf("terraform %s ended with %d:\n%s", args, code, output)
	}
	for _, want := range words {
		if !refused(want).MatchString(output) {
			t.Errorf("terraform %s does not say %q:\n%s", args, want, output)
		}
	}
	return output
}

func TestEntries_validate(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	for _, tt := range []struct{ body, says string }{
		{``, "Exactly one of these attributes must be configured"},
		{`entries = {}` + "\n" + `export = "{}"`, "Exactly one of these attributes must be configured"},
		{`entries = { a = "{}", b = "[]" }`, "not a JSON object"},
		{`entries = { a = jsonencode({ singer_state = {} }) }`, "entry with another key than completed and partial"},
		{`entries = { a = jsonencode({ completed = "x" }) }`, "not a JSON object"},
		{`entries = { a = "{\"completed\":{\"x\":1,\"x\":2}}" }`, "repeated key"},
		{`entries = { a = null }`, "must not be null"},
		{`entries = { "" = "{}" }`, "Invalid state id"},
		{`export = "{oops"`, "not valid JSON"},
		{`export = jsonencode({ a = { completed = {}, version = 1 } })`, "entry with another key than completed and partial"},
		{`export = jsonencode({ "" = {} })`, "Invalid state id"},
		{`entries = {}` + "\n" + `write_policy = "own"`, "value must be one of"},
	} {
		refuse(t, s.workspace(t, "resource \"clickhousestate_entries\" \"a\" {\n"+tt.body+"\n}\n"), "validate", tt.says)
	}
	w := s.workspace(t, `resource "terraform_data" "d" {}
resource "clickhousestate_entries" "a" {
  entries = { a = jsonencode({ completed = { bookmarks = {} } }), b = jsonencode({ completed = { x = terraform_data.d.id } }), c = jsonencode({ partial = { y = 1 } }), d = "{}" }
}
resource "clickhousestate_entries" "b" {
  export = terraform_data.d.id
}
`)
	succeed(t, w, "validate", `State entries "a" and 1 more have no singer_state`)
	// No server is asked in a plan of what is to be created, and what is unknown is no error.
	unreachable := strings.Replace(s.config(`resource "terraform_data" "d" { input = "x" }
resource "clickhousestate_entries" "a" {
  entries = { a = "{}", b = jsonencode({ completed = { singer_state = { x = terraform_data.d.id } } }) }
}
`), fmt.Sprintf("port = %d", s.NativePort), "port = 1", 1)
	w.Configure(t, unreachable)
	succeed(t, w, "plan", "2 to add", "entry_count = 2")
}

// stateOf reads the attributes of a resource from Terraform's state, which must be there.
func stateOf(t *testing.T, w *acctest.Workspace, address string) map[string]any {
	t.Helper()
	output, code := w.Run(t, "show", "-json")
	if code != 0 {
		t.Fatalf("show: %s", output)
	}
	var shown struct {
		Values struct {
			Root struct {
				Resources []struct {
					Address string         `json:"address"`
					Values  map[string]any `json:"values"`
				} `json:"resources"`
			} `json:"root_module"`
		} `json:"values"`
	}
	if err := json.Unmarshal([]byte(output), &shown); err != nil {
		t.Fatal(err)
	}
	for _, found := range shown.Values.Root.Resources {
		if found.Address == address {
			return found.Values
		}
	}
	return nil
}
