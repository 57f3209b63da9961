package statestore

import (
	"context"
	"errors"
	"fmt"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
)

// A TableChange is what AlterTable changes in place. What it leaves empty stays as it is.
type TableChange struct {
	// Comment is the new comment.
	Comment *string
	// Set and Reset are MergeTree settings to change, and to put back to the server's default.
	Set   map[string]string
	Reset []string
	// Database and Name are where both tables move to. The database has to be there, unless CreateDatabase.
	Database, Name string
	CreateDatabase bool
	// Layout and LockLayout are what the tables are upgraded to; there is no way back. A lock table that is missing
	// is made.
	Layout, LockLayout Layout
}

// AlterTable changes a table in place, and makes its lock table if that is missing. A *TableReplacedError says that
// another table has the name now, a *CannotUpgradeError that an upgrade would lose something; nothing was changed
// then. If it fails on the way, repeating it goes on where it ended.
//
// It renames last, and only while nobody holds a lock (*TableBusyError): a holder would not find its claim
// again, nor write what it is working on. An upgrade of the state table takes the locks of all entries for as
// long as what was written meanwhile takes to be copied.
func (s *Store) AlterTable(ctx context.Context, id TableIdentity, to TableChange) (Table, error) {
	found, err := s.inspectSame(ctx, id)
	if err != nil {
		return Table{}, err
	}
	for _, change := range []struct {
		operation string
		wanted    bool
		query     func() chsql.Query
	}{
		{"table.comment", to.Comment != nil, func() chsql.Query { return id.table().ModifyComment(*to.Comment, id.on()) }},
		{"table.set", len(to.Set) > 0, func() chsql.Query { return id.table().ModifySettings(to.Set, id.on()) }},
		{"table.reset", len(to.Reset) > 0, func() chsql.Query { return id.table().ResetSettings(to.Reset, id.on()) }},
	} {
		if !change.wanted {
			continue
		}
		if err := s.ddl(ctx, change.operation, id.on(), change.query()); err != nil {
			return Table{}, s.tableGone(ctx, id.table(), err)
		}
	}
	if found, err = s.upgrade(ctx, found, to); err != nil {
		return Table{}, err
	}
	id.UUID = found.table.UUID
	target := to.target(id)
	if target.table() != id.table() {
		if err := s.rename(ctx, found, target, to.CreateDatabase); err != nil {
			return Table{}, err
		}
		found.lock.Table = chsql.Table{Database: target.Database, Name: chsql.LockTableName(target.Name)}
	}
	if found.table.LockLayout == "" {
		if err := s.createLockTable(ctx, found.lock, to.LockLayout, chsql.Definition{Engine: found.table.Engine.sibling(), Cluster: id.on()}); err != nil {
			return Table{}, err
		}
		s.forget(target.table())
	}
	return s.Table(ctx, target)
}

// upgrade changes the layouts, the lock table's first, and inspects what has come of it.
func (s *Store) upgrade(ctx context.Context, found resolved, to TableChange) (resolved, error) {
	changed := false
	for _, half := range []struct {
		what       string
		have, want Layout
		unfinished bool
		upgrade    func(context.Context, resolved) error
	}{
		{"lock table", found.table.LockLayout, to.LockLayout, found.table.LockUpgrading, s.upgradeLock},
		{"state table", found.table.Layout, to.Layout, found.table.Upgrading, s.upgradeState},
	} {
		switch {
		case half.have == "", half.want == "", half.want == half.have && !half.unfinished:
			continue
		case half.want == LayoutMeltano:
			return found, &CannotUpgradeError{Database: found.table.Database, Table: found.table.Name, Reasons: []string{
				fmt.Sprintf("the %s has the layout %s, and there is no way back to the layout meltano", half.what, half.have),
			}}
		}
		if err := half.upgrade(ctx, found); err != nil {
			return found, err
		}
		again, err := s.inspect(ctx, found.state.Table)
		if err != nil {
			return found, err
		}
		found, changed = again, true
	}
	if changed {
		s.logger.InfoContext(ctx, "table upgraded", "table", found.state.String(), "layout", string(found.table.Layout), "lock_layout", string(found.table.LockLayout))
	}
	return found, nil
}

// target is where a table is after the change.
func (c TableChange) target(id TableIdentity) TableIdentity {
	if c.Database != "" {
		id.Database = c.Database
	}
	if c.Name != "" {
		id.Name = c.Name
	}
	return id
}

// inspectSame inspects a table, and makes sure that it is the one that is meant.
func (s *Store) inspectSame(ctx context.Context, id TableIdentity) (resolved, error) {
	found, err := s.inspect(ctx, id.table())
	if err == nil && id.UUID != "" && id.UUID != found.table.UUID && id.UUID != found.replaced {
		err = &TableReplacedError{Table: id, Found: found.table.UUID}
	}
	return found, err
}

// rename moves both tables. The server does it one after the other: the lock table first, so that a state table
// that has moved always has one.
func (s *Store) rename(ctx context.Context, from resolved, to TableIdentity, createDatabase bool) error {
	defer s.forget(from.state.Table)
	defer s.forget(to.table())
	if createDatabase {
		if err := s.ddl(ctx, "database.create", to.on(), chsql.CreateDatabase(to.Database, to.on())); err != nil {
			return err
		}
	}
	lock := chsql.Table{Database: to.Database, Name: chsql.LockTableName(to.Name)}
	there, err := s.describe(ctx, to.Database, to.Name, lock.Name)
	if err != nil {
		return err
	}
	moves := []chsql.Move{{From: from.lock.Table, To: lock}, {From: from.state.Table, To: to.table()}}
	if from.table.LockLayout == "" {
		moves = moves[1:] // It moved the last time, or there is none.
	}
	for _, move := range moves {
		if there[move.To.Name] != nil {
			return &TableExistsError{Database: move.To.Database, Table: move.To.Name}
		}
	}
	if from.table.LockLayout != "" {
		if err := s.unheld(ctx, from); err != nil {
			return err
		}
	}
	err = s.ddl(ctx, "table.rename", to.on(), chsql.Rename(to.on(), moves...))
	var serverErr *chconn.ServerError
	if errors.As(err, &serverErr) && serverErr.Code == chconn.CodeUnknownDatabase {
		return &NoTableError{Database: to.Database, Table: to.Name, Missing: "database"}
	}
	if err != nil {
		// Its answer may be lost, and everything done.
		if found, inspectErr := s.inspect(ctx, to.table()); inspectErr == nil && found.table.UUID == from.table.UUID {
			return nil
		}
	}
	return err
}

// unheld returns a *TableBusyError if anybody holds a lock of the table.
func (s *Store) unheld(ctx context.Context, table resolved) error {
	if table.unlockable != nil {
		return table.unlockable
	}
	claims, err := s.locker.Claims(ctx, table.lock, nil)
	if err != nil {
		return err
	}
	busy := &TableBusyError{Database: table.table.Database, Table: table.table.Name}
	for _, claim := range claims {
		if !claim.Stale {
			busy.Claims = append(busy.Claims, claim)
		}
	}
	if len(busy.Claims) > 0 {
		return busy
	}
	return nil
}

// renamed looks for a table that has another name now; nil if there is none.
func (s *Store) renamed(ctx context.Context, id TableIdentity) (*TableIdentity, error) {
	if id.UUID == "" || id.UUID == noUUID {
		return nil, nil
	}
	names, err := query(ctx, s, statement("table.find", chsql.TablesByUUID(id.UUID)), func(r chconn.Row) (found TableIdentity, err error) {
		found.UUID = id.UUID
		return found, r.Scan(&found.Database, &found.Name)
	})
	if err != nil || len(names) == 0 {
		return nil, err
	}
	return &names[0], nil
}

// noUUID is what tables of databases without UUIDs have.
const noUUID = "00000000-0000-0000-0000-000000000000"

// DropTable drops the state table and its lock table, and waits until they are gone. A table that is gone
// already is no error. One of another shape is an *UnfitError, one that took the name of the one that is meant
// a *TableReplacedError: then both stay.
func (s *Store) DropTable(ctx context.Context, id TableIdentity) error {
	found, err := s.inspectSame(ctx, id)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if found.unlockable != nil && found.table.LockLayout != "" {
		return found.unlockable // Somebody else's table of that name.
	}
	defer s.forget(id.table())
	for _, table := range []chsql.Table{found.lock.Table, found.state.Table} {
		if err := s.dropBeside(ctx, table); err != nil {
			return err
		}
	}
	// The lock table goes first: without a state table, nobody would come back for it.
	if err := s.ddl(ctx, "lock_table.drop", id.on(), found.lock.Drop(id.on())); err != nil {
		return fmt.Errorf("drop the lock table: %w", err)
	}
	return s.ddl(ctx, "table.drop", id.on(), found.state.Drop(id.on()))
}

// dropBeside drops what an upgrade of a table has left behind, if anything.
func (s *Store) dropBeside(ctx context.Context, table chsql.Table) error {
	r, err := s.replacing(ctx, table)
	if errors.Is(err, ErrNotFound) || errors.As(err, new(*CannotUpgradeError)) {
		return nil // There is no such table, or what is beside it is somebody else's.
	}
	if err != nil {
		return err
	}
	return s.restart(ctx, r)
}
