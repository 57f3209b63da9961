package provider

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
)

// entriesSaid runs Terraform with -json and returns its diagnostics about entries.
func entriesSaid(t *testing.T, w *acctest.Workspace, wantCode int, args ...string) string {
	t.Helper()
	output, code := w.Run(t, slices.Insert(args, 1, "-json")...)
	var about []string
	for _, d := range diagnostics(t, output) {
		if strings.Contains(d.Summary, "ntry") {
			about = append(about, d.String())
		}
	}
	if code != wantCode {
		t.Errorf("terraform %s ended with %d, want %d: %v", strings.Join(args, " "), code, wantCode, about)
	}
	return strings.Join(about, "\n")
}

// expects fails unless each of the words is in what was said; without words, nothing must be said.
func expects(t *testing.T, what, got string, words ...string) {
	t.Helper()
	for _, want := range words {
		if !strings.Contains(got, want) {
			t.Errorf("%s: it said %q, want %q", what, got, want)
		}
	}
	if len(words) == 0 && got != "" {
		t.Errorf("%s: it said %q, want nothing", what, got)
	}
}

// Everything that takes bookmarks away says so, and on_rewind decides how.
func TestEntry_rewinds(t *testing.T) {
	t.Parallel()
	const (
		newer   = "2026-02-01T00:00:00Z"
		older   = "2026-01-01T00:00:00Z"
		instant = "2026-02-01T01:00:00.000+01:00" // newer, in other words
		line    = "\n  issues: replication_key_value goes from " + newer + " to " + older + " (31 days 0:00:00 back)\n"
		lost    = `State entry "` + entryID + `" would lose all its bookmarks`
	)
	trigger := func(run int) string {
		return fmt.Sprintf("resource \"terraform_data\" \"d\" {\n  input = %d\n}\n", run)
	}
	const (
		triggered = "  lifecycle {\n    replace_triggered_by = [terraform_data.d]\n  }"
		ignored   = "  lifecycle {\n    ignore_changes = [completed_state]\n  }"
	)
	option := func(policy rewindPolicy) string { return fmt.Sprintf("  on_rewind = %q", policy) }
	other := func(more ...string) string {
		return strings.Replace(entry(more...), entryID, "dev:other", 1)
	}
	for _, policy := range []writePolicy{policyEnforce, policySeed} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			s := newScenario(t, protocolNative)
			s.newTable(t)
			write := fmt.Sprintf("  write_policy = %q", policy)
			w := s.workspace(t, trigger(1)+entry(issues(newer), write))
			expects(t, "a create", entriesSaid(t, w, 0, "apply", "-auto-approve"))

			for _, step := range []struct {
				what, config string
				args         string
				code         int
				words        []string
			}{
				{"equal instants", entry(issues(instant), write), "plan", 0, nil},
				{"forward", entry(issues("2026-03-01T00:00:00Z"), write, option(rewindError)), "plan", 0, nil},
				{"back", entry(issues(older), write), "plan", 0, []string{"warning: ", "would be set back", line}},
				{"back, an error", entry(issues(older), write, option(rewindError)), "plan", 1, []string{"error: ", "would be set back", line}},
				{"back, allowed", entry(issues(older), write, option(rewindAllow)), "plan", 0, nil},
				{"emptied", entry(write, `  completed_state = jsonencode({})`), "plan", 0, []string{"warning: " + lost, "full refresh"}},
				{"another state_id", other(issues(newer), write), "plan", 0, []string{"warning: " + lost, "Destroying it"}},
				{"another state_id, an error", other(issues(newer), write, option(rewindError)), "plan", 1, []string{"error: " + lost}},
				{"another state_id, allowed", other(issues(newer), write, option(rewindAllow)), "plan", 0, nil},
				{"a destroy", entry(issues(newer), write), "plan -destroy", 0, []string{"warning: " + lost, "Destroying it"}},
				{"gone from the configuration", "", "plan", 0, []string{"warning: " + lost}},
				{"forced replacement with the same", entry(issues(newer), write), "plan -replace=" + entryE, 0, nil},
				{"forced replacement, back", entry(issues(older), write), "plan -replace=" + entryE, 1, []string{"error: ", "would be set back", line, "change it in place"}},
				{"forced replacement, back, allowed", entry(issues(older), write, option(rewindAllow)), "plan -replace=" + entryE, 0, nil},
				{"forced replacement, nothing declared", entry(write), "plan -replace=" + entryE, 1, []string{"error: " + lost, "change it in place"}},
				{"forced replacement, an error, nothing declared", entry(write, option(rewindError)), "plan -replace=" + entryE, 1, []string{"error: " + lost}},
				{"forced replacement, not known yet", trigger(2) + entry(write, "  completed_state = jsonencode({ singer_state = { a = terraform_data.d.output } })"), "plan -replace=" + entryE, 1, []string{"error: " + lost, "known only after that"}},
				{"triggered replacement, nothing declared", trigger(2) + entry(write, triggered), "plan", 1, []string{"error: " + lost}},
				// Terraform makes the second plan from what is configured, and ignores no changes in it.
				{"forced replacement, changes ignored", entry(issues(older), write, ignored), "plan -replace=" + entryE, 1, []string{"error: ", "would be set back", line}},
			} {
				w.Configure(t, s.config(step.config))
				expects(t, step.what, entriesSaid(t, w, step.code, strings.Fields(step.args)...), step.words...)
			}

			// The row of a seed is read: what the pipeline stored is what would go back.
			s.meltano(t, entryID, issuesState("2026-04-01T00:00:00Z"), nil)
			w.Configure(t, s.config(entry(issues("2026-03-01T00:00:00Z"), write, option(rewindError))))
			expects(t, "behind the pipeline", entriesSaid(t, w, 1, "plan"), "error: ", "from 2026-04-01T00:00:00Z to 2026-03-01T00:00:00Z")

			for what, config := range map[string]string{
				"a seed":            entry(issues(newer), seeds),
				"a seed, an error":  entry(issues(newer), seeds, option(rewindError)),
				"changes ignored":   entry(issues(newer), seeds, ignored),
				"triggered, a seed": trigger(2) + entry(issues(newer), seeds, triggered),
			} {
				args := []string{"plan"}
				if !strings.Contains(config, triggered) {
					args = append(args, "-replace="+entryE)
				}
				w.Configure(t, s.config(config))
				expects(t, "replacement behind the pipeline, "+what, entriesSaid(t, w, 1, args...), "error: ", "from 2026-04-01T00:00:00Z to "+newer)
			}

			// One that is destroyed makes way for one that is there already, and that a seed leaves as it is.
			s.meltano(t, "dev:other", issuesState("2026-04-01T00:00:00Z"), nil)
			w.Configure(t, s.config(other(issues(newer), seeds, option(rewindAllow))))
			expects(t, "another state_id, there already", entriesSaid(t, w, 0, "plan"))

			// A destroy is asked for with the option that was applied.
			w.Configure(t, s.config(entry(issues("2026-05-01T00:00:00Z"), write, option(rewindError))))
			expects(t, "an option", entriesSaid(t, w, 0, "apply", "-auto-approve"))
			expects(t, "a destroy, an error", entriesSaid(t, w, 1, "plan", "-destroy"), "error: "+lost, `apply on_rewind = "warn" or "allow" first`)
			w.Configure(t, s.config(entry(issues("2026-05-01T00:00:00Z"), write, option(rewindError), `  deletion_policy = "retain"`)))
			expects(t, "retain", entriesSaid(t, w, 0, "apply", "-auto-approve"))
			expects(t, "a destroy that retains", entriesSaid(t, w, 0, "plan", "-destroy"))
			w.Configure(t, s.config(other(issues(newer), write)))
			expects(t, "a replacement that retains", entriesSaid(t, w, 0, "plan"))
		})
	}
}

// Terraform plans the replacement of a tainted entry as if nothing were there.
func TestEntry_tainted(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	s.newTable(t)
	w := s.workspace(t, entry(issues("2026-01-01"), seeds))
	succeeds(t, w, "apply", "-auto-approve")
	s.meltano(t, entryID, issuesState("2026-02-01"), nil)
	before := s.live(t)[entryID].version
	succeeds(t, w, "taint", entryE)
	expects(t, "a tainted one", entriesSaid(t, w, 1, "apply", "-auto-approve"), `error: State entry "`+entryID+`" is tainted`, "terraform untaint")
	if got := s.stored(t, issuesState("2026-02-01"), "NULL").version; got != before {
		t.Errorf("version is %d, want %d: it was touched", got, before)
	}
	succeeds(t, w, "untaint", entryE)
	succeeds(t, w, "plan", "-detailed-exitcode")

	// Allowed, and a plain destroy, which says what it takes.
	w.Configure(t, s.config(entry(issues("2026-01-01"), seeds, `  on_rewind = "allow"`)))
	succeeds(t, w, "apply", "-auto-approve")
	succeeds(t, w, "taint", entryE)
	expects(t, "an allowed one", entriesSaid(t, w, 0, "apply", "-auto-approve"))
	s.stored(t, issuesState("2026-01-01"), "NULL")
	w.Configure(t, s.config(entry(issues("2026-01-01"), seeds)))
	succeeds(t, w, "apply", "-auto-approve")
	succeeds(t, w, "taint", entryE)
	expects(t, "a destroy", entriesSaid(t, w, 0, "destroy", "-auto-approve"), "would lose all its bookmarks")
	if got := s.live(t); len(got) != 0 {
		t.Errorf("live rows are %v, want none", got)
	}
}

// A table that was renamed by hand is followed without a refresh.
func TestEntry_renamedByHand(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	s.newTable(t)
	w := s.workspace(t, entry(issues("2026-01-01")))
	succeeds(t, w, "apply", "-auto-approve")
	if err := s.conn.Exec(t.Context(), fmt.Sprintf("RENAME TABLE %[1]s.state TO %[1]s.renamed, %[1]s.state_lock TO %[1]s.renamed_lock", s.database)); err != nil {
		t.Fatal(err)
	}
	w.Configure(t, s.config(entry(issues("2026-01-01"), `  table = "renamed"`)))
	expects(t, "with a refresh", entriesSaid(t, w, 0, "plan", "-out=tfplan"))
	if actions := plannedActions(t, w); actions[entryE] != "create" {
		t.Errorf("planned as %v, want a create: it was forgotten", actions)
	}
	expects(t, "without one", entriesSaid(t, w, 0, "apply", "-auto-approve", "-refresh=false"))
	succeeds(t, w, "plan", "-detailed-exitcode")
}

// What is known only in the apply is compared there.
func TestEntry_rewindsKnownAfterApply(t *testing.T) {
	t.Parallel()
	for _, policy := range []writePolicy{policyEnforce, policySeed} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			s := newScenario(t, protocolNative)
			s.newTable(t)
			const block = "resource \"terraform_data\" \"d\" {\n  input = %q\n  triggers_replace = %q\n}\n"
			config := func(value string) string {
				return fmt.Sprintf(block, value, value) + entry(
					`  completed_state = jsonencode({ singer_state = { bookmarks = { issues = { since = terraform_data.d.output } } } })`,
					fmt.Sprintf("  write_policy = %q", policy), `  on_rewind = "error"`)
			}
			w := s.workspace(t, config("2026-02-01"))
			succeeds(t, w, "apply", "-auto-approve")
			before := s.live(t)[entryID]
			w.Configure(t, s.config(config("2026-01-01")))
			expects(t, "the plan", entriesSaid(t, w, 0, "plan", "-out=tfplan"))
			expects(t, "the apply", entriesSaid(t, w, 1, "apply", "tfplan"), "would be set back", "from 2026-02-01 to 2026-01-01")
			if got := s.live(t)[entryID]; got.version != before.version {
				t.Errorf("stored is version %d, want %d as before", got.version, before.version)
			}
		})
	}
}

// Where options are known only in the apply, it does what they say then.
func TestEntry_policyKnownAfterApply(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	s.newTable(t)
	config := func(policy string) string {
		return fmt.Sprintf("resource \"terraform_data\" \"d\" {\n  input = %[1]q\n  triggers_replace = %[1]q\n}\n", policy) +
			entry(issues("T0"), `  write_policy = terraform_data.d.output`)
	}
	w := s.workspace(t, config("seed"))
	s.meltano(t, entryID, issuesState("T5"), nil)
	expects(t, "a create", entriesSaid(t, w, 0, "apply", "-auto-approve"), "was there already")
	before := s.stored(t, issuesState("T5"), "NULL").version
	w.Configure(t, s.config(config("enforce")))
	expects(t, "a switch", entriesSaid(t, w, 0, "apply", "-auto-approve"), "will be held to its declaration")
	if got := s.stored(t, issuesState("T5"), "NULL").version; got != before {
		t.Errorf("version is %d, want %d: it was touched", got, before)
	}
	const partial = `{"singer_state":{"b":1}}` // is not declared, and shows in the state where that holds the row
	s.meltano(t, entryID, issuesState("T0"), partial)
	expects(t, "no drift", entriesSaid(t, w, 0, "apply", "-auto-approve"))
	w.Configure(t, s.config(config("seed")))
	expects(t, "a switch back", entriesSaid(t, w, 0, "apply", "-auto-approve"), "keeps what is stored")
	s.stored(t, issuesState("T0"), partial)
	succeeds(t, w, "plan", "-detailed-exitcode")
}
