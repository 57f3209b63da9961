package statestore

import (
	"context"
	"errors"
	"maps"
	"sync"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
)

// A Layout is the shape of a state table or of a lock table.
type Layout string

const (
	// LayoutVersioned is the state table with a version and an is_deleted column.
	LayoutVersioned Layout = "versioned"
	// LayoutMeltano is a table as Meltano makes it.
	LayoutMeltano Layout = "meltano"
	// LayoutStrict is the lock table ordered by (state_id, lock_id).
	LayoutStrict Layout = "strict"
)

// A TableSpec says what CreateTable makes.
type TableSpec struct {
	Database, Name string
	// Comment is the state table's comment.
	Comment string
	// Settings are MergeTree settings of the state table, by name.
	Settings map[string]string
	// LockLayout is what a lock table that is there already has to have. Empty: whatever it has.
	LockLayout Layout
	// CreateDatabase makes the database first, if it is not there.
	CreateDatabase bool
}

// A Table is a state table and its lock table as they are on the server.
type Table struct {
	Database, Name string
	// LockTable is the lock table's name: the table's name with "_lock" behind it.
	LockTable string
	// Layout and LockLayout are read from the server, never assumed.
	Layout, LockLayout Layout
	// EngineFull is the engine clause as the server shows it.
	EngineFull string
	Comment    string
	// Settings are those that the table's definition names, as text.
	Settings map[string]string
	// UUID identifies the table itself, whatever its name.
	UUID string
}

// A TableChange is what AlterTable changes in place.
type TableChange struct {
	// Comment is the new comment; nil leaves it.
	Comment *string
	// Set and Reset are MergeTree settings to change, and to put back to the server's default.
	Set   map[string]string
	Reset []string
}

// resolved is a state table that fits, as statements name it.
type resolved struct {
	state chsql.StateTable
	lock  chsql.LockTable
	table Table
	// unlockable says why no lock can be taken: the lock table is missing or has another shape. Reading needs
	// none.
	unlockable error
}

// tableSlot holds what is known of a table. Its mutex lets one caller look while the others wait.
type tableSlot struct {
	mu    sync.Mutex
	known *resolved
}

// resolve describes a table, once in the life of the store unless it turns out to be gone.
func (s *Store) resolve(ctx context.Context, name chsql.Table) (resolved, error) {
	s.mu.Lock()
	slot := s.tables[name]
	if slot == nil {
		slot = &tableSlot{}
		s.tables[name] = slot
	}
	s.mu.Unlock()
	slot.mu.Lock()
	defer slot.mu.Unlock()
	if slot.known != nil {
		return *slot.known, nil
	}
	found, err := s.inspect(ctx, name)
	if err != nil {
		return resolved{}, err
	}
	slot.known = &found
	return found, nil
}

func (s *Store) forget(name chsql.Table) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tables, name)
}

// tableGone looks again at a table when the server says that one is missing: it may be the state table, the
// lock table or the database.
func (s *Store) tableGone(ctx context.Context, name chsql.Table, err error) error {
	var serverErr *chconn.ServerError
	if !errors.As(err, &serverErr) || serverErr.Code != chconn.CodeUnknownTable && serverErr.Code != chconn.CodeUnknownDatabase {
		return err
	}
	s.forget(name)
	if serverErr.Code == chconn.CodeUnknownDatabase {
		return &NoTableError{Database: name.Database, Table: name.Name, Missing: "database"}
	}
	found, inspectErr := s.inspect(context.WithoutCancel(ctx), name)
	switch {
	case inspectErr != nil:
		return inspectErr
	case found.unlockable != nil:
		return found.unlockable
	}
	return err
}

// inspect reads a table's shape from the server. It returns a *NoTableError or an *UnfitError.
func (s *Store) inspect(ctx context.Context, name chsql.Table) (resolved, error) {
	lockName := chsql.LockTableName(name.Name)
	found, err := s.describe(ctx, name.Database, name.Name, lockName)
	if err != nil {
		return resolved{}, err
	}
	state, lockTable := found[name.Name], found[lockName]
	if state == nil {
		if err := s.absent(ctx, name); err != nil {
			return resolved{}, err
		}
		return resolved{}, &NoTableError{Database: name.Database, Table: name.Name, Missing: "table"}
	}
	var reasons misfits
	reasons.checkState(state)
	result := resolved{
		state: chsql.StateTable{Table: name},
		lock:  chsql.LockTable{Table: chsql.Table{Database: name.Database, Name: lockName}},
		table: Table{
			Database: name.Database, Name: name.Name, LockTable: lockName, Layout: LayoutVersioned, LockLayout: LayoutMeltano,
			EngineFull: state.engineFull, Comment: state.comment, Settings: state.settings(), UUID: state.uuid,
		},
	}
	if len(reasons) > 0 {
		return resolved{}, &UnfitError{Database: name.Database, Table: name.Name, Reasons: reasons}
	}
	if lockTable == nil {
		if err := s.absent(ctx, result.lock.Table); err != nil {
			return resolved{}, err
		}
		reasons.add("the lock table %s is missing; Meltano makes it when it runs, or make it by hand:\n\n%s", lockName, result.lock.Create(false).Text)
	} else {
		result.lock.Replicated = lockTable.replicated()
		result.lock.Strict, result.lock.Holder = reasons.checkLock(lockTable)
	}
	if result.lock.Strict {
		result.table.LockLayout = LayoutStrict
	}
	if len(reasons) > 0 {
		result.unlockable = &UnfitError{Database: name.Database, Table: name.Name, Reasons: reasons}
	}
	return result, nil
}

// lockable resolves a table whose entries are to be locked.
func (s *Store) lockable(ctx context.Context, name chsql.Table) (resolved, error) {
	found, err := s.resolve(ctx, name)
	if err == nil && found.unlockable != nil {
		s.forget(name) // It may be mended by the next time.
		err = found.unlockable
	}
	return found, err
}

// Table describes a state table. It returns a *NoTableError if there is none, and an *UnfitError that lists
// everything that does not fit if it has another shape.
func (s *Store) Table(ctx context.Context, database, name string) (Table, error) {
	found, err := s.inspect(ctx, chsql.Table{Database: database, Name: name})
	if err == nil {
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
	if spec.CreateDatabase {
		if err := s.exec(ctx, "database.create", chsql.CreateDatabase(spec.Database)); err != nil {
			return Table{}, false, err
		}
	}
	// The lock table comes first: a state table without one is what no other party expects.
	lockTable := chsql.LockTable{Table: chsql.Table{Database: name.Database, Name: chsql.LockTableName(name.Name)}}
	found, err := s.describe(ctx, name.Database, name.Name, lockTable.Name)
	if err != nil {
		return Table{}, false, err
	}
	var reasons misfits
	if there := found[name.Name]; there != nil {
		reasons.checkState(there)
	}
	if there := found[lockTable.Name]; there != nil {
		if strict, _ := reasons.checkLock(there); !strict && spec.LockLayout == LayoutStrict {
			reasons.add("the lock table %s is there already, as Meltano makes it; leave lock_layout out to use it as it is, or drop it while no pipeline runs", lockTable.Name)
		}
	}
	if len(reasons) > 0 {
		return Table{}, false, &UnfitError{Database: name.Database, Table: name.Name, Reasons: reasons}
	}
	patch, err := s.knowsPatchParts(ctx)
	if err != nil {
		return Table{}, false, err
	}
	if err := s.exec(ctx, "lock_table.create", lockTable.Create(patch)); err != nil {
		return Table{}, false, s.tableGone(ctx, name, err)
	}
	if found[name.Name] == nil {
		state := chsql.StateTable{Table: name}
		err = s.exec(ctx, "table.create", state.Create(spec.Comment, spec.Settings))
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
	table, inspectErr := s.Table(ctx, name.Database, name.Name)
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
	if table.Comment != spec.Comment || table.LockLayout != LayoutStrict {
		return false, nil
	}
	rows, err := query(ctx, s, statement("table.rows", name.Rows()), func(r chconn.Row) (n uint64, err error) { return n, r.Scan(&n) })
	if err != nil {
		return false, err
	}
	return rows[0] == 0, nil
}

// knowsPatchParts tells whether the server knows the table settings that patch parts need.
func (s *Store) knowsPatchParts(ctx context.Context) (bool, error) {
	needed := []string{"enable_block_number_column", "enable_block_offset_column"}
	known, err := query(ctx, s, statement("server.table_settings", chsql.KnownTableSettings(needed...)),
		func(r chconn.Row) (name string, err error) { return name, r.Scan(&name) })
	return len(known) == len(needed), err
}

// AlterTable changes comment and settings in place.
func (s *Store) AlterTable(ctx context.Context, database, name string, to TableChange) (Table, error) {
	table := chsql.Table{Database: database, Name: name}
	if to.Comment != nil {
		if err := s.exec(ctx, "table.comment", table.ModifyComment(*to.Comment)); err != nil {
			return Table{}, s.tableGone(ctx, table, err)
		}
	}
	if len(to.Set) > 0 {
		if err := s.exec(ctx, "table.set", table.ModifySettings(maps.Clone(to.Set))); err != nil {
			return Table{}, s.tableGone(ctx, table, err)
		}
	}
	if len(to.Reset) > 0 {
		if err := s.exec(ctx, "table.reset", table.ResetSettings(to.Reset)); err != nil {
			return Table{}, s.tableGone(ctx, table, err)
		}
	}
	return s.Table(ctx, database, name)
}

// DropTable drops the state table and its lock table, and waits until they are gone. A table that is gone
// already is no error; one of another shape is an *UnfitError, and both stay.
func (s *Store) DropTable(ctx context.Context, database, name string) error {
	table := chsql.Table{Database: database, Name: name}
	found, err := s.inspect(ctx, table)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	there, err := s.describe(ctx, database, found.lock.Name)
	if err != nil {
		return err
	}
	if found.unlockable != nil && len(there) > 0 {
		return found.unlockable // Somebody else's table of that name.
	}
	defer s.forget(table)
	// The lock table goes first: without a state table, nobody would come back for it.
	if err := s.exec(ctx, "lock_table.drop", found.lock.Drop()); err != nil {
		return err
	}
	return s.exec(ctx, "table.drop", found.state.Drop())
}
