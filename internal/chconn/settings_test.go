package chconn_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/embedded"
)

// withUsers starts a server with these users, and runs the test over each protocol.
func withUsers(t *testing.T, users []embedded.User, test func(t *testing.T, login func(user string) *chconn.Client)) {
	t.Helper()
	endpoint := acctest.EndpointOf(acctest.PrivateServer(t, embedded.Options{Users: users, QueryLog: true}))
	admin := newClient(t, configOf(endpoint, chconn.Native))
	exec(t, admin, "CREATE DATABASE m")
	exec(t, admin, "CREATE TABLE m.t (a String, b Nullable(String)) ENGINE = MergeTree ORDER BY a")
	exec(t, admin, "INSERT INTO m.t VALUES ('x', 'y')")
	for _, protocol := range chconn.Protocols() {
		t.Run(string(protocol), func(t *testing.T) {
			test(t, func(user string) *chconn.Client {
				e := endpoint
				e.Username = user
				if i := slices.IndexFunc(users, func(u embedded.User) bool { return u.Name == user }); i >= 0 {
					e.Password = users[i].Password
				}
				return newClient(t, configOf(e, protocol))
			})
		})
	}
}

// sent reads what the server logged of a statement: its settings, where they differ from the profile's, and its comment.
func sent(t *testing.T, c *chconn.Client, queryID, what string) string {
	t.Helper()
	exec(t, c, "SYSTEM FLUSH LOGS query_log")
	return one(t, c, "SELECT "+what+" FROM system.query_log WHERE query_id = ? AND type != 'QueryStart' LIMIT 1", queryID)
}

func TestReadonlyUserReads(t *testing.T) {
	users := []embedded.User{{Name: "reader", Password: "pw", Readonly: 1, Grants: []string{"GRANT SELECT ON m.*"}}}
	withUsers(t, users, func(t *testing.T, login func(string) *chconn.Client) {
		c := login("reader")
		// A deadline of the caller's, a timeout, settings that have their value already or that nobody knows, arguments, rows.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		id := uuid.NewString()
		var got string
		err := c.Query(ctx, chconn.Statement{
			Operation: "entry.read",
			Text:      "SELECT concat(a, b, ?) FROM m.t WHERE a IN (SELECT id FROM ids)",
			Args:      []any{"z"},
			Settings:  map[string]string{"do_not_merge_across_partitions_select_final": "0", "no_such_setting": "1"},
			External:  []chconn.Table{{Name: "ids", Columns: []chconn.Column{{Name: "id", Type: "String"}}, Rows: [][]any{{"x"}}}},
			Timeout:   30 * time.Second,
			QueryID:   id,
		}, func(row chconn.Row) error { return row.Scan(&got) })
		if err != nil || got != "xyz" {
			t.Fatalf("%q, %v, want xyz", got, err)
		}
		if got := sent(t, login("default"), id, "concat(log_comment, toString(mapContains(Settings, 'max_execution_time')))"); got != "0" {
			t.Errorf("sent log_comment and max_execution_time: %s", got)
		}

		_, err = c.Exec(ctx, chconn.Statement{Operation: "entry.write", Text: "INSERT INTO m.t SELECT 'a', 'b'"})
		if grant, ok := chconn.MissingGrant(err); !ok || grant != "GRANT INSERT(a, b) ON m.t TO reader" {
			t.Errorf("%v: missing %q", err, grant)
		}
	})
}

func TestSettingsThatMayNotChange(t *testing.T) {
	users := []embedded.User{
		{Name: "reader", Password: "pw", Readonly: 1, Settings: map[string]string{"do_not_merge_across_partitions_select_final": "1", "result_overflow_mode": "break"}},
		{Name: "writer", Password: "pw", Settings: map[string]string{"async_insert": "1", "wait_for_async_insert": "0"}, Fixed: []string{"async_insert"}},
		{Name: "silent", Password: "pw", Fixed: []string{"log_comment"}},
	}
	withUsers(t, users, func(t *testing.T, login func(string) *chconn.Client) {
		for _, tc := range []struct {
			user, setting, value string
			code                 int32
		}{
			{"reader", "do_not_merge_across_partitions_select_final", "0", chconn.CodeReadOnly},
			{"writer", "async_insert", "0", chconn.CodeSettingConstraint},
			{"reader", "do_not_merge_across_partitions_select_final", "1", 0}, // it has the value
			{"writer", "async_insert", "1", 0},
			{"writer", "wait_for_async_insert", "1", 0}, // it may
			{"silent", "async_insert", "0", 0},
		} {
			_, err := login(tc.user).Exec(context.Background(), chconn.Statement{
				Operation: "test", Text: "SELECT 1", Settings: map[string]string{tc.setting: tc.value},
			})
			var server *chconn.ServerError
			switch errors.As(err, &server); {
			case tc.code == 0:
				if err != nil {
					t.Errorf("%s, %s = %s: %v", tc.user, tc.setting, tc.value, err)
				}
			case server == nil || server.Code != tc.code || !strings.Contains(server.Message, tc.setting):
				t.Errorf("%s, %s = %s: %v, want error %d naming the setting", tc.user, tc.setting, tc.value, err, tc.code)
			}
		}
	})
}

// With settings of the profile that cut results short in silence, a result is whole all the same.
func TestWholeResults(t *testing.T) {
	users := []embedded.User{{Name: "cut", Password: "pw", Settings: map[string]string{
		"max_result_rows": "2", "result_overflow_mode": "break", "send_progress_in_http_headers": "1",
	}}}
	withUsers(t, users, func(t *testing.T, login func(string) *chconn.Client) {
		c := login("cut")
		rows := 0
		err := c.Query(context.Background(), chconn.Statement{Operation: "test", Text: "SELECT number FROM numbers(200000)"}, func(chconn.Row) error { rows++; return nil })
		if err == nil {
			t.Errorf("%d rows of 200000 without an error", rows)
		}
		rows = 0
		err = c.Query(context.Background(), chconn.Statement{Operation: "test", Text: "SELECT number FROM numbers(200000)", Settings: map[string]string{"max_result_rows": "0"}}, func(chconn.Row) error { rows++; return nil })
		if err != nil || rows != 200_000 {
			t.Errorf("%d rows of 200000, %v", rows, err)
		}
	})
}

func TestLogComment(t *testing.T) {
	withUsers(t, nil, func(t *testing.T, login func(string) *chconn.Client) {
		c := login("default")
		id := uuid.NewString()
		if _, err := c.Exec(context.Background(), chconn.Statement{
			Operation: "entry.write", QueryID: id, Text: "INSERT INTO m.t SELECT 'q', 'r'",
			Settings: map[string]string{"async_insert": "0", "max_execution_time": "30", "max_threads": "3"},
		}); err != nil {
			t.Fatal(err)
		}
		what := "concat(log_comment, ', ', Settings['async_insert'], ', ', Settings['max_execution_time'], ', ', Settings['max_threads'], ', ', toString(written_rows))"
		if got, want := sent(t, c, id, what), "terraform-provider-clickhousestate/1.2.3 entry.write, 0, 30, 3, 1"; got != want {
			t.Errorf("logged %s, want %s", got, want)
		}
		agent := sent(t, c, id, "concat(client_name, http_user_agent)")
		if !strings.HasPrefix(agent, "terraform-provider-clickhousestate/1.2.3 ") && !strings.Contains(agent, " terraform-provider-clickhousestate/1.2.3 ") {
			t.Errorf("the client is %q", agent)
		}
	})
}

// A setting that only makes a statement cheaper is no reason to refuse it.
func TestPreferences(t *testing.T) {
	three := map[string]string{"max_threads": "3", "local_filesystem_read_method": "mmap"}
	want := map[string]string{"free": "1, false, pread", "fixed": "3, false, mmap", "bound": "3, false, pread", "reader": "3, true, mmap"}
	users := []embedded.User{
		{Name: "free", Password: "pw", Settings: three},
		{Name: "fixed", Password: "pw", Settings: three, Fixed: []string{"max_threads", "local_filesystem_read_method"}},
		{Name: "bound", Password: "pw", Settings: three, Least: map[string]string{"max_threads": "2"}},
		{Name: "reader", Password: "pw", Settings: three, Readonly: 1},
	}
	withUsers(t, users, func(t *testing.T, login func(string) *chconn.Client) {
		for _, user := range users {
			got := ""
			err := login(user.Name).Query(context.Background(), chconn.Statement{
				Operation: "entry.read",
				Text:      "SELECT concat(toString(getSetting('max_threads')), ', ', toString(getSetting('optimize_move_to_prewhere')), ', ', getSetting('local_filesystem_read_method')) FROM m.t",
				Settings:  map[string]string{"max_threads": "1", "optimize_move_to_prewhere": "0", "local_filesystem_read_method": "pread"},
			}, func(r chconn.Row) error { return r.Scan(&got) })
			if err != nil || got != want[user.Name] {
				t.Errorf("%s: %q, %v, want %s", user.Name, got, err, want[user.Name])
			}
		}
	})
}

func TestMissingGrant(t *testing.T) {
	users := []embedded.User{{Name: "some-user", Password: "pw", Grants: []string{"GRANT SELECT(a) ON m.t"}}}
	withUsers(t, users, func(t *testing.T, login func(string) *chconn.Client) {
		c := login("some-user")
		for _, tc := range []struct{ text, want string }{
			{"SELECT a FROM m.t", ""},
			{"SELECT b FROM m.t", "GRANT SELECT ON m.t"},
			{"INSERT INTO m.t (a) SELECT 'z'", "GRANT INSERT(a) ON m.t"},
			{"INSERT INTO m.t SELECT 'y', 'z'", "GRANT INSERT ON m.t"},
			{"CREATE TABLE m.x (a String) ENGINE = Memory", "GRANT CREATE TABLE ON m.x"},
			{"CREATE DATABASE z", "GRANT CREATE DATABASE ON z.*"},
			{"DELETE FROM m.t WHERE 1", "GRANT ALTER DELETE ON m.t"},
			{"TRUNCATE TABLE m.t", "GRANT TRUNCATE ON m.t"},
			{"DROP TABLE m.t SYNC", "GRANT DROP TABLE ON m.t"},
			{"OPTIMIZE TABLE m.t FINAL", "GRANT OPTIMIZE ON m.t"},
			{"EXCHANGE TABLES m.t AND m.t2", "GRANT SELECT, DROP TABLE ON m.t"},
			{"SELECT count() FROM system.mutations", "GRANT SELECT ON system.mutations"},
		} {
			_, err := c.Exec(context.Background(), chconn.Statement{Operation: "test", Text: tc.text})
			grant, ok := chconn.MissingGrant(err)
			if want := tc.want + " TO `some-user`"; tc.want == "" && err != nil || tc.want != "" && (!ok || grant != want) {
				t.Errorf("%s: %v: missing %q, want %q", tc.text, err, grant, want)
			}
		}
		// To kill takes the right to see what runs.
		if grant, _ := chconn.MissingGrant(c.Kill(context.Background(), "x")); grant != "GRANT SELECT ON system.processes TO `some-user`" {
			t.Errorf("missing %q", grant)
		}
	})
	for _, err := range []error{nil, errors.New("x"), &chconn.ServerError{Code: chconn.CodeUnknownTable}, &chconn.ServerError{Code: chconn.CodeAccessDenied, Message: "no"}} {
		if grant, ok := chconn.MissingGrant(err); ok {
			t.Errorf("%v: %s", err, grant)
		}
	}
}

func TestServer(t *testing.T) {
	onBoth(t, func(t *testing.T, c *chconn.Client) {
		server, err := c.Server(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if want := one(t, c, "SELECT version()"); server.Version != want || !strings.HasPrefix(want, fmt.Sprintf("%d.%d.", server.Major, server.Minor)) {
			t.Errorf("version %s (%d, %d), want %s", server.Version, server.Major, server.Minor, want)
		}
		if server.User != acctest.Server(t).Username {
			t.Errorf("user %q", server.User)
		}
		if value, known := server.Setting("readonly"); value != "0" || !known {
			t.Errorf("readonly = %q, %t", value, known)
		}
		if value, known := server.Setting("no_such_setting"); value != "" || known {
			t.Errorf("no_such_setting = %q, %t", value, known)
		}
		for _, v := range [][2]int{{23, 2}, {server.Major, server.Minor}, {server.Major - 1, 99}} {
			if !server.AtLeast(v[0], v[1]) {
				t.Errorf("%s is not at least %v", server.Version, v)
			}
		}
		for _, v := range [][2]int{{server.Major, server.Minor + 1}, {server.Major + 1, 0}} {
			if server.AtLeast(v[0], v[1]) {
				t.Errorf("%s is at least %v", server.Version, v)
			}
		}
	})
}
