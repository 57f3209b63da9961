package statestore

import (
	"context"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/lock"
)

// upgradeLock rebuilds a lock table of Meltano's as a strict one, in place. Live claims are carried over, so whoever
// holds a lock goes on holding it. Repeating it finishes what was interrupted.
//
// A claim that is put in the milliseconds of the exchange is carried over right after it, well within the settle after
// which its owner decides. One that is released in them is deleted a second later.
func (s *Store) upgradeLock(ctx context.Context, found resolved) error {
	defer s.forget(found.state.Table)
	r, err := s.replacing(ctx, found.lock.Table)
	if err != nil {
		return err
	}
	if r.done {
		return s.finishLock(ctx, r)
	}
	if err := s.restart(ctx, r); err != nil || found.lock.Strict {
		return err
	}
	beside := chsql.LockTable{Table: r.beside, Strict: true, Holder: true}
	if err := s.createLockTable(ctx, beside, LayoutStrict, chsql.Definition{Comment: r.mark.on("")}); err != nil {
		return err
	}
	if err := s.reached("lock table created"); err != nil {
		return err
	}
	if err := s.exec(ctx, "upgrade.copy_claims", found.lock.CopyClaimsTo(beside, lock.Stale, lockIDs(nil))); err != nil {
		return err
	}
	if err := s.reached("claims copied"); err != nil {
		return err
	}
	carried, err := s.locker.Claims(ctx, beside, nil)
	if err != nil {
		return err
	}
	if err := s.exchange(ctx, &r); err != nil {
		return err
	}
	if err := s.reached("lock tables exchanged"); err != nil {
		return err
	}
	// What was claimed between the copy and the exchange, before its owner decides. Not what was copied already: that
	// may have been released by now.
	old, live := chsql.LockTable{Table: r.beside}, chsql.LockTable{Table: r.live, Strict: true, Holder: true}
	if err := s.exec(ctx, "upgrade.late_claims", old.CopyClaimsTo(live, lock.Stale, lockIDs(carried))); err != nil {
		return err
	}
	if err := s.quiet(ctx, old); err != nil {
		return err
	}
	return s.finishLock(ctx, r)
}

// finishLock ends a rebuild after the exchange, also one that was interrupted.
func (s *Store) finishLock(ctx context.Context, r replacement) error {
	if r.found != nil {
		if err := s.dropReleased(ctx, r); err != nil {
			return err
		}
	}
	return s.finish(ctx, r)
}

// quiet waits until what was on its way to a table that nobody can name any more has arrived: a second, and up to ten
// for deletes that the server has begun.
func (s *Store) quiet(ctx context.Context, table chsql.LockTable) error {
	for range 10 {
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
		unfinished, err := query(ctx, s, statement("upgrade.quiet", table.Left("", []string{""})), func(r chconn.Row) (unfinished uint64, err error) {
			var left uint64
			return unfinished, r.Scan(&unfinished, &left)
		})
		if err != nil || unfinished[0] == 0 {
			return err
		}
	}
	return nil
}

// lockIDs lists the lock_ids of claims, and one that nobody has: a list must not be empty.
func lockIDs(claims []Claim) []string {
	ids := []string{""}
	for _, claim := range claims {
		ids = append(ids, claim.LockID)
	}
	return ids
}

// dropReleased deletes the claims that were carried over although they were being released: from the old table they
// are gone by now. Where another claim on the same state_id is left there, a merge may have hidden this one, whose
// holder lives: it stays, until it is stale.
func (s *Store) dropReleased(ctx context.Context, r replacement) error {
	left, err := s.locker.Claims(ctx, chsql.LockTable{Table: r.beside}, nil)
	if err != nil {
		return err
	}
	locked := make(map[string]bool, len(left))
	for _, claim := range left {
		locked[claim.StateID] = true
	}
	live := chsql.LockTable{Table: r.live, Strict: true, Holder: true}
	claims, err := s.locker.Claims(ctx, live, nil)
	if err != nil {
		return err
	}
	for _, claim := range claims {
		if claim.Holder != chsql.CarriedOver || locked[claim.StateID] {
			continue
		}
		if err := s.exec(ctx, "upgrade.released", live.Release(claim.LockID, []string{claim.StateID}, chsql.DeleteMutation)); err != nil {
			return err
		}
	}
	return nil
}
