package statestore

import (
	"context"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/lock"
)

// upgradeLock rebuilds a lock table of Meltano's as a strict one, in place. Live claims are carried over, so whoever
// holds a lock goes on holding it. Repeating it finishes what was interrupted.
//
// A claim that is put or released in the milliseconds of the exchange is carried over right after it, well within
// the settle after which its owner decides.
func (s *Store) upgradeLock(ctx context.Context, found resolved) error {
	defer s.forget(found.state.Table)
	r, err := s.replacing(ctx, found.lock.Table)
	if err != nil {
		return err
	}
	if r.done {
		return s.finish(ctx, r)
	}
	if err := s.restart(ctx, r); err != nil || found.lock.Strict {
		return err
	}
	beside := chsql.LockTable{Table: r.beside, Strict: true}
	if err := s.createLockTable(ctx, beside, LayoutStrict, chsql.Definition{Comment: r.mark.on("")}); err != nil {
		return err
	}
	if err := s.reached("lock table created"); err != nil {
		return err
	}
	if err := s.exec(ctx, "upgrade.copy_claims", found.lock.CopyClaimsTo(beside, lock.Stale)); err != nil {
		return err
	}
	if err := s.reached("claims copied"); err != nil {
		return err
	}
	copied, err := s.locker.Claims(ctx, beside, nil)
	if err != nil {
		return err
	}
	if err := s.exchange(ctx, &r); err != nil {
		return err
	}
	if err := s.reached("lock tables exchanged"); err != nil {
		return err
	}
	if err := s.carryOver(ctx, r, copied); err != nil {
		return err
	}
	return s.finish(ctx, r)
}

// carryOver makes up for what happened to the old lock table between the copy and the exchange.
func (s *Store) carryOver(ctx context.Context, r replacement, copied []Claim) error {
	old, live := chsql.LockTable{Table: r.beside}, chsql.LockTable{Table: r.live, Strict: true}
	if err := s.exec(ctx, "upgrade.late_claims", old.CopyClaimsTo(live, lock.Stale)); err != nil {
		return err
	}
	left, err := s.locker.Claims(ctx, old, nil)
	if err != nil {
		return err
	}
	held := make(map[[2]string]bool, len(left))
	for _, claim := range left {
		held[[2]string{claim.StateID, claim.LockID}] = true
	}
	for _, claim := range copied {
		if held[[2]string{claim.StateID, claim.LockID}] {
			continue
		}
		if err := s.exec(ctx, "upgrade.released", live.Release(claim.LockID, []string{claim.StateID}, chsql.DeleteMutation)); err != nil {
			return err
		}
	}
	return nil
}
