// Package embedded runs a real ClickHouse server inside a child process, for the tests and the demo: nothing to install,
// no container. The server is the engine that npm ships as libchdb (see [FindEngine]), listening on the real native and
// HTTP protocols of 127.0.0.1.
//
// The child is the running program itself, started once more. So every program that calls [Start] calls [MaybeRunChild]
// first thing in main, or in TestMain. A child of its own, because the engine cannot be stopped and started again inside
// one process, and because a crash test has to be able to kill it.
//
// What such a server lacks: TLS, CREATE USER (users come from [Options]), ON CLUSTER and replication.
package embedded

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Host is the address that every embedded server listens on.
const Host = "127.0.0.1"

const (
	// startTimeout is generous: a start takes 0.1 s on an idle machine, but tests start several at a time.
	startTimeout = 60 * time.Second
	// stopTimeout outlasts the 5 s that the engine waits for open connections.
	stopTimeout = 10 * time.Second
	// portAttempts bounds the search for free ports, which another process can take between our look and the engine's.
	portAttempts = 5
)

// PortTakenError says that another process listens on a port that was asked for.
type PortTakenError struct{ Port int }

func (e *PortTakenError) Error() string { return fmt.Sprintf("port %d is taken", e.Port) }

// Options say what kind of server to start. The zero value is a throw-away server on free ports.
type Options struct {
	// Dir keeps the data. Starting again on the same Dir brings the data back.
	// Empty means a temporary folder, which vanishes with the server; see [DataEnv].
	Dir string
	// NativePort and HTTPPort are the ports to listen on; 0 picks a free one.
	NativePort, HTTPPort int
	// Users exist beside `default`, which may do everything and has no password: the engine itself is that user.
	Users []User
	// QueryLog keeps system.query_log, flushed at least twice a second; SYSTEM FLUSH LOGS works at once.
	QueryLog bool
}

// Server is a running server.
type Server struct {
	Host                 string
	NativePort, HTTPPort int
	// Options are those it was started with, the folder and the ports filled in: [Start] with them is a restart.
	Options Options

	cmd       *exec.Cmd
	stdin     io.Closer
	stderr    *tail
	temporary bool
	done      chan struct{}
	stopOnce  sync.Once
}

// Start starts a server and returns when it answers on both protocols. The context bounds the start only.
// The server ends with [Server.Stop], [Server.Kill] or with this process, even when that is killed.
// Every error is one line; the one about a taken port is a [*PortTakenError], the one about a missing engine wraps
// [ErrNoEngine].
func Start(ctx context.Context, opts Options) (*Server, error) {
	if os.Getenv(childEnv) != "" {
		return nil, errors.New("start embedded ClickHouse: this process is itself meant to be the server; call embedded.MaybeRunChild first thing in main or TestMain")
	}
	engine, err := FindEngine()
	if err != nil {
		return nil, fmt.Errorf("start embedded ClickHouse: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		s, err := start(ctx, engine, opts)
		if err == nil {
			return s, nil
		}
		var taken *PortTakenError
		asked := errors.As(err, &taken) && (taken.Port == opts.NativePort || taken.Port == opts.HTTPPort)
		if taken != nil && !asked && attempt < portAttempts {
			continue
		}
		return nil, fmt.Errorf("start embedded ClickHouse: %w", err)
	}
}

func start(ctx context.Context, engine Engine, opts Options) (_ *Server, err error) {
	s := &Server{Host: Host, temporary: opts.Dir == "", stderr: &tail{}, done: make(chan struct{})}
	if opts.NativePort, opts.HTTPPort, err = pickPorts(opts.NativePort, opts.HTTPPort); err != nil {
		return nil, err
	}
	if opts.Dir, err = prepareDir(opts.Dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil && s.temporary {
			_ = os.RemoveAll(opts.Dir) // best effort: the error that counts is the one of the start
		}
	}()
	s.NativePort, s.HTTPPort, s.Options = opts.NativePort, opts.HTTPPort, opts

	// The HTTP root answers with a word of this server alone: what listens on a port may be someone else.
	token := uuid.NewString()
	if err := writeConfig(opts, token); err != nil {
		return nil, err
	}
	if err := s.launch(engine); err != nil {
		return nil, err
	}
	if err := s.waitReady(ctx, token); err != nil {
		s.Kill()
		return nil, err
	}
	return s, nil
}

// launch starts the child process and the goroutine that waits for its end.
func (s *Server) launch(engine Engine) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	spec, err := json.Marshal(childSpec{
		Engine:     engine,
		Dir:        s.Options.Dir,
		NativePort: s.NativePort,
		HTTPPort:   s.HTTPPort,
		Temporary:  s.temporary,
	})
	if err != nil {
		return fmt.Errorf("describe the child: %w", err)
	}
	s.cmd = exec.Command(self)
	// The engine looks for settings and keeps a history in the home folder.
	s.cmd.Env = append(environ(), "HOME="+s.Options.Dir, childEnv+"="+string(spec))
	s.cmd.Dir = s.Options.Dir
	s.cmd.Stderr = s.stderr
	s.cmd.SysProcAttr = ownProcessGroup()
	stdin, err := s.cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("open the child's input: %w", err)
	}
	s.stdin = stdin
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("start the child process: %w", err)
	}
	go func() {
		_ = s.cmd.Wait() // what there is to know about its end is on its error output
		close(s.done)
	}()
	return nil
}

// environ is our environment without what the engine would obey, and without the child's mark.
func environ() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "CLICKHOUSE_") || strings.HasPrefix(v, childEnv+"=")
	})
}

// waitReady returns when the child answers. The engine opens the native port first and goes no further if that fails, so
// the right answer over HTTP means that both ports are ours.
func (s *Server) waitReady(ctx context.Context, token string) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
	url := "http://" + net.JoinHostPort(s.Host, strconv.Itoa(s.HTTPPort)) + "/"
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-s.done:
			return s.startError()
		case <-ctx.Done():
			return fmt.Errorf("no answer on port %d: %w%s", s.HTTPPort, context.Cause(ctx), s.said())
		case <-tick.C:
		}
		// After a failed start the engine ends, or it sits at its prompt.
		if engineFailure.MatchString(s.stderr.line()) {
			return s.startError()
		}
		if answer, err := get(ctx, client, url); err == nil && answer == token {
			return nil
		}
	}
}

func get(ctx context.Context, client *http.Client, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 256))
	return string(body), err
}

var (
	engineFailure = regexp.MustCompile(`Code: \d+\. DB::Exception`)
	listenFailure = regexp.MustCompile(`Listen \[[^\]]*\]:(\d+) failed.*Address already in use`)
)

// startError says why a child does not answer.
func (s *Server) startError() error {
	if m := listenFailure.FindStringSubmatch(s.stderr.line()); m != nil {
		if port, err := strconv.Atoi(m[1]); err == nil {
			return &PortTakenError{Port: port}
		}
	}
	where := ""
	if !s.temporary {
		where = " on the data folder " + s.Options.Dir
	}
	return fmt.Errorf("the engine did not come up%s%s", where, s.said())
}

// said renders the end of the child's error output, as the end of an error message.
func (s *Server) said() string {
	if line := s.stderr.line(); line != "" {
		return ": " + line
	}
	return ""
}

// Done is closed when the server's process has ended.
func (s *Server) Done() <-chan struct{} { return s.done }

// PID is the process id of the server.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Stop stops the server and waits for its end. A server with a Dir of its own stops cleanly; that takes 5 s when a connection
// is still open. A temporary one is simply killed, and its folder removed. Stopping twice is harmless.
func (s *Server) Stop() {
	s.stopOnce.Do(func() {
		if s.temporary {
			s.Kill()
			_ = os.RemoveAll(s.Options.Dir) // what cannot be removed is in a temporary folder
			return
		}
		_ = s.stdin.Close() // fails only when the child is gone already
		<-s.done            // at the latest after stopTimeout: the child sees to that
	})
}

// Kill ends the server at once (SIGKILL), as a crash would, and waits for its end. Data stay; what the server had
// acknowledged is there after the next [Start] on the same folder.
func (s *Server) Kill() {
	select {
	case <-s.done:
	default: // only now is the process id surely ours
		killGroup(s.cmd)
	}
	<-s.done
}

// prepareDir makes the folder, or a temporary one, and returns its absolute path.
func prepareDir(dir string) (string, error) {
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp(os.Getenv(DataEnv), "clickhousestate-"); err != nil {
			return "", fmt.Errorf("make a temporary data folder: %w", err)
		}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the data folder: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the data folder: %w", err)
	}
	return dir, nil
}

// pickPorts replaces each 0 by a port that is free now.
func pickPorts(ports ...int) (native, http int, err error) {
	for i, port := range ports {
		if port != 0 {
			continue
		}
		// Held until both are picked, so that they differ.
		l, err := net.Listen("tcp", net.JoinHostPort(Host, "0"))
		if err != nil {
			return 0, 0, fmt.Errorf("find a free port: %w", err)
		}
		defer l.Close()
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports[0], ports[1], nil
}

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailSize = 4096

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - tailSize; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(p), nil
}

// line returns the text on one line.
func (t *tail) line() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.Join(bytes.Fields(t.buf), []byte(" ")))
}
