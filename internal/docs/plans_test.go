package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

// TestReadmePlans runs the plans that the README shows, and compares every character. The versions are the README's: the
// rows are written as somebody else's, and nothing is applied that writes one.
func TestReadmePlans(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(text)
	server, database := acctest.Server(t), acctest.Database(t)
	newStateTable(t, server, database)
	const state = `{"singer_state": {"bookmarks": {"issues": {"since": "%s"}, "pull_requests": {"since": "2026-01-01T00:00:00Z"}}}}`
	ran := func(at time.Time, issues string) {
		t.Helper()
		err := acctest.Conn(t).Exec(t.Context(), "INSERT INTO "+database+".state (state_id, completed_state, updated_at, version) VALUES (?, ?, ?, ?)",
			"prod:tap-github-to-target-clickhouse", fmt.Sprintf(state, issues), at, uint64(at.UnixMicro()))
		if err != nil {
			t.Fatal(err)
		}
	}
	config := func(resource string) string {
		return fmt.Sprintf("provider \"clickhousestate\" {\n  host     = %q\n  port     = %d\n  username = %q\n  password = %q\n  database = %q\n}\n\n",
			server.Host, server.NativePort, server.Username, server.Password, database) + resource
	}
	declared := codeBlock(t, readme, "What a plan shows", "terraform")

	ran(time.Date(2026, 1, 1, 2, 0, 0, 0, time.UTC), "2026-01-01T00:00:00Z")
	w := acctest.NewWorkspace(t, config(declared+fmt.Sprintf("import {\n  to = clickhousestate_entry.github\n  id = \"%s/state/prod:tap-github-to-target-clickhouse\"\n}\n", database)))
	if output, code := w.Run(t, "apply", "-auto-approve"); code != 0 {
		t.Fatalf("import: %s", output)
	}
	plan := func(resource string) string {
		t.Helper()
		w.Configure(t, config(resource))
		output, _ := w.Run(t, "plan")
		return transcript(output, database)
	}
	compare := func(heading, want string) {
		t.Helper()
		if got := codeBlock(t, readme, heading, "text"); got != want {
			t.Errorf("under %q, the README has\n%s\nbut Terraform printed\n%s", heading, got, want)
		}
	}

	ran(time.Date(2026, 2, 1, 2, 0, 0, 0, time.UTC), "2026-02-01T00:00:00Z")
	compare("A pipeline has run since", plan(declared))
	compare("A plan that must not set back", plan(strings.Replace(declared, "  completed_state", "  on_rewind = \"error\"\n\n  completed_state", 1)))
}

// codeBlock returns the first code block of a language behind a heading.
func codeBlock(t *testing.T, text, heading, language string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, heading)
	_, rest, opened := strings.Cut(rest, "```"+language+"\n")
	content, _, closed := strings.Cut(rest, "```\n")
	if !found || !opened || !closed {
		t.Fatalf("no block of %s under %q", language, heading)
	}
	return content
}

// transcript is what Terraform printed of a plan, from its first change or error on, and without its hint at -out.
func transcript(output, database string) string {
	output, _, _ = strings.Cut(output, "\n─────")
	for _, first := range []string{"\n  # ", "\nError: "} {
		if at := strings.Index(output, first); at >= 0 {
			output = output[at+1:]
			break
		}
	}
	return strings.TrimRight(strings.ReplaceAll(output, database, "meltano"), "\n") + "\n"
}

func newStateTable(t *testing.T, server acctest.Endpoint, database string) {
	t.Helper()
	store, err := statestore.Open(statestore.Config{Connection: statestore.Connection{
		Host: server.Host, Port: server.NativePort, Username: server.Username, Password: server.Password,
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close(t.Context()) }()
	if _, _, err := store.CreateTable(t.Context(), statestore.TableSpec{Database: database, Name: "state"}); err != nil {
		t.Fatal(err)
	}
}
