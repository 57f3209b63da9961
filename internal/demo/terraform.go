package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

const (
	// version is what the demo's build calls itself.
	version = "0.0.1"
	// planChanges is the exit code of `terraform plan -detailed-exitcode` for a plan that is not empty.
	planChanges = 2
	// interruptTimeout is how long Terraform may take to end after it was interrupted, before it is killed.
	interruptTimeout = 20 * time.Second
)

// terraform runs Terraform in a copy of the example, with the provider that was built from this source.
type terraform struct {
	binary string
	// dir is where the configuration is, and where Terraform keeps its files.
	dir string
	env []string
}

// prepareTerraform builds the provider, and lays everything out under the work folder.
func prepareTerraform(ctx context.Context, work string) (terraform, error) {
	binary, err := exec.LookPath("terraform")
	if err != nil {
		return terraform{}, errors.New("no terraform on the PATH: install Terraform 1.0 or newer")
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return terraform{}, err
	}
	mirror := filepath.Join(work, "mirror")
	plugin := filepath.Join(mirror, "registry.terraform.io", "clickhousestate", "clickhousestate", version,
		runtime.GOOS+"_"+runtime.GOARCH, "terraform-provider-clickhousestate_v"+version)
	build := exec.CommandContext(ctx, "go", "build", "-ldflags", "-X main.version="+version, "-o", plugin, ".")
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		return terraform{}, fmt.Errorf("build the provider: %w\n%s", err, output)
	}

	// An explicit mirror and nothing else: init asks no registry.
	config := filepath.Join(work, "terraform.rc")
	if err := os.WriteFile(config, fmt.Appendf(nil, "provider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", mirror), 0o600); err != nil {
		return terraform{}, fmt.Errorf("write Terraform's configuration: %w", err)
	}
	// A copy, so that Terraform's own files do not end up in the source.
	dir := filepath.Join(work, "complete")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "examples", "complete"))); err != nil {
		return terraform{}, fmt.Errorf("copy the example: %w", err)
	}
	return terraform{binary: binary, dir: dir, env: append(environWithout("TF_", "CLICKHOUSE_", "MELTANO_"),
		"TF_CLI_CONFIG_FILE="+config,
		"CHECKPOINT_DISABLE=1", // Terraform would ask the network for news
		"TF_CLI_ARGS=-no-color -input=false",
		"TF_IN_AUTOMATION=1", // no advice on what to type next
	)}, nil
}

// run runs Terraform and returns what it printed. Another exit code than the expected one is an error that shows it.
// When the context is done, Terraform is interrupted, so that it can end in good order.
func (t terraform) run(ctx context.Context, exitCode int, args ...string) (output string, err error) {
	var printed bytes.Buffer
	cmd := exec.CommandContext(ctx, t.binary, args...)
	cmd.Dir, cmd.Env = t.dir, t.env
	cmd.Stdout, cmd.Stderr = &printed, &printed
	// Out of this process's group: a Ctrl-C in the terminal would reach Terraform twice, which then ends at once.
	cmd.SysProcAttr = ownProcessGroup()
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = interruptTimeout

	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil && !errors.As(err, &exit):
		return "", fmt.Errorf("run terraform %s: %w", args[0], err)
	case cmd.ProcessState.ExitCode() != exitCode:
		return "", fmt.Errorf("terraform %s ended with %d, expected %d:\n%s", args[0], cmd.ProcessState.ExitCode(), exitCode, &printed)
	}
	return printed.String(), nil
}

// moduleRoot is where the provider's source is.
func moduleRoot(ctx context.Context) (string, error) {
	goMod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the source: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(goMod))), nil
}

// environWithout is our environment without the variables that would bend what is shown.
func environWithout(prefixes ...string) []string {
	var env []string
	for _, variable := range os.Environ() {
		keep := true
		for _, prefix := range prefixes {
			keep = keep && !strings.HasPrefix(variable, prefix)
		}
		if keep {
			env = append(env, variable)
		}
	}
	return env
}
