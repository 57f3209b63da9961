//go:build linux || darwin

package embedded_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/embedded"
)

func TestImpossibleUser(t *testing.T) {
	for name, want := range map[string]string{
		"it's":    `"it's" cannot be the name of a user`,
		"default": "the user default cannot be changed",
	} {
		_, err := embedded.Start(t.Context(), embedded.Options{Users: []embedded.User{{Name: name}}})
		wantLine(t, err, want)
	}
}

func TestPortTaken(t *testing.T) {
	l, err := net.Listen("tcp", embedded.Host+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	for name, opts := range map[string]embedded.Options{
		"native": {NativePort: port},
		"http":   {HTTPPort: port},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := embedded.Start(t.Context(), opts)
			var taken *embedded.PortTakenError
			if !errors.As(err, &taken) || taken.Port != port {
				t.Errorf("error %v is no PortTakenError of port %d", err, port)
			}
			wantLine(t, err, fmt.Sprintf("port %d is taken", port))
		})
	}
}

func TestFolderInUse(t *testing.T) {
	s := start(t, embedded.Options{Dir: t.TempDir()})
	_, err := embedded.Start(t.Context(), embedded.Options{Dir: s.Options.Dir})
	wantLine(t, err, s.Options.Dir)
}

func TestDamagedFolder(t *testing.T) {
	s := start(t, embedded.Options{Dir: t.TempDir()})
	run(t, connect(t, s, clickhouse.Native, "default", ""), "CREATE DATABASE d", "CREATE TABLE d.t (n UInt64) ENGINE = MergeTree ORDER BY n")
	s.Kill()
	files, err := filepath.Glob(filepath.Join(s.Options.Dir, "data", "store", "*", "*", "t.sql"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files of table t: %v, %v; want one", files, err)
	}
	if err := os.WriteFile(files[0], []byte("no SQL"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = embedded.Start(t.Context(), s.Options)
	wantLine(t, err, s.Options.Dir)
}

func TestFolderIsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := embedded.Start(t.Context(), embedded.Options{Dir: path})
	wantLine(t, err, path)
}

func TestNoEngine(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Run("nowhere", func(t *testing.T) {
		t.Chdir(t.TempDir())
		_, err := embedded.Start(t.Context(), embedded.Options{})
		if !errors.Is(err, embedded.ErrNoEngine) {
			t.Errorf("error %v does not wrap ErrNoEngine", err)
		}
		wantLine(t, err, "run `make engine`, or set CLICKHOUSE_HOST")
	})
	t.Run("misnamed", func(t *testing.T) {
		t.Setenv(embedded.EngineEnv, "/no/such/libchdb.so")
		_, err := embedded.Start(t.Context(), embedded.Options{})
		wantLine(t, err, embedded.EngineEnv+" names /no/such/libchdb.so")
	})
	t.Run("not a library", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "libchdb.so")
		if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv(embedded.EngineEnv, path)
		_, err := embedded.Start(t.Context(), embedded.Options{})
		wantLine(t, err, "load the engine: "+path)
	})
}

// wantLine checks that an error is one line with the given text in it.
func wantLine(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case err == nil:
		t.Errorf("no error, want %q", want)
	case !strings.Contains(err.Error(), want), strings.Contains(err.Error(), "\n"):
		t.Errorf("error %q, want one line with %q", err, want)
	default:
		t.Log(err)
	}
}
