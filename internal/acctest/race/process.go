package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// A process is one worker, from its start to its end. Its slot starts the next one.
type process struct {
	spec  workerSpec
	cmd   *exec.Cmd
	stdin io.Closer
	// said is its standard error.
	said bytes.Buffer

	mu     sync.Mutex
	events []event
	// pauses are when it was stopped from outside or by itself.
	pauses []standstill
	ended  bool
}

// A standstill is a time for which a process stood still.
type standstill struct{ from, until time.Time }

// start starts a worker. Each event of its journal is handed to see, too.
func start(spec workerSpec, see func(*process, event)) (p *process, wait func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("find this program: %w", err)
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, nil, fmt.Errorf("describe a worker: %w", err)
	}
	p = &process{spec: spec, cmd: exec.Command(self)}
	p.cmd.Env = append(os.Environ(), workerEnv+"="+string(text))
	p.cmd.Stderr = &p.said
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, nil, fmt.Errorf("open a worker's input: %w", err)
	}
	p.stdin = stdin
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, nil, fmt.Errorf("open a worker's journal: %w", err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, nil, fmt.Errorf("start a worker: %w", err)
	}
	return p, func() error {
		err := readJournal(stdout, func(e event) {
			p.mu.Lock()
			p.events = append(p.events, e)
			p.mu.Unlock()
			see(p, e)
		})
		_ = p.cmd.Wait() // how it ended is in cmd.ProcessState
		p.mu.Lock()
		p.ended = true
		p.mu.Unlock()
		return err
	}, nil
}

// killed tells that the process was ended by SIGKILL, whoever sent it. Call it after its end.
func (p *process) killed() bool { return wasKilled(p.cmd.ProcessState) }

// failed tells that the process ended by itself and not in good order.
func (p *process) failed() bool { return !p.cmd.ProcessState.Success() && !p.killed() }

// freeze stops the process for a while, unless that has ended or is stopped already.
func (p *process) freeze(d time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if n := len(p.pauses); p.ended || n > 0 && now.Before(p.pauses[n-1].until) {
		return false
	}
	if freeze(p.cmd.Process) != nil {
		return false
	}
	p.resumeAfter(now, d)
	return true
}

// frozeItself takes note that the process has stopped, or is about to, and will need to be continued.
func (p *process) frozeItself(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resumeAfter(time.Now(), d)
}

func (p *process) resumeAfter(now time.Time, d time.Duration) {
	p.pauses = append(p.pauses, standstill{now, now.Add(d)})
	time.AfterFunc(d, func() { p.resume() })
}

// resume continues a process; one that runs is not disturbed.
func (p *process) resume() { _ = thaw(p.cmd.Process) }

// finish asks the process to end after the round that it is in.
func (p *process) finish() { _ = p.stdin.Close() }

// paused is for how long the process stood still between two times.
func (p *process) paused(from, until time.Time) (sum time.Duration) {
	for _, pause := range p.pauses {
		start, end := later(from, pause.from), pause.until
		if until.Before(end) {
			end = until
		}
		sum += max(0, end.Sub(start))
	}
	return sum
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
