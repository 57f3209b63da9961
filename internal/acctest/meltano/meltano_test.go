package meltano

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
)

func TestMain(m *testing.M) { acctest.Main(m) }

// quick are constants that fit into a test.
var quick = Options{Settle: 20 * time.Millisecond, Retry: 10 * time.Millisecond, Timeout: 200 * time.Millisecond}

// A place is a database with both tables in it.
type place struct {
	conn     driver.Conn
	database string
}

func (p place) backend(o Options) *Backend {
	o.Database = p.database
	return New(p.conn, o)
}

// both runs a test on Meltano's own tables, and on the ones that we make.
func both(t *testing.T, test func(t *testing.T, p place, ours bool)) {
	t.Run("meltano's tables", func(t *testing.T) {
		t.Parallel()
		p := place{conn: acctest.Conn(t), database: acctest.Database(t)}
		if err := p.backend(quick).CreateTables(t.Context()); err != nil {
			t.Fatal(err)
		}
		test(t, p, false)
	})
	t.Run("our tables", func(t *testing.T) {
		t.Parallel()
		test(t, ourTables(t), true)
	})
}

// ourTables makes the tables as we do, and then lets Meltano start.
func ourTables(t *testing.T) place {
	t.Helper()
	p := place{conn: acctest.Conn(t), database: acctest.Database(t)}
	state := chsql.Table{Database: p.database, Name: "state"}
	lock := chsql.Table{Database: p.database, Name: chsql.LockTableName("state")}
	p.exec(t, chsql.StateTable{Table: state, Layout: chsql.Versioned}.Create(chsql.Definition{}).Text)
	p.exec(t, chsql.LockTable{Table: lock, Strict: true}.Create(chsql.Definition{}, true).Text)
	if err := p.backend(quick).CreateTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p place) exec(t *testing.T, text string, args ...any) {
	t.Helper()
	if err := p.conn.Exec(context.Background(), text, args...); err != nil {
		t.Fatal(err)
	}
}

func (p place) count(t *testing.T, text string, args ...any) (n uint64) {
	t.Helper()
	if err := p.conn.QueryRow(context.Background(), text, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (p place) lockRows(t *testing.T) uint64 {
	t.Helper()
	return p.count(t, "SELECT count() FROM "+p.database+".state_lock")
}

func bookmark(value any) map[string]any {
	return map[string]any{"singer_state": map[string]any{"bookmarks": map[string]any{"issues": value}}}
}

func TestStates(t *testing.T) {
	both(t, func(t *testing.T, p place, _ bool) {
		ctx, b := t.Context(), p.backend(quick)
		if _, err := b.Get(ctx, "dev:a"); !errors.Is(err, ErrNoState) {
			t.Fatalf("get of nothing: %v", err)
		}
		for _, state := range []State{
			{Completed: bookmark("2026-01-01T00:00:00Z"), Partial: map[string]any{}},
			{Completed: map[string]any{}, Partial: bookmark(json.Number("18446744073709551615"))},
			{Completed: bookmark("héé \"quoted\" \\ \t ? $1 {x:String}"), Partial: bookmark("p")},
		} {
			if err := b.Set(ctx, "dev:a", state); err != nil {
				t.Fatal(err)
			}
			if got, err := b.Get(ctx, "dev:a"); err != nil || !reflect.DeepEqual(got, state) {
				t.Fatalf("get %+v, %v after set %+v", got, err, state)
			}
		}
		if n := p.count(t, "SELECT count() FROM "+p.database+".state FINAL WHERE completed_state = ?",
			`{"singer_state": {"bookmarks": {"issues": "h\u00e9\u00e9 \"quoted\" \\ \t ? $1 {x:String}"}}}`); n != 1 {
			t.Errorf("%d rows hold the text that Python writes, want 1", n)
		}
		// Delete, and set again.
		if err := b.Delete(ctx, "dev:a"); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Get(ctx, "dev:a"); !errors.Is(err, ErrNoState) {
			t.Fatalf("get after delete: %v", err)
		}
		again := State{Completed: bookmark("again"), Partial: map[string]any{}}
		if err := b.Set(ctx, "dev:a", again); err != nil {
			t.Fatal(err)
		}
		if got, err := b.Get(ctx, "dev:a"); err != nil || !reflect.DeepEqual(got, again) {
			t.Fatalf("get %+v, %v after delete and set", got, err)
		}
	})
}

func TestEmptyIsNull(t *testing.T) {
	both(t, func(t *testing.T, p place, _ bool) {
		if err := p.backend(quick).Set(t.Context(), "dev:a", State{Completed: map[string]any{}}); err != nil {
			t.Fatal(err)
		}
		if n := p.count(t, "SELECT count() FROM "+p.database+".state FINAL WHERE completed_state IS NULL AND partial_state IS NULL"); n != 1 {
			t.Errorf("%d rows with two NULLs, want 1", n)
		}
	})
}

func TestStateIDs(t *testing.T) {
	both(t, func(t *testing.T, p place, _ bool) {
		ctx, b := t.Context(), p.backend(quick)
		ids := []string{
			"it's", `a\b`, "tab\tx", "two\nlines", "what?", "@p", "$1", "$$x$$", "{x:String}", "`", "dev:héé/ü%_", "space ", "😀", strings.Repeat("x", 1000),
		}
		for i, id := range ids {
			if err := b.Set(ctx, id, State{Completed: bookmark(i)}); err != nil {
				t.Fatalf("set %q: %v", id, err)
			}
		}
		for i, id := range ids {
			got, err := b.Get(ctx, id)
			if err != nil || Dumps(got.Completed) != Dumps(bookmark(i)) {
				t.Errorf("get %q: %v, %v", id, got, err)
			}
			if n := p.count(t, "SELECT count() FROM "+p.database+".state WHERE hex(state_id) = ?", strings.ToUpper(hex.EncodeToString([]byte(id)))); n != 1 {
				t.Errorf("%d rows of %q, want 1", n, id)
			}
		}
	})
}

func TestList(t *testing.T) {
	both(t, func(t *testing.T, p place, _ bool) {
		ctx, b := t.Context(), p.backend(quick)
		for _, id := range []string{"dev:tap_a", "dev:tapXa", "prod:tap_a"} {
			if err := b.Set(ctx, id, State{Completed: bookmark(1)}); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct {
			pattern string
			want    []string
		}{
			{"", []string{"dev:tapXa", "dev:tap_a", "prod:tap_a"}},
			{"*", []string{"dev:tapXa", "dev:tap_a", "prod:tap_a"}},
			{"prod:*", []string{"prod:tap_a"}},
			{"dev:tap?a", []string{"dev:tapXa", "dev:tap_a"}},
			{"dev:tap_a", []string{"dev:tapXa", "dev:tap_a"}}, // the wildcard that Meltano leaves in
			{"none*", nil},
		} {
			got, err := b.List(ctx, c.pattern)
			slices.Sort(got)
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("list %q: %q, %v, want %q", c.pattern, got, err, c.want)
			}
		}
		if n, err := b.ClearAll(ctx); err != nil || n != 3 {
			t.Errorf("clear_all: %d, %v, want 3", n, err)
		}
		if got, err := b.List(ctx, ""); err != nil || len(got) != 0 {
			t.Errorf("list after clear_all: %q, %v", got, err)
		}
	})
}

// Meltano's three-column INSERT has to win over rows of ours, tombstones included, and be in their unit.
func TestSetOverOurs(t *testing.T) {
	p := ourTables(t)
	ctx, b := t.Context(), p.backend(quick)
	for i, deleted := range []int{0, 1, 0} {
		p.exec(t, "INSERT INTO "+p.database+".state (state_id, completed_state, version, is_deleted) "+
			"SELECT 'dev:a', if(? = 1, NULL, '{}'), toUnixTimestamp64Micro(now64(6)), ?", deleted, deleted)
		if err := b.Set(ctx, "dev:a", State{Completed: bookmark(i)}); err != nil {
			t.Fatal(err)
		}
		if got, err := b.Get(ctx, "dev:a"); err != nil || Dumps(got.Completed) != Dumps(bookmark(i)) {
			t.Fatalf("get %v, %v after set number %d", got, err, i)
		}
	}
	if n := p.count(t, "SELECT count() FROM "+p.database+".state FINAL WHERE abs(toInt64(version) - toUnixTimestamp64Micro(now64(6))) < 60000000"); n != 1 {
		t.Errorf("the version is not in microseconds of the server's clock")
	}
}
