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
		identity := statestore.TableIdentity{Database: spec.Database, Name: spec.Name}
		if _, err := s.Table(ctx, identity); !errors.Is(err, statestore.ErrNotFound) {
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
		changed, err := s.AlterTable(ctx, identity, statestore.TableChange{
			Comment: text(""), Set: map[string]string{"merge_with_ttl_timeout": "60"}, Reset: []string{"min_age_to_force_merge_seconds"},
		})
		if err != nil || changed.Comment != "" || changed.Settings["merge_with_ttl_timeout"] != "60" || changed.Settings["min_age_to_force_merge_seconds"] != "" ||
			changed.UUID != made.UUID {
			t.Errorf("changed to %+v, %v", changed, err)
		}
		for range 2 {
			if err := s.DropTable(ctx, identity); err != nil {
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
		meltanoColumns = "(state_id String, partial_state Nullable(String), completed_state Nullable(String), updated_at DateTime64(3) DEFAULT now64(3))"
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
		{"fits, without a lock table", []string{"CREATE TABLE %.state " + columns + " ENGINE = ReplacingMergeTree(version, is_deleted) ORDER BY state_id"}, nil},
		{"fits, Meltano's", []string{"CREATE TABLE %.state " + meltanoColumns + " ENGINE = ReplacingMergeTree(updated_at) ORDER BY state_id", lockTable}, nil},
		{"Meltano's, partitioned, and rows without a time", []string{
			"CREATE TABLE %.state (state_id String, partial_state Nullable(String), completed_state Nullable(String), updated_at DateTime64(3)) " +
				"ENGINE = ReplacingMergeTree(updated_at) PARTITION BY toDate(updated_at) ORDER BY state_id", lockTable,
		}, []string{"partitioned by toDate(updated_at)", "MODIFY COLUMN updated_at DateTime64(3) DEFAULT now64(3)"}},
		{"Meltano's, without an order of versions", []string{"CREATE TABLE %.state " + meltanoColumns + " ENGINE = ReplacingMergeTree ORDER BY state_id", lockTable}, []string{"engine ReplacingMergeTree,"}},
		{"a lock table of another shape", []string{
			"CREATE TABLE %.state " + columns + " ENGINE = ReplacingMergeTree(version, is_deleted) ORDER BY state_id",
			"CREATE TABLE %.state_lock (state_id String, lock_id UUID, locked_at DateTime) ENGINE = MergeTree ORDER BY lock_id",
		}, []string{"engine MergeTree", "ordered by (lock_id)", "column lock_id of the lock table state_lock is UUID", "MODIFY COLUMN locked_at DateTime DEFAULT now()"}},
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
		{"something else altogether", []string{"CREATE TABLE %.state (id Int8) ENGINE = Memory", lockTable}, []string{"engine Memory", "no column state_id String"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			database, conn := acctest.Database(t), acctest.Conn(t)
			for _, table := range tt.tables {
				exec(t, conn, strings.Replace(table, "%", database, 1))
			}
			s := open(t, chconn.Native)
			_, err := s.Table(t.Context(), statestore.TableIdentity{Database: database, Name: "state"})
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
			if err := s.DropTable(t.Context(), statestore.TableIdentity{Database: database, Name: "state"}); !errors.As(err, &unfit) {
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
	if err := s.DropTable(t.Context(), statestore.TableIdentity{Database: at.Database, Name: at.Table}); err != nil {
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

// TestRename moves both tables, while nobody holds a lock, and finds the table wherever it is.
func TestRename(t *testing.T) {
	bothProtocols(t, func(t *testing.T, protocol chconn.Protocol) {
		ctx, conn, s := t.Context(), acctest.Conn(t), open(t, protocol)
		at := table(t, s)
		created, err := s.Create(ctx, at, text(`{"singer_state": {}}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		was, err := s.Table(ctx, statestore.TableIdentity{Database: at.Database, Name: at.Table})
		if err != nil {
			t.Fatal(err)
		}
		moved := at
		moved.Database, moved.Table = at.Database+"_2", "mel`t.ano-?"
		change := statestore.TableChange{Database: moved.Database, Name: moved.Table}
		if _, err := s.AlterTable(ctx, was.TableIdentity, change); !errors.As(err, new(*statestore.NoTableError)) {
			t.Fatalf("into no database: %v", err)
		}
		change.CreateDatabase = true
		t.Cleanup(func() { exec(t, conn, "DROP DATABASE IF EXISTS "+moved.Database+" SYNC") })

		exec(t, conn, "INSERT INTO "+at.Database+".state_lock (state_id, lock_id) VALUES ('dev:busy', 'rival')")
		var busy *statestore.TableBusyError
		if _, err := s.AlterTable(ctx, was.TableIdentity, change); !errors.As(err, &busy) || busy.Claims[0].StateID != "dev:busy" {
			t.Fatalf("while somebody holds: %v", err)
		}
		exec(t, conn, "TRUNCATE TABLE "+at.Database+".state_lock")

		renamed, err := s.AlterTable(ctx, was.TableIdentity, change)
		if err != nil || renamed.UUID != was.UUID || renamed.LockUUID != was.LockUUID || renamed.Database != moved.Database || renamed.Name != moved.Table {
			t.Fatalf("renamed to %+v, %v", renamed, err)
		}
		if found, err := s.Read(ctx, moved); err != nil || found.Version != created.Entry.Version {
			t.Errorf("at its new address: %+v, %v", found, err)
		}
		if _, err := s.Read(ctx, at); !errors.As(err, new(*statestore.NoTableError)) {
			t.Errorf("at its old address: %v", err)
		}
		// Whoever has the old address finds it by its UUID, and without one does not.
		if found, err := s.Table(ctx, was.TableIdentity); err != nil || found.TableIdentity != renamed.TableIdentity {
			t.Errorf("by its UUID: %+v, %v", found, err)
		}
		if _, err := s.Table(ctx, statestore.TableIdentity{Database: at.Database, Name: at.Table}); !errors.Is(err, statestore.ErrNotFound) {
			t.Errorf("by its old name: %v", err)
		}

		// A rename that ended after the lock table goes on where it ended.
		exec(t, conn, "RENAME TABLE `"+moved.Database+"`.`mel\\`t.ano-?_lock` TO "+at.Database+".state_lock")
		if half, err := s.Table(ctx, renamed.TableIdentity); err != nil || half.LockLayout != "" {
			t.Fatalf("half way: %+v, %v", half, err)
		}
		back, err := s.AlterTable(ctx, renamed.TableIdentity, statestore.TableChange{Database: at.Database, Name: at.Table})
		if err != nil || back.TableIdentity != was.TableIdentity || back.LockUUID != was.LockUUID {
			t.Fatalf("back: %+v, %v", back, err)
		}

		// Onto a name that is taken it does not go, and neither table moves.
		exec(t, conn, "CREATE TABLE "+at.Database+".other_lock (x Int8) ENGINE = Memory")
		var exists *statestore.TableExistsError
		if _, err := s.AlterTable(ctx, was.TableIdentity, statestore.TableChange{Name: "other"}); !errors.As(err, &exists) || exists.Table != "other_lock" {
			t.Errorf("onto a name that is taken: %v", err)
		}
		if found, err := s.Table(ctx, was.TableIdentity); err != nil || found.LockUUID != was.LockUUID {
			t.Errorf("after that: %+v, %v", found, err)
		}
	})
}

// TestReplaced changes and drops the table that was meant, and no other one of its name.
func TestReplaced(t *testing.T) {
	ctx, conn, s := t.Context(), acctest.Conn(t), open(t, chconn.Native)
	at := table(t, s)
	was, err := s.Table(ctx, statestore.TableIdentity{Database: at.Database, Name: at.Table})
	if err != nil {
		t.Fatal(err)
	}
	exec(t, conn, "CREATE TABLE "+at.Database+".other AS "+at.Database+".state")
	exec(t, conn, "EXCHANGE TABLES "+at.Database+".other AND "+at.Database+".state")
	var replaced *statestore.TableReplacedError
	if err := s.DropTable(ctx, was.TableIdentity); !errors.As(err, &replaced) || replaced.Found == was.UUID {
		t.Errorf("drop: %v", err)
	}
	if _, err := s.AlterTable(ctx, was.TableIdentity, statestore.TableChange{Comment: text("x")}); !errors.As(err, &replaced) {
		t.Errorf("change: %v", err)
	}
	if n := count(t, conn, "SELECT count() FROM system.tables WHERE database = ? AND comment = ''", at.Database); n != 3 {
		t.Errorf("%d tables, want 3", n)
	}
}

// TestMissingLockTable makes it when the table is changed.
func TestMissingLockTable(t *testing.T) {
	ctx, conn, s := t.Context(), acctest.Conn(t), open(t, chconn.Native)
	at := table(t, s)
	exec(t, conn, "DROP TABLE "+at.Database+".state_lock SYNC")
	made, err := s.AlterTable(ctx, statestore.TableIdentity{Database: at.Database, Name: at.Table}, statestore.TableChange{})
	if err != nil || made.LockLayout != statestore.LayoutStrict {
		t.Fatalf("%+v, %v", made, err)
	}
	if _, err := s.Create(ctx, at, text(`{"singer_state": {}}`), nil); err != nil {
		t.Error(err)
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
