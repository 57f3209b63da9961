package lock

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
)

// A row is one live claim as it stands in the lock table.
type row struct {
	stateID, lockID, holder string
	// lockedAt is in the server's time, as is now, when the row was read.
	lockedAt, now time.Time
}

// acquire puts claims on all ids and decides, until they are held or the timeout has passed.
func (l *Locker) acquire(ctx context.Context, table chsql.LockTable, ids []string, timeout time.Duration) (*claim, error) {
	start := time.Now()
	deadline := start.Add(timeout)
	busy := &BusyError{Table: table.String(), StateID: ids[0]}
	for {
		c := l.newClaim(table, ids)
		held, err := c.try(ctx, deadline, busy)
		if held {
			return c, nil
		}
		pause := jitter(l.options.RetryInterval)
		lastTry := time.Until(deadline) < pause
		if err != nil && (lastTry || errors.As(err, new(*WithdrawError)) || !errors.As(err, new(*chconn.NoAnswerError))) {
			return nil, err
		}
		if lastTry {
			busy.Waited = time.Since(start)
			return nil, busy
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// try makes one attempt with one lock_id. It leaves nothing behind unless the lock is held, or it returns a
// *WithdrawError. Held false with no error means that a rival was in the way, who is noted in busy; a
// *chconn.NoAnswerError, that another attempt may do better.
func (c *claim) try(ctx context.Context, deadline time.Time, busy *BusyError) (held bool, err error) {
	busy.Slow = 0
	put, err := c.put(ctx)
	if err == nil && !put {
		rows, err := c.read(ctx)
		c.note(busy, rows)
		return false, err
	}
	if errors.As(err, new(*chconn.ConnectError)) {
		return false, err // Not sent: there is nothing to withdraw.
	}
	if err == nil {
		held, err = c.decide(ctx, deadline, busy)
	}
	if held {
		return true, nil
	}
	return false, c.withdraw(ctx, err)
}

// withdraw deletes the claims after an attempt that ended with err. It returns err, or a *WithdrawError if the
// claims may still be there: the next attempt would only wait for them.
func (c *claim) withdraw(ctx context.Context, err error) error {
	var releaseErr *ReleaseError
	if !errors.As(c.release(ctx, releaseTimeout), &releaseErr) {
		return err
	}
	expires := releaseErr.Expires
	if expires.IsZero() { // They were never read.
		expires = time.Now().Add(c.fence.Lease)
	}
	return &WithdrawError{Table: releaseErr.Table, LockID: releaseErr.LockID, Expires: expires, Err: errors.Join(err, releaseErr.Err)}
}

// put sends the guarded INSERT. True: all claims were put; false: none was, since somebody holds.
func (c *claim) put(ctx context.Context) (bool, error) {
	c.putAt = time.Now()
	result, err := c.exec(ctx, newStatement("lock.claim", c.fence.Claim(c.ids, c.locker.options.Holder)))
	if err != nil {
		return false, err
	}
	return result.WrittenRows > 0, nil
}

// decide reads all live claims until ours is the only one (held), or has to give way.
func (c *claim) decide(ctx context.Context, deadline time.Time, busy *BusyError) (held bool, err error) {
	if !c.fence.Lock.Strict {
		// A merge may hide a claim that was put together with ours. Whoever put it has noticed by the end of
		// a settle, if our INSERT took no longer than that.
		if busy.Slow = time.Since(c.putAt); busy.Slow > c.locker.options.Settle {
			return false, nil
		}
		busy.Slow = 0
		if err := sleep(ctx, c.locker.options.Settle); err != nil {
			return false, err
		}
	}
	for first := true; ; first = false {
		rows, err := c.read(ctx)
		if err != nil {
			return false, err
		}
		c.note(busy, rows)
		switch s := c.sight(rows); {
		case s.smaller || s.ours < len(c.ids):
			// Fewer of ours than were put: a merge or a sweep took one.
			return false, nil
		case !s.larger:
			c.extend(rows)
			return true, nil
		case s.largerOfOurs && !first, time.Since(c.putAt) > 3*c.locker.options.Settle, time.Now().After(deadline):
			// Whoever only claims has withdrawn by now, so this one holds. It may be about to write, and
			// its fence waits for our claim to go. Ours is not renewed meanwhile: it is young.
			return false, nil
		}
		if err := sleep(ctx, c.pollInterval()); err != nil {
			return false, err
		}
	}
}

// pollInterval is the pause before claims are read again while ours stands beside a rival's. Where a merge
// may hide a claim, a decision in sight of a rival is made from what is seen after the settle.
func (c *claim) pollInterval() time.Duration {
	if !c.fence.Lock.Strict {
		return c.locker.options.Settle
	}
	return jitter(c.locker.options.RetryInterval / 5)
}

// read reads the live claims of the state_ids, ours and others'.
func (c *claim) read(ctx context.Context) ([]row, error) {
	c.readAt = time.Now()
	return c.locker.rows(ctx, newStatement("lock.read", c.fence.Lock.Claims(c.ids, c.fence.Stale)))
}

// rows reads claims.
func (l *Locker) rows(ctx context.Context, st chconn.Statement) ([]row, error) {
	var rows []row
	err := l.db.Query(ctx, st, func(r chconn.Row) error {
		var (
			claim            row
			lockedAt, nowMil int64
		)
		if err := r.Scan(&claim.stateID, &claim.lockID, &lockedAt, &claim.holder, &nowMil); err != nil {
			return err
		}
		claim.lockedAt, claim.now = time.Unix(lockedAt, 0), time.UnixMilli(nowMil)
		rows = append(rows, claim)
		return nil
	})
	return rows, err
}

// A sight is what a claimant sees of the live claims on its state_ids.
type sight struct {
	// ours counts our own claims.
	ours int
	// smaller and larger tell whether there are rivals with such lock_ids; largerOfOurs, whether one of the
	// larger is of our kind, who withdraws as soon as it sees us, unless it holds.
	smaller, larger, largerOfOurs bool
}

func (s sight) rival() bool { return s.smaller || s.larger }

func (c *claim) sight(rows []row) (s sight) {
	for _, r := range rows {
		switch {
		case r.lockID == c.fence.LockID:
			s.ours++
		case r.lockID < c.fence.LockID:
			s.smaller = true
		default:
			s.larger = true
			s.largerOfOurs = s.largerOfOurs || strings.HasPrefix(r.lockID, ourPrefix)
		}
	}
	return s
}

// note keeps the first rival of rows for the error that is returned if nothing comes of waiting.
func (c *claim) note(busy *BusyError, rows []row) {
	for _, r := range rows {
		if r.lockID == c.fence.LockID {
			continue
		}
		busy.StateID, busy.LockID, busy.Holder = r.stateID, r.lockID, r.holder
		busy.Since, busy.Stale, busy.Now = r.lockedAt, r.lockedAt.Add(c.fence.Stale), r.now
		busy.Break = c.fence.Lock.BreakText(r.stateID, r.lockID)
		return
	}
}

// jitter spreads d by a quarter up and down, so that those who wait do not wake together.
func jitter(d time.Duration) time.Duration {
	return d*3/4 + rand.N(d/2+1)
}

// sleep waits, or returns the context's cause.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
