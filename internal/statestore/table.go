package statestore

import (
	"cmp"
	"context"
	"errors"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
)

// A TableSpec says what CreateTable makes.
type TableSpec struct {
	Database, Name string
	// Comment is the state table's comment.
	Comment string
	// Settings are MergeTree settings of the state table, by name.
	Settings map[string]string
	// Layout is the state table's. Empty: versioned.
	Layout Layout
	// LockLayout is the lock table's, also of one that is there already. Empty: whatever it has, or else strict.
	LockLayout Layout
	// Engine is how both tables are stored. Empty: ReplacingMergeTree.
	Engine EngineSpec
	// Cluster is where the tables are made: on all its hosts. Empty: on the server alone.
	Cluster string
	// CreateDatabase makes the database first, if it is not there.
	CreateDatabase bool
}

// An EngineSpec says how tables are stored: on one server, or on replicas.
type EngineSpec = chsql.Engine

// A TableIdentity names a state table, and which one of that name is meant.
type TableIdentity struct {
	Database, Name string
	// UUID identifies the table itself, whatever its name. Empty: whichever has the name.
	UUID string
	// Cluster is where its tables are changed and dropped: on all hosts of it. Empty: on the server alone.
	Cluster string
}

func (t TableIdentity) on() chsql.Cluster { return chsql.Cluster(t.Cluster) }

func (t TableIdentity) table() chsql.Table { return chsql.Table{Database: t.Database, Name: t.Name} }

// A Table is a state table and its lock table as they are on the server.
type Table struct {
	TableIdentity
	// LockTable is the lock table's name: the table's name with "_lock" behind it.
	LockTable string
	// Layout and LockLayout are read from the server, never assumed. LockLayout is empty if there is no lock
	// table: then entries can be read, but not written.
	Layout, LockLayout Layout
	// LockUUID identifies the lock table itself.
	LockUUID string
	Engine   Engine
	// EngineFull is the engine clause as the server shows it.
	EngineFull string
	Comment    string
	// Settings are those that the table's definition names, as text.
	Settings map[string]string
	// Upgrading and LockUpgrading tell that an upgrade of the table, or of the lock table, was interrupted and is
	// still to be finished; see AlterTable.
	Upgrading, LockUpgrading bool
	// ExtraColumns are columns that nobody asked for. They are left alone.
	ExtraColumns []string
}

// Table describes a state table. If there is none of that name, but the one that the UUID identifies has
// another name now, it describes that one. It returns a *NoTableError if there is none at all, and an
// *UnfitError that lists everything that does not fit if it has another shape.
func (s *Store) Table(ctx context.Context, id TableIdentity) (Table, error) {
	found, err := s.inspect(ctx, id.table())
	if errors.Is(err, ErrNotFound) {
		moved, findErr := s.renamed(ctx, id)
		if findErr != nil || moved == nil {
			return Table{}, cmp.Or(findErr, err)
		}
		found, err = s.inspect(ctx, moved.table())
	}
	if err == nil && found.table.LockLayout != "" {
		err = found.unlockable
	}
	return found.table, err
}

// CreateTable makes the state table and its lock table.
//
// A table that is there already, empty and just as declared, is taken over (tookOver), so that a create
// whose answer was lost can be repeated; any other is a *TableExistsError, or an *UnfitError. A lock table
// that is there already is used if it fits.
func (s *Store) CreateTable(ctx context.Context, spec TableSpec) (table Table, tookOver bool, err error) {
	name := chsql.Table{Database: spec.Database, Name: spec.Name}
	on := chsql.Cluster(spec.Cluster)
	if spec.CreateDatabase {
		if err := s.ddl(ctx, "database.create", on, chsql.CreateDatabase(spec.Database, on)); err != nil {
			return Table{}, false, err
		}
	}
	layout, lock := cmp.Or(spec.Layout, LayoutVersioned), chsql.LockTable{Table: chsql.Table{Database: name.Database, Name: chsql.LockTableName(name.Name)}}
	found, err := s.describe(ctx, name.Database, name.Name, lock.Name)
	if err != nil {
		return Table{}, false, err
	}
	var reasons misfits
	if there := found[name.Name]; there != nil {
		reasons.checkState(there)
	}
	if there := found[lock.Name]; there != nil {
		if strict, _ := reasons.checkLock(there); spec.LockLayout != "" && spec.LockLayout != lockLayout(strict) {
			reasons.add("the lock table %s is there already with the layout %s; leave lock_layout out to use it as it is, or drop it while no pipeline runs",
				lock.Name, lockLayout(strict))
		}
	}
	if err := reasons.err(name); err != nil {
		return Table{}, false, err
	}
	// The lock table comes first: a state table without one is what no other party expects.
	if err := s.createLockTable(ctx, lock, spec.LockLayout, chsql.Definition{Engine: spec.Engine, Cluster: on}); err != nil {
		return Table{}, false, s.tableGone(ctx, name, err)
	}
	if found[name.Name] == nil {
		state := chsql.StateTable{Table: name, Layout: layout.state()}
		err = s.ddl(ctx, "table.create", on, state.Create(chsql.Definition{Engine: spec.Engine, Cluster: on, Comment: spec.Comment, Settings: spec.Settings}))
		var serverErr *chconn.ServerError
		if errors.As(err, &serverErr) && serverErr.Code == chconn.CodeTableExists {
			return Table{}, false, &TableExistsError{Database: name.Database, Table: name.Name}
		}
		if err != nil && !errors.As(err, new(*chconn.NoAnswerError)) {
			return Table{}, false, s.tableGone(ctx, name, err)
		}
	} else {
		tookOver = true
	}
	table, inspectErr := s.Table(ctx, TableIdentity{Database: name.Database, Name: name.Name, Cluster: spec.Cluster})
	if inspectErr != nil {
		return Table{}, false, errors.Join(err, inspectErr)
	}
	if !tookOver {
		return table, false, nil
	}
	same, err := s.asDeclared(ctx, name, table, spec)
	if err == nil && !same {
		err = &TableExistsError{Database: name.Database, Table: name.Name}
	}
	return table, err == nil, err
}

// asDeclared tells whether a table is empty and just what spec would make.
func (s *Store) asDeclared(ctx context.Context, name chsql.Table, table Table, spec TableSpec) (bool, error) {
	for setting, value := range spec.Settings {
		if table.Settings[setting] != value {
			return false, nil
		}
	}
	if !table.Engine.Is(spec.Engine) || table.Comment != spec.Comment || table.Layout != cmp.Or(spec.Layout, LayoutVersioned) || table.LockLayout != cmp.Or(spec.LockLayout, LayoutStrict) {
		return false, nil
	}
	rows, err := query(ctx, s, statement("table.rows", name.Rows()), func(r chconn.Row) (n uint64, err error) { return n, r.Scan(&n) })
	if err != nil {
		return false, err
	}
	return rows[0] == 0, nil
}

// createLockTable makes a lock table, unless it is there. It is strict if no layout is given.
func (s *Store) createLockTable(ctx context.Context, lock chsql.LockTable, layout Layout, d chsql.Definition) error {
	patch, err := s.knowsPatchParts(ctx)
	if err != nil {
		return err
	}
	lock.Strict = layout != LayoutMeltano
	return s.ddl(ctx, "lock_table.create", d.Cluster, lock.Create(d, patch))
}

// knowsPatchParts tells whether the server knows the table settings that patch parts need.
func (s *Store) knowsPatchParts(ctx context.Context) (bool, error) {
	needed := []string{"enable_block_number_column", "enable_block_offset_column"}
	known, err := query(ctx, s, statement("server.table_settings", chsql.KnownTableSettings(needed...)),
		func(r chconn.Row) (name string, err error) { return name, r.Scan(&name) })
	return len(known) == len(needed), err
}
