package provider

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/bookmark"
)

// The tests of this file run the configurations of the guides, which show them from examples/guides, step by step as the
// guides tell, and look for what the guides say that Terraform prints.

const (
	github = "tap-github-to-target-clickhouse"
	stripe = "tap-stripe-to-target-clickhouse"
)

// stores fails unless the entries that are live are these, by their completed states.
func (s scenario) stores(t *testing.T, want map[string]string) {
	t.Helper()
	rows := s.live(t)
	if len(rows) != len(want) {
		t.Errorf("%d live rows, want %d", len(rows), len(want))
	}
	for id, completed := range want {
		if got := text(rows[id].completed); !bookmark.Equal(orEmpty(got), orEmpty(completed)) {
			t.Errorf("%s: stored %s, want %s", id, got, completed)
		}
	}
}

// shown is what a guide shows of Terraform's output, paragraph by paragraph.
func shown(t *testing.T, guide string) (paragraphs []string) {
	t.Helper()
	text, err := os.ReadFile("../../templates/guides/" + guide + ".md.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	_, block, ok := strings.Cut(string(text), "```text\n")
	block, _, closed := strings.Cut(block, "```")
	if !ok || !closed {
		t.Fatalf("the guide %s shows no output", guide)
	}
	for _, paragraph := range strings.Split(strings.TrimSpace(block), "\n\n") {
		paragraphs = append(paragraphs, strings.Join(strings.Fields(paragraph), " "))
	}
	return paragraphs
}

func TestGuide_seed(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	w := s.exampleWorkspace(t, "guides/seed/*")
	w.Setenv("TF_VAR_database", s.database)
	succeed(t, w, "apply -auto-approve", "Apply complete! Resources: 3 added, 0 changed, 0 destroyed.")
	start := map[string]string{
		"staging:" + github: `{"singer_state":{"bookmarks":{"issues":{"replication_key":"updated_at","replication_key_value":"2026-11-01T00:00:00Z"}}}}`,
		"staging:" + stripe: `{"singer_state":{"bookmarks":{"charges":{"created":1793491200}}}}`,
	}
	s.stores(t, start)

	// A pipeline runs, and Terraform runs again.
	moved := `{"singer_state": {"bookmarks": {"charges": {"created": 1796000000}}}}`
	s.meltano(t, "staging:"+stripe, moved, nil)
	succeed(t, w, "apply -auto-approve", "No changes.")
	start["staging:"+stripe] = moved
	s.stores(t, start)

	// What Meltano has cleared starts there again.
	s.meltanoDelete(t, "staging:"+github)
	succeed(t, w, "apply -auto-approve", "Resources: 1 added, 0 changed, 0 destroyed.")
	s.stores(t, start)

	// Terraform forgets, and the bookmarks stay.
	succeed(t, w, "destroy -auto-approve -target=clickhousestate_entry.start", "Resources: 2 destroyed.")
	s.stores(t, start)
}

func TestGuide_adopt(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolHTTP)
	s.peer(t) // the tables are Meltano's own, the lock table as well
	s.export(t)
	id := "prod:" + github
	// others is all that is stored of the other entries, old versions included.
	others := func() (all string) {
		t.Helper()
		err := s.conn.QueryRow(t.Context(), "SELECT toString(groupArray(tuple(*))) FROM (SELECT * FROM "+s.database+".state WHERE state_id != ? ORDER BY ALL)", id).Scan(&all)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := others()
	untouched := func(rows uint64) {
		t.Helper()
		if others() != before || s.count(t, "state FINAL") != rows {
			t.Errorf("something was written")
		}
	}
	w := s.exampleWorkspace(t, "guides/adopt/*")
	w.Setenv("TF_VAR_database", s.database)
	succeed(t, w, "apply -auto-approve", "Resources: 1 imported, 0 added, 0 changed, 0 destroyed.", `"`+id+`",`)

	w.Setenv("TF_VAR_adopt", `["`+id+`", "dev:tap-smoke-test-to-target-jsonl:pr-42"]`)
	succeed(t, w, "apply -auto-approve", "Resources: 2 imported, 0 added, 2 changed, 0 destroyed.", `~ deletion_policy = "delete" -> "retain"`)
	succeed(t, w, "plan -detailed-exitcode", "No changes.")
	untouched(20)
	s.meltano(t, id, `{"singer_state": {"bookmarks": {}}}`, nil)
	succeed(t, w, "plan -detailed-exitcode", "No changes.")

	// Taken out of the list, it is forgotten.
	w.Setenv("TF_VAR_adopt", `["`+id+`"]`)
	succeed(t, w, "apply -auto-approve", "Resources: 0 added, 0 changed, 1 destroyed.")
	untouched(20)

	// A pipeline that was cleared shows up.
	s.meltanoDelete(t, id)
	succeed(t, w, "plan", `clickhousestate_entry.pipeline["`+id+`"] will be created`, "Plan: 1 to add, 0 to change, 0 to destroy.")
	untouched(19)
}

func TestGuide_watch(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolHTTP)
	s.newTable(t)
	w := s.exampleWorkspace(t, "guides/watch/*")
	const fresh = `{"singer_state": {"bookmarks": {"issues": {"replication_key_value": "2999-01-01T00:00:00Z"}, "ids": {"id": 7}}}}`
	succeed(t, w, "plan", "These pipelines have never stored a state: prod:"+github+".")

	old := `{"singer_state": {"bookmarks": {"issues": {"replication_key_value": "2026-01-01T00:00:00Z"}, "ids": {"id": 7}}}}`
	s.exec(t, "INSERT INTO "+s.database+".state (state_id, completed_state, updated_at, version) VALUES (?, ?, '2026-01-01 00:00:00', 1)", "prod:"+github, fresh)
	output := succeed(t, w, "plan", shown(t, "watch")...)
	if strings.Contains(output, "never") || strings.Contains(output, "bookmarks are older") {
		t.Errorf("false alarm:\n%s", output)
	}

	s.meltano(t, "prod:"+github, old, nil)
	succeed(t, w, "plan -json", `"type":"diagnostic"`, "These bookmarks are older than 24 hours")
	output = succeed(t, w, "plan", "These bookmarks are older than 24 hours: prod:"+github+", issues: 2026-01-01T00:00:00Z.")
	if strings.Contains(output, "have not stored") || strings.Contains(output, "ids:") {
		t.Errorf("false alarm:\n%s", output)
	}

	s.meltano(t, "prod:"+github, fresh, nil)
	if output := succeed(t, w, "plan -detailed-exitcode", "No changes."); strings.Contains(output, "Check block assertion failed") {
		t.Errorf("false alarm:\n%s", output)
	}
}

func TestGuide_rewind(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	s.newTable(t)
	s.export(t)
	id := "prod:" + github
	// A run broke off that had read further.
	s.meltano(t, id, text(s.live(t)[id].completed), `{"singer_state": {"bookmarks": {"issues": {"replication_key_value": "2026-11-20T09:00:00Z"}}}}`)
	before := s.live(t)
	w := s.exampleWorkspace(t, "guides/rewind/*")
	succeed(t, w, "apply -auto-approve", "Resources: 1 imported, 0 added, 1 changed, 0 destroyed.")
	succeed(t, w, "plan -detailed-exitcode", "No changes.")

	succeed(t, w, "apply -auto-approve -var since=2026-10-01T00:00:00Z", append(shown(t, "rewind"), "Resources: 0 added, 1 changed, 0 destroyed.")...)
	after := s.live(t)
	for other, row := range before {
		if other != id && after[other].version != row.version {
			t.Errorf("%s was written", other)
		}
	}
	want := strings.Replace(text(before[id].completed), "2026-11-20T08:14:03Z", "2026-10-01T00:00:00Z", 1)
	if got := after[id]; !bookmark.Equal(text(got.completed), want) || got.partial != nil {
		t.Errorf("stored %s and %s, want %s and NULL", text(got.completed), text(got.partial), want)
	}

	// The pipeline runs, and the variable is left out again.
	s.meltano(t, id, strings.Replace(want, "2026-10-01T00:00:00Z", "2026-10-02T00:00:00Z", 1), nil)
	succeed(t, w, "apply -auto-approve", "No changes.")

	if output, code := w.Run(t, "plan", "-var", "since=yesterday"); code == 0 || !strings.Contains(output, "This is no date") {
		t.Errorf("a date that is none is planned:\n%s", output)
	}
}

func TestGuide_promote(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolHTTP)
	s.newTable(t)
	const one, two, theirs = `{"singer_state": {"bookmarks": {"issues": {"replication_key_value": "2026-11-01"}}}}`, `{"singer_state": {"bookmarks": {"charges": 5}}}`, `{"singer_state": {"bookmarks": {"charges": 9}}}`
	s.meltano(t, "staging:"+github, one, `{"singer_state": {"bookmarks": {"issues": {"replication_key_value": "2026-11-02"}}}}`)
	s.meltano(t, "staging:"+stripe+":eu", two, nil)
	s.meltano(t, "prod:"+stripe+":eu", theirs, nil)
	w := s.exampleWorkspace(t, "guides/promote/*")
	succeed(t, w, "apply -auto-approve", "Resources: 2 added, 0 changed, 0 destroyed.", `"issues" = "2026-11-02"`)
	want := map[string]string{
		"staging:" + github: one, "staging:" + stripe + ":eu": two,
		"prod:" + github: strings.Replace(one, "11-01", "11-02", 1), "prod:" + stripe + ":eu": theirs,
	}
	s.stores(t, want)

	// Both go on, each on its own.
	want["staging:"+github] = strings.Replace(one, "11-01", "12-24", 1)
	want["prod:"+github] = strings.Replace(one, "11-01", "11-05", 1)
	s.meltano(t, "staging:"+github, want["staging:"+github], nil)
	s.meltano(t, "prod:"+github, want["prod:"+github], nil)
	succeed(t, w, "apply -auto-approve", "No changes.")
	s.stores(t, want)

	// Cleared, it is promoted once more.
	s.meltanoDelete(t, "prod:"+github)
	want["prod:"+github] = want["staging:"+github]
	succeed(t, w, "apply -auto-approve", "Resources: 1 added, 0 changed, 0 destroyed.")
	s.stores(t, want)

	// A pipeline that is gone from staging stays in prod.
	s.meltanoDelete(t, "staging:"+github)
	delete(want, "staging:"+github)
	succeed(t, w, "apply -auto-approve", "Resources: 0 added, 0 changed, 1 destroyed.")
	s.stores(t, want)
}

func TestGuide_move(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	s.newTable(t)
	w := s.exampleWorkspace(t, "guides/move/main.tf")
	w.Setenv("TF_VAR_database", s.database)
	var before map[string]row
	var previous string
	for _, step := range []struct{ file, want string }{
		{"single.tf", "Resources: 2 added, 0 changed, 0 destroyed."},
		{"bulk.tf", "Resources: 1 imported, 0 added, 1 changed, 0 destroyed."},
		{"single-again.tf", "Resources: 2 imported, 0 added, 0 changed, 0 destroyed."},
	} {
		_ = os.Remove(filepath.Join(w.Dir, previous))
		copyExample(t, "guides/move/"+step.file, w)
		previous = step.file
		succeed(t, w, "apply -auto-approve", step.want)
		succeed(t, w, "plan -detailed-exitcode", "No changes.")
		if before == nil { // another one that the pattern matches
			s.meltano(t, "prod:other", `{"singer_state": {"bookmarks": {"a": 1}}}`, nil)
			before = s.live(t)
		}
		for id, row := range s.live(t) {
			if row.version != before[id].version {
				t.Errorf("%s: %s was written", step.file, id)
			}
		}
		if n := len(s.live(t)); n != 3 {
			t.Errorf("%s: %d live rows, want 3", step.file, n)
		}
	}
}
