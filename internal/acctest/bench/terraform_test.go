package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/bookmark"
)

// mark is a completed payload as they are in the field: some 100 bytes.
func mark(value string) string {
	return fmt.Sprintf(`{"singer_state": {"bookmarks": {"issues": {"replication_key": "updated_at", "replication_key_value": %q}}}}`, value)
}

const (
	before = "2026-01-01T00:00:00Z"
	after  = "2026-02-01T00:00:00Z"
)

// export is what `meltano state export` would write of n entries, of which the first changed have moved on.
func export(n, changed int) string {
	entries := make(map[string]bookmark.Entry, n)
	for i := range n {
		value := before
		if i < changed {
			value = after
		}
		entries[fmt.Sprintf("prod:tap-%06d-to-target-clickhouse", i)] = bookmark.Entry{Completed: mark(value), Partial: "{}"}
	}
	return bookmark.FormatExport(entries)
}

// provider is the configuration of the provider on a database with a state table.
func provider(t *testing.T) string {
	t.Helper()
	server, database := acctest.Server(t), acctest.Database(t)
	w := acctest.NewWorkspace(t, connect(server, database)+`resource "clickhousestate_table" "t" {
  name                = "state"
  deletion_protection = false
}
`)
	run(t, w, "apply")
	return connect(server, database)
}

func connect(server acctest.Endpoint, database string) string {
	return fmt.Sprintf("provider \"clickhousestate\" {\n  host = %q\n  port = %d\n  username = %q\n  password = %q\n  database = %q\n}\n",
		server.Host, server.NativePort, server.Username, server.Password, database)
}

// launch starts a command of Terraform.
func launch(t *testing.T, w *acctest.Workspace, command string, options ...string) *acctest.Command {
	t.Helper()
	args := append([]string{command}, options...)
	if command != "plan" {
		args = append(args, "-auto-approve")
	}
	return w.Start(t, args...)
}

// wait waits until the command has ended well.
func wait(t *testing.T, started *acctest.Command, command string) {
	t.Helper()
	if printed, code := started.Wait(t); code != 0 {
		t.Fatalf("terraform %s: %s", command, printed)
	}
}

// run runs a command of Terraform.
func run(t *testing.T, w *acctest.Workspace, command string, options ...string) {
	t.Helper()
	wait(t, launch(t, w, command, options...), command)
}

// peakOf runs a command of Terraform, and returns the peak memory of the provider's processes, in bytes. To look for it takes
// time, too.
func peakOf(t *testing.T, w *acctest.Workspace, command string) (peak int) {
	t.Helper()
	started := launch(t, w, command)
	done := make(chan int, 1)
	go func() {
		most := 0
		for started.Running() {
			most = max(most, resident(started.Process.Pid))
			time.Sleep(20 * time.Millisecond) // the kernel keeps the peak; a process is missed only if it is shorter than this
		}
		done <- most
	}()
	wait(t, started, command)
	return <-done
}

// resident is the highest peak memory of the children of a process. Where the system does not tell, it is zero.
func resident(parent int) (peak int) {
	statuses, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, status := range statuses {
		text, err := os.ReadFile(status)
		if err != nil || field(string(text), "PPid:") != parent {
			continue
		}
		peak = max(peak, field(string(text), "VmHWM:")<<10)
	}
	return peak
}

func field(status, name string) int {
	_, rest, _ := strings.Cut(status, name)
	line, _, _ := strings.Cut(rest, "\n")
	value, _ := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(line, "kB")))
	return value
}

// twinProgram builds the provider that does nothing.
func twinProgram(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "terraform-provider-clickhousestate")
	if printed, err := exec.Command("go", "build", "-o", program, "./twin").CombinedOutput(); err != nil {
		t.Fatalf("build the twin: %v\n%s", err, printed)
	}
	return program
}

// A cycle is what is measured of many resources.
type cycle struct{ apply, plan, destroy sample }

func (c *cycle) measure(t *testing.T, w *acctest.Workspace, options ...string) {
	t.Helper()
	timed(&c.apply, func() { run(t, w, "apply", options...) })
	timed(&c.plan, func() { run(t, w, "plan", options...) })
	timed(&c.destroy, func() { run(t, w, "destroy", options...) })
}

// singles compares 1,000 single entries with the twin's, and with terraform_data of the same payloads. The three take
// turns, so that a slow minute of the machine slows all of them.
func singles(t *testing.T, table *report) {
	const n = 1000
	entries := fmt.Sprintf(`resource "clickhousestate_entry" "e" {
  count           = %d
  table           = "state"
  state_id        = "prod:tap-${count.index}-to-target-clickhouse"
  completed_state = %q
}
`, n, mark(before))
	connected := provider(t)
	real := acctest.NewWorkspace(t, connected+entries)
	// In a database of the same name, which Terraform keeps in its state for each entry.
	named := fmt.Sprintf("  database = %q\n  table ", databaseOf(t, connected))
	none := acctest.NewWorkspace(t, "provider \"clickhousestate\" {}\n"+strings.Replace(entries, "  table ", named, 1))
	none.Override(t, twinProgram(t))
	data := acctest.NewWorkspace(t, fmt.Sprintf("resource \"terraform_data\" \"e\" {\n  count = %d\n  input = %q\n}\n", n, mark(before)))
	const wide = "-parallelism=30"
	var ours, twin, builtin, ours30, twin30 cycle
	for range *repeat {
		ours.measure(t, real)
		twin.measure(t, none)
		builtin.measure(t, data)
		ours30.measure(t, real, wide)
		twin30.measure(t, none, wide)
	}
	table.compare("apply of 1,000 entries", "provider", "no-I/O twin", "1.3", ours.apply, twin.apply)
	table.compare("plan of 1,000 entries", "provider", "no-I/O twin", "1.5", ours.plan, twin.plan)
	table.compare("destroy of 1,000 entries", "provider", "no-I/O twin", "1.3", ours.destroy, twin.destroy)
	table.compare("apply of 1,000 entries, "+wide, "provider", "no-I/O twin", "", ours30.apply, twin30.apply)
	table.compare("plan of 1,000 entries, "+wide, "provider", "no-I/O twin", "", ours30.plan, twin30.plan)
	table.compare("destroy of 1,000 entries, "+wide, "provider", "no-I/O twin", "", ours30.destroy, twin30.destroy)
	table.compare("apply of 1,000 entries", "provider", "`terraform_data`", "", ours.apply, builtin.apply)
	table.compare("plan of 1,000 entries", "provider", "`terraform_data`", "", ours.plan, builtin.plan)
	table.compare("destroy of 1,000 entries", "provider", "`terraform_data`", "", ours.destroy, builtin.destroy)
}

// exported is a workspace with the entries of an export.
func exported(t *testing.T, n int) *acctest.Workspace {
	t.Helper()
	w := acctest.NewWorkspace(t, provider(t)+"resource \"clickhousestate_entries\" \"e\" {\n  table     = \"state\"\n  export    = file(\"export.json\")\n  on_rewind = \"allow\"\n}\n")
	declare(t, w, n, 0)
	return w
}

func declare(t *testing.T, w *acctest.Workspace, n, changed int) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.Dir, "export.json"), []byte(export(n, changed)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// growth measures the whole of Terraform on exports of three sizes, and the memory of the provider.
func growth(t *testing.T, table *report) {
	sizes := []int{1000, 10_000, 100_000}
	applies, plans, changes, destroys := make([]sample, len(sizes)), make([]sample, len(sizes)), make([]sample, len(sizes)), make([]sample, len(sizes))
	peaks := make([]int, len(sizes))
	for i, n := range sizes {
		w := exported(t, n)
		for range *repeat {
			declare(t, w, n, 0)
			timed(&applies[i], func() { peaks[i] = max(peaks[i], peakOf(t, w, "apply")) })
			timed(&plans[i], func() { peaks[i] = max(peaks[i], peakOf(t, w, "plan")) })
			declare(t, w, n, 1)
			timed(&changes[i], func() { peaks[i] = max(peaks[i], peakOf(t, w, "apply")) })
			timed(&destroys[i], func() { peaks[i] = max(peaks[i], peakOf(t, w, "destroy")) })
		}
	}
	table.compare("growth of a bulk apply, 100,000 entries", "100,000", "10,000", "12", applies[2], applies[1])
	table.compare("growth of a bulk plan, 100,000 entries", "100,000", "10,000", "12", plans[2], plans[1])
	table.note("| entries in one export | apply | plan | change of one | destroy | peak memory of the provider |\n|---|---|---|---|---|---|")
	for i, n := range sizes {
		table.note("| %d | %s | %s | %s | %s | %d MB |", n, applies[i], plans[i], changes[i], destroys[i], peaks[i]>>20)
	}
	table.note("\n```text\n%s```\n", plot(sizes, map[string][]sample{"apply": applies, "plan": plans}))
}

// plot draws the time of sizes, on a scale on which twice as long is as far everywhere.
func plot(sizes []int, series map[string][]sample) string {
	var text strings.Builder
	for _, name := range []string{"apply", "plan"} {
		for i, n := range sizes {
			took := series[name][i].median()
			width := 0
			for d := 100 * time.Millisecond; d < took; d = d * 5 / 4 {
				width++
			}
			fmt.Fprintf(&text, "%-5s %7d  %s %s\n", name, n, strings.Repeat("█", width), short(took))
		}
	}
	return text.String() + "one more block: 5/4 of the time; the first at 0.1 s\n"
}

// start measures what a command costs that has next to nothing to do.
func start(t *testing.T, table *report) {
	var handshake, one, none sample
	w := acctest.NewWorkspace(t, provider(t)+fmt.Sprintf("resource \"clickhousestate_entry\" \"e\" {\n  table = \"state\"\n  state_id = \"prod:one\"\n  completed_state = %q\n}\n", mark(before)))
	run(t, w, "apply")
	empty := acctest.NewWorkspace(t, "resource \"terraform_data\" \"e\" {}\n")
	run(t, empty, "apply")
	for range 3 * *repeat {
		timed(&handshake, func() {
			if printed, err := exec.Command(acctest.Provider(t), "-version").CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, printed)
			}
		})
		timed(&one, func() { run(t, w, "plan") })
		timed(&none, func() { run(t, empty, "plan") })
	}
	table.compare("plan of one entry", "provider", "one `terraform_data`", "", one, none)
	table.note("Start of the process, up to `-version`: %s. It runs three times in a plan, and once more in an apply.\n", handshake)
}
