package provider

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// Through the provider's server, as TestBreakLock.
func TestClear(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(t *testing.T, s scenario) {
		const clear = "clickhousestate_clear"
		s.newTable(t)
		server := s.serve(t, impatient)
		for _, id := range hostile {
			s.meltano(t, id, `{"singer_state": {}}`, nil)
			s.meltano(t, "pr_42:"+id, `{"singer_state": {}}`, nil)
		}
		s.meltano(t, "prX42:neighbour", `{"singer_state": {}}`, nil)
		all := len(s.live(t))

		for name, tc := range map[string]struct {
			config attrs
			want   []string
		}{
			"no pattern":    {nil, []string{"Missing Configuration for Required Attribute"}},
			"empty pattern": {attrs{"pattern": ""}, []string{"string length must be at least 1"}},
			"other table":   {attrs{"pattern": "*", "table": "other"}, []string{"Unable to clear state entries", `Tried to clear the entries "*" in table ` + s.database + "/other on ", "does not exist"}},
		} {
			expect(t, name, server.planAction(t, clear, tc.config), tc.want[0], tc.want[1:]...)
		}

		// The plan tells what it would do, and does nothing.
		said := server.planAction(t, clear, attrs{"pattern": "pr_42:*"})
		if len(said) != 1 || said[0].Severity != tfprotov6.DiagnosticSeverityWarning ||
			said[0].Summary != fmt.Sprintf(`Clearing "pr_42:*" deletes the bookmarks of %d pipelines`, len(hostile)) ||
			!refused(fmt.Sprintf("%q", "pr_42:"+hostile["quote"])).MatchString(said[0].Detail) {
			t.Errorf("the plan says %v", said)
		}
		if said := server.planAction(t, clear, attrs{"pattern": "*"}); len(said) != 1 || !refused(fmt.Sprintf("and %d more", all-20)).MatchString(said[0].Detail) {
			t.Errorf("the plan says %v", said)
		}
		expect(t, "a plan of nothing", server.planAction(t, clear, attrs{"pattern": "nothing*"}), "")
		expect(t, "a plan of what is not known", server.planAction(t, clear, attrs{"pattern": unknown}), "")
		if n := len(s.live(t)); n != all {
			t.Fatalf("%d are live after plans, want %d", n, all)
		}

		busy := "pr_42:" + hostile["wildcards"]
		s.foreign(t, busy, foreignLockID, 0)
		progress, diagnostics := server.invoke(t, clear, attrs{"pattern": "pr_42:*"})
		expect(t, "busy", diagnostics, "Unable to clear state entries", `state_id `+" "+hclQuote(busy), "lock_id   "+foreignLockID,
			fmt.Sprintf("0 of %d entries are done", len(hostile)))
		if len(progress) != 0 || len(s.live(t)) != all {
			t.Errorf("it says %q, and %d are live", progress, len(s.live(t)))
		}
		s.unlock(t)

		progress, diagnostics = server.invoke(t, clear, attrs{"pattern": "pr_42:*", "database": s.database, "table": "state"})
		expect(t, "clear", diagnostics, "")
		if want := fmt.Sprintf(`Deleted %d entries, all that matched "pr_42:*" in table %s/state.`, len(hostile), s.database); len(progress) != 1 || progress[0] != want {
			t.Errorf("it says %q, want %q", progress, want)
		}
		left := slices.Sorted(maps.Keys(s.live(t)))
		if want := slices.Sorted(maps.Values(hostile)); !slices.Equal(slices.DeleteFunc(left, func(id string) bool { return id == "prX42:neighbour" }), want) {
			t.Errorf("left %q, want %q and the neighbour", left, want)
		}
		if n := s.count(t, "state WHERE is_deleted = 1"); n != uint64(len(hostile)) {
			t.Errorf("%d tombstones, want %d", n, len(hostile))
		}
		if claims := s.claims(t); len(claims) != 0 {
			t.Errorf("claims are left: %v", claims)
		}
		progress, diagnostics = server.invoke(t, clear, attrs{"pattern": "pr_42:*"})
		expect(t, "again", diagnostics, "")
		if len(progress) != 1 || !refused("Deleted 0 entries").MatchString(progress[0]) {
			t.Errorf("it says %q", progress)
		}
	})
}

// A version from the future is warned of: what a pipeline stores stays hidden behind the tombstone.
func TestClear_ahead(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	s.newTable(t)
	s.meltano(t, "dev:a", `{}`, nil)
	s.exec(t, "INSERT INTO "+s.database+".state (state_id, version) SELECT 'dev:b', toUnixTimestamp64Micro(now64(6)) + 600000000")
	_, diagnostics := s.serve(t, nil).invoke(t, "clickhousestate_clear", attrs{"pattern": "dev:*"})
	if len(diagnostics) != 1 || diagnostics[0].Severity != tfprotov6.DiagnosticSeverityWarning ||
		!refused(`State entry "dev:b" hides what Meltano writes until `).MatchString(diagnostics[0].Summary) {
		t.Errorf("it says %v", diagnostics)
	}
}
