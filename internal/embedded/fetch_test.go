//go:build linux || darwin

package embedded_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/embedded"
)

// The stand-ins for npm find the folder to install into as their third argument.
const (
	npmWorks = `for last; do :; done; name=${last%@*}; mkdir -p "$3/node_modules/$name" && echo engine > "$3/node_modules/$name/libchdb.so"`
	npmFails = npmWorks + `; echo "npm error code E404" >&2; echo "npm error 404 Not Found" >&2; exit 1`
	npmHalf  = `mkdir -p "$3/node_modules"`
	npmHangs = npmWorks + `; echo > started; exec sleep 600`
)

// cloneWithNPM makes an empty repository the current folder, and the script the only npm.
func cloneWithNPM(t *testing.T, script string) (root string) {
	t.Helper()
	bin, root := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "go.mod"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"mkdir", "sleep"} {
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(bin, tool)); err != nil {
			t.Fatal(err)
		}
	}
	if script != "" {
		if err := os.WriteFile(filepath.Join(bin, "npm"), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin)
	t.Chdir(root)
	return root
}

func TestFetch(t *testing.T) {
	root := cloneWithNPM(t, npmWorks)
	engine, err := embedded.FetchEngine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(engine.Path); err != nil || string(text) != "engine\n" {
		t.Errorf("%s holds %q, %v", engine.Path, text, err)
	}
	if found, err := embedded.FindEngine(); err != nil || found != engine {
		t.Errorf("found %+v, %v; want %+v", found, err, engine)
	}
	wantOnly(t, root, engine.Path)

	t.Run("once", func(t *testing.T) {
		t.Setenv("PATH", "") // without an npm
		if again, err := embedded.FetchEngine(t.Context()); err != nil || again != engine {
			t.Errorf("again: %+v, %v; want %+v", again, err, engine)
		}
	})
}

func TestFetchFails(t *testing.T) {
	for name, test := range map[string]struct{ npm, want string }{
		"no npm":       {"", "fetch the engine: npm is not on the PATH: install Node.js"},
		"npm fails":    {npmFails, "exit status 1: code E404; 404 Not Found"},
		"no such file": {npmHalf, "libchdb.so"},
	} {
		t.Run(name, func(t *testing.T) {
			root := cloneWithNPM(t, test.npm)
			_, err := embedded.FetchEngine(t.Context())
			wantLine(t, err, test.want)
			wantOnly(t, root)
		})
	}
}

func TestFetchInterrupted(t *testing.T) {
	root := cloneWithNPM(t, npmHangs)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := embedded.FetchEngine(ctx)
		failed <- err
	}()
	eventually(t, "npm runs", func() bool {
		started, err := filepath.Glob(filepath.Join(root, ".engine", "*", "npm-*", "started"))
		return err == nil && len(started) == 1
	})
	cancel()
	wantLine(t, <-failed, "fetch the engine: interrupted")
	wantOnly(t, root)
}

// wantOnly checks that these are the only files in the engine's folder.
func wantOnly(t *testing.T, root string, want ...string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, ".engine"), func(path string, entry os.DirEntry, err error) error {
		switch {
		case errors.Is(err, os.ErrNotExist):
			return nil
		case err != nil:
			return err
		case !entry.IsDir() && (len(want) != 1 || path != want[0]):
			t.Errorf("%s is left behind", path)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
