package lock

import (
	"context"
	"fmt"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
)

// A Claim is a lock as it stands in the lock table, held or left behind.
type Claim struct {
	StateID, LockID string
	// Holder is empty for a Meltano client, and on lock tables that Meltano made.
	Holder string
	// LockedAt is when it was made or last renewed, by the server's clock, in seconds.
	LockedAt time.Time
	// Age is the time since then, by the server's clock.
	Age time.Duration
	// Stale says that everybody takes it for dead.
	Stale bool
}

// Claims reads the claims on one state_id, or on all of them if it is nil, in the order of state_id and
// lock_id. It takes no lock.
func (l *Locker) Claims(ctx context.Context, table chsql.LockTable, stateID *string) ([]Claim, error) {
	rows, err := l.rows(ctx, newStatement("lock.list", table.AllClaims(stateID)))
	if err != nil {
		return nil, err
	}
	claims := make([]Claim, len(rows))
	for i, r := range rows {
		age := r.now.Sub(r.lockedAt)
		claims[i] = Claim{
			StateID: r.stateID, LockID: r.lockID, Holder: r.holder, LockedAt: r.lockedAt.UTC(),
			Age: age, Stale: age.Truncate(time.Second) > l.options.Scale.Stale,
		}
	}
	return claims, nil
}

// A NotHeldError says that a lock that was to be broken is not there.
type NotHeldError struct {
	Table, StateID, LockID string
	// Held are the claims that are there instead.
	Held []Claim
}

func (e *NotHeldError) Error() string {
	return fmt.Sprintf("state_id %q in %s is not locked by lock_id %q, but by %d other(s)", e.StateID, e.Table, e.LockID, len(e.Held))
}

// Break removes the claim with one lock_id from a state_id, whoever holds it, and returns what it removed. It
// returns a *NotHeldError if there is no such claim. A holder that lives finds its lock lost: one of ours
// writes nothing more, a Meltano client notices nothing.
func (l *Locker) Break(ctx context.Context, table chsql.LockTable, stateID, lockID string) (Claim, error) {
	claims, err := l.Claims(ctx, table, &stateID)
	if err != nil {
		return Claim{}, err
	}
	for _, found := range claims {
		if found.LockID != lockID {
			continue
		}
		c := l.newClaim(table, []string{stateID})
		c.fence.LockID = lockID
		c.serverExpires = found.LockedAt.Add(c.fence.Stale)
		return found, c.release(ctx, releaseTimeout)
	}
	return Claim{}, &NotHeldError{Table: table.String(), StateID: stateID, LockID: lockID, Held: claims}
}
