package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// An event is one line of a process's journal. The journal is its standard output: what was written there outlives it.
type event struct {
	Kind eventKind `json:"kind"`
	// At is the time of the event, in Unix microseconds; all processes run on one machine.
	At int64 `json:"at"`
	// Counter, Token and Parent describe an increment: the value with this token was made of the value with that one.
	Counter string `json:"counter,omitempty"`
	Token   string `json:"token,omitempty"`
	Parent  string `json:"parent,omitempty"`
	// Outcome, Version and Unreleased are what the writer was told in the end.
	Outcome    outcome `json:"outcome,omitempty"`
	Version    uint64  `json:"version,omitempty"`
	Unreleased bool    `json:"unreleased,omitempty"`
	// Step and Millis are where a fault hit, and for how long.
	Step   string `json:"step,omitempty"`
	Millis int64  `json:"millis,omitempty"`
	Error  string `json:"error,omitempty"`
}

type eventKind string

const (
	// began and ended enclose one round: the wait for the lock, the write, and the release.
	began eventKind = "began"
	ended eventKind = "ended"
	// trying comes just before a write may be sent.
	trying eventKind = "trying"
	// stalled and frozen are pauses: of one statement's goroutine, or (SIGSTOP) of the whole process.
	stalled eventKind = "stalled"
	frozen  eventKind = "frozen"
	// dying comes just before a process kills itself.
	dying eventKind = "dying"
)

// An outcome is what a writer knows of an increment in the end.
type outcome string

const (
	// acknowledged: it is stored. The only outcome that makes an increment count.
	acknowledged outcome = "acknowledged"
	// unwritten: it certainly is not: busy, moved, lock lost, nothing sent.
	unwritten outcome = "unwritten"
	// unknown: nobody told; what is stored later shows it. As good as no outcome at all, which is what a kill leaves.
	unknown outcome = "unknown"
)

// A journal is where a process writes its events.
type journal struct {
	mu  sync.Mutex
	out io.Writer
}

// write writes an event as one line, in one system call.
func (j *journal) write(e event) {
	e.At = time.Now().UnixMicro()
	line, err := json.Marshal(e)
	if err != nil {
		panic(err) // plain fields alone
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.out.Write(append(line, '\n')); err != nil {
		panic(fmt.Sprintf("write the journal: %v", err)) // without a journal there is no proof
	}
}

// readJournal hands each event to take. A last line that was cut off by a kill is left aside.
func readJournal(r io.Reader, take func(event)) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			if lines.Scan() {
				return fmt.Errorf("a line of the journal that is not the last: %w", err)
			}
			return nil
		}
		take(e)
	}
	return lines.Err()
}
