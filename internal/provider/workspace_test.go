package provider

import (
	"fmt"
	"os"
	"path/filepath"
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
