package acctest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Workspace is a folder with a configuration, and the real Terraform with the real provider, built from this source.
// It is for what needs processes: signals, crashes, several at a time. There is no need for `terraform init`.
type Workspace struct {
	// Dir is the folder.
	Dir string
	env []string
}

// NewWorkspace makes a workspace that lives as long as the test.
func NewWorkspace(tb testing.TB, config string) *Workspace {
	tb.Helper()
	w := &Workspace{Dir: tb.TempDir()}
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, "TF_") && !strings.HasPrefix(name, "CLICKHOUSE_") && !strings.HasPrefix(name, "MELTANO_") {
			w.env = append(w.env, variable)
		}
	}
	w.env = append(w.env, "CHECKPOINT_DISABLE=1", "TF_CLI_ARGS=-no-color")
	w.Override(tb, Provider(tb))
	w.Configure(tb, config)
	return w
}

// Override makes the commands that start from now on use another program as the provider.
func (w *Workspace) Override(tb testing.TB, program string) {
	tb.Helper()
	settings := filepath.Join(w.Dir, "terraform.rc")
	w.write(tb, settings, fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"clickhousestate/clickhousestate\" = %q\n  }\n}\n", filepath.Dir(program)))
	w.Setenv("TF_CLI_CONFIG_FILE", settings)
}

// Provider is the path of the provider, built from this source once for all tests of the test binary.
func Provider(tb testing.TB) string {
	tb.Helper()
	built.once.Do(func() { built.dir, built.err = build() })
	if built.err != nil {
		tb.Fatal(built.err)
	}
	return filepath.Join(built.dir, programName)
}

const programName = "terraform-provider-clickhousestate"

// Setenv sets a variable for the commands that start from now on, whatever it was before.
func (w *Workspace) Setenv(name, value string) {
	w.env = append(w.env, name+"="+value)
}

// Configure replaces the configuration.
func (w *Workspace) Configure(tb testing.TB, config string) {
	tb.Helper()
	w.write(tb, filepath.Join(w.Dir, "main.tf"), `terraform {
  required_providers {
    clickhousestate = {
      source = "clickhousestate/clickhousestate"
    }
  }
}
`+config)
}

func (w *Workspace) write(tb testing.TB, name, content string) {
	tb.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// Run runs Terraform to its end, and returns what it printed and its exit code.
func (w *Workspace) Run(tb testing.TB, args ...string) (output string, exitCode int) {
	tb.Helper()
	return w.Start(tb, args...).Wait(tb)
}

// Start starts Terraform. Whatever still runs at the end of the test is interrupted, and killed if that does not help.
func (w *Workspace) Start(tb testing.TB, args ...string) *Command {
	tb.Helper()
	terraform := cmp.Or(os.Getenv("TF_ACC_TERRAFORM_PATH"), "terraform")
	c := &Command{done: make(chan struct{}), Cmd: exec.Command(terraform, args...)}
	c.Dir, c.Env, c.Stdout, c.Stderr = w.Dir, w.env, &c.printed, &c.printed
	if err := c.Cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	go func() {
		c.err = c.Cmd.Wait()
		close(c.done)
	}()
	tb.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt) // it may have ended
		select {
		case <-c.done:
		case <-time.After(20 * time.Second):
			_ = c.Process.Kill()
			<-c.done
		}
	})
	return c
}

// A Command is a Terraform that runs.
type Command struct {
	*exec.Cmd
	printed bytes.Buffer
	done    chan struct{}
	err     error
}

// Running tells whether it has not ended yet.
func (c *Command) Running() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// Wait waits for its end, and returns what it printed and its exit code.
func (c *Command) Wait(tb testing.TB) (output string, exitCode int) {
	tb.Helper()
	<-c.done
	if c.err != nil && !errors.As(c.err, new(*exec.ExitError)) {
		tb.Fatal(c.err)
	}
	return c.printed.String(), c.ProcessState.ExitCode()
}

// built is the provider's binary, which all workspaces of the test binary share.
var built struct {
	once sync.Once
	dir  string
	err  error
}

// build builds the provider into a folder of its own.
func build() (dir string, err error) {
	goMod, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the source: %w", err)
	}
	if dir, err = os.MkdirTemp("", "clickhousestate-test-"); err != nil {
		return "", fmt.Errorf("make a folder for the provider: %w", err)
	}
	command := exec.Command("go", "build", "-o", filepath.Join(dir, programName), ".")
	command.Dir = filepath.Dir(strings.TrimSpace(string(goMod)))
	if output, err := command.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("build the provider: %w\n%s", err, output)
	}
	return dir, nil
}

// removeBuilt removes what build has made.
func removeBuilt() error {
	if built.dir == "" {
		return nil
	}
	return os.RemoveAll(built.dir)
}
