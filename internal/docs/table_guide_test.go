package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

// storyStep is a block of SQL in the guide and the row of numbers that follows it.
var storyStep = regexp.MustCompile("(?s)```sql\n([^`]*?)```\n\n\\| live_entries [^\n]*\n\\|[-|]*\n(\\|[^\n]*)\n")

// TestTableGuide runs the story of the guide, statement by statement, and compares the numbers that it shows with those
// of the data source and of the guide's own queries.
func TestTableGuide(t *testing.T) {
	guide, err := os.ReadFile("../../templates/guides/table.md")
	if err != nil {
		t.Fatal(err)
	}
	endpoint, conn, database := acctest.Server(t), acctest.Conn(t), acctest.Database(t)
	store, err := statestore.Open(statestore.Config{Connection: statestore.Connection{
		Host: endpoint.Host, Port: endpoint.NativePort, Username: endpoint.Username, Password: endpoint.Password,
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close(t.Context()) })
	if _, _, err := store.CreateTable(t.Context(), statestore.TableSpec{Database: database, Name: "state"}); err != nil {
		t.Fatal(err)
	}
	ours := strings.NewReplacer("meltano.state", database+".state", "'meltano'", "'"+database+"'")
	_, queries, _ := strings.Cut(string(guide), "```sql\nSELECT")
	queries, _, _ = strings.Cut("SELECT"+queries, "```")
	count, parts, ok := strings.Cut(ours.Replace(queries), ";\n")
	if !ok {
		t.Fatalf("no two queries: %q", queries)
	}

	steps := storyStep.FindAllStringSubmatch(string(guide), -1)
	if len(steps) != 6 {
		t.Fatalf("%d steps, want 6", len(steps))
	}
	for i, step := range steps {
		for statement := range strings.SplitSeq(strings.TrimSpace(ours.Replace(step[1])), ";\n") {
			if err := conn.Exec(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
		h, err := store.Health(t.Context(), statestore.TableIdentity{Database: database, Name: "state"})
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(h.LiveEntries, h.Tombstones, h.RawRows, h.UnmergedVersions, h.ActiveParts, h.Converged())
		if want := strings.Join(strings.Fields(strings.ReplaceAll(step[2], "|", " ")), " "); got != want {
			t.Errorf("step %d: the data source says %s, the guide %s", i+1, got, want)
		}
		var raw, live, active, bytes uint64
		var tombstones, unmerged int64
		if err := conn.QueryRow(t.Context(), count).Scan(&live, &tombstones, &raw, &unmerged); err != nil {
			t.Fatal(err)
		}
		if err := conn.QueryRow(t.Context(), parts).Scan(&active, &bytes); err != nil {
			t.Fatal(err)
		}
		if byHand := fmt.Sprint(live, tombstones, raw, unmerged, active, h.Converged()); byHand != got || bytes != h.BytesOnDisk {
			t.Errorf("step %d: the guide's queries say %s and %d bytes, the data source %s and %d", i+1, byHand, bytes, got, h.BytesOnDisk)
		}
	}
}
