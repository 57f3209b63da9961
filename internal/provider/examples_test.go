package provider

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
)

const examplesDir = "../../examples"

// exampleWorkspace makes a workspace with the files of an example beside the export that some of them read. They take the
// connection and the database from the environment, as the documentation says.
func (s scenario) exampleWorkspace(t *testing.T, files string) *acctest.Workspace {
	t.Helper()
	w := acctest.NewWorkspace(t, "")
	copyExample(t, "complete/state-export.json", w)
	copyExample(t, files, w)
	for name, value := range map[string]string{
		"CLICKHOUSE_HOST": s.Host, "CLICKHOUSE_PORT": strconv.Itoa(s.port()), "CLICKHOUSE_PROTOCOL": s.protocol,
		"CLICKHOUSE_USER": s.Username, "CLICKHOUSE_PASSWORD": s.Password,
		"MELTANO_STATE_BACKEND_CLICKHOUSE_SCHEMA": s.database,
	} {
		w.Setenv(name, value)
	}
	return w
}

// copyExample puts the files of an example into a workspace. A main.tf replaces the one that is there.
func copyExample(t *testing.T, pattern string, w *acctest.Workspace) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(examplesDir, pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no example %s: %v", pattern, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(filepath.Join(w.Dir, filepath.Base(file)), content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// export writes the entries of the example's export as Meltano does.
func (s scenario) export(t *testing.T) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(examplesDir, "complete", "state-export.json"))
	if err != nil {
		t.Fatal(err)
	}
	var export map[string]map[string]json.RawMessage
	if err := json.Unmarshal(raw, &export); err != nil {
		t.Fatal(err)
	}
	for id, state := range export {
		s.meltano(t, id, nullIfEmpty(state["completed"]), nullIfEmpty(state["partial"]))
	}
}

// succeed runs Terraform and fails unless it ends well and says all the words.
func succeed(t *testing.T, w *acctest.Workspace, args string, words ...string) string {
	t.Helper()
	output, code := w.Run(t, strings.Fields(args)...)
	if code != 0 {
		t.Fatalf("terraform %s ended with %d:\n%s", args, code, output)
	}
	for _, want := range words {
		if !refused(want).MatchString(output) {
			t.Errorf("terraform %s does not say %q:\n%s", args, want, output)
		}
	}
	return output
}

// The examples of functions and data sources, run as the documentation shows them, on a table that Meltano has written.
func TestExamples(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolHTTP)
	s.newTable(t)
	s.export(t)
	s.exec(t, "INSERT INTO "+s.database+".state (state_id, completed_state, updated_at) VALUES ('prod:tap-old-to-target-b', '{}', '2026-01-01 00:00:00')")
	for example, want := range map[string][]string{
		"functions/state_id":                   nil,
		"functions/parse_state_id":             nil,
		"functions/merge_state":                nil,
		"functions/bookmarks":                  {`"issues" = "2026-11-20T08:14:03Z"`, `"repositories[org=acme, repo=web]" = "2026-11-19T23:59:59Z"`},
		"data-sources/clickhousestate_entry":   {`"replication_key_value" = "2026-11-20T08:14:03Z"`},
		"data-sources/clickhousestate_entries": {"These pipelines have not moved for 24 hours: prod:tap-old-to-target-b, since 2026-01-01T00:00:00.000Z"},
		"data-sources/clickhousestate_locks":   {"locks = []"},
	} {
		t.Run(example, func(t *testing.T) {
			w := s.exampleWorkspace(t, example+"/*")
			succeed(t, w, "apply -auto-approve", want...)
			succeed(t, w, "plan -detailed-exitcode", "No changes")
		})
	}
}
