//go:build linux || darwin

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/embedded"
)

// programEnv turns the test binary into clickhouse-dev.
const programEnv = "CLICKHOUSESTATE_TEST_CLICKHOUSE_DEV"

func TestMain(m *testing.M) {
	embedded.MaybeRunChild()
	if os.Getenv(programEnv) != "" {
		main()
	}
	os.Exit(m.Run())
}

// program is clickhouse-dev with these arguments, where no server is configured, or the given one.
func program(t *testing.T, host string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	// Not the server that the tests themselves are given.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "CLICKHOUSE_") })
	cmd.Env = append(cmd.Env, programEnv+"=1", "CLICKHOUSE_HOST="+host, "CLICKHOUSE_PASSWORD=of another server")
	return cmd
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	default:
		t.Fatal(err)
		return -1
	}
}

func TestCommand(t *testing.T) {
	const print = `echo "$CLICKHOUSE_HOST $CLICKHOUSE_PROTOCOL $CLICKHOUSE_PASSWORD"; `
	for _, test := range []struct {
		name, host string
		command    []string
		code       int
		stdout     string
	}{
		{"exit code", "", []string{"sh", "-c", print + "exit 7"}, 7, "127.0.0.1 native \n"},
		{"signal", "", []string{"sh", "-c", "kill -TERM $$"}, 128 + 15, ""},
		{"no such command", "", []string{"no-such-command"}, 127, ""},
		{"server configured", "db.example", []string{"sh", "-c", print + "exit 3"}, 3, "db.example  of another server\n"},
		{"server configured, no command", "db.example", nil, 0, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			stdout, err := program(t, test.host, append([]string{"--"}, test.command...)...).Output()
			if code := exitCode(t, err); code != test.code || string(stdout) != test.stdout {
				t.Errorf("exit code %d, output %q; want %d, %q", code, stdout, test.code, test.stdout)
			}
		})
	}
}

func TestUntilInterrupted(t *testing.T) {
	cmd := program(t, "")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var port, httpPort int
	lines := bufio.NewReader(stdout)
	format := "export CLICKHOUSE_HOST=127.0.0.1\nexport CLICKHOUSE_PORT=%d\nexport CLICKHOUSE_PROTOCOL=native\n# HTTP port: %d\n"
	if _, err := fmt.Fscanf(lines, format, &port, &httpPort); err != nil {
		t.Fatalf("read the variables: %v", err)
	}
	resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/?query=SELECT+tcpPort()", httpPort))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || strings.TrimSpace(string(body)) != fmt.Sprint(port) {
		t.Errorf("the server says that its native port is %q, %v; want %d", body, err, port)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, lines); err != nil {
		t.Error(err)
	}
	if code := exitCode(t, cmd.Wait()); code != 0 {
		t.Errorf("exit code %d after Ctrl-C, want 0", code)
	}
}
