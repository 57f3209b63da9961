package lock

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
)

// A claim is one acquisition: one lock_id on a set of state_ids, from the INSERT to the DELETE.
type claim struct {
	locker *Locker
	fence  chsql.Fence
	ids    []string

	// putAt is the local time just before the claims were put.
	putAt time.Time

	// gone is done when the lock is lost; its cause is the *LostError.
	gone   context.Context
	cancel context.CancelCauseFunc

	// statement is held by whatever uses the claim: renewals and fenced writes never overlap.
	statement slot

	mu sync.Mutex
	// expires is when the lease ends, by the local clock; serverExpires the same by the server's.
	expires, serverExpires time.Time
	lost                   *LostError
	// unanswered are INSERTs that may still run.
	unanswered []string
	// stop ends the renewer and waits for its statement.
	stop func()
}

func (l *Locker) newClaim(table chsql.LockTable, ids []string) *claim {
	fence := chsql.Fence{
		Lock:   table,
		LockID: newLockID(),
		Lease:  l.options.StaleAfter,
		Stale:  l.options.Scale.Stale,
	}
	if !table.Strict {
		// Dated back, a claim is swept that much earlier.
		fence.Backdate = l.options.Scale.Backdate
		fence.Lease = min(fence.Lease, fence.Stale-fence.Backdate)
	}
	c := &claim{
		locker:    l,
		fence:     fence,
		statement: make(slot, 1),
		ids:       slices.Compact(slices.Sorted(slices.Values(ids))),
		stop:      func() {},
	}
	c.gone, c.cancel = context.WithCancelCause(context.Background())
	return c
}

// covers tells whether a state_id is among those of the claim.
func (c *claim) covers(id string) bool {
	_, found := slices.BinarySearch(c.ids, id)
	return found
}

// exec sends an INSERT of this claim, and remembers it if no answer came.
func (c *claim) exec(ctx context.Context, st chconn.Statement) (chconn.Result, error) {
	result, err := c.locker.db.Exec(ctx, st)
	if errors.As(err, new(*chconn.NoAnswerError)) {
		c.mu.Lock()
		c.unanswered = append(c.unanswered, st.QueryID)
		c.mu.Unlock()
	}
	return result, err
}

// extend takes over from what was read until when the claims count.
func (c *claim) extend(seen sighting) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := true
	for _, r := range seen.rows {
		if r.lockID != c.fence.LockID {
			continue
		}
		expires := r.lockedAt.Add(c.fence.Backdate + c.fence.Lease)
		if first || expires.Before(c.serverExpires) {
			c.serverExpires, c.expires = expires, seen.at.Add(expires.Sub(r.now))
		}
		first = false
	}
}

// fresh tells whether all our claims were seen, young enough to be built on.
func (c *claim) fresh(seen sighting) bool {
	ours := 0
	for _, r := range seen.rows {
		if r.lockID != c.fence.LockID {
			continue
		}
		if r.now.Sub(r.lockedAt.Add(c.fence.Backdate)) >= c.fence.Fresh() {
			return false
		}
		ours++
	}
	return ours == len(c.ids)
}

// lose marks the lock as lost, once, and cancels the work that it guards.
func (c *claim) lose(ctx context.Context, reason string) *LostError {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost == nil {
		c.lost = &LostError{Table: c.fence.Lock.String(), LockID: c.fence.LockID, Reason: reason}
		c.locker.options.Logger.WarnContext(ctx, "lock lost", slog.String("lock_id", c.fence.LockID), slog.String("reason", reason))
		c.cancel(c.lost)
	}
	return c.lost
}

// lostError returns the *LostError if the lock was lost, else nil.
func (c *claim) lostError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost == nil {
		return nil
	}
	return c.lost
}

// expiry returns when the lease ends, by the local clock and by the server's.
func (c *claim) expiry() (local, server time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.expires, c.serverExpires
}

// A slot is a mutex that one need not wait for any longer than a context lasts.
type slot chan struct{}

func (s slot) take(ctx context.Context) error {
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s slot) leave() { <-s }

// newStatement makes of a query what a connection runs.
func newStatement(operation string, q chsql.Query) chconn.Statement {
	st := chconn.Statement{Operation: operation, Text: q.Text, Args: q.Args, Settings: q.Settings, QueryID: uuid.NewString()}
	if q.IDs != nil {
		st.External = []chconn.Table{chconn.Strings(chsql.IDs, "state_id", q.IDs)}
	}
	return st
}
