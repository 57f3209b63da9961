package provider

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/embedded"
)

// privateScenario makes a scenario on a server of its own, with a state table in the database meltano.
func privateScenario(t *testing.T, opts embedded.Options) scenario {
	t.Helper()
	endpoint := acctest.EndpointOf(acctest.PrivateServer(t, opts))
	s := scenario{Endpoint: endpoint, protocol: protocolNative, database: defaultDatabase, conn: endpoint.Conn(t)}
	if err := s.conn.Exec(t.Context(), "CREATE DATABASE "+s.database); err != nil {
		t.Fatal(err)
	}
	s.newTable(t)
	return s
}

// as returns the scenario for another user.
func (s scenario) as(user, password string) scenario {
	s.Username, s.Password = user, password
	return s
}

// closedPort is a port on which nothing listens.
func closedPort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address, ok := listener.Addr().(*net.TCPAddr)
	if err := listener.Close(); err != nil || !ok {
		t.Fatal(err)
	}
	return address.Port
}

// Each wrong way in fails soon, and says what was used and what to change.
func TestConnection_wrong(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	at := func(protocol string, native, http int) scenario {
		wrong := s
		wrong.protocol, wrong.NativePort, wrong.HTTPPort = protocol, native, http
		return wrong
	}
	var started time.Time
	var steps []resource.TestStep
	for _, tc := range []struct {
		of   scenario
		more string
		want string
	}{
		{at(protocolNative, s.HTTPPort, 0), "", "the port speaks HTTP"},
		{at(protocolHTTP, 0, s.NativePort), "", "the port speaks the native protocol"},
		{at(protocolNative, s.NativePort, 0), "secure = true", "the port does not speak TLS"},
		{at(protocolHTTP, 0, s.HTTPPort), "secure = true", "the port does not speak TLS"},
		{at(protocolNative, closedPort(t), 0), "", "nothing listens there"},
		{s.as("nobody", "hunter2"), "", "check username and password"},
	} {
		steps = append(steps, resource.TestStep{
			PreConfig: func() {
				if took := time.Since(started); !started.IsZero() && took > 15*time.Second {
					t.Errorf("it took %s to find out", took)
				}
				started = time.Now()
			},
			Config:      tc.of.config(entry(issues("T0")), tc.more),
			ExpectError: refused(tc.want),
		})
	}
	s.run(t, append(steps, resource.TestStep{Config: s.config("# the right one")})...)
}

// What is not known at plan is not guessed: no connection, not even to localhost.
func TestConnection_unknown(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	s.newTable(t)
	config := func(s scenario, input string) string {
		text := s.config(`resource "clickhousestate_entry" "e" {
  state_id        = "dev:x"
  completed_state = jsonencode({ singer_state = { a = terraform_data.ch.id } })
}
` + fmt.Sprintf("resource \"terraform_data\" \"ch\" {\n  input = %q\n}\n", input))
		return strings.Replace(text, fmt.Sprintf("host = %q", s.Host), "host = terraform_data.ch.output", 1)
	}
	nobody := s
	nobody.NativePort = closedPort(t)
	s.run(t,
		resource.TestStep{Config: config(nobody, s.Host), PlanOnly: true, ExpectNonEmptyPlan: true},
		resource.TestStep{
			Config: config(s, s.Host),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectResourceAction(entryE, plancheck.ResourceActionCreate),
			}},
		},
		// Something has to be read now, and it is not known where.
		resource.TestStep{Config: config(s, "localhost"), ExpectError: refused("The provider's host will be known only after apply")},
	)
}

// The least rights that each way of working needs. A user who may only read plans and refreshes; without DDL rights,
// entries can still be applied.
func TestConnection_grants(t *testing.T) {
	t.Parallel()
	s := privateScenario(t, embedded.Options{Users: []embedded.User{
		{Name: "reader", Password: "r", Readonly: 1, Grants: []string{"GRANT SELECT ON meltano.*"}},
		{Name: "writer", Password: "w", Grants: []string{"GRANT SELECT, INSERT, ALTER DELETE ON meltano.*"}},
	}})
	for _, protocol := range []string{protocolNative, protocolHTTP} {
		t.Run(protocol, func(t *testing.T) {
			s := s
			s.protocol = protocol
			reader, writer := s.as("reader", "r"), s.as("writer", "w")
			s.run(t,
				resource.TestStep{Config: writer.config(entry(issues("T0")))},
				resource.TestStep{Config: writer.config(entry(issues("T1")))},
				resource.TestStep{Config: reader.config(entry(issues("T1"))), PlanOnly: true},
				resource.TestStep{
					PreConfig:    func() { s.meltano(t, entryID, `{"singer_state": {}}`, nil) },
					RefreshState: true, ExpectNonEmptyPlan: true,
				},
				resource.TestStep{
					Config:      reader.config(entry(issues("T1"))),
					ExpectError: refused("The user may only read"),
				},
				resource.TestStep{Config: writer.config(table(`  name = "other"`)), ExpectError: refused("The user lacks a right.")},
				resource.TestStep{Config: writer.config("# a destroy"), PostApplyFunc: func() {
					if rows := s.live(t); len(rows) != 0 {
						t.Errorf("still live: %v", rows)
					}
				}},
			)
		})
	}
}

// A server that dies in the middle of an apply, and comes back.
func TestConnection_crash(t *testing.T) {
	t.Parallel()
	server := acctest.PrivateServer(t, embedded.Options{Dir: t.TempDir()})
	endpoint := acctest.EndpointOf(server)
	s := scenario{Endpoint: endpoint, protocol: protocolHTTP, database: defaultDatabase}
	const entries = 20
	config := s.config(table(unprotected, "  create_database = true") + fmt.Sprintf(`
resource "clickhousestate_entry" "e" {
  count           = %d
  state_id        = "dev:${count.index}"
  table           = clickhousestate_table.t.name
  completed_state = jsonencode({ singer_state = { index = count.index } })
}
`, entries))

	killed := make(chan error, 1)
	killAfterSome := func() {
		conn := endpoint.Conn(t)
		go func() {
			for {
				var rows uint64
				err := conn.QueryRow(t.Context(), "SELECT ifNull(sum(total_rows), 0) FROM system.tables WHERE database = 'meltano' AND name = 'state'").Scan(&rows)
				if err != nil || rows >= 3 {
					server.Kill()
					killed <- err
					return
				}
				time.Sleep(5 * time.Millisecond)
			}
		}()
	}
	s.run(t,
		resource.TestStep{PreConfig: killAfterSome, Config: config, ExpectError: refused("Unable to create state entry")},
		resource.TestStep{
			PreConfig: func() {
				if err := <-killed; err != nil {
					t.Fatal(err)
				}
				s.conn = acctest.EndpointOf(acctest.PrivateServer(t, server.Options)).Conn(t)
				if rows := s.count(t, "state"); rows == 0 || rows == entries {
					t.Fatalf("%d rows: the server did not die in the middle", rows)
				}
				// The claims of what was interrupted are stale after 300 s; a test does not wait for that.
				if err := s.conn.Exec(t.Context(), "TRUNCATE TABLE meltano.state_lock"); err != nil {
					t.Fatal(err)
				}
			},
			Config: config,
			PostApplyFunc: func() {
				if rows := s.count(t, "state"); rows != entries {
					t.Errorf("%d rows, want %d, each written once", rows, entries)
				}
			},
		},
	)
}
