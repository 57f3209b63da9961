package chsql_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
)

func TestMain(m *testing.M) { acctest.Main(m) }

// TestIdent lets the server read back every name that was quoted.
func TestIdent(t *testing.T) {
	names := []string{
		"state", "team-a", "meltano.state", "table", "select", "a`b", "``", `a\b`, `\`, "`\\`", "it's", `"`, "what?", "$1", "@p", "{x:String}",
		"tab\tx", "two\nlines", "dev:héé", "🦆", " ", "-- x", "/* x", "a; DROP TABLE b", "\x01",
	}
	conn, database := acctest.Conn(t), acctest.Database(t)
	for _, name := range names {
		table := chsql.Table{Database: database, Name: name}
		if err := conn.Exec(context.Background(), "CREATE TABLE "+table.String()+" (x Int8) ENGINE = Memory"); err != nil {
			t.Errorf("%q as %s: %v", name, table, err)
			continue
		}
		var n uint64
		err := conn.QueryRow(context.Background(), "SELECT count() FROM system.tables WHERE database = ? AND name = ?", database, name).Scan(&n)
		if err != nil || n != 1 {
			t.Errorf("%q as %s: %d tables of that name, %v", name, table, n, err)
		}
	}
}

// TestRefusal: the exception's message quotes the whole condition, so both markers may stand in it.
func TestRefusal(t *testing.T) {
	const rest = ": while executing 'FUNCTION and(not(throwIf(_CAST(0_UInt8), '%s'_String)), not(throwIf(_CAST(1_UInt8), '%s'_String)))'"
	for _, tt := range []struct{ message, want string }{
		{"", ""},
		{"Value passed to 'throwIf' function is non-zero", ""},
		{chsql.MarkerFence, chsql.MarkerFence},
		{chsql.MarkerMoved, chsql.MarkerMoved},
		{chsql.MarkerFence + fmt.Sprintf(rest, chsql.MarkerFence, chsql.MarkerMoved), chsql.MarkerFence},
		{chsql.MarkerMoved + fmt.Sprintf(rest, chsql.MarkerFence, chsql.MarkerMoved), chsql.MarkerMoved},
		{"Code: 395. DB::Exception: " + chsql.MarkerMoved + fmt.Sprintf(rest, chsql.MarkerFence, chsql.MarkerMoved), chsql.MarkerMoved},
	} {
		if got := chsql.Refusal(tt.message); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.message, got, tt.want)
		}
	}
}

// TestScalarOrder holds what LockTable.Left relies on: scalar subqueries of one list are evaluated one after
// the other, in its order. While the first sleeps, a row is inserted; the second must see it.
func TestScalarOrder(t *testing.T) {
	ctx, conn, database := context.Background(), acctest.Conn(t), acctest.Database(t)
	if err := conn.Exec(ctx, "CREATE TABLE "+database+".t (x Int8) ENGINE = MergeTree ORDER BY x"); err != nil {
		t.Fatal(err)
	}
	type answer struct {
		rows uint64
		err  error
	}
	done := make(chan answer)
	id := fmt.Sprintf("scalar-order-%d", time.Now().UnixNano())
	go func() {
		var a answer
		var slept uint8
		a.err = conn.QueryRow(ctx, "SELECT /* "+id+" */ ifNull((SELECT sleep(2)), 0), ifNull((SELECT count() FROM "+database+".t), 0)").Scan(&slept, &a.rows)
		done <- a
	}()
	other := acctest.Conn(t)
	for running := uint64(0); running == 0; {
		if err := other.QueryRow(ctx, "SELECT count() FROM system.processes WHERE query LIKE '%"+id+"%' AND query NOT LIKE '%system.processes%'").Scan(&running); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.Exec(ctx, "INSERT INTO "+database+".t VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	if a := <-done; a.err != nil || a.rows != 1 {
		t.Fatalf("the second scalar saw %d rows, %v", a.rows, a.err)
	}
}

// TestOneThread: a statement about few state_ids keeps to one thread, and one about many has those that the user's profile
// gives it.
func TestOneThread(t *testing.T) {
	at := chsql.Table{Database: "meltano", Name: "state"}
	state, locks := chsql.StateTable{Table: at, Layout: chsql.Versioned}, chsql.LockTable{Table: at}
	few := []string{"a", "b"}
	for name, many := range map[string][]string{"many": make([]string, 101), "long": {strings.Repeat("a", 20<<10)}} {
		for statement, query := range map[string]func(ids []string) chsql.Query{
			"live":     state.Live,
			"versions": state.Versions,
			"claims":   func(ids []string) chsql.Query { return locks.Claims(ids, time.Minute) },
		} {
			for setting, value := range map[string]string{"max_threads": "1", "local_filesystem_read_method": "pread"} {
				if got := query(few).Settings[setting]; got != value {
					t.Errorf("%s of few: %s = %q, want %s", statement, setting, got, value)
				}
				if got, set := query(many).Settings[setting]; set {
					t.Errorf("%s of %s: %s = %s, want the profile's", statement, name, setting, got)
				}
			}
		}
	}
}

// TestCreate compares the tables that are made with what the documentation shows.
func TestCreate(t *testing.T) {
	for _, tt := range []struct {
		name, got, want string
	}{
		{"state table", chsql.StateTable{Table: chsql.Table{Database: "meltano", Name: "state"}, Layout: chsql.Versioned}.Create(chsql.Definition{}).Text, `
CREATE TABLE meltano.state
(
    state_id String,
    partial_state Nullable(String),
    completed_state Nullable(String),
    updated_at DateTime64(3) DEFAULT now64(3),
    version UInt64 DEFAULT toUnixTimestamp64Micro(now64(6)),
    is_deleted UInt8 DEFAULT 0
)
ENGINE = ReplacingMergeTree(version, is_deleted)
ORDER BY state_id`},
		{"state table with settings", chsql.StateTable{Table: chsql.Table{Database: "meltano", Name: "state"}, Layout: chsql.Versioned}.
			Create(chsql.Definition{Settings: map[string]string{"b": "it's", "a": "10"}}).Text, `
CREATE TABLE meltano.state
(
    state_id String,
    partial_state Nullable(String),
    completed_state Nullable(String),
    updated_at DateTime64(3) DEFAULT now64(3),
    version UInt64 DEFAULT toUnixTimestamp64Micro(now64(6)),
    is_deleted UInt8 DEFAULT 0
)
ENGINE = ReplacingMergeTree(version, is_deleted)
ORDER BY state_id
SETTINGS a = 10, b = 'it\'s'`},
		{"lock table", chsql.LockTable{Table: chsql.Table{Database: "meltano", Name: "state_lock"}, Strict: true}.Create(chsql.Definition{}, true).Text, `
CREATE TABLE IF NOT EXISTS meltano.state_lock
(
    state_id String,
    lock_id String,
    locked_at DateTime DEFAULT now(),
    holder String DEFAULT ''
)
ENGINE = ReplacingMergeTree(locked_at)
ORDER BY (state_id, lock_id)
TTL locked_at + INTERVAL 300 SECOND
SETTINGS enable_block_number_column = 1, enable_block_offset_column = 1`},
		{"Meltano's state table", chsql.StateTable{Table: chsql.Table{Database: "meltano", Name: "state"}, Layout: chsql.Meltano}.Create(chsql.Definition{}).Text, `
CREATE TABLE meltano.state
(
    state_id String,
    partial_state Nullable(String),
    completed_state Nullable(String),
    updated_at DateTime64(3) DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree(updated_at)
ORDER BY state_id`},
		{"Meltano's lock table", chsql.LockTable{Table: chsql.Table{Database: "meltano", Name: "state_lock"}}.Create(chsql.Definition{}, true).Text, `
CREATE TABLE IF NOT EXISTS meltano.state_lock
(
    state_id String,
    lock_id String,
    locked_at DateTime DEFAULT now()
)
ENGINE = ReplacingMergeTree(locked_at)
ORDER BY state_id
TTL locked_at + INTERVAL 300 SECOND`},
	} {
		if got := strings.ReplaceAll(tt.got, "`", ""); got != tt.want[1:] {
			t.Errorf("%s:\n%s\nwant:\n%s", tt.name, got, tt.want)
		}
	}
}
