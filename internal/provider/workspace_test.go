package provider

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
)

// workspace makes a workspace for a configuration of the scenario.
func (s scenario) workspace(t *testing.T, body string, more ...string) *acctest.Workspace {
	t.Helper()
	return acctest.NewWorkspace(t, s.config(body, more...))
}

// A gate is a step of an apply that waits until the test opens it.
type gate struct{ name, reached, opened string }

func newGate(t *testing.T, name string) gate {
	t.Helper()
	dir := t.TempDir()
	return gate{name: name, reached: filepath.Join(dir, "reached"), opened: filepath.Join(dir, "opened")}
}

// block is the configuration of the gate. It opens by itself when the test is over.
func (g gate) block(dependsOn ...string) string {
	return fmt.Sprintf(`resource "terraform_data" %[1]q {
  provisioner "local-exec" {
    command = "touch '%[2]s'; while [ -e '%[2]s' ] && [ ! -e '%[3]s' ]; do sleep 0.1; done"
  }
  depends_on = [%[4]s]
}
`, g.name, g.reached, g.opened, strings.Join(dependsOn, ", "))
}

// await waits until the apply has come to the gate.
func (g gate) await(t *testing.T, apply *acctest.Command) {
	t.Helper()
	await(t, time.Minute, g.name+" is reached", func() bool {
		if !apply.Running() {
			output, _ := apply.Wait(t)
			t.Fatalf("Terraform ended before %s:\n%s", g.name, output)
		}
		_, err := os.Stat(g.reached)
		return err == nil
	})
}

func (g gate) open(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(g.opened, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// await waits for a condition, and returns how long it took.
func await(t *testing.T, limit time.Duration, what string, condition func() bool) time.Duration {
	t.Helper()
	start := time.Now()
	for !condition() {
		if time.Since(start) > limit {
			t.Fatalf("after %s still not: %s", limit, what)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return time.Since(start)
}

// signal sends a signal to processes.
func signal(t *testing.T, what os.Signal, to ...*os.Process) {
	t.Helper()
	for _, process := range to {
		if err := process.Signal(what); err != nil {
			t.Fatal(err)
		}
	}
}

// succeeds runs Terraform, which must succeed, and returns what it printed.
func succeeds(t *testing.T, w *acctest.Workspace, args ...string) string {
	t.Helper()
	output, code := w.Run(t, args...)
	if code != 0 {
		t.Fatalf("terraform %s ended with %d:\n%s", strings.Join(args, " "), code, output)
	}
	return output
}

// plannedActions returns the actions of the plan in tfplan by address.
func plannedActions(t *testing.T, w *acctest.Workspace) map[string]string {
	t.Helper()
	output := succeeds(t, w, "show", "-json", "tfplan")
	_, document, _ := strings.Cut(output, "{") // a warning may come first
	var plan struct {
		Changes []struct {
			Address string
			Change  struct{ Actions []string }
		} `json:"resource_changes"`
	}
	if err := json.Unmarshal([]byte("{"+document), &plan); err != nil {
		t.Fatalf("read the plan: %v\n%s", err, output)
	}
	actions := map[string]string{}
	for _, change := range plan.Changes {
		actions[change.Address] = strings.Join(change.Change.Actions, " ")
	}
	return actions
}

// A diagnostic is one that Terraform printed.
type diagnostic struct{ Severity, Summary, Detail string }

func (d diagnostic) String() string { return d.Severity + ": " + d.Summary + ": " + d.Detail }

// diagnostics returns what Terraform printed with -json.
func diagnostics(t *testing.T, output string) []diagnostic {
	t.Helper()
	var all []diagnostic
	for line := range strings.Lines(output) {
		if !strings.Contains(line, `"type":"diagnostic"`) {
			continue
		}
		var message struct{ Diagnostic diagnostic }
		if err := json.Unmarshal([]byte(line), &message); err != nil {
			t.Fatalf("read a diagnostic: %v\n%s", err, line)
		}
		all = append(all, message.Diagnostic)
	}
	return all
}

// matches fails unless a pattern is found in a text.
func matches(t *testing.T, text, pattern string) {
	t.Helper()
	if !regexp.MustCompile(pattern).MatchString(text) {
		t.Errorf("%s is not in\n%s", pattern, text)
	}
}
