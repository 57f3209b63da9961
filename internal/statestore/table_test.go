package statestore_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/embedded"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

func TestTableLife(t *testing.T) {
	bothProtocols(t, func(t *testing.T, protocol chconn.Protocol) {
		ctx, conn := t.Context(), acctest.Conn(t)
		s := open(t, protocol)
		spec := statestore.TableSpec{
			Database: acctest.Database(t), Name: "st`at.e-?", Comment: "it's ? \\ commented",
			Settings: map[string]string{"min_age_to_force_merge_seconds": "100"},
		}
		if _, err := s.Table(ctx, spec.Database, spec.Name); !errors.Is(err, statestore.ErrNotFound) {
			t.Fatalf("before create: %v", err)
		}
		made, tookOver, err := s.CreateTable(ctx, spec)
		if err != nil || tookOver {
			t.Fatalf("create: took over %t, %v", tookOver, err)
		}
		if made.LockTable != spec.Name+"_lock" || made.Layout != statestore.LayoutVersioned || made.LockLayout != statestore.LayoutStrict ||
			made.Comment != spec.Comment || made.Settings["min_age_to_force_merge_seconds"] != "100" || made.UUID == "" {
			t.Errorf("made %+v", made)
		}
		// An empty table, just as declared, may be our own whose answer was lost.
		if again, tookOver, err := s.CreateTable(ctx, spec); err != nil || !tookOver || again.UUID != made.UUID {
			t.Errorf("second create: %+v, took over %t, %v", again, tookOver, err)
		}
		other := spec
		other.Comment = "another"
		if _, _, err := s.CreateTable(ctx, other); !errors.As(err, new(*statestore.TableExistsError)) {
			t.Errorf("create of another comment: %v", err)
		}
		at := statestore.Address{Database: spec.Database, Table: spec.Name, StateID: "x"}
		if _, err := s.Create(ctx, at, text(`{"singer_state": {}}`), nil); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.CreateTable(ctx, spec); !errors.As(err, new(*statestore.TableExistsError)) {
			t.Errorf("create over a table with an entry: %v", err)
		}
		changed, err := s.AlterTable(ctx, spec.Database, spec.Name, statestore.TableChange{
			Comment: text(""), Set: map[string]string{"merge_with_ttl_timeout": "60"}, Reset: []string{"min_age_to_force_merge_seconds"},
		})
		if err != nil || changed.Comment != "" || changed.Settings["merge_with_ttl_timeout"] != "60" || changed.Settings["min_age_to_force_merge_seconds"] != "" ||
			changed.UUID != made.UUID {
			t.Errorf("changed to %+v, %v", changed, err)
		}
		for range 2 {
			if err := s.DropTable(ctx, spec.Database, spec.Name); err != nil {
				t.Fatal(err)
			}
		}
		if n := count(t, conn, "SELECT count() FROM system.tables WHERE database = ?", spec.Database); n != 0 {
			t.Errorf("%d tables left", n)
		}
		if _, err := s.Read(ctx, at); !errors.As(err, new(*statestore.NoTableError)) {
			t.Errorf("read from a dropped table: %v", err)
		}
	})
}

// TestUnfit refuses tables of another shape, with every reason, and leaves them as they are.
func TestUnfit(t *testing.T) {
	const (
		lockTable = "CREATE TABLE %.state_lock (state_id String, lock_id String, locked_at DateTime DEFAULT now()) ENGINE = ReplacingMergeTree(locked_at) ORDER BY state_id"
		columns   = "(state_id String, partial_state Nullable(String), completed_state Nullable(String), updated_at DateTime64(3) DEFAULT now64(3), " +
			"version UInt64 DEFAULT toUnixTimestamp64Micro(now64(6)), is_deleted UInt8 DEFAULT 0)"
	)
	for _, tt := range []struct {
		name   string
		tables []string
		want   []string
	}{
		{"fits, with a lock table of Meltano's", []string{"CREATE TABLE %.state " + columns + " ENGINE = ReplacingMergeTree(version, is_deleted) ORDER BY state_id", lockTable}, nil},
		{"fits, with a foreign column", []string{
			"CREATE TABLE %.state " + columns + " ENGINE = ReplacingMergeTree(version, is_deleted) ORDER BY (state_id) SETTINGS index_granularity = 1024", lockTable,
			"ALTER TABLE %.state ADD COLUMN note String",
		}, nil},
		{"no lock table", []string{"CREATE TABLE %.state " + columns + " ENGINE = ReplacingMergeTree(version, is_deleted) ORDER BY state_id"}, []string{"lock table state_lock is missing"}},
		{"partitioned", []string{
			"CREATE TABLE %.state " + columns + " ENGINE = ReplacingMergeTree(version, is_deleted) PARTITION BY toYYYYMM(updated_at) ORDER BY state_id", lockTable,
		}, []string{"partitioned by toYYYYMM(updated_at)"}},
		{"another order", []string{"CREATE TABLE %.state " + columns + " ENGINE = ReplacingMergeTree(version, is_deleted) ORDER BY (state_id, updated_at)", lockTable}, []string{"ordered by (state_id, updated_at)"}},
		{"another engine", []string{"CREATE TABLE %.state " + columns + " ENGINE = MergeTree ORDER BY state_id", lockTable}, []string{"engine MergeTree"}},
		{"no is_deleted argument", []string{"CREATE TABLE %.state " + columns + " ENGINE = ReplacingMergeTree(version) ORDER BY state_id", lockTable}, []string{"ReplacingMergeTree(version, is_deleted) is needed"}},
		{"a version that Meltano's rows do not get", []string{
			"CREATE TABLE %.state (state_id String, partial_state Nullable(String), completed_state Nullable(String), updated_at DateTime64(3), version UInt64, is_deleted UInt8) " +
				"ENGINE = ReplacingMergeTree(version, is_deleted) ORDER BY state_id", lockTable,
		}, []string{"column version of the state table has no DEFAULT"}},
		{"Meltano's", []string{
			"CREATE TABLE %.state (state_id String, partial_state Nullable(String), completed_state Nullable(String), updated_at DateTime64(3) DEFAULT now64(3)) " +
				"ENGINE = ReplacingMergeTree(updated_at) ORDER BY state_id", lockTable,
		}, []string{"engine ReplacingMergeTree(updated_at)", "no column is_deleted UInt8", "no column version UInt64"}},
		{"something else altogether", []string{"CREATE TABLE %.state (id Int8) ENGINE = Memory", lockTable}, []string{"engine Memory", "no column state_id String"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			database, conn := acctest.Database(t), acctest.Conn(t)
			for _, table := range tt.tables {
				exec(t, conn, strings.Replace(table, "%", database, 1))
			}
			s := open(t, chconn.Native)
			_, err := s.Table(t.Context(), database, "state")
			var unfit *statestore.UnfitError
			if len(tt.want) == 0 {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if !errors.As(err, &unfit) || len(unfit.Reasons) < len(tt.want) {
				t.Fatalf("got %v", err)
			}
			for _, want := range tt.want {
				if all := strings.Join(unfit.Reasons, "\n"); !strings.Contains(all, want) {
					t.Errorf("%q is not among the reasons:\n%s", want, all)
				}
			}
			if strings.Contains(unfit.Reasons[0], "lock table state_lock is missing") {
				return // That is no reason to keep the state table from being dropped.
			}
			if err := s.DropTable(t.Context(), database, "state"); !errors.As(err, &unfit) {
				t.Errorf("drop: %v", err)
			}
			if n := count(t, conn, "SELECT count() FROM system.tables WHERE database = ? AND name = 'state'", database); n != 1 {
				t.Error("the table is gone")
			}
		})
	}
}

// TestNoLockTable: without its lock table, a state table can be read and dropped, but not written.
func TestNoLockTable(t *testing.T) {
	s := open(t, chconn.Native)
	at, conn := table(t, s), acctest.Conn(t)
	created, err := s.Create(t.Context(), at, text(`{"singer_state": {}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	exec(t, conn, "DROP TABLE "+at.Database+"."+at.Table+"_lock SYNC")
	for range 2 { // with what the store knew, and without
		_, err = s.Update(t.Context(), at, created.Entry.Version, statestore.Set(text(`{"singer_state": {"a": 1}}`)), statestore.Keep())
		if !errors.As(err, new(*statestore.UnfitError)) || !strings.Contains(err.Error(), at.Table+"_lock is missing") {
			t.Fatalf("update: %v", err)
		}
		if found, err := s.Read(t.Context(), at); err != nil || found.Version != created.Entry.Version {
			t.Fatalf("read: %+v, %v", found, err)
		}
	}
	if err := s.DropTable(t.Context(), at.Database, at.Table); err != nil {
		t.Fatal(err)
	}
}

// TestForeignTable makes nothing beside a table that is somebody else's.
func TestForeignTable(t *testing.T) {
	s, database, conn := open(t, chconn.Native), acctest.Database(t), acctest.Conn(t)
	exec(t, conn, "CREATE TABLE "+database+".orders (id Int8) ENGINE = Memory")
	if _, _, err := s.CreateTable(t.Context(), statestore.TableSpec{Database: database, Name: "orders"}); !errors.As(err, new(*statestore.UnfitError)) {
		t.Fatalf("create: %v", err)
	}
	if n := count(t, conn, "SELECT count() FROM system.tables WHERE database = ?", database); n != 1 {
		t.Errorf("%d tables, want the one that was there", n)
	}
}

// TestLockTableThere uses a lock table that Meltano made, unless another layout is asked for.
func TestLockTableThere(t *testing.T) {
	ctx, database := t.Context(), acctest.Database(t)
	exec(t, acctest.Conn(t), "CREATE TABLE "+database+`.state_lock (state_id String, lock_id String, locked_at DateTime DEFAULT now())
		ENGINE = ReplacingMergeTree(locked_at) ORDER BY state_id TTL locked_at + INTERVAL 300 SECOND`)
	s := open(t, chconn.Native)
	spec := statestore.TableSpec{Database: database, Name: "state", LockLayout: statestore.LayoutStrict}
	if _, _, err := s.CreateTable(ctx, spec); !errors.As(err, new(*statestore.UnfitError)) {
		t.Errorf("strict wanted: %v", err)
	}
	spec.LockLayout = ""
	if table, _, err := s.CreateTable(ctx, spec); err != nil || table.LockLayout != statestore.LayoutMeltano {
		t.Errorf("%+v, %v", table, err)
	}
}

// TestHiddenTable: a table that the user may not see is not taken for gone.
func TestHiddenTable(t *testing.T) {
	server := acctest.PrivateServer(t, embedded.Options{Users: []embedded.User{
		{Name: "blind", Grants: []string{"GRANT SELECT ON other.*"}},
		{Name: "half", Grants: []string{"GRANT SELECT ON meltano.state"}},
	}})
	endpoint := acctest.EndpointOf(server)
	for _, name := range []string{"default", "blind", "half"} {
		for _, protocol := range chconn.Protocols() {
			endpoint.Username = name
			s, err := statestore.Open(statestore.Config{Connection: connection(endpoint, protocol)})
			if err != nil {
				t.Fatal(err)
			}
			if name == "default" {
				if _, _, err := s.CreateTable(t.Context(), statestore.TableSpec{Database: "meltano", Name: "state", CreateDatabase: true}); err != nil {
					t.Fatal(err)
				}
				continue
			}
			_, err = s.Read(t.Context(), statestore.Address{Database: "meltano", Table: "state", StateID: "x"})
			if grant, ok := statestore.MissingGrant(err); !ok || errors.Is(err, statestore.ErrNotFound) {
				t.Errorf("%s over %s: %q, %v", name, protocol, grant, err)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}
