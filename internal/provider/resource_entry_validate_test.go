package provider

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
)

// What `terraform validate` says of payloads, without a server.
func TestEntry_validate(t *testing.T) {
	t.Parallel()
	const attributeLine = 11 // behind the block that Configure writes
	w := scenario{}.workspace(t, "")
	for name, tc := range map[string]struct {
		payload string
		want    string // severity, summary, and words of the detail; "" for nothing
	}{
		"no wrapper":       {`jsonencode({ bookmarks = { hunter2 = 1 } })`, `warning: State entry "dev:x" has no singer_state in its completed_state: *jsonencode({ singer_state = { ... } })`},
		"a list":           {`"[]"`, "error: Invalid pipeline state: *not a JSON object"},
		"null as text":     {`"null"`, "error: Invalid pipeline state: *not a JSON object"},
		"a string":         {`"\"hunter2\""`, "error: Invalid pipeline state: *not a JSON object"},
		"no JSON":          {`"{hunter2"`, "error: Invalid pipeline state: *not valid JSON"},
		"no text":          {`""`, "error: Invalid pipeline state: *not valid JSON"},
		"a repeated key":   {`"{\"hunter2\":1,\"hunter2\":2}"`, "error: Invalid pipeline state: *repeated key"},
		"an object":        {`jsonencode({ singer_state = {} })`, ""},
		"an empty object":  {`jsonencode({})`, ""},
		"null":             {`null`, ""},
		"not known yet":    {`jsonencode({ singer_state = { a = terraform_data.d.id } })`, ""},
		"not known at all": {`terraform_data.d.id`, ""},
	} {
		for _, attribute := range []string{"completed_state", "partial_state"} {
			name, tc := name+", "+attribute, tc
			tc.want = strings.Replace(tc.want, "completed_state", attribute, 1)
			w.Configure(t, "resource \"terraform_data\" \"d\" {}\nresource \"clickhousestate_entry\" \"e\" {\n  state_id = \"dev:x\"\n  "+attribute+" = "+tc.payload+"\n}\n")
			output, _ := w.Run(t, "validate", "-json")
			var validated struct {
				Diagnostics []struct {
					diagnostic
					Range struct{ Start struct{ Line int } }
				}
			}
			_, document, _ := strings.Cut(output, "{")
			if err := json.Unmarshal([]byte("{"+document), &validated); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, output)
			}
			got, line := "", 0
			for _, d := range validated.Diagnostics {
				if !strings.Contains(d.Summary, "development overrides") {
					got, line = got+d.String(), d.Range.Start.Line
				}
			}
			begin, detail, _ := strings.Cut(tc.want, "*")
			if !strings.HasPrefix(got, begin) || !strings.Contains(got, detail) || tc.want == "" && got != "" {
				t.Errorf("%s: got %q, want %q", name, got, tc.want)
			}
			if tc.want != "" && line != attributeLine {
				t.Errorf("%s: it points at line %d, want %d: the attribute", name, line, attributeLine)
			}
			if strings.Contains(got, "hunter2") {
				t.Errorf("%s: the payload is in %q", name, got)
			}
		}
	}
}

// What a data source reads is what a resource takes.
func TestEntry_copy(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	s.newTable(t)
	const python = `{"singer_state": {"bookmarks": {"issues": {"lsn": 18446744073709551615, "f": 1.0, "\u00e9": null}}}}`
	s.meltano(t, "staging:a", python, `{"singer_state": {}}`)
	s.run(t, resource.TestStep{
		Config: s.config("data \"clickhousestate_entry\" \"from\" {\n  state_id = \"staging:a\"\n}\n" +
			entry("  completed_state = data.clickhousestate_entry.from.completed_state", "  partial_state = data.clickhousestate_entry.from.partial_state")),
		PostApplyFunc: func() { s.stored(t, python, `{"singer_state": {}}`) },
	})
}
