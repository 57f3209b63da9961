package statestore

import (
	"context"
	"errors"
	"sync"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
)

// resolved is a state table that fits, as statements name it.
type resolved struct {
	state chsql.StateTable
	lock  chsql.LockTable
	table Table
	// replaced is the UUID of the table that an unfinished upgrade has replaced, or is to replace.
	replaced string
	// unlockable says why no lock can be taken: the lock table is missing (then table.LockLayout is empty) or has
	// another shape. Reading needs none.
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

// lockable resolves a table whose entries are to be locked.
func (s *Store) lockable(ctx context.Context, name chsql.Table) (resolved, error) {
	found, err := s.resolve(ctx, name)
	if err == nil && found.unlockable != nil {
		s.forget(name) // It may be mended by the next time.
		err = found.unlockable
	}
	return found, err
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
	lock := chsql.Table{Database: name.Database, Name: chsql.LockTableName(name.Name)}
	found, err := s.describe(ctx, name.Database, name.Name, lock.Name, besideName(name.Name), besideName(lock.Name))
	if err != nil {
		return resolved{}, err
	}
	state := found[name.Name]
	if state == nil {
		if err := s.absent(ctx, name); err != nil {
			return resolved{}, err
		}
		return resolved{}, &NoTableError{Database: name.Database, Table: name.Name, Missing: "table"}
	}
	var reasons misfits
	layout := reasons.checkState(state)
	if err := reasons.err(name); err != nil {
		return resolved{}, err
	}
	result := resolved{
		state: chsql.StateTable{Table: name, Layout: layout.state()},
		lock:  chsql.LockTable{Table: lock},
		table: Table{
			TableIdentity: TableIdentity{Database: name.Database, Name: name.Name, UUID: state.uuid},
			LockTable:     lock.Name,
			Layout:        layout,
			Engine:        state.engine,
			EngineFull:    state.engineFull,
			Comment:       state.comment,
			Settings:      state.settings,
			ExtraColumns:  state.extra(layout.state().Columns),
			Upgrading:     state.unfinished(found[besideName(name.Name)]),
		},
		replaced: state.mark.uuid,
	}
	if there := found[lock.Name]; there != nil {
		result.table.LockUpgrading = there.unfinished(found[besideName(lock.Name)])
	}
	return result, s.inspectLock(ctx, &result, found[lock.Name])
}

// inspectLock fills in what is known of the lock table.
func (s *Store) inspectLock(ctx context.Context, result *resolved, lock *description) error {
	var reasons misfits
	if lock == nil {
		if err := s.absent(ctx, result.lock.Table); err != nil {
			return err
		}
		reasons.add("the lock table %s is missing; a clickhousestate_table resource makes it, and so does Meltano when it runs", result.lock.Name)
	} else {
		result.lock.Replicated = lock.engine.Replicated()
		result.lock.Strict, result.lock.Holder = reasons.checkLock(lock)
		result.table.LockLayout, result.table.LockUUID = lockLayout(result.lock.Strict), lock.uuid
	}
	result.unlockable = reasons.err(result.state.Table)
	return nil
}
