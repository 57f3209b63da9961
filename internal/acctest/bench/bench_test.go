// Package bench measures the provider beside what it could cost at best: `make bench` prints one table from one run.
package bench

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/embedded"
)

var (
	parts  = flag.String("parts", "", "the parts to measure, such as abcde; none: nothing is measured")
	repeat = flag.Int("repeat", 3, "how often each is measured; the table holds medians")
	write  = flag.Bool("write", false, "write the table to the documentation, too")
)

func TestMain(m *testing.M) { acctest.Main(m) }

// TestBench measures what -parts names.
func TestBench(t *testing.T) {
	if *parts == "" {
		t.Skip("measures nothing unless -parts names something: make bench")
	}
	var table report
	for _, part := range []struct {
		letter  string
		measure func(t *testing.T, table *report)
	}{{"a", singles}, {"b", bulk}, {"c", lockCycle}, {"d", growth}, {"e", start}} {
		if strings.Contains(*parts, part.letter) {
			part.measure(t, &table)
		}
	}
	text := table.markdown()
	fmt.Print(text)
	if !*write {
		return
	}
	// After the last comment of the page, in place of what is there.
	const page, marker = "../../../templates/guides/performance.md.tmpl", "-->\n"
	written, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	end := strings.LastIndex(string(written), marker)
	if end < 0 {
		t.Fatalf("%s has no comment", page)
	}
	if err := os.WriteFile(page, []byte(string(written[:end])+marker+strings.TrimRight(text, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A report is the table: ratios first.
type report struct {
	rows  []string
	notes []string
}

// compare adds a row: ours beside something else, and what the ratio should be at most ("" for no aim).
func (r *report) compare(what, ours, other, aim string, took, beside sample) {
	ratio := took.median().Seconds() / beside.median().Seconds()
	r.rows = append(r.rows, fmt.Sprintf("| %s | %.2f | %s | %s: %s | %s: %s |", what, ratio, aim, ours, took, other, beside))
}

func (r *report) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

func (r *report) markdown() string {
	var text strings.Builder
	fmt.Fprintf(&text, "\n%s, %d repetitions, median (least to most)\n\n", machine(), *repeat)
	if len(r.rows) > 0 {
		text.WriteString("| what | ratio | aim | ours | beside |\n|---|---|---|---|---|\n" + strings.Join(r.rows, "\n") + "\n\n")
	}
	for _, note := range r.notes {
		text.WriteString(note + "\n")
	}
	return text.String()
}

// machine describes what was measured on.
func machine() string {
	processor := runtime.GOARCH
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.HasPrefix(name, "model name") {
				processor = strings.TrimSpace(value)
				break
			}
		}
	}
	terraform, err := exec.Command(cmp.Or(os.Getenv("TF_ACC_TERRAFORM_PATH"), "terraform"), "version").Output()
	if err != nil {
		terraform = []byte("Terraform")
	}
	first, _, _ := strings.Cut(string(terraform), "\n")
	server := "a server of one's own"
	if os.Getenv("CLICKHOUSE_HOST") == "" {
		server = "the server's data in " + cmp.Or(os.Getenv(embedded.DataEnv), os.TempDir())
	}
	return fmt.Sprintf("%d processors (%s), %s, %s, %s, %s", runtime.NumCPU(), processor, runtime.GOOS, runtime.Version(), first, server)
}

// A sample is several measurements of one thing.
type sample []time.Duration

func (s sample) median() time.Duration { return slices.Sorted(slices.Values(s))[len(s)/2] }

func (s sample) String() string {
	return fmt.Sprintf("%s (%s–%s)", short(s.median()), short(slices.Min(s)), short(slices.Max(s)))
}

func short(d time.Duration) string {
	if d < 2*time.Second {
		return fmt.Sprintf("%.0f ms", d.Seconds()*1000)
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// timed measures one thing.
func timed(s *sample, do func()) {
	start := time.Now()
	do()
	*s = append(*s, time.Since(start))
}
