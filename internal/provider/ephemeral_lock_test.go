package provider

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// A served provider is configured and answers Terraform's protocol, without a Terraform.
type served struct {
	tfprotov6.ProviderServer
	schemas *tfprotov6.GetProviderSchemaResponse
}

// serve configures a provider for the scenario, with more attributes.
func (s scenario) serve(t *testing.T, more attrs) served {
	t.Helper()
	p := newTestProvider(t, nil)
	server := served{ProviderServer: providerserver.NewProtocol6(p)()}
	var err error
	if server.schemas, err = server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{}); err != nil {
		t.Fatal(err)
	}
	config := attrs{
		"host": s.Host, "port": s.port(), "protocol": s.protocol, "username": s.Username, "password": s.Password,
		"database": s.database,
	}
	maps.Copy(config, more)
	configured, err := server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{Config: wired(t, server.schemas.Provider, config)})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "configure", configured.Diagnostics, "")
	return server
}

// wired makes a configuration as it travels.
func wired(t *testing.T, schema *tfprotov6.Schema, from attrs) *tfprotov6.DynamicValue {
	t.Helper()
	return encoded(t, object(t, schema.ValueType(), from))
}

// expect checks that the only error says all the words, or that there is neither an error nor a warning if want is empty.
func expect(t *testing.T, what string, diagnostics []*tfprotov6.Diagnostic, want string, more ...string) {
	t.Helper()
	var said []string
	for _, d := range diagnostics {
		said = append(said, d.Summary+": "+d.Detail)
	}
	if want == "" {
		if len(said) > 0 {
			t.Fatalf("%s: got %q, want nothing", what, said)
		}
		return
	}
	if len(said) != 1 || diagnostics[0].Severity != tfprotov6.DiagnosticSeverityError {
		t.Fatalf("%s: got %q, want one error", what, said)
	}
	for _, words := range append(more, want) {
		if !strings.Contains(said[0], words) {
			t.Errorf("%s: got %q, want %q in it", what, said[0], words)
		}
	}
}

// texts is a set of strings.
func texts(of ...string) []tftypes.Value {
	values := make([]tftypes.Value, len(of))
	for i, text := range of {
		values[i] = tftypes.NewValue(tftypes.String, text)
	}
	return values
}

// An openedLock is a clickhousestate_lock that Terraform has opened.
type openedLock struct {
	served
	lockID, holder string
	renewAt        time.Time
	private        []byte
}

// open opens a clickhousestate_lock, and returns what the provider says.
func (s served) open(t *testing.T, config attrs) (openedLock, []*tfprotov6.Diagnostic) {
	t.Helper()
	schema := s.schemas.EphemeralResourceSchemas["clickhousestate_lock"]
	resp, err := s.OpenEphemeralResource(t.Context(), &tfprotov6.OpenEphemeralResourceRequest{
		TypeName: "clickhousestate_lock", Config: wired(t, schema, config),
	})
	if err != nil {
		t.Fatal(err)
	}
	opened := openedLock{served: s, renewAt: resp.RenewAt, private: resp.Private}
	if resp.Result == nil {
		return opened, resp.Diagnostics
	}
	result, err := resp.Result.Unmarshal(schema.ValueType())
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]tftypes.Value
	if err := result.As(&values); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]*string{"lock_id": &opened.lockID, "holder": &opened.holder} {
		if values[name].IsKnown() && !values[name].IsNull() {
			if err := values[name].As(to); err != nil {
				t.Fatal(err)
			}
		}
	}
	return opened, resp.Diagnostics
}

func (l openedLock) renew(t *testing.T) []*tfprotov6.Diagnostic {
	t.Helper()
	resp, err := l.RenewEphemeralResource(t.Context(), &tfprotov6.RenewEphemeralResourceRequest{TypeName: "clickhousestate_lock", Private: l.private})
	if err != nil {
		t.Fatal(err)
	}
	return resp.Diagnostics
}

func (l openedLock) close(t *testing.T) []*tfprotov6.Diagnostic {
	t.Helper()
	resp, err := l.CloseEphemeralResource(t.Context(), &tfprotov6.CloseEphemeralResourceRequest{TypeName: "clickhousestate_lock", Private: l.private})
	if err != nil {
		t.Fatal(err)
	}
	return resp.Diagnostics
}

// claims returns the state_ids in the lock table, each with its lock_id.
func (s scenario) claims(t *testing.T) map[string]string {
	t.Helper()
	rows, err := s.conn.Query(t.Context(), "SELECT DISTINCT state_id, lock_id FROM "+s.database+".state_lock")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	claims := map[string]string{}
	for rows.Next() {
		var stateID, lockID string
		if err := rows.Scan(&stateID, &lockID); err != nil {
			t.Fatal(err)
		}
		if other, found := claims[stateID]; found {
			t.Errorf("%s is locked by %s and %s", stateID, other, lockID)
		}
		claims[stateID] = lockID
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return claims
}

// exec runs a statement of somebody who may do everything.
func (s scenario) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	if err := s.conn.Exec(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %s", statement, err)
	}
}

// foreign puts a claim of a Meltano client, of the given age in seconds.
func (s scenario) foreign(t *testing.T, stateID, lockID string, age int) {
	t.Helper()
	s.exec(t, "INSERT INTO "+s.database+".state_lock (state_id, lock_id, locked_at) VALUES (?, ?, now() - ?)", stateID, lockID, age)
}

// unlock deletes all claims, whoever they belong to.
func (s scenario) unlock(t *testing.T) {
	t.Helper()
	s.exec(t, "DELETE FROM "+s.database+".state_lock WHERE 1")
}

const foreignLockID = "00000000-0000-4000-8000-000000000001"

// impatient gives up soon.
var impatient = attrs{"lock": attrs{"timeout": "1s", "settle": "200ms", "retry_interval": "100ms"}}

func TestLock_life(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(t *testing.T, s scenario) {
		s.newTable(t)
		server := s.serve(t, impatient)
		lock, diagnostics := server.open(t, attrs{"state_ids": texts("dev:a", "dev:b")})
		expect(t, "open", diagnostics, "")
		if claims := s.claims(t); len(claims) != 2 || claims["dev:a"] != lock.lockID || claims["dev:b"] != lock.lockID {
			t.Errorf("claims are %v, want lock_id %s on both", claims, lock.lockID)
		}
		if in := time.Until(lock.renewAt); in <= 0 || in > 150*time.Second {
			t.Errorf("to be renewed in %s, want well before it is stale after 300 s", in)
		}
		expect(t, "renew", lock.renew(t), "")

		_, diagnostics = server.open(t, attrs{"state_ids": texts("dev:b", "dev:c")})
		expect(t, "open beside", diagnostics, "This configuration holds it already", `"dev:b", "dev:c"`)
		_, diagnostics = s.serve(t, impatient).open(t, attrs{"state_ids": texts("dev:b", "dev:c")})
		expect(t, "open elsewhere", diagnostics, "Unable to acquire lock", `state_id  "dev:b"`, "lock_id   "+lock.lockID, "holder    "+lock.holder, " ago\n",
			"DELETE FROM `"+s.database+"`.`state_lock` WHERE state_id = 'dev:b' AND lock_id = '"+lock.lockID+"'")
		if claims := s.claims(t); len(claims) != 2 {
			t.Errorf("claims are %v, want the first two", claims)
		}

		expect(t, "close", lock.close(t), "")
		if claims := s.claims(t); len(claims) != 0 {
			t.Errorf("claims %v are left", claims)
		}
		expect(t, "close again", lock.close(t), "does not hold lock "+lock.lockID)

		// The names of the table are the provider's or its own.
		_, diagnostics = server.open(t, attrs{"state_ids": texts("dev:a"), "table": "elsewhere"})
		expect(t, "open elsewhere", diagnostics, "table "+s.database+"/elsewhere does not exist")
	})
}

func TestLock_lost(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	s.newTable(t)
	lock, diagnostics := s.serve(t, impatient).open(t, attrs{"state_ids": texts("dev:a")})
	expect(t, "open", diagnostics, "")
	s.unlock(t)
	expect(t, "renew", lock.renew(t), "Unable to renew lock", "The lock was lost while it was held")
	if claims := s.claims(t); len(claims) != 0 {
		t.Errorf("claims are %v: the renewal brought it back", claims)
	}
	expect(t, "close", lock.close(t), "Unable to release lock", "The lock was lost while it was held")
}

// createEntry plans and creates an entry as Terraform does, and returns what the provider says.
func (s served) createEntry(t *testing.T, config attrs) []*tfprotov6.Diagnostic {
	t.Helper()
	const name = "clickhousestate_entry"
	schema := s.schemas.ResourceSchemas[name]
	nothing := encoded(t, tftypes.NewValue(schema.ValueType(), nil))
	planned, err := s.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: name, PriorState: nothing, Config: wired(t, schema, config), ProposedNewState: wired(t, schema, config),
	})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "plan", planned.Diagnostics, "")
	applied, err := s.ApplyResourceChange(t.Context(), &tfprotov6.ApplyResourceChangeRequest{
		TypeName: name, PriorState: nothing, Config: wired(t, schema, config), PlannedState: planned.PlannedState, PlannedPrivate: planned.PlannedPrivate,
	})
	if err != nil {
		t.Fatal(err)
	}
	return applied.Diagnostics
}

// Terraform closes a lock when all that depends on it is done. What shares it without saying so may be in the middle of a
// write then, and is waited for.
func TestLock_closedDuringWrite(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	s.newTable(t)
	s.slowDown(t, "sleep(1)")
	server := s.serve(t, nil)
	lock, diagnostics := server.open(t, attrs{"state_ids": texts("dev:a")})
	expect(t, "open", diagnostics, "")
	created := make(chan []*tfprotov6.Diagnostic)
	go func() {
		created <- server.createEntry(t, attrs{"state_id": "dev:a", "completed_state": `{"singer_state":{}}`})
	}()
	await(t, time.Minute, "the write is under way", func() bool { return s.writing(t) })
	expect(t, "close", lock.close(t), "")
	expect(t, "create", <-created, "")
	if claims := s.claims(t); len(claims) != 0 || len(s.live(t)) != 1 {
		t.Errorf("claims are %v and the entries %v, want no claim and one entry", claims, s.live(t))
	}
}

func TestLock_unknownConnection(t *testing.T) {
	t.Parallel()
	s := scenario{protocol: protocolNative}
	for name, tc := range map[string]struct {
		provider attrs
		want     string
	}{
		"host":     {attrs{"host": unknown}, "The provider's host will be known only after apply"},
		"database": {attrs{"host": "127.0.0.1", "database": unknown}, "The provider's database or table will be known only after apply"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.provider["port"] = nil
			_, diagnostics := s.serve(t, tc.provider).open(t, attrs{"state_ids": texts("dev:a")})
			expect(t, "open", diagnostics, tc.want)
		})
	}
}

func TestLock_validate(t *testing.T) {
	t.Parallel()
	server := scenario{protocol: protocolNative}.serve(t, attrs{"host": unknown, "port": nil})
	for name, tc := range map[string]struct {
		config attrs
		want   string
	}{
		"fine":           {attrs{"state_ids": texts("dev:a", "dev:b"), "timeout": "10m"}, ""},
		"unknown":        {attrs{"state_ids": unknown, "timeout": unknown}, ""},
		"no state_ids":   {attrs{"state_ids": texts()}, "at least 1 elements"},
		"empty state_id": {attrs{"state_ids": texts("dev:a", "")}, "string length must be at least 1"},
		"null state_id":  {attrs{"state_ids": []tftypes.Value{tftypes.NewValue(tftypes.String, nil)}}, "null"},
		"timeout":        {attrs{"state_ids": texts("dev:a"), "timeout": "10"}, "Invalid duration"},
		"slash":          {attrs{"state_ids": texts("dev:a"), "table": "a/b"}, "Invalid name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp, err := server.ValidateEphemeralResourceConfig(t.Context(), &tfprotov6.ValidateEphemeralResourceConfigRequest{
				TypeName: "clickhousestate_lock",
				Config:   wired(t, server.schemas.EphemeralResourceSchemas["clickhousestate_lock"], tc.config),
			})
			if err != nil {
				t.Fatal(err)
			}
			expect(t, "validate", resp.Diagnostics, tc.want)
		})
	}
}

// What the documentation is made of, for everything about locks.
func TestLock_described(t *testing.T) {
	t.Parallel()
	schemas := scenario{protocol: protocolNative}.serve(t, attrs{"host": unknown, "port": nil}).schemas
	for name, schema := range map[string]*tfprotov6.Schema{
		"clickhousestate_lock":       schemas.EphemeralResourceSchemas["clickhousestate_lock"],
		"clickhousestate_locks":      schemas.DataSourceSchemas["clickhousestate_locks"],
		"clickhousestate_break_lock": schemas.ActionSchemas["clickhousestate_break_lock"].Schema,
	} {
		if schema.Block.Description == "" {
			t.Errorf("%s has no description", name)
		}
		described(t, name, schema.Block.Attributes)
	}
}
