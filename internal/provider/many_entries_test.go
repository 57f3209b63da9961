package provider

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestManySingleEntries applies 1,000 entries at Terraform's default parallelism: those in flight share their statements, so
// that they leave few parts behind. The log says in the end what was sent.
func TestManySingleEntries(t *testing.T) {
	const entries = 1000
	s := newScenario(t, protocolNative)
	w := s.workspace(t, fmt.Sprintf(`
resource "clickhousestate_table" "t" {
  name                = "state"
  deletion_protection = false
}

resource "clickhousestate_entry" "e" {
  count           = %d
  state_id        = "dev:${count.index}"
  table           = clickhousestate_table.t.name
  completed_state = jsonencode({ singer_state = { index = count.index } })
}
`, entries))
	log := filepath.Join(t.TempDir(), "log")
	w.Setenv("TF_LOG_PROVIDER", "INFO")
	w.Setenv("TF_LOG_PATH", log)
	succeeds(t, w, "apply", "-auto-approve")
	if rows, claims := s.count(t, "state"), s.count(t, "state_lock"); rows != entries || claims != 0 {
		t.Errorf("%d rows, %d claims", rows, claims)
	}
	for _, table := range []string{"state", "state_lock"} {
		var parts uint64
		row := s.conn.QueryRow(t.Context(), "SELECT count() FROM system.parts WHERE active AND database = ? AND table = ?", s.database, table)
		if err := row.Scan(&parts); err != nil || parts >= 100 {
			t.Errorf("table %s has %d active parts, %v", table, parts, err)
		}
	}
	totals := totals(t, log)
	if claims, written := totals["lock.claim"], totals["entry.create.write"]; claims.Statements == 0 || claims.Statements > entries/2 ||
		claims.RowsWritten != entries || written.RowsWritten != entries {
		t.Errorf("%d claims in %d statements, %d rows in %d", claims.RowsWritten, claims.Statements, written.RowsWritten, written.Statements)
	}
}

// A total is what the log says of one operation.
type total struct{ Statements, RowsWritten int }

// totals reads a log, by operation.
func totals(t *testing.T, log string) map[string]total {
	t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]total{}
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, "statements in all") {
			continue
		}
		fields := map[string]string{}
		for _, field := range strings.Fields(line) {
			if key, value, ok := strings.Cut(field, "="); ok {
				fields[key] = value
			}
		}
		var one total
		if one.Statements, err = strconv.Atoi(fields["statements"]); err == nil {
			one.RowsWritten, err = strconv.Atoi(fields["rows_written"])
		}
		if err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all[fields["operation"]] = one
	}
	return all
}
