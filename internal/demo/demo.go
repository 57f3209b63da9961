package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// The pipeline that moves on, the one whose numbers are large, and what to look for in them.
const (
	movedPipeline = "prod:tap-github-to-target-clickhouse"
	largePipeline = "prod:tap-postgres-to-target-clickhouse:ledger"
	largeNumber   = "18446744073709551615"
	movedTo       = "2026-12-01T06:30:00Z"
)

// demo is one run, and where it says what it does.
type demo struct {
	out  io.Writer
	step int

	terraform terraform
	server    *server
	// export is the content of the example's state-export.json.
	export map[string]struct{ Completed, Partial json.RawMessage }
}

// run shows everything and cleans up.
func run(ctx context.Context, out io.Writer) error {
	if err := (&demo{out: out}).run(ctx); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nDone: every step went as it should, and nothing is left behind.")
	return nil
}

func (d *demo) run(ctx context.Context) (err error) {
	work, err := os.MkdirTemp("", "clickhousestate-demo-")
	if err != nil {
		return fmt.Errorf("make a temporary folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()

	d.say("Build the provider, and put it where `terraform init` finds it without a network.")
	if d.terraform, err = prepareTerraform(ctx, work); err != nil {
		return err
	}
	if err := d.readExport(); err != nil {
		return err
	}
	d.show("terraform-provider-clickhousestate " + version)

	d.say("Start ClickHouse.")
	if d.server, err = startServer(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.server.stop(context.WithoutCancel(ctx))) }()
	d.terraform.env = append(d.terraform.env, d.server.environment()...)
	d.show(d.server.String())

	for _, show := range []func(context.Context) error{
		d.initialize, d.seed, d.planNothing, d.move, d.planDrift, d.destroy,
	} {
		if err := show(ctx); err != nil {
			return err
		}
	}
	return nil
}

// say announces a step.
func (d *demo) say(format string, args ...any) {
	d.step++
	fmt.Fprintf(d.out, "\n%d. %s\n\n", d.step, fmt.Sprintf(format, args...))
}

// show prints what came of a step, indented.
func (d *demo) show(text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		fmt.Fprint(d.out, strings.TrimRight("     "+line, " \n")+"\n")
	}
}

func (d *demo) readExport() error {
	text, err := os.ReadFile(filepath.Join(d.terraform.dir, "state-export.json"))
	if err == nil {
		err = json.Unmarshal(text, &d.export)
	}
	if err != nil {
		return fmt.Errorf("read the example's state export: %w", err)
	}
	return nil
}

func (d *demo) initialize(ctx context.Context) error {
	d.say("terraform init")
	output, err := d.terraform.run(ctx, 0, "init")
	if err != nil {
		return err
	}
	d.show(matching(output, `^- Installed`, `successfully initialized`))
	return nil
}

// seed creates the tables and the entries.
func (d *demo) seed(ctx context.Context) error {
	d.say("terraform plan: a state table, and the %d bookmarks that `meltano state export` wrote.", len(d.export))
	output, err := d.terraform.run(ctx, planChanges, "plan", "-detailed-exitcode", "-out=tfplan")
	if err != nil {
		return err
	}
	d.show(matching(output, `^  # `, `^Plan:`))

	d.say("terraform apply: each bookmark is written under the lock that Meltano honours, and read back.")
	if output, err = d.terraform.run(ctx, 0, "apply", "tfplan"); err != nil {
		return err
	}
	d.show(matching(output, `Creation complete`, `^Apply complete!`))

	rows, err := d.server.one(ctx, "SELECT toString(count()) FROM "+d.server.table()+" FINAL")
	if err != nil {
		return err
	}
	claims, err := d.server.one(ctx, "SELECT toString(count()) FROM "+d.server.lockTable())
	if err != nil {
		return err
	}
	stored, err := d.server.one(ctx, "SELECT completed_state FROM "+d.server.table()+" FINAL WHERE state_id = ?", largePipeline)
	if err != nil {
		return err
	}
	d.show(fmt.Sprintf("\nClickHouse has %s bookmarks and %s locks. Large numbers are stored digit by digit:\n%s", rows, claims, stored))
	if rows != fmt.Sprint(len(d.export)) || claims != "0" || !strings.Contains(stored, largeNumber) {
		return fmt.Errorf("expected %d bookmarks, no lock, and the number %s", len(d.export), largeNumber)
	}
	return nil
}

func (d *demo) planNothing(ctx context.Context) error {
	d.say("terraform plan again: what is stored means what is declared, however it is spelled.")
	output, err := d.terraform.run(ctx, 0, "plan", "-detailed-exitcode")
	if err != nil {
		return err
	}
	d.show(matching(output, `^No changes`))
	return nil
}

// move stores a later bookmark as Meltano does when a run ends: three columns, and no version.
func (d *demo) move(ctx context.Context) error {
	completed, err := advance(d.export[movedPipeline].Completed)
	if err != nil {
		return err
	}
	d.say("A pipeline runs: Meltano stores that %s has read its issues up to %s.", movedPipeline, movedTo)
	insert := "INSERT INTO " + d.server.table() + " (state_id, partial_state, completed_state) VALUES (?, NULL, ?)"
	if err := d.server.exec(ctx, insert, movedPipeline, completed); err != nil {
		return err
	}
	d.show("INSERT INTO " + d.server.table() + " (state_id, partial_state, completed_state) VALUES ('" + movedPipeline + "', NULL, '{\"singer_state\": ...}')")
	return nil
}

// advance moves the bookmark of one stream on, and keeps everything else, numbers included, as it is.
func advance(completed json.RawMessage) (string, error) {
	decoder := json.NewDecoder(bytes.NewReader(completed))
	decoder.UseNumber()
	var state struct {
		SingerState struct {
			Bookmarks map[string]map[string]any `json:"bookmarks"`
		} `json:"singer_state"`
	}
	if err := decoder.Decode(&state); err != nil {
		return "", fmt.Errorf("read the bookmark of %s: %w", movedPipeline, err)
	}
	issues := state.SingerState.Bookmarks["issues"]
	if issues == nil {
		return "", fmt.Errorf("the bookmark of %s has no stream issues", movedPipeline)
	}
	issues["replication_key_value"] = movedTo
	text, err := json.Marshal(state)
	return string(text), err
}

func (d *demo) planDrift(ctx context.Context) error {
	d.say("terraform plan: the bookmark is not what is declared any more. Applying this would set the pipeline back.")
	output, err := d.terraform.run(ctx, planChanges, "plan", "-detailed-exitcode")
	if err != nil {
		return err
	}
	_, changes, found := strings.Cut(output, "\n  # ")
	changes, _, _ = strings.Cut(changes, "\n────")
	if !found || !strings.Contains(changes, movedPipeline) || !strings.Contains(changes, "Plan: 0 to add, 1 to change, 0 to destroy.") {
		return fmt.Errorf("expected a plan that changes %s and nothing else, got:\n%s", movedPipeline, output)
	}
	d.show("# " + strings.TrimSpace(changes))
	return nil
}

func (d *demo) destroy(ctx context.Context) error {
	d.say("terraform destroy: the bookmarks under their locks, then both tables.")
	output, err := d.terraform.run(ctx, 0, "destroy", "-auto-approve")
	if err != nil {
		return err
	}
	d.show(matching(output, `^Destroy complete!`))
	left, err := d.server.one(ctx, "SELECT toString(count()) FROM system.tables WHERE database = ?", d.server.database)
	if err != nil {
		return err
	}
	if left != "0" {
		return fmt.Errorf("expected no table to be left in database %s, found %s", d.server.database, left)
	}
	return nil
}

// matching returns the lines that match one of the patterns.
func matching(text string, patterns ...string) string {
	wanted := regexp.MustCompile(strings.Join(patterns, "|"))
	var out strings.Builder
	for line := range strings.Lines(text) {
		if wanted.MatchString(strings.TrimRight(line, "\n")) {
			out.WriteString(line)
		}
	}
	return out.String()
}
