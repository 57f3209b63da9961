package lock

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
)

// answerGrace is how long after the deadline of an acquisition a statement that was sent before it may still
// be answered.
const answerGrace = 5 * time.Second

// acquire puts claims on all ids and decides, until they are held or somebody was in the way until the deadline. A
// statement that got no answer, or a table with too many parts, is tried again for the Locker's timeout.
func (l *Locker) acquire(ctx context.Context, table chsql.LockTable, ids []string, deadline time.Time) (*claim, error) {
	start := time.Now()
	for {
		c := l.newClaim(table, ids)
		busy, err := c.try(ctx, deadline)
		if busy == nil && err == nil {
			return c, nil
		}
		pause := jitter(l.options.RetryInterval)
		again := (errors.As(err, new(*chconn.NoAnswerError)) || crowded(err)) && !errors.As(err, new(*WithdrawError))
		switch {
		case err != nil && (!again || time.Since(start)+pause > l.options.Timeout):
			return nil, err
		case err == nil && time.Until(deadline) < pause:
			busy.Waited = time.Since(start)
			return nil, busy
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// try makes one attempt with one lock_id. With neither a *BusyError, which says who or what was in the way,
// nor an error, the lock is held; else nothing is left behind, or the error is a *WithdrawError. After a
// *chconn.NoAnswerError, or if the table has too many parts, another attempt may do better.
func (c *claim) try(ctx context.Context, deadline time.Time) (*BusyError, error) {
	put, err := c.put(ctx, deadline)
	var serverErr *chconn.ServerError
	switch {
	case err == nil && !put:
		seen, err := c.read(ctx, time.Until(deadline)+answerGrace)
		return c.busy(seen), err
	case errors.As(err, new(*chconn.ConnectError)), errors.As(err, &serverErr) && refused(serverErr), crowded(err):
		return nil, err // Nothing was put.
	}
	var busy *BusyError
	if err == nil {
		busy, err = c.decide(ctx, deadline)
	}
	if busy == nil && err == nil {
		return nil, nil
	}
	return busy, c.withdraw(ctx, err)
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
func (c *claim) put(ctx context.Context, deadline time.Time) (bool, error) {
	c.putAt = time.Now()
	st := newStatement("lock.claim", c.fence.Claim(c.ids, c.locker.options.Holder))
	st.Timeout = time.Until(deadline) + answerGrace
	result, err := c.exec(ctx, st)
	return result.WrittenRows > 0, err
}

// decide reads all live claims until ours is the only one (held), or has to give way to what it returns.
func (c *claim) decide(ctx context.Context, deadline time.Time) (*BusyError, error) {
	if c.fence.Lock.Hides() {
		// A claim that was put together with ours may be hidden. Whoever put it has noticed by the end of a
		// settle, if our INSERT took no longer than that.
		if took := time.Since(c.putAt); took > c.locker.options.Settle {
			busy := c.busy(sighting{})
			busy.Slow = took
			return busy, nil
		}
		if err := sleep(ctx, c.locker.options.Settle); err != nil {
			return nil, err
		}
	}
	for first := true; ; first = false {
		seen, err := c.read(ctx, time.Until(deadline)+answerGrace)
		if err != nil {
			return nil, err
		}
		switch s := c.sight(seen); {
		case s.smaller || s.ours < len(c.ids):
			// Fewer of ours than were put: a merge or a sweep took one.
			return c.busy(seen), nil
		case !s.larger:
			c.extend(seen)
			return nil, nil
		case s.largerOfOurs && !first, time.Since(c.putAt) > 3*c.locker.options.Settle, time.Now().After(deadline):
			// Whoever only claims has withdrawn by now, so this one holds. It may be about to write, and
			// its fence waits for our claim to go. Ours is not renewed meanwhile: it is young.
			return c.busy(seen), nil
		}
		if err := sleep(ctx, c.pollInterval()); err != nil {
			return nil, err
		}
	}
}

// pollInterval is the pause before claims are read again while ours stands beside a rival's. Where a claim may
// be hidden, a decision in sight of a rival is made from what is seen after the settle.
func (c *claim) pollInterval() time.Duration {
	if c.fence.Lock.Hides() {
		return c.locker.options.Settle
	}
	return jitter(c.locker.options.RetryInterval / 5)
}

// A row is one claim as it stands in the lock table.
type row struct {
	stateID, lockID, holder string
	// lockedAt is in the server's time, as is now, when the row was read.
	lockedAt, now time.Time
}

// A sighting is the live claims that were read, and the local time just before.
type sighting struct {
	rows []row
	at   time.Time
}

// now is the server's time of the reading; zero if there was no row.
func (s sighting) now() time.Time {
	if len(s.rows) == 0 {
		return time.Time{}
	}
	return s.rows[0].now
}

// read reads the live claims of the state_ids, ours and others'.
func (c *claim) read(ctx context.Context, timeout time.Duration) (sighting, error) {
	st := newStatement("lock.read", c.fence.Lock.Claims(c.ids, c.fence.Stale))
	st.Timeout = timeout
	at := time.Now()
	rows, err := c.locker.rows(ctx, st)
	return sighting{rows: newest(rows), at: at}, err
}

// readTimeout bounds a reading while the lock is held: what comes later is of no use.
func (c *claim) readTimeout() time.Duration { return max(c.fence.Lease/10, 2*time.Second) }

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

// newest leaves one row of each claim, the one that was renewed last, sorted.
func newest(rows []row) []row {
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(strings.Compare(a.stateID, b.stateID), strings.Compare(a.lockID, b.lockID), b.lockedAt.Compare(a.lockedAt))
	})
	return slices.CompactFunc(rows, func(a, b row) bool { return a.stateID == b.stateID && a.lockID == b.lockID })
}

// A sight is what a claimant sees of the live claims on its state_ids.
type sight struct {
	// ours counts our own claims.
	ours int
	// smaller and larger tell whether there are rivals with such lock_ids; largerOfOurs, whether one of the
	// larger is of our kind, who withdraws as soon as it sees us, unless it holds.
	smaller, larger, largerOfOurs bool
}

func (c *claim) sight(seen sighting) (s sight) {
	for _, r := range seen.rows {
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

// busy names the first rival that was seen, if there was one.
func (c *claim) busy(seen sighting) *BusyError {
	busy := &BusyError{Table: c.fence.Lock.String(), StateID: c.ids[0]}
	for _, r := range seen.rows {
		if r.lockID == c.fence.LockID {
			continue
		}
		busy.StateID, busy.LockID, busy.Holder = r.stateID, r.lockID, r.holder
		busy.Since, busy.Stale, busy.Now = r.lockedAt, r.lockedAt.Add(c.fence.Stale), r.now
		busy.Break = c.fence.Lock.BreakText(r.stateID, r.lockID)
		break
	}
	return busy
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
