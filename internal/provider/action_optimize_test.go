package provider

import (
	"strings"
	"testing"
)

// Through the provider's server, as TestBreakLock.
func TestOptimize(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(t *testing.T, s scenario) {
		const optimize = "clickhousestate_optimize"
		cleanup := attrs{"cleanup": true}
		server := s.serve(t, impatient)
		_, diagnostics := server.invoke(t, optimize, nil)
		expect(t, "no table", diagnostics, "Unable to optimize state table", "table "+s.database+"/state does not exist")

		s.newTable(t)
		s.do(t, "SYSTEM STOP MERGES DB.state")
		s.meltano(t, "dev:a", `{"singer_state": {}}`, nil)
		s.meltano(t, "dev:a", `{"singer_state": {}}`, nil)
		s.do(t, "INSERT INTO DB.state (state_id, is_deleted) VALUES ('dev:b', 1)")
		_, diagnostics = server.invoke(t, optimize, nil)
		expect(t, "merges are stopped", diagnostics, "Unable to optimize state table", "SYSTEM START MERGES", "Cancelled merging parts")
		_, diagnostics = server.invoke(t, optimize, cleanup)
		expect(t, "not allowed", diagnostics, "Unable to optimize state table", `allow_experimental_replacing_merge_with_cleanup = "1"`)

		s.do(t, "SYSTEM START MERGES DB.state")
		progress, diagnostics := server.invoke(t, optimize, attrs{"name": "state", "database": s.database})
		expect(t, "optimize", diagnostics, "")
		want := "Merged table " + s.database + "/state: 3 rows in 3 parts (1 live, 1 tombstones, 1 old versions) are now 2 rows in 1 parts (1 live, 1 tombstones, 0 old versions)."
		if len(progress) != 1 || progress[0] != want {
			t.Errorf("it says %q, want %q", progress, want)
		}

		s.do(t, "ALTER TABLE DB.state MODIFY SETTING allow_experimental_replacing_merge_with_cleanup = 1")
		s.foreign(t, "dev:c", foreignLockID, 7)
		_, diagnostics = server.invoke(t, optimize, cleanup)
		expect(t, "while somebody holds", diagnostics, "Unable to optimize state table", `state_id "dev:c"`, "held by a Meltano client")
		if n := s.count(t, "state"); n != 2 {
			t.Errorf("%d rows, want 2: the tombstone stays", n)
		}
		s.unlock(t)
		progress, diagnostics = server.invoke(t, optimize, cleanup)
		expect(t, "cleanup", diagnostics, "")
		if len(progress) != 2 || !strings.Contains(progress[0], "alive again") || !strings.Contains(progress[1], "1 rows in 1 parts (1 live, 0 tombstones, 0 old versions)") {
			t.Errorf("it says %q", progress)
		}
	})
}

// Tables of Meltano's have no tombstones: a clean-up is refused, a merge is not.
func TestOptimize_meltano(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolHTTP)
	peer := s.peer(t)
	for range 2 {
		if err := peer.Set(t.Context(), "dev:a", bookmarks("T0")); err != nil {
			t.Fatal(err)
		}
	}
	server := s.serve(t, impatient)
	_, diagnostics := server.invoke(t, "clickhousestate_optimize", attrs{"cleanup": true})
	expect(t, "cleanup", diagnostics, "Unable to optimize state table", "has no tombstones")
	_, diagnostics = server.invoke(t, "clickhousestate_optimize", nil)
	expect(t, "optimize", diagnostics, "")
	if n := s.count(t, "state"); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}
