// Command clickhouse-dev runs a throw-away ClickHouse server: until Ctrl-C, or for as long as a command needs it.
//
//	clickhouse-dev [-native-port N] [-http-port N] [-dir DIR] [-- COMMAND ARGUMENT...]
//
// Without a command it prints the environment variables that lead the provider to the server. With one it runs the command
// with these variables, and ends with its exit code. Where CLICKHOUSE_HOST is set already, that server is used instead.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/embedded"
)

func main() {
	embedded.MaybeRunChild()
	code, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "clickhouse-dev:", err)
	}
	os.Exit(code)
}

func run() (code int, err error) {
	opts := embedded.Options{QueryLog: true}
	flag.IntVar(&opts.NativePort, "native-port", 0, "port of the native protocol (0: a free one)")
	flag.IntVar(&opts.HTTPPort, "http-port", 0, "port of HTTP (0: a free one)")
	flag.StringVar(&opts.Dir, "dir", "", "keep the data in this folder (default: a temporary one)")
	flag.Parse()
	command := flag.Args()

	// From here on a Ctrl-C or SIGTERM is no end of this process, which has a server to stop.
	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	if host := os.Getenv("CLICKHOUSE_HOST"); host != "" {
		fmt.Fprintf(os.Stderr, "clickhouse-dev: CLICKHOUSE_HOST names the server %s: starting none\n", host)
		if len(command) == 0 {
			return 0, nil
		}
		return runCommand(command, os.Environ())
	}

	server, err := embedded.Start(interrupted, opts)
	if err != nil {
		return 1, err
	}
	defer server.Stop()
	if len(command) > 0 {
		return runCommand(command, environ(server))
	}
	for _, v := range variables(server) {
		fmt.Println("export", v)
	}
	fmt.Println("# HTTP port:", server.HTTPPort)
	fmt.Println("# Ctrl-C stops the server.")
	select {
	case <-interrupted.Done():
		return 0, nil
	case <-server.Done():
		return 1, errors.New("the server ended")
	}
}

// variables lead the provider to the server.
func variables(s *embedded.Server) []string {
	return []string{
		"CLICKHOUSE_HOST=" + s.Host,
		"CLICKHOUSE_PORT=" + strconv.Itoa(s.NativePort),
		"CLICKHOUSE_PROTOCOL=native",
	}
}

// environ is our environment with the server in it, and without the user and password of another one.
func environ(s *embedded.Server) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "CLICKHOUSE_") })
	env = append(env, variables(s)...)
	return append(env, embedded.HTTPPortEnv+"="+strconv.Itoa(s.HTTPPort))
}

// runCommand runs a command to its end and returns its exit code, 128 + n after signal n. A SIGTERM is passed on; a Ctrl-C
// in the terminal reaches the command anyway, and a second one would mean "at once" to terraform.
func runCommand(command, env []string) (int, error) {
	terminated, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	cmd := exec.CommandContext(terminated, command[0], command[1:]...)
	cmd.Env = env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	err := cmd.Run()
	if cmd.ProcessState == nil { // it did not start
		return 127, err
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return cmd.ProcessState.ExitCode(), nil
}
