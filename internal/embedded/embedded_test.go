//go:build linux || darwin

package embedded_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/embedded"
)

// programEnv turns the test binary into a `clickhouse` program; its value is the path of libchdb.
const programEnv = "CLICKHOUSESTATE_TEST_PROGRAM"

// parentEnv turns the test binary into a program that starts a server and then waits to be killed.
const parentEnv = "CLICKHOUSESTATE_TEST_PARENT"

func TestMain(m *testing.M) {
	embedded.MaybeRunChild()
	if library := os.Getenv(programEnv); library != "" {
		if err := embedded.RunLibrary(library, append([]string{"clickhouse"}, os.Args[2:]...)); err != nil { // without "local"
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv(parentEnv) != "" {
		s, err := embedded.Start(context.Background(), embedded.Options{})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Printf("%d %s\n", s.PID(), s.Options.Dir)
		select {}
	}
	os.Exit(m.Run())
}

func start(t *testing.T, opts embedded.Options) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

func connect(t *testing.T, s *embedded.Server, protocol clickhouse.Protocol, user, password string) driver.Conn {
	t.Helper()
	port := s.NativePort
	if protocol == clickhouse.HTTP {
		port = s.HTTPPort
	}
	conn, err := clickhouse.Open(&clickhouse.Options{
		Addr:     []string{net.JoinHostPort(s.Host, strconv.Itoa(port))},
		Protocol: protocol,
		Auth:     clickhouse.Auth{Username: user, Password: password},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func run(t *testing.T, conn driver.Conn, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

func count(t *testing.T, conn driver.Conn, from string) uint64 {
	t.Helper()
	var n uint64
	if err := conn.QueryRow(t.Context(), "SELECT count() FROM "+from).Scan(&n); err != nil {
		t.Fatalf("count %s: %v", from, err)
	}
	return n
}

func TestBothProtocols(t *testing.T) {
	s := start(t, embedded.Options{QueryLog: true})
	for _, protocol := range []clickhouse.Protocol{clickhouse.Native, clickhouse.HTTP} {
		version, err := connect(t, s, protocol, "default", "").ServerVersion()
		if err != nil {
			t.Fatalf("%s: %v", protocol, err)
		}
		if got, want := version.Version.String(), "26.7."; !strings.HasPrefix(got, want) {
			t.Errorf("%s: version %s, want %s*", protocol, got, want)
		}
	}
	conn := connect(t, s, clickhouse.Native, "default", "")
	run(t, conn, "SYSTEM FLUSH LOGS")
	if count(t, conn, "system.query_log") == 0 {
		t.Error("the query log is empty")
	}
}

func TestStopRemovesTemporaryFolder(t *testing.T) {
	s := start(t, embedded.Options{})
	if _, err := os.Stat(s.Options.Dir); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	select {
	case <-s.Done():
	default:
		t.Error("the server has not ended")
	}
	if _, err := os.Stat(s.Options.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("folder %s: %v, want none", s.Options.Dir, err)
	}
	s.Stop() // twice is harmless
}

// TestTemporaryFolder: temporary data are where the environment says, be it a path from here.
func TestTemporaryFolder(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	relative, err := filepath.Rel(here, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(embedded.DataEnv, relative)
	s := start(t, embedded.Options{})
	if filepath.Dir(s.Options.Dir) != dir {
		t.Errorf("data in %s, want them in %s", s.Options.Dir, dir)
	}
	s.Stop()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestDataSurvive(t *testing.T) {
	for name, end := range map[string]func(*embedded.Server){
		"Stop": (*embedded.Server).Stop,
		"Kill": (*embedded.Server).Kill,
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, embedded.Options{Dir: t.TempDir()})
			conn := connect(t, s, clickhouse.Native, "default", "")
			run(t, conn,
				"CREATE DATABASE d",
				"CREATE TABLE d.t (n UInt64) ENGINE = ReplacingMergeTree ORDER BY n",
				"INSERT INTO d.t VALUES (1), (2), (3)",
			)
			end(s)
			<-s.Done()

			again := start(t, s.Options)
			if again.NativePort != s.NativePort || again.HTTPPort != s.HTTPPort {
				t.Errorf("ports %d and %d, want %d and %d again", again.NativePort, again.HTTPPort, s.NativePort, s.HTTPPort)
			}
			if n := count(t, connect(t, again, clickhouse.HTTP, "default", ""), "d.t"); n != 3 {
				t.Errorf("%d rows after the restart, want 3", n)
			}
		})
	}
}

func TestUsers(t *testing.T) {
	s := start(t, embedded.Options{Users: []embedded.User{
		{Name: "odd", Password: `<&'"`},
		{Name: "strict", Readonly: 1},
		{Name: "reader", Password: "r", Readonly: 2},
		{Name: "narrow", Password: "n", Grants: []string{"GRANT SELECT ON d.*"}},
		{Name: "tuned", Settings: map[string]string{"max_threads": "3", "log_comment": "<&>"}, Fixed: []string{"async_insert"}},
	}})
	run(t, connect(t, s, clickhouse.Native, "default", ""), "CREATE DATABASE d", "CREATE TABLE d.t (n UInt64) ENGINE = MergeTree ORDER BY n")

	const (
		authFailed, accessDenied, readonly, settingFixed = 516, 497, 164, 452
		ok                                               = 0
	)
	tests := []struct {
		user, password, statement string
		want                      int32
	}{
		{"odd", `<&'"`, "SELECT 1", ok},
		{"odd", "", "SELECT 1", authFailed},
		{"nobody", "", "SELECT 1", authFailed},
		{"reader", "wrong", "SELECT 1", authFailed},
		{"reader", "r", "SELECT * FROM d.t", ok},
		{"reader", "r", "INSERT INTO d.t SELECT 1", readonly},
		{"reader", "r", "SELECT 1 SETTINGS max_threads = 1", ok},
		{"narrow", "n", "SELECT * FROM d.t", ok},
		{"narrow", "n", "INSERT INTO d.t SELECT 1", accessDenied},
		{"narrow", "n", "CREATE DATABASE e", accessDenied},
		{"tuned", "", "INSERT INTO d.t SELECT 1", ok},
		{"tuned", "", "SELECT throwIf(getSetting('max_threads') != 3 OR getSetting('log_comment') != '<&>')", ok},
		{"tuned", "", "INSERT INTO d.t SETTINGS async_insert = 0 SELECT 1", settingFixed},
	}
	for _, protocol := range []clickhouse.Protocol{clickhouse.Native, clickhouse.HTTP} {
		for _, test := range tests {
			err := connect(t, s, protocol, test.user, test.password).Exec(t.Context(), test.statement)
			if got := code(err); got != test.want {
				t.Errorf("%s: %s: %s: code %d, want %d (%v)", protocol, test.user, test.statement, got, test.want, err)
			}
		}
	}

	// Not over HTTP: there the driver sends a setting of its own.
	strict := connect(t, s, clickhouse.Native, "strict", "")
	for statement, want := range map[string]int32{"SELECT * FROM d.t": ok, "SELECT 1 SETTINGS max_threads = 1": readonly} {
		if err := strict.Exec(t.Context(), statement); code(err) != want {
			t.Errorf("readonly = 1: %s: code %d, want %d (%v)", statement, code(err), want, err)
		}
	}
}

// code is the server's error code, 0 without an error and -1 for an error of another kind.
func code(err error) int32 {
	var server *clickhouse.Exception
	switch {
	case err == nil:
		return 0
	case errors.As(err, &server):
		return server.Code
	default:
		return -1
	}
}

// TestManyAtOnce lets servers race for free ports.
func TestManyAtOnce(t *testing.T) {
	const n = 4
	ports := make(chan int, 2*n)
	t.Run("start", func(t *testing.T) {
		for range n {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				s := start(t, embedded.Options{})
				ports <- s.NativePort
				ports <- s.HTTPPort
				if got := count(t, connect(t, s, clickhouse.Native, "default", ""), "system.one"); got != 1 {
					t.Errorf("%d rows in system.one", got)
				}
			})
		}
	})
	if len(ports) != 2*n {
		t.Errorf("%d ports, want %d", len(ports), 2*n)
	}
}

// TestBinary runs the engine as a `clickhouse` on the PATH. The program stands in for the library behind it.
func TestBinary(t *testing.T) {
	engine, err := embedded.FindEngine()
	if err != nil {
		t.Fatal(err)
	}
	if !engine.Library {
		t.Skip("every other test runs the binary on this machine")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\nexport %s='%s'\nexec '%s' \"$@\"\n", programEnv, engine.Path, self)
	if err := os.WriteFile(filepath.Join(dir, "clickhouse"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	t.Chdir(dir) // away from the repository's own engine
	if engine, err = embedded.FindEngine(); err != nil || engine.Library || filepath.Dir(engine.Path) != dir {
		t.Fatalf("engine %+v, %v; want the binary in %s", engine, err, dir)
	}

	for name, end := range map[string]func(*embedded.Server){
		"Stop": (*embedded.Server).Stop,
		"Kill": (*embedded.Server).Kill,
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, embedded.Options{Dir: t.TempDir()})
			run(t, connect(t, s, clickhouse.Native, "default", ""), "SELECT 1")
			end(s)
			start(t, s.Options) // nothing is left that holds the folder or the ports
		})
	}
}

func TestEndsWithParent(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(self)
	parent.Env = append(os.Environ(), parentEnv+"=1")
	parent.Stderr = os.Stderr
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	var dir string
	if _, err := fmt.Fscan(bufio.NewReader(out), &pid, &dir); err != nil {
		t.Fatalf("read what the parent says: %v", err)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("server %d does not run: %v", pid, err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // it was killed
	eventually(t, "the server ended", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("folder %s: %v, want none", dir, err)
	}
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}
