package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// keepEvidence writes what a broken promise is traced with: one file with all statements in the server's order, and each
// process's journal.
func (a *arena) keepEvidence(ctx context.Context, folder string) error {
	folder = filepath.Join(folder, a.run)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	trace, err := readTrace(ctx, a.conn, a.run)
	if err != nil {
		return err
	}
	err = writeLines(filepath.Join(folder, "statements.txt"), func(w *bufio.Writer) {
		for _, s := range trace {
			result := fmt.Sprint(s.written)
			if s.failed {
				result = "failed"
			}
			if s.fenced {
				result = "refused"
			}
			fmt.Fprintf(w, "%s %s %-14s %-14s %-22s %-8s %s\n", clock(s.start), clock(s.finish), s.counter,
				strings.TrimPrefix(s.label, a.run+"-"), s.operation, result, s.token)
		}
	})
	for _, p := range a.processes {
		name := filepath.Join(folder, strings.TrimPrefix(p.spec.Label, a.run+"-")+".jsonl")
		err = errors.Join(err, writeLines(name, func(w *bufio.Writer) {
			lines := json.NewEncoder(w)
			for _, e := range p.events {
				_ = lines.Encode(e) // the writer keeps its first error
			}
		}))
	}
	return err
}

func writeLines(name string, write func(*bufio.Writer)) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(file)
	write(w)
	return errors.Join(w.Flush(), file.Close())
}
