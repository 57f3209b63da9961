package provider

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
)

// What Terraform writes down of imported entries plans nothing, whatever is in them.
func TestEntry_generatedConfig(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	s.newTable(t)
	ids := []string{"dev:both", "dev:big/numbers", "dev:none", "dev:text ${x}", "dev:shapes"}
	s.meltano(t, ids[0], `{"singer_state": {"bookmarks": {"a": {"since": "2026-01-01T00:00:00Z"}}}}`, `{"singer_state": {"bookmarks": {"b": 1}}}`)
	s.meltano(t, ids[1], `{"singer_state": {"lsn": 18446744073709551615, "v": 9007199254740993, "f": 1.0, "g": 0.10, "h": 1e3, "min": -9223372036854775808}}`, nil)
	s.meltano(t, ids[2], nil, nil)
	s.meltano(t, ids[3], `{"singer_state": {"a": "${x} %{y} \u00e9 \"q\" \\ <&> \n two lines"}}`, nil)
	s.meltano(t, ids[4], `{"singer_state": {"null": null, "list": [1, "a", {}, []], "true": true, "empty": {}, "currently_syncing": null}}`, `{}`)
	before := s.live(t)

	var imports strings.Builder
	for i, id := range ids {
		fmt.Fprintf(&imports, "import {\n  to = clickhousestate_entry.e%d\n  id = %s\n}\n", i, hclQuote(s.database+"/state/"+id))
	}
	w := s.workspace(t, imports.String())
	output := succeeds(t, w, "plan", "-generate-config-out=generated.tf", "-out=tfplan")
	if want := "Plan: 5 to import, 0 to add, 0 to change, 0 to destroy."; !strings.Contains(output, want) {
		t.Errorf("got %s\nwant %s", output, want)
	}
	succeeds(t, w, "apply", "tfplan")
	if output, code := w.Run(t, "plan", "-detailed-exitcode"); code != 0 {
		t.Errorf("the next plan ended with %d, want 0: no changes\n%s", code, output)
	}
	generated, err := os.ReadFile(filepath.Join(w.Dir, "generated.tf"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`write_policy\s+= "enforce"`, `on_rewind\s+= "warn"`, `deletion_policy\s+= "delete"`, `lsn\s+= 18446744073709551615`, `v\s+= 9007199254740993`} {
		matches(t, string(generated), want)
	}
	after := s.live(t)
	for _, id := range ids {
		if before[id].version != after[id].version {
			t.Errorf("%s was touched", id)
		}
	}
}

// The first plan after an import changes options in state, and no row.
func TestEntry_firstPlanAfterImport(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(t *testing.T, s scenario) {
		s.newTable(t)
		const python = `{"singer_state": {"bookmarks": {"issues": {"replication_key_value": "T0"}}}}`
		var before uint64
		imports := fmt.Sprintf("import {\n  to = %s\n  id = \"%s/state/%s\"\n}\n", entryE, s.database, entryID)
		untouched := func() {
			if got := s.stored(t, python, "NULL").version; got != before {
				t.Errorf("version is %d, want %d: it was touched", got, before)
			}
		}
		forget := resource.TestStep{Config: s.config("removed {\n  from = " + entryE + "\n  lifecycle {\n    destroy = false\n  }\n}\n"), PostApplyFunc: untouched}
		s.run(t,
			resource.TestStep{
				PreConfig: func() {
					s.meltano(t, entryID, python, nil)
					before = s.live(t)[entryID].version
				},
				Config:           s.config(imports + entry(issues("T0"))),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{importsOnly(1)}},
				PostApplyFunc:    untouched,
			},
			forget,
			// Nothing is declared of what is stored.
			resource.TestStep{
				Config:           s.config(imports + entry()),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{importsOnly(1)}},
				PostApplyFunc:    untouched,
			},
			forget,
			resource.TestStep{
				Config:           s.config(imports + entry(issues("T0"), `  deletion_policy = "retain"`, `  on_rewind = "error"`, `  timeouts = { read = "1m" }`)),
				ConfigPlanChecks: plans(plancheck.ResourceActionUpdate),
				PostApplyFunc:    untouched,
			},
		)
	})
}
