package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// FetchEngine makes sure that there is an engine and returns it: the one that [FindEngine] finds, or else the one that npm
// downloads (180 MB; 570 MB unpacked) into the repository's folder .engine. Nothing stays behind of a download that failed
// or was cancelled. Every error is one line.
func FetchEngine(ctx context.Context) (Engine, error) {
	engine, err := FindEngine()
	if err == nil || os.Getenv(EngineEnv) != "" {
		return engine, err
	}
	root, err := moduleRoot()
	if err != nil {
		return Engine{}, fmt.Errorf("fetch the engine: %w", err)
	}
	path := enginePath(root)
	if err := download(ctx, path); err != nil {
		return Engine{}, fmt.Errorf("fetch the engine: %w", err)
	}
	return Engine{Path: path, Library: true}, nil
}

// download lets npm install into a folder of its own and moves the library to its place when it is complete.
func download(ctx context.Context, path string) error {
	name, err := npmPackage(runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return err
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		return fmt.Errorf("npm is not on the PATH: install Node.js, or let %s name a libchdb.so, or set CLICKHOUSE_HOST to use a server of your own", EngineEnv)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	// Beside the target, since a rename cannot cross file systems.
	tmp, err := os.MkdirTemp(filepath.Dir(path), "npm-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)

	install := exec.CommandContext(ctx, npm, "install", "--prefix", tmp,
		"--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", name+"@"+Version)
	install.Dir = tmp
	if output, err := install.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		return fmt.Errorf("npm install %s@%s: %w: %s", name, Version, err, npmComplaint(output))
	}
	if err := os.Rename(filepath.Join(tmp, "node_modules", filepath.FromSlash(name), libraryName), path); err != nil {
		return fmt.Errorf("npm package %s@%s: %w", name, Version, err)
	}
	return nil
}

// npmComplaint puts the few telling lines of npm's output on one.
func npmComplaint(output []byte) string {
	const most = 4
	var lines []string
	for line := range strings.Lines(string(output)) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "npm error")
		if line = strings.TrimSpace(line); line != "" && len(lines) < most {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}
