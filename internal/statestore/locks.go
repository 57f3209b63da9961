package statestore

import (
	"context"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/lock"
)

type (
	// Claim is a lock as it stands in a lock table, held or left behind.
	Claim = lock.Claim
	// Hold is a lock that is kept, and that writes of the same store share, until it is released.
	Hold = lock.Hold
	// NotHeldError says that a lock that was to be broken is not there.
	NotHeldError = lock.NotHeldError
)

// Hold locks state_ids of one table, all or none, until the hold is released or the store closed. A timeout of
// zero is the configured one. Errors as for Create.
func (s *Store) Hold(ctx context.Context, database, table string, ids []string, timeout time.Duration) (*Hold, error) {
	found, err := s.lockable(ctx, chsql.Table{Database: database, Name: table})
	if err != nil {
		return nil, err
	}
	hold, err := s.locker.Hold(ctx, found.lock, ids, timeout)
	if err != nil {
		return nil, s.tableGone(ctx, found.state.Table, err)
	}
	return hold, nil
}

// Locks reads the claims on one state_id, or on all of them if it is nil. It takes no lock.
func (s *Store) Locks(ctx context.Context, database, table string, stateID *string) ([]Claim, error) {
	found, err := s.lockable(ctx, chsql.Table{Database: database, Name: table})
	if err != nil {
		return nil, err
	}
	claims, err := s.locker.Claims(ctx, found.lock, stateID)
	if err != nil {
		return nil, s.tableGone(ctx, found.state.Table, err)
	}
	return claims, nil
}

// BreakLock removes one claim, whoever holds it, and returns what it removed, or a *NotHeldError.
func (s *Store) BreakLock(ctx context.Context, at Address, lockID string) (Claim, error) {
	found, err := s.lockable(ctx, at.table())
	if err != nil {
		return Claim{}, err
	}
	claim, err := s.locker.Break(ctx, found.lock, at.StateID, lockID)
	if err != nil {
		return Claim{}, s.tableGone(ctx, at.table(), err)
	}
	return claim, nil
}
