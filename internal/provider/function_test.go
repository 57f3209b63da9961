package provider

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfversion"
)

// A call is an expression that calls functions of the provider, and the error that Terraform shows for it, or its value.
type call struct {
	expression string // ours:: stands for provider::clickhousestate::
	want       knownvalue.Check
	refused    string
}

// callFunctions has Terraform evaluate the calls. There is no server, and the provider is not configured.
func callFunctions(t *testing.T, calls map[string]call) {
	t.Helper()
	t.Parallel()
	output := func(name string) string {
		return fmt.Sprintf("output %q {\n  value = %s\n}\n", name, strings.ReplaceAll(calls[name].expression, "ours::", "provider::clickhousestate::"))
	}
	var (
		outputs strings.Builder
		right   resource.TestStep
		steps   []resource.TestStep
	)
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		if refusal := calls[name].refused; refusal != "" {
			steps = append(steps, resource.TestStep{Config: output(name), ExpectError: refused(refusal)})
			continue
		}
		outputs.WriteString(output(name))
		right.ConfigStateChecks = append(right.ConfigStateChecks, statecheck.ExpectKnownOutputValue(name, calls[name].want))
	}
	right.Config = outputs.String()
	resource.Test(t, resource.TestCase{
		TerraformVersionChecks:   []tfversion.TerraformVersionCheck{tfversion.SkipBelow(tfversion.Version1_8_0)},
		ProtoV6ProviderFactories: factories(t),
		Steps:                    append(steps, right),
	})
}

func TestFunction_stateID(t *testing.T) {
	is := knownvalue.StringExact
	callFunctions(t, map[string]call{
		"plain":    {`ours::state_id("prod", "tap-github", "target-clickhouse")`, is("prod:tap-github-to-target-clickhouse"), ""},
		"suffix":   {`ours::state_id("prod", "tap-a", "target-b", "orders")`, is("prod:tap-a-to-target-b:orders"), ""},
		"suffixes": {`ours::state_id("prod", "tap-a", "target-b", "x", null, "", "y:z")`, is("prod:tap-a-to-target-b:x:y:z"), ""},
		"none":     {`ours::state_id("prod", "tap-a", "target-b", null)`, is("prod:tap-a-to-target-b"), ""},
		"letters":  {`ours::state_id("dév 1", "tap-ü", "target-%_")`, is("dév 1:tap-ü-to-target-%_"), ""},
		// What is not known yet is unknown, not an error.
		"unknown": {`ours::state_id(terraform_data.later.output, "tap-a", "target-b")
}
resource "terraform_data" "later" {
  input = "dev"`, is("dev:tap-a-to-target-b"), ""},

		"no_extractor": {`ours::state_id("dev", "", "target-b")`, nil, "empty extractor or loader"},
		"colon":        {`ours::state_id("dev:x", "tap-a", "target-b")`, nil, `-to-`},
		"ambiguous":    {`ours::state_id("dev", "tap-a", "b-to-c")`, nil, `would be read as environment "dev", extractor "tap-a-to-b"`},
		"null":         {`ours::state_id(null, "tap-a", "target-b")`, nil, "argument must not be null"},
	})
}

func TestFunction_parseStateID(t *testing.T) {
	is := func(environment, extractor, loader string, suffix knownvalue.Check) knownvalue.Check {
		return knownvalue.ObjectExact(map[string]knownvalue.Check{
			"environment": knownvalue.StringExact(environment), "extractor": knownvalue.StringExact(extractor),
			"loader": knownvalue.StringExact(loader), "suffix": suffix,
		})
	}
	callFunctions(t, map[string]call{
		"plain":   {`ours::parse_state_id("prod:tap-github-to-target-clickhouse")`, is("prod", "tap-github", "target-clickhouse", knownvalue.Null()), ""},
		"suffix":  {`ours::parse_state_id("prod:tap-a-to-target-b:x:y")`, is("prod", "tap-a", "target-b", knownvalue.StringExact("x:y")), ""},
		"to":      {`ours::parse_state_id("dev:tap-csv-to-json-to-target-jsonl")`, is("dev", "tap-csv-to-json", "target-jsonl", knownvalue.Null()), ""},
		"inverse": {`[for p in [for id in ["a:b-to-c:d", "a:b-to-c"] : ours::parse_state_id(id)] : ours::state_id(p.environment, p.extractor, p.loader, p.suffix)]`, knownvalue.ListExact([]knownvalue.Check{knownvalue.StringExact("a:b-to-c:d"), knownvalue.StringExact("a:b-to-c")}), ""},
		"tried":   {`try(ours::parse_state_id("custom").environment, "none")`, knownvalue.StringExact("none"), ""},

		"custom": {`ours::parse_state_id("custom")`, nil, `no colon after the environment`},
		"halves": {`ours::parse_state_id("dev:tap-a")`, nil, `no -to- between extractor and loader`},
	})
}

func TestFunction_mergeState(t *testing.T) {
	is := knownvalue.StringExact
	callFunctions(t, map[string]call{
		"partial_wins": {
			`ours::merge_state("{\"singer_state\": {\"bookmarks\": {\"a\": 1, \"b\": [1, 2]}}}", jsonencode({ singer_state = { bookmarks = { b = [3], c = null } } }))`,
			is(`{"singer_state":{"bookmarks":{"a":1,"b":[3],"c":null}}}`), "",
		},
		"no_partial":   {`ours::merge_state(jsonencode({ b = 1, a = "<é>" }), null)`, is(`{"a":"<é>","b":1}`), ""},
		"no_completed": {`ours::merge_state(null, "{\"lsn\": 18446744073709551615, \"f\": 1.0}")`, is(`{"f":1.0,"lsn":18446744073709551615}`), ""},
		"neither":      {`ours::merge_state(null, "")`, is(`{}`), ""},

		"not_JSON":  {`ours::merge_state("{secret", null)`, nil, "merge completed state: parse state: not valid JSON at line 1, column 2"},
		"no_object": {`ours::merge_state(null, "[1]")`, nil, "merge partial state: parse state: not a JSON object"},
	})
}

func TestFunction_bookmarks(t *testing.T) {
	are := func(want map[string]string) knownvalue.Check {
		checks := map[string]knownvalue.Check{}
		for stream, value := range want {
			checks[stream] = knownvalue.StringExact(value)
		}
		return knownvalue.MapExact(checks)
	}
	export, err := filepath.Abs("../../examples/complete/state-export.json")
	if err != nil {
		t.Fatal(err)
	}
	callFunctions(t, map[string]call{
		"streams": {
			`ours::bookmarks(jsonencode({ singer_state = { bookmarks = { s = { replication_key_value = "2026-01-01" }, t = 5, u = {}, v = { log_file = "b.1", log_pos = 4 } } } }))`,
			are(map[string]string{"s": "2026-01-01", "t": "5", "v": "b.1:4"}), "",
		},
		"export": {
			fmt.Sprintf(`ours::bookmarks(jsonencode(jsondecode(file(%q))["prod:tap-github-to-target-clickhouse"].completed))`, export),
			are(map[string]string{
				"issues":                           "2026-11-20T08:14:03Z",
				"repositories[org=acme, repo=web]": "2026-11-19T23:59:59Z",
				"repositories[org=acme, repo=api]": "2026-11-18T04:00:00Z",
			}), "",
		},
		"none":  {`ours::bookmarks(null)`, are(nil), ""},
		"empty": {`ours::bookmarks("{}")`, are(nil), ""},

		"not_JSON": {`ours::bookmarks("{secret")`, nil, "not valid JSON at line 1, column 2"},
	})
}
