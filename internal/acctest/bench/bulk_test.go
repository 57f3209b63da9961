package bench

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/bookmark"
	ours "github.com/clickhousestate/terraform-provider-clickhousestate/internal/provider"
)

const typeName = "clickhousestate_entries"

// A direct is the provider without Terraform: what is measured of it is its own time.
type direct struct {
	server   tfprotov6.ProviderServer
	schema   tftypes.Object
	database string
	// state and private are what Terraform would keep.
	state   *tfprotov6.DynamicValue
	private []byte
}

// newDirect configures a provider on a database with a state table.
func newDirect(t *testing.T) *direct {
	t.Helper()
	endpoint, p := acctest.Server(t), ours.New("bench")
	t.Cleanup(func() { p.Close(context.Background()) })
	d := &direct{server: providerserver.NewProtocol6(p)(), database: databaseOf(t, provider(t))}
	schemas, err := d.server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	config := object(t, schemas.Provider.ValueType(), map[string]any{
		"host": endpoint.Host, "port": endpoint.NativePort, "username": endpoint.Username, "password": endpoint.Password, "database": d.database,
	})
	configured, err := d.server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{Config: config})
	check(t, err, configured.Diagnostics)
	d.schema = schemas.ResourceSchemas[typeName].ValueType().(tftypes.Object)
	d.state = value(t, d.schema, tftypes.NewValue(d.schema, nil))
	return d
}

// databaseOf is the database of a provider's configuration.
func databaseOf(t *testing.T, config string) string {
	t.Helper()
	_, rest, ok := strings.Cut(config, "database = ")
	line, _, _ := strings.Cut(rest, "\n")
	name, err := strconv.Unquote(line)
	if !ok || err != nil {
		t.Fatalf("no database in %s", config)
	}
	return name
}

// object makes a value of the attributes that are given; the others are null.
func object(t *testing.T, of tftypes.Type, attributes map[string]any) *tfprotov6.DynamicValue {
	t.Helper()
	values := map[string]tftypes.Value{}
	for name, attribute := range of.(tftypes.Object).AttributeTypes {
		values[name] = tftypes.NewValue(attribute, attributes[name])
	}
	return value(t, of, tftypes.NewValue(of, values))
}

func value(t *testing.T, of tftypes.Type, v tftypes.Value) *tfprotov6.DynamicValue {
	t.Helper()
	dynamic, err := tfprotov6.NewDynamicValue(of, v)
	if err != nil {
		t.Fatal(err)
	}
	return &dynamic
}

func check(t *testing.T, err error, diagnostics []*tfprotov6.Diagnostic) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range diagnostics {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			t.Fatalf("%s: %s", d.Summary, d.Detail)
		}
	}
}

// apply plans and applies an export, or a destroy if there is none, and measures the apply alone.
func (d *direct) apply(t *testing.T, took *sample, export *string) {
	t.Helper()
	config := value(t, d.schema, tftypes.NewValue(d.schema, nil))
	if export != nil {
		config = object(t, d.schema, map[string]any{"export": *export, "database": d.database, "table": "state", "on_rewind": "allow"})
	}
	planned, err := d.server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: typeName, PriorState: d.state, ProposedNewState: config, Config: config, PriorPrivate: d.private,
	})
	check(t, err, planned.Diagnostics)
	timed(took, func() {
		applied, err := d.server.ApplyResourceChange(t.Context(), &tfprotov6.ApplyResourceChangeRequest{
			TypeName: typeName, PriorState: d.state, PlannedState: planned.PlannedState, Config: config, PlannedPrivate: planned.PlannedPrivate,
		})
		check(t, err, applied.Diagnostics)
		d.state, d.private = applied.NewState, applied.Private
	})
}

// refresh reads what is stored.
func (d *direct) refresh(t *testing.T, took *sample) {
	t.Helper()
	timed(took, func() {
		read, err := d.server.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{TypeName: typeName, CurrentState: d.state, Private: d.private})
		check(t, err, read.Diagnostics)
		d.state, d.private = read.NewState, read.Private
	})
}

// bulk compares the provider's own time for exports with what the driver takes for the same rows: one batch insert and one
// read with FINAL, without a lock, a comparison or a verification.
func bulk(t *testing.T, table *report) {
	creates, changes, refreshes, destroys := map[int]*sample{}, map[int]*sample{}, map[int]*sample{}, map[int]*sample{}
	inserts, reads, both := map[int]*sample{}, map[int]*sample{}, map[int]*sample{}
	sizes := []int{10_000, 100_000}
	for _, n := range sizes {
		for _, s := range []map[int]*sample{creates, changes, refreshes, destroys, inserts, reads, both} {
			s[n] = &sample{}
		}
		d := newDirect(t)
		plain := databaseOf(t, provider(t))
		first, second := export(n, 0), export(n, 1)
		entries, err := bookmark.ParseExport(first)
		if err != nil {
			t.Fatal(err)
		}
		d.apply(t, &sample{}, &first) // to get to know the server
		d.apply(t, &sample{}, nil)
		for range *repeat {
			d.apply(t, creates[n], &first)
			d.refresh(t, refreshes[n])
			d.apply(t, changes[n], &second)
			d.apply(t, destroys[n], nil)
			insertPlainly(t, plain, entries, inserts[n])
			readPlainly(t, plain, n, reads[n])
			last := len(*inserts[n]) - 1
			*both[n] = append(*both[n], (*inserts[n])[last]+(*reads[n])[last])
		}
	}
	const n = 10_000
	table.compare("bulk create of 10,000 entries", "ApplyResourceChange", "one INSERT and one FINAL read", "10", *creates[n], *both[n])
	table.compare("bulk refresh of 10,000 entries", "ReadResource", "one FINAL read", "", *refreshes[n], *reads[n])
	table.compare("change of one of 10,000 entries", "ApplyResourceChange", "one INSERT and one FINAL read of all", "", *changes[n], *both[n])
	table.compare("bulk create, growth of the provider's own time", "100,000", "10,000", "12", *creates[100_000], *creates[n])
	table.note("| entries in one export, the provider's own time | create | refresh | change of one | destroy | driver: INSERT | driver: FINAL read |\n|---|---|---|---|---|---|---|")
	for _, n := range sizes {
		table.note("| %d | %s | %s | %s | %s | %s | %s |", n, creates[n], refreshes[n], changes[n], destroys[n], inserts[n], reads[n])
	}
	table.note("")
}

func insertPlainly(t *testing.T, database string, entries map[string]bookmark.Entry, took *sample) {
	t.Helper()
	conn := acctest.Conn(t)
	ids := slices.Sorted(maps.Keys(entries))
	if err := conn.Exec(t.Context(), "TRUNCATE TABLE "+database+".state"); err != nil {
		t.Fatal(err)
	}
	timed(took, func() {
		batch, err := conn.PrepareBatch(t.Context(), "INSERT INTO "+database+".state (state_id, completed_state)")
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if err := batch.Append(id, entries[id].Completed); err != nil {
				t.Fatal(err)
			}
		}
		if err := batch.Send(); err != nil {
			t.Fatal(err)
		}
	})
}

func readPlainly(t *testing.T, database string, n int, took *sample) {
	t.Helper()
	conn := acctest.Conn(t)
	timed(took, func() {
		rows, err := conn.Query(t.Context(), "SELECT state_id, completed_state, partial_state, version, updated_at FROM "+database+".state FINAL")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rows.Close() }()
		found := 0
		for rows.Next() {
			var (
				id                 string
				completed, partial *string
				version            uint64
				updatedAt          time.Time
			)
			if err := rows.Scan(&id, &completed, &partial, &version, &updatedAt); err != nil {
				t.Fatal(err)
			}
			found++
		}
		if err := rows.Err(); err != nil || found != n {
			t.Fatalf("read %d rows, want %d: %v", found, n, err)
		}
	})
}

// lockCycle runs the lock's own measurement, which belongs to the race, on the same server.
func lockCycle(t *testing.T, table *report) {
	server := acctest.Server(t)
	if server.Username != "default" || server.Password != "" {
		table.note("The lock cycle is measured on embedded servers only.\n")
		return
	}
	printed, err := exec.Command("go", "run", "../race", "-bench", "-server",
		fmt.Sprintf("%s:%d", net.JoinHostPort(server.Host, strconv.Itoa(server.NativePort)), server.HTTPPort)).CombinedOutput()
	if err != nil {
		t.Fatalf("race -bench: %v\n%s", err, printed)
	}
	p50 := map[string]sample{}
	for line := range strings.Lines(string(printed)) {
		fields := strings.Fields(strings.ReplaceAll(line, " ms", ""))
		if len(fields) < 5 {
			continue
		}
		if ms, err := strconv.ParseFloat(fields[len(fields)-2], 64); err == nil {
			p50[cmp.Or(strings.Join(fields[:len(fields)-4], " "), "?")] = sample{time.Duration(ms * float64(time.Millisecond))}
		}
	}
	peer, ok := p50["Meltano's protocol, HTTP"]
	if !ok {
		t.Fatalf("no measurement of Meltano's in\n%s", printed)
	}
	for _, name := range []string{"ours, native", "ours, HTTP"} {
		table.compare("lock, write and release of one entry (p50)", name, "Meltano's protocol, which waits 1 s", "", p50[name], peer)
	}
	table.note("```text\n%s```\n", printed)
}
