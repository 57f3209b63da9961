package statestore

import (
	"context"
	"errors"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
)

// Optimize merges all parts of a state table into one, which drops the versions that no reader sees, and waits
// for it. It takes no lock, and no reader or writer notices. It returns a *NoMergeError if the server does not
// merge now.
//
// Cleanup also removes the tombstones for good: an older version that comes in later is alive again. The table
// has to have the setting for it (*NoCleanupError), and nobody may hold a lock (*TableBusyError).
func (s *Store) Optimize(ctx context.Context, id TableIdentity, cleanup bool) (before, after Health, err error) {
	found, err := s.inspectSame(ctx, id)
	if err == nil && cleanup {
		err = s.mayCleanUp(ctx, found)
	}
	if err == nil {
		before, err = s.Health(ctx, id)
	}
	if err != nil {
		return Health{}, Health{}, err
	}
	if err := s.exec(ctx, "table.optimize", found.state.Optimize(cleanup)); err != nil {
		return Health{}, Health{}, s.optimizeError(ctx, found, err)
	}
	after, err = s.Health(ctx, id)
	return before, after, err
}

func (s *Store) mayCleanUp(ctx context.Context, found resolved) error {
	if !found.state.Layout.Tombstones() || found.table.Settings[chsql.CleanupSetting] != "1" {
		return noCleanup(found)
	}
	return s.unheld(ctx, found)
}

func noCleanup(found resolved) error {
	return &NoCleanupError{Database: found.table.Database, Table: found.table.Name, Layout: found.table.Layout, Setting: chsql.CleanupSetting}
}

func (s *Store) optimizeError(ctx context.Context, found resolved, err error) error {
	var serverErr *chconn.ServerError
	if !errors.As(err, &serverErr) {
		return err
	}
	switch serverErr.Code {
	case chconn.CodeAborted, chconn.CodeCannotOptimize:
		return &NoMergeError{Database: found.table.Database, Table: found.table.Name, Err: err}
	case chconn.CodeSupportDisabled:
		return errors.Join(noCleanup(found), err) // The setting was taken away meanwhile.
	}
	return s.tableGone(ctx, found.state.Table, err)
}
