package provider

import (
	"context"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	fwresource "github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

// TestMain makes every test of this package run with the Terraform on the PATH, and not only when TF_ACC is set.
func TestMain(m *testing.M) {
	if os.Getenv("TF_ACC_TERRAFORM_PATH") == "" {
		if terraform, err := exec.LookPath("terraform"); err == nil {
			_ = os.Setenv("TF_ACC_TERRAFORM_PATH", terraform)
		}
	}
	_ = os.Setenv("TF_ACC", "1")
	acctest.Main(m)
}

// A scenario is a database of its own, over one protocol.
type scenario struct {
	acctest.Endpoint
	protocol string
	database string
	layout   statestore.Layout // of the table that newTable makes; "" is the default
	conn     driver.Conn       // native and all-powerful, to look behind the provider's back
}

// newScenario makes a scenario on the server that the tests share. The database is empty.
func newScenario(t *testing.T, protocol string) scenario {
	t.Helper()
	return scenario{Endpoint: acctest.Server(t), protocol: protocol, database: acctest.Database(t), conn: acctest.Conn(t)}
}

// eachProtocol runs a test over native and over HTTP.
func eachProtocol(t *testing.T, run func(t *testing.T, s scenario)) {
	t.Helper()
	for _, protocol := range []string{protocolNative, protocolHTTP} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			run(t, newScenario(t, protocol))
		})
	}
}

func (s scenario) port() int {
	if s.protocol == protocolHTTP {
		return s.HTTPPort
	}
	return s.NativePort
}

// config returns a configuration: the provider, with more lines in it, and what it manages.
func (s scenario) config(body string, more ...string) string {
	return fmt.Sprintf("provider \"clickhousestate\" {\n  host = %q\n  port = %d\n  protocol = %q\n  username = %q\n  password = %q\n  database = %q\n%s\n}\n%s",
		s.Host, s.port(), s.protocol, s.Username, s.Password, s.database, strings.Join(more, "\n"), body)
}

// run runs the steps of a test case.
func (s scenario) run(t *testing.T, steps ...resource.TestStep) {
	t.Helper()
	resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: factories(t), Steps: steps})
}

// factories serve the provider from this process. Each command of Terraform gets a new one.
func factories(t *testing.T) map[string]func() (tfprotov6.ProviderServer, error) {
	t.Helper()
	served := New("test")
	closeServed := func() { served.Close(context.Background()) }
	t.Cleanup(func() { closeServed() })
	return map[string]func() (tfprotov6.ProviderServer, error){
		typeName: func() (tfprotov6.ProviderServer, error) {
			closeServed()
			served = New("test")
			return providerserver.NewProtocol6(served)(), nil
		},
	}
}

// newTable makes a state table, named state, and its lock table.
func (s scenario) newTable(t *testing.T) {
	t.Helper()
	store, err := statestore.Open(statestore.Config{Connection: statestore.Connection{
		Host: s.Host, Port: s.NativePort, Username: s.Username, Password: s.Password,
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close(context.Background()) }()
	if _, _, err := store.CreateTable(t.Context(), statestore.TableSpec{Database: s.database, Name: defaultTable, Layout: s.layout}); err != nil {
		t.Fatal(err)
	}
}

// meltano writes an entry as Meltano does: it names three columns.
func (s scenario) meltano(t *testing.T, stateID string, completed, partial any) {
	t.Helper()
	s.insert(t, "(state_id, completed_state, partial_state)", stateID, completed, partial)
}

// insert adds a row as column data, so that any character arrives as it is.
func (s scenario) insert(t *testing.T, columns string, values ...any) {
	t.Helper()
	batch, err := s.conn.PrepareBatch(t.Context(), fmt.Sprintf("INSERT INTO %s.state %s", s.database, columns))
	if err != nil {
		t.Fatal(err)
	}
	if err := batch.Append(values...); err != nil {
		t.Fatal(err)
	}
	if err := batch.Send(); err != nil {
		t.Fatal(err)
	}
}

// meltanoDelete deletes an entry as Meltano does.
func (s scenario) meltanoDelete(t *testing.T, stateID string) {
	t.Helper()
	if err := s.conn.Exec(t.Context(), "DELETE FROM "+s.database+".state WHERE state_id = ?", stateID); err != nil {
		t.Fatal(err)
	}
}

// A row is a live row as readers see it.
type row struct {
	completed, partial *string
	version            uint64
}

// live returns the live rows.
func (s scenario) live(t *testing.T) map[string]row {
	t.Helper()
	version := "version"
	if s.layout == statestore.LayoutMeltano {
		version = "toUInt64(toUnixTimestamp64Milli(updated_at))"
	}
	found, err := s.conn.Query(t.Context(), "SELECT state_id, completed_state, partial_state, "+version+" FROM "+s.database+".state FINAL")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = found.Close() }()
	rows := map[string]row{}
	for found.Next() {
		var (
			id string
			r  row
		)
		if err := found.Scan(&id, &r.completed, &r.partial, &r.version); err != nil {
			t.Fatal(err)
		}
		rows[id] = r
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// count counts the rows of a table or of what follows its name.
func (s scenario) count(t *testing.T, from string) (n uint64) {
	t.Helper()
	if err := s.conn.QueryRow(t.Context(), "SELECT count() FROM "+s.database+"."+from).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func text(s *string) string {
	if s == nil {
		return "NULL"
	}
	return *s
}

func TestProviderSchema(t *testing.T) {
	t.Parallel()
	server := providerserver.NewProtocol6(New("test"))()
	schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range schemas.Diagnostics {
		t.Errorf("%s: %s", d.Summary, d.Detail)
	}
	described(t, "provider", schemas.Provider.Block.Attributes)
	kinds := map[string]map[string]*tfprotov6.Schema{
		"resource": schemas.ResourceSchemas, "data source": schemas.DataSourceSchemas,
		"ephemeral resource": schemas.EphemeralResourceSchemas, "list resource": schemas.ListResourceSchemas,
		"action": {},
	}
	for name, action := range schemas.ActionSchemas {
		kinds["action"][name] = action.Schema
	}
	for kind, all := range kinds {
		for name, schema := range all {
			name = kind + " " + name
			if schema.Block.Description == "" {
				t.Errorf("%s has no description", name)
			}
			described(t, name, schema.Block.Attributes)
		}
	}
	for name, function := range schemas.Functions {
		if function.Summary == "" || function.Description == "" {
			t.Errorf("%s has no summary or no description", name)
		}
		parameters := function.Parameters
		if function.VariadicParameter != nil {
			parameters = append(parameters, function.VariadicParameter)
		}
		for _, parameter := range parameters {
			if parameter.Description == "" {
				t.Errorf("%s: %s has no description", name, parameter.Name)
			}
		}
	}
	for _, create := range New("test").Resources(t.Context()) {
		var resp fwresource.SchemaResponse
		create().Schema(t.Context(), fwresource.SchemaRequest{}, &resp)
		for _, d := range resp.Schema.ValidateImplementation(t.Context()) {
			t.Errorf("%s: %s", d.Summary(), d.Detail())
		}
	}
}

// described checks that every attribute says what it is: the documentation is made of that.
func described(t *testing.T, at string, attributes []*tfprotov6.SchemaAttribute) {
	t.Helper()
	for _, attribute := range attributes {
		name := at + "." + attribute.Name
		if attribute.Description == "" {
			t.Errorf("%s has no description", name)
		}
		if attribute.NestedType != nil {
			described(t, name, attribute.NestedType.Attributes)
		}
	}
}

// known accepts any known number.
func known(*big.Float) error { return nil }
