package provider

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

// decisionBlock is a resource with an instance for each decision about an operation.
func decisionBlock(op, completed string, more ...string) string {
	var keys []string
	for _, d := range decisions {
		if d.op == op {
			keys = append(keys, fmt.Sprintf("%q", d.key()))
		}
	}
	return fmt.Sprintf(`resource "clickhousestate_entry" %q {
  for_each        = toset([%s])
  state_id        = each.key
  write_policy    = split(" ", each.key)[0]
  completed_state = %q
%s
}
`, op, strings.Join(keys, ", "), completed, strings.Join(more, "\n"))
}

func TestEntry_decisions(t *testing.T) {
	t.Parallel()
	for layout, protocol := range map[statestore.Layout]string{
		statestore.LayoutVersioned: protocolNative,
		statestore.LayoutMeltano:   protocolHTTP,
	} {
		t.Run(string(layout), func(t *testing.T) {
			t.Parallel()
			s := newScenario(t, protocol)
			s.layout = layout
			s.newTable(t)
			t.Run("destroy", s.decideDestroys)
			t.Run("others", s.decideOthers)
		})
	}
}

// decideDestroys has a workspace of its own: it destroys everything.
func (s scenario) decideDestroys(t *testing.T) {
	w := s.workspace(t, decisionBlock(opDestroy, declared))
	succeeds(t, w, "apply", "-auto-approve")
	s.decide(t, w, func(d decision) bool { return d.op == opDestroy }, "-destroy")
}

func (s scenario) decideOthers(t *testing.T) {
	w := s.workspace(t, decisionBlock(opRefresh, declared)+decisionBlock(opUpdate, declared)+decisionBlock(opIgnoreChanges, declared))
	succeeds(t, w, "apply", "-auto-approve")
	w.Configure(t, s.config(decisionBlock(opCreate, declared)+decisionBlock(opRefresh, declared)+decisionBlock(opUpdate, again)+
		decisionBlock(opIgnoreChanges, again, `  deletion_policy = "retain"`, "  lifecycle {\n    ignore_changes = [completed_state]\n  }")))
	s.decide(t, w, func(d decision) bool { return d.op != opDestroy })
}

// decide plans and applies, with what others store before and in between, and compares with the decisions.
func (s scenario) decide(t *testing.T, w *acctest.Workspace, about func(decision) bool, args ...string) {
	t.Helper()
	want := slices.DeleteFunc(slices.Clone(decisions), func(d decision) bool { return !about(d) })
	for _, d := range want {
		s.prepare(t, d)
	}
	planned := succeeds(t, w, append([]string{"plan", "-json", "-out=tfplan"}, args...)...)
	actions := plannedActions(t, w)
	for _, d := range want {
		if d.row == rowMoved {
			s.meltano(t, d.key(), theirs, left)
		}
	}
	before := s.live(t)
	applied, code := w.Run(t, "apply", "-json", "tfplan")
	if code != 1 {
		t.Errorf("apply ended with %d, want 1 for the decisions that fail:\n%s", code, applied)
	}
	said, live := diagnosed(t, planned+applied), s.live(t)
	for _, d := range want {
		d.check(t, actions[d.address()], said, before, live)
		if s.layout == statestore.LayoutVersioned {
			tombstones := s.count(t, fmt.Sprintf("state WHERE is_deleted = 1 AND state_id = '%s'", d.key()))
			if want := d.row == rowTombstone || d.action == "delete" && !d.fails; (tombstones == 1) != want && d.stored == gone || tombstones > 1 {
				t.Errorf("%s: %d tombstones, want one: %t", d.key(), tombstones, want)
			}
		}
	}
	if len(actions) > len(want) {
		t.Errorf("%d resources are planned, want no more than %d", len(actions), len(want))
	}
	if locks := s.count(t, "state_lock"); locks != 0 {
		t.Errorf("%d claims are left", locks)
	}
}

// prepare stores what the plan of a decision should find.
func (s scenario) prepare(t *testing.T, d decision) {
	t.Helper()
	switch row := d.row; {
	case row == rowAbsent, row == rowTombstone && s.layout == statestore.LayoutMeltano: // which knows no tombstones
		s.meltanoDelete(t, d.key())
	case row == rowTombstone:
		s.insert(t, "(state_id, is_deleted)", d.key(), uint8(1))
	case row == rowLiveEqual:
		s.meltano(t, d.key(), rewrote, d.partial())
	case row == rowLiveDifferent:
		s.meltano(t, d.key(), theirs, d.partial())
	}
}

// left is what a broken-off run has left. No decision declares it, so none may touch it.
const left = `{"singer_state": {"bookmarks": {"pulls": {"since": 1}}}}`

// partial is what is stored of it. A create takes over only what is as declared.
func (d decision) partial() any {
	if d.op == opCreate && d.row == rowLiveEqual {
		return nil
	}
	return left
}

// check compares what was planned, said and stored with the decision: both payloads, and the version, which changes where a
// row is written, and only there.
func (d decision) check(t *testing.T, action string, said map[string]string, before, live map[string]row) {
	t.Helper()
	if action != d.action {
		t.Errorf("%s: planned as %q, want %q", d.key(), action, d.action)
	}
	stored := gone
	if found, ok := live[d.key()]; ok {
		stored = text(found.completed)
	}
	if stored != d.stored {
		t.Errorf("%s: stored is %s, want %s", d.key(), stored, d.stored)
	}
	partial := "NULL"
	if was, ok := before[d.key()]; ok {
		partial = text(was.partial)
		written := d.stored == declared || d.stored == again
		if now, ok := live[d.key()]; ok && (now.version != was.version) != written {
			t.Errorf("%s: version %d became %d, want it written: %t", d.key(), was.version, now.version, written)
		}
		if want, ok := d.partial().(string); ok && partial != want {
			t.Errorf("%s: %s was left, want %s: the test proves nothing", d.key(), partial, want)
		}
	}
	if found, ok := live[d.key()]; ok && text(found.partial) != partial {
		t.Errorf("%s: the partial state is %s, want %s", d.key(), text(found.partial), partial)
	}
	diagnostics := said[d.key()]
	if !strings.Contains(diagnostics, d.says) || d.says == "" && diagnostics != "" {
		t.Errorf("%s: it said %q, want %q", d.key(), diagnostics, d.says)
	}
	if failed := strings.Contains(diagnostics, "error: "); failed != d.fails {
		t.Errorf("%s: it failed: %t, want %t; it said %q", d.key(), failed, d.fails, diagnostics)
	}
}

// diagnosed returns the diagnostics that Terraform printed with -json, by the decisions that they are about.
func diagnosed(t *testing.T, output string) map[string]string {
	t.Helper()
	said := map[string]string{}
	for _, what := range diagnostics(t, output) {
		for _, d := range decisions {
			if quoted := fmt.Sprintf("%q", d.key()); strings.Contains(what.Summary+what.Detail, quoted) {
				said[d.key()] += what.String() + "\n"
			}
		}
	}
	return said
}
