package statestore_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/embedded"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

func exec(t *testing.T, conn driver.Conn, query string, args ...any) {
	t.Helper()
	if err := conn.Exec(context.Background(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func count(t *testing.T, conn driver.Conn, query string, args ...any) (n uint64) {
	t.Helper()
	if err := conn.QueryRow(context.Background(), query, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

func quoted(at statestore.Address) string { return "`" + at.Database + "`.`" + at.Table + "`" }

// TestMeltanoWritesWin: rows that Meltano inserts with three columns are the newest, after ours and before.
func TestMeltanoWritesWin(t *testing.T) {
	everywhere(t, func(t *testing.T, w where) {
		ctx, conn := t.Context(), acctest.Conn(t)
		s := w.open(t)
		at := w.table(t, s)
		written, err := s.Create(ctx, at, text(`{"singer_state": {"a": 1}}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			exec(t, conn, "INSERT INTO "+quoted(at)+" (state_id, partial_state, completed_state) VALUES (?, NULL, ?)",
				at.StateID, fmt.Sprintf(`{"singer_state": {"a": %d}}`, 10+i))
			found, err := s.Read(ctx, at)
			if err != nil || *found.Completed != fmt.Sprintf(`{"singer_state": {"a": %d}}`, 10+i) || found.Version <= written.Entry.Version {
				t.Fatalf("after Meltano's write %d: %+v, %v", i, found, err)
			}
			written, err = s.Update(ctx, at, found.Version, statestore.Set(text(`{"singer_state": {"a": 2}}`)), statestore.Keep())
			if err != nil || written.Ahead != 0 {
				t.Fatalf("our write over it: %+v, %v", written, err)
			}
		}
		exec(t, conn, "DELETE FROM "+quoted(at)+" WHERE state_id = ?", at.StateID)
		if _, err := s.Read(ctx, at); !errors.Is(err, statestore.ErrNotFound) {
			t.Fatalf("after Meltano's delete: %v", err)
		}
		if _, err := s.Create(ctx, at, text(`{"singer_state": {"a": 3}}`), nil); err != nil {
			t.Fatalf("create after Meltano's delete: %v", err)
		}
	})
}

// TestVersionsAhead: whatever version is stored, live or a tombstone, the next write is the newest.
func TestVersionsAhead(t *testing.T) {
	everywhere(t, func(t *testing.T, w where) {
		for _, tt := range []struct {
			name    string
			instant string
			deleted bool
			ahead   time.Duration
		}{
			{"live, ten minutes ahead", "now64(6) + 600", false, 9 * time.Minute},
			{"tombstone, ten minutes ahead", "now64(6) + 600", true, 9 * time.Minute},
			{"live, a millisecond ahead", "now64(6) + toIntervalMillisecond(1)", false, 0},
			{"live, long ago", "toDateTime64(1700000, 6)", false, 0},
			{"live, version zero", "toDateTime64(0, 6)", false, 0},
		} {
			if tt.deleted && w.layout == statestore.LayoutMeltano {
				continue // It has no tombstones.
			}
			ctx, conn := t.Context(), acctest.Conn(t)
			s := w.open(t)
			at := w.table(t, s)
			w.insert(t, at, `{"a": 1}`, tt.instant)
			var written statestore.Written
			if tt.deleted {
				exec(t, conn, "INSERT INTO "+quoted(at)+" (state_id, version, is_deleted) SELECT state_id, version + 1, 1 FROM "+quoted(at))
				created, err := s.Create(ctx, at, text(`{"singer_state": {}}`), nil)
				if err != nil {
					t.Fatalf("%s: %v", tt.name, err)
				}
				written = created
			} else {
				before, err := s.Read(ctx, at)
				if err != nil {
					t.Fatalf("%s: %v", tt.name, err)
				}
				updated, err := s.Update(ctx, at, before.Version, statestore.Set(text(`{"singer_state": {}}`)), statestore.Keep())
				if err != nil || updated.Entry.Version <= before.Version {
					t.Fatalf("%s: %+v, %v", tt.name, updated, err)
				}
				written = updated
			}
			if found, err := s.Read(ctx, at); err != nil || found.Version != written.Entry.Version || *found.Completed != `{"singer_state": {}}` {
				t.Fatalf("%s: reads %+v, %v after %+v", tt.name, found, err, written)
			}
			if written.Ahead < tt.ahead || tt.ahead == 0 && written.Ahead != 0 {
				t.Errorf("%s: ahead by %s, want at least %s", tt.name, written.Ahead, tt.ahead)
			}
		}
	})
}

// TestNoVersionLeft refuses to write over a version that nothing can follow.
func TestNoVersionLeft(t *testing.T) {
	everywhere(t, func(t *testing.T, w where) {
		s := w.open(t)
		at := w.table(t, s)
		w.insert(t, at, "{}", "toDateTime64('2299-12-31 23:59:59.999', 6)")
		before, err := s.Read(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Update(t.Context(), at, before.Version, statestore.Set(text(`{"a": 1}`)), statestore.Keep())
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("version %d is stored", before.Version)) {
			t.Fatalf("got %v", err)
		}
	})
}

// TestPartialIsKept copies the pipeline's partial state inside the lock, unless it is set.
func TestPartialIsKept(t *testing.T) {
	everywhere(t, func(t *testing.T, w where) {
		ctx, conn := t.Context(), acctest.Conn(t)
		s := w.open(t)
		at := w.table(t, s)
		const partial = `{"singer_state": {"bookmarks": {"b": 2}}}`
		exec(t, conn, "INSERT INTO "+quoted(at)+" (state_id, partial_state, completed_state) VALUES (?, ?, ?)",
			at.StateID, partial, `{"singer_state": {"bookmarks": {"a": 1}}}`)
		before, err := s.Read(ctx, at)
		if err != nil {
			t.Fatal(err)
		}
		kept, err := s.Update(ctx, at, before.Version, statestore.Set(text(`{"singer_state": {}}`)), statestore.Keep())
		if err != nil || kept.Entry.Partial == nil || *kept.Entry.Partial != partial {
			t.Fatalf("%+v, %v", kept, err)
		}
		found, err := s.Read(ctx, at)
		if err != nil || found.Partial == nil || *found.Partial != partial {
			t.Fatalf("stored: %+v, %v", found, err)
		}
		if _, err := s.Update(ctx, at, found.Version, statestore.Keep(), statestore.Set(text(` { } `))); err != nil {
			t.Fatal(err)
		}
		if found, err = s.Read(ctx, at); err != nil || found.Partial != nil || *found.Completed != `{"singer_state": {}}` {
			t.Fatalf("erased: %+v, %v", found, err)
		}
	})
}

// TestUnchangedWritesNothing: the same state in another spelling is no new row.
func TestUnchangedWritesNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, w where) {
		ctx, conn := t.Context(), acctest.Conn(t)
		s := w.open(t)
		at := w.table(t, s)
		written, err := s.Create(ctx, at, text(`{"singer_state":{"a":1.0,"b":"é"}}`), text(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		same, err := s.Update(ctx, at, written.Entry.Version, statestore.Set(text(`{"singer_state": {"b": "\u00e9", "a": 1}}`)), statestore.Set(nil))
		if err != nil || same.Entry.Version != written.Entry.Version {
			t.Fatalf("%+v, %v", same, err)
		}
		if n := count(t, conn, "SELECT count() FROM "+quoted(at)); n != 1 {
			t.Errorf("%d rows, want 1", n)
		}
	})
}

// hostile are state_ids that something on the way might take apart.
var hostile = []string{
	"it's", `a\b`, "tab\tx", "two\nlines", "what?", "@p", "$1", "$$x$$", "{x:String}", "`", "dev:héé/ü%_", "trailing ", "🦆",
	strings.Repeat("x", 1000), `"`, "nul\x00", `\`, `\'`, "-- x", "/* x", "';DROP TABLE state", "\xff\xfe", "%", "_",
}

func TestHostileNames(t *testing.T) {
	everywhere(t, func(t *testing.T, w where) {
		ctx, conn := t.Context(), acctest.Conn(t)
		s := w.open(t)
		at := w.table(t, s)
		neighbour := at
		if _, err := s.Create(ctx, neighbour, text(`{"n": 1}`), nil); err != nil {
			t.Fatal(err)
		}
		stored := func(id string) (payload string) {
			var rows uint64
			err := conn.QueryRow(ctx, "SELECT count(), assumeNotNull(any(completed_state)) FROM "+quoted(at)+" FINAL WHERE hex(state_id) = ?",
				strings.ToUpper(hex.EncodeToString([]byte(id)))).Scan(&rows, &payload)
			if err != nil || rows != 1 {
				t.Errorf("%d rows of %q, %v", rows, id, err)
			}
			return payload
		}
		// One after the other for the first ones, and then all at the same time.
		life := func(id string) {
			at := at
			at.StateID = id
			payload := `{"singer_state": {"` + strings.ToValidUTF8(strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\t", `\t`, "\n", `\n`, "\x00", `\u0000`).Replace(id), "?") + `": "raw ? $1 '"}}`
			created, err := s.Create(ctx, at, &payload, nil)
			if err != nil {
				t.Errorf("create %q: %v", id, err)
				return
			}
			if got := stored(id); got != payload {
				t.Errorf("%q: stored %q, want %q", id, got, payload)
			}
			payload += "  "
			changed := strings.Replace(payload, "raw", "changed", 1)
			updated, err := s.Update(ctx, at, created.Entry.Version, statestore.Set(&changed), statestore.Keep())
			if err != nil {
				t.Errorf("update %q: %v", id, err)
				return
			}
			if got := stored(id); got != changed {
				t.Errorf("%q: stored %q, want %q", id, got, changed)
			}
			if read, err := s.Read(ctx, at); err != nil || read.StateID != id || *read.Completed != changed {
				t.Errorf("read %q: %+v, %v", id, read, err)
			}
			if _, err := s.Delete(ctx, at, updated.Entry.Version); err != nil {
				t.Errorf("delete %q: %v", id, err)
			}
		}
		var group sync.WaitGroup
		for i, id := range hostile {
			if i < 3 {
				life(id)
			} else {
				group.Go(func() { life(id) })
			}
		}
		group.Wait()
		if n := count(t, conn, "SELECT count() FROM "+quoted(at)+" FINAL"); n != 1 {
			t.Errorf("%d entries left, want the neighbour", n)
		}
		if n := locks(t, at); n != 0 {
			t.Errorf("%d claims left", n)
		}
	})
}

// TestLargePayload writes and reads 16 MB.
func TestLargePayload(t *testing.T) {
	everywhere(t, func(t *testing.T, w where) {
		s := w.open(t)
		at := w.table(t, s)
		payload := `{"singer_state": {"bookmarks": "` + strings.Repeat(`it's \\ ? \u00e9 é`, 1<<20) + `"}}`
		if len(payload) < 16<<20 {
			t.Fatalf("payload has only %d bytes", len(payload))
		}
		if _, err := s.Create(t.Context(), at, &payload, &payload); err != nil {
			t.Fatal(err)
		}
		if read, err := s.Read(t.Context(), at); err != nil || *read.Completed != payload || *read.Partial != payload {
			t.Fatalf("read: %v", err)
		}
	})
}

// TestDeduplication writes the same payload again and again where equal blocks are dropped in silence.
func TestDeduplication(t *testing.T) {
	everywhere(t, func(t *testing.T, w where) {
		ctx, conn := t.Context(), acctest.Conn(t)
		s := w.open(t)
		at := w.table(t, s)
		for _, name := range []string{quoted(at), "`" + at.Database + "`.`" + at.Table + "_lock`"} {
			exec(t, conn, "ALTER TABLE "+name+" MODIFY SETTING non_replicated_deduplication_window = 100")
		}
		for range 3 {
			created, err := s.Create(ctx, at, text(`{"singer_state": {"a": 1}}`), nil)
			if err != nil {
				t.Fatal(err)
			}
			if n := count(t, conn, "SELECT count() FROM "+quoted(at)+" FINAL"); n != 1 {
				t.Fatalf("%d visible rows after a create, want 1", n)
			}
			if _, err := s.Delete(ctx, at, created.Entry.Version); err != nil {
				t.Fatal(err)
			}
			if n := count(t, conn, "SELECT count() FROM "+quoted(at)+" FINAL"); n != 0 {
				t.Fatalf("%d visible rows after a delete, want 0", n)
			}
		}
	})
}

// TestProfiles works for users whose profiles turn the server's behaviour upside down.
func TestProfiles(t *testing.T) {
	server := acctest.PrivateServer(t, embedded.Options{Users: []embedded.User{
		{Name: "async", Settings: map[string]string{"async_insert": "1", "wait_for_async_insert": "0", "async_insert_busy_timeout_max_ms": "60000", "async_insert_busy_timeout_min_ms": "60000"}},
		{Name: "odd", Settings: map[string]string{
			"aggregate_functions_null_for_empty": "1", "join_use_nulls": "1", "final": "1", "use_query_cache": "1", "prefer_column_name_to_alias": "1",
			"min_insert_block_size_rows": "1", "max_block_size": "1", "transform_null_in": "1",
			"query_cache_nondeterministic_function_handling": "ignore", "query_cache_system_table_handling": "ignore",
		}},
	}})
	for _, user := range []string{"async", "odd"} {
		t.Run(user, func(t *testing.T) {
			everywhere(t, func(t *testing.T, w where) {
				endpoint := acctest.EndpointOf(server)
				conn := endpoint.Conn(t)
				endpoint.Username = user
				s, err := statestore.Open(statestore.Config{Connection: connection(endpoint, w.protocol), Lock: statestore.LockOptions{Settle: 300 * time.Millisecond}})
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = s.Close(context.Background()) }()
				ctx := t.Context()
				at := statestore.Address{Database: fmt.Sprint(user, w.protocol, w.layout, w.lockLayout), Table: "state"}
				spec := statestore.TableSpec{Database: at.Database, Name: at.Table, CreateDatabase: true, Layout: w.layout, LockLayout: w.lockLayout}
				if _, _, err := s.CreateTable(ctx, spec); err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				for i := range 5 {
					at.StateID = fmt.Sprint(i)
					created, err := s.Create(ctx, at, text(`{"singer_state": {"a": 1}}`), nil)
					if err != nil {
						t.Fatal(err)
					}
					if _, err := s.Update(ctx, at, created.Entry.Version, statestore.Set(text(`{"singer_state": {"a": 2}}`)), statestore.Keep()); err != nil {
						t.Fatal(err)
					}
					if found, err := s.Read(ctx, at); err != nil || *found.Completed != `{"singer_state": {"a": 2}}` {
						t.Fatalf("read %+v, %v", found, err)
					}
				}
				gone, err := s.Read(ctx, at)
				if err == nil {
					_, err = s.Delete(ctx, at, gone.Version)
				}
				if err != nil {
					t.Fatalf("delete: %v", err)
				}
				if n := count(t, conn, "SELECT count() FROM "+quoted(at)+" FINAL"); n != 4 {
					t.Errorf("%d rows, want 4", n)
				}
				if took := time.Since(start); took > 30*time.Second {
					t.Errorf("took %s: writes waited for the flush interval", took)
				}
			})
		})
	}
}

// TestMaterializedView writes to a table whose changes somebody else watches: the server counts their rows as
// written, too.
func TestMaterializedView(t *testing.T) {
	everywhere(t, func(t *testing.T, w where) {
		s := w.open(t)
		at, conn := w.table(t, s), acctest.Conn(t)
		exec(t, conn, "CREATE MATERIALIZED VIEW "+at.Database+".audit ENGINE = MergeTree ORDER BY state_id AS SELECT state_id FROM "+quoted(at))
		if _, err := s.Create(t.Context(), at, text(`{"singer_state": {}}`), nil); err != nil {
			t.Fatal(err)
		}
		if n := count(t, conn, "SELECT count() FROM "+at.Database+".audit"); n != 1 {
			t.Errorf("%d rows in the view, want 1", n)
		}
	})
}

// TestCreateOnce: of many creates of one entry in one process, one writes and the others find it.
func TestCreateOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, w where) {
		ctx := t.Context()
		s := w.open(t)
		at := w.table(t, s)
		var group sync.WaitGroup
		results := make([]error, 4)
		for i := range results {
			group.Go(func() { _, results[i] = s.Create(ctx, at, text(`{"singer_state": {}}`), nil) })
		}
		group.Wait()
		var wrote, refused int
		for _, err := range results {
			switch {
			case err == nil:
				wrote++
			case errors.As(err, new(*statestore.ExistsError)):
				refused++
			default:
				t.Error(err)
			}
		}
		if wrote != 1 || refused != 3 {
			t.Errorf("%d wrote and %d were refused, want 1 and 3", wrote, refused)
		}
		// Another process may take an equal entry over, and nothing else.
		other := w.open(t)
		if written, err := other.Create(ctx, at, text(`{ "singer_state": {} }`), nil); err != nil || !written.TookOver {
			t.Errorf("an equal payload: %+v, %v", written, err)
		}
		if _, err := w.open(t).Create(ctx, at, text(`{"singer_state": {"a": 1}}`), nil); !errors.As(err, new(*statestore.ExistsError)) {
			t.Errorf("another payload: %v", err)
		}
	})
}
