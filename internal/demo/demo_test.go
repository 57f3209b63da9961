package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
)

func TestMain(m *testing.M) { acctest.Main(m) }

// TestDemo is `make demo`, which checks its own steps.
func TestDemo(t *testing.T) {
	temporary := watchTemporary(t)
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatalf("%v\nafter:\n%s", err, &out)
	}
	for _, want := range []string{
		"Apply complete! Resources: 21 added",
		"No changes.",
		`"2026-12-01T06:30:00Z" -> "2026-11-20T08:14:03Z"`,
		"Destroy complete! Resources: 21 destroyed.",
		"nothing is left behind",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the demo does not show %q:\n%s", want, &out)
		}
	}
	temporary.isEmpty(t)
}

// TestInterrupted interrupts the demo while Terraform applies.
func TestInterrupted(t *testing.T) {
	temporary := watchTemporary(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &trigger{on: "terraform apply", do: func() {
		go func() {
			defer cancel()
			temporary.await(ctx, "*/complete/.terraform.tfstate.lock.info") // there while Terraform applies
		}()
	}}
	if err := run(ctx, out); !errors.Is(err, context.Canceled) {
		t.Errorf("expected the interruption, got: %v\nafter:\n%s", err, &out.Buffer)
	}
	temporary.isEmpty(t)
}

// temporary is the folder where temporary files go.
type temporary string

func watchTemporary(t *testing.T) temporary {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	return temporary(dir)
}

// await returns when a file is there that matches.
func (dir temporary) await(ctx context.Context, pattern string) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if found, _ := filepath.Glob(filepath.Join(string(dir), pattern)); len(found) > 0 { // the pattern is well-formed
			return
		}
	}
}

func (dir temporary) isEmpty(t *testing.T) {
	t.Helper()
	left, err := os.ReadDir(string(dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range left {
		t.Errorf("%s is left behind", entry.Name())
	}
}

// trigger does something as soon as a text is written.
type trigger struct {
	bytes.Buffer
	on string
	do func()
}

func (w *trigger) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(w.on)) {
		w.do()
	}
	return w.Buffer.Write(p)
}
