package embedded

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// childEnv marks the child process and tells it what to do.
const childEnv = "CLICKHOUSESTATE_EMBEDDED_CHILD"

// childSpec is what a child needs to know.
type childSpec struct {
	Engine               Engine
	Dir                  string
	NativePort, HTTPPort int
	// Temporary means that Dir goes away with the child.
	Temporary bool
}

// arguments are those of `clickhouse local`. It is interactive and serves beside the prompt, until its terminal hangs up:
// without a prompt it would end, with SIGABRT, at the first client that fails to log in or speaks another protocol.
func (c childSpec) arguments() []string {
	return []string{
		"--path=" + filepath.Join(c.Dir, dataFolder),
		"--config-file=" + filepath.Join(c.Dir, configFile),
		"--listen_host=" + Host,
		fmt.Sprintf("--tcp_port=%d", c.NativePort),
		fmt.Sprintf("--http_port=%d", c.HTTPPort),
		"--interactive",
		"--disable_suggestion",
		"--query", "SYSTEM START LISTEN TCP; SYSTEM START LISTEN HTTP",
	}
}

// MaybeRunChild turns this process into the server if [Start] started it for that, and then never returns.
// In any other process it does nothing. Call it before anything else, also before parsing flags.
func MaybeRunChild() {
	text := os.Getenv(childEnv)
	if text == "" {
		return
	}
	var spec childSpec
	err := json.Unmarshal([]byte(text), &spec)
	if err == nil {
		err = spec.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run serves until standard input ends. The parent holds the other end, so that is also when the parent is gone, even
// killed. (PR_SET_PDEATHSIG would end the child as surely, but on Linux only, and would leave the temporary folder behind.)
func (c childSpec) run() error {
	parent, hangUp, err := terminalAsStdin()
	if err != nil {
		return fmt.Errorf("make a terminal for the engine: %w", err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, parent) // an error is an end, too
		hangUp()
		time.Sleep(stopTimeout)
		killOwnGroup()
	}()
	if c.Temporary {
		defer os.RemoveAll(c.Dir) // a parent that was killed cannot do it
	}
	return c.runEngine()
}

func (c childSpec) runEngine() error {
	if c.Engine.Library {
		return runLibrary(c.Engine.Path, append([]string{"clickhouse"}, c.arguments()...))
	}
	cmd := exec.Command(c.Engine.Path, append([]string{"local"}, c.arguments()...)...)
	cmd.Stdin, cmd.Stderr = os.Stdin, os.Stderr
	cmd.Env = environ() // without childEnv, which is not for the engine
	return cmd.Run()
}
