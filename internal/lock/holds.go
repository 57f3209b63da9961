package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
)

// A Hold is a lock that is kept across many calls of [Locker.Do], until it is released.
type Hold struct{ claim *claim }

// holds are the Holds of one Locker, and the calls that may have claims in place.
type holds struct {
	// closing is done when the Locker takes no more calls; close ends it.
	closing context.Context
	close   context.CancelCauseFunc

	mu      sync.Mutex
	all     []*Hold
	working sync.WaitGroup
}

// errClosed is the cause of what is cancelled when the process ends.
var errClosed = errors.New("the provider is ending")

func newHolds() *holds {
	s := &holds{}
	s.closing, s.close = context.WithCancelCause(context.Background())
	return s
}

// begin lets a call in that may put claims. Its context ends with the Locker. It has to call end when it has
// no claim left but that of a Hold.
func (s *holds) begin(ctx context.Context) (_ context.Context, end func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Err() != nil {
		return nil, nil, errClosed
	}
	s.working.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.closing, func() { cancel(errClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
		s.working.Done()
	}, nil
}

// Hold acquires the lock of all the state_ids, all or none, and keeps it by itself until Release. Calls of Do
// of this Locker run under it meanwhile; those of others wait. A timeout of zero is the Locker's own. It
// returns a *BusyError at once if this Locker holds one of the state_ids already.
func (l *Locker) Hold(ctx context.Context, table chsql.LockTable, ids []string, timeout time.Duration) (*Hold, error) {
	if timeout == 0 {
		timeout = l.options.Timeout
	}
	deadline := time.Now().Add(timeout)
	ctx, end, err := l.holds.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	leave, err := l.queue.enter(ctx, table, ids, deadline)
	if err != nil {
		return nil, err
	}
	defer leave()
	if id, c := l.holds.overlapping(table, ids); c != nil {
		return nil, &BusyError{Table: table.String(), StateID: id, LockID: c.fence.LockID, Holder: l.options.Holder}
	}
	c, err := l.acquire(ctx, table, ids, deadline)
	if err != nil {
		return nil, err
	}
	c.keep(ctx)
	h := &Hold{claim: c}
	l.holds.mu.Lock()
	l.holds.all = append(l.holds.all, h)
	l.holds.mu.Unlock()
	return h, nil
}

// LockID is the lock_id of the claims.
func (h *Hold) LockID() string { return h.claim.fence.LockID }

// Holder is what others see of who holds.
func (h *Hold) Holder() string { return h.claim.locker.options.Holder }

// RenewEvery is how often the lock renews itself, and how often Renew is worth calling.
func (h *Hold) RenewEvery() time.Duration { return h.claim.renewInterval() }

// Renew renews the lock now. It returns a *LostError if it is lost, and other errors if a later try may
// succeed.
func (h *Hold) Renew(ctx context.Context) error { return h.claim.renew(ctx) }

// Release ends the hold. Calls of Do that run under it are waited for first, as long as one would wait for a
// lock: whoever releases need not know of them. It returns the *LostError if the lock was lost meanwhile, or
// a *ReleaseError.
func (h *Hold) Release(ctx context.Context) error {
	c := h.claim
	leave, err := c.locker.queue.enter(ctx, c.fence.Lock, c.ids, time.Now().Add(c.locker.options.Timeout))
	if err == nil {
		defer leave()
	}
	return h.release(ctx, releaseTimeout)
}

func (h *Hold) release(ctx context.Context, timeout time.Duration) error {
	l := h.claim.locker
	l.holds.mu.Lock()
	l.holds.all = slices.DeleteFunc(l.holds.all, func(other *Hold) bool { return other == h })
	l.holds.mu.Unlock()
	return errors.Join(h.claim.lostError(), h.claim.release(ctx, timeout))
}

// ReleaseAll is for the end of the process: it takes no more calls, cancels those that are under way, waits
// until they have released, and releases every Hold that is left, within the timeout.
func (l *Locker) ReleaseAll(ctx context.Context, timeout time.Duration) error {
	s := l.holds
	s.mu.Lock()
	s.close(errClosed)
	s.mu.Unlock()
	done := make(chan error, 1)
	go func() {
		err := s.releaseHolds(ctx, timeout)
		s.working.Wait()
		// A Hold may have been acquired at the last moment.
		done <- errors.Join(err, s.releaseHolds(ctx, timeout))
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(timeout):
		return fmt.Errorf("locks are still being released after %s", timeout)
	}
}

func (s *holds) releaseHolds(ctx context.Context, timeout time.Duration) error {
	s.mu.Lock()
	left := slices.Clone(s.all)
	s.mu.Unlock()
	errs := make([]error, len(left))
	var group sync.WaitGroup
	for i, h := range left {
		group.Go(func() { errs[i] = h.release(ctx, timeout) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// Parts divides state_ids into sets that one call of Do can take: those of each Hold, and those that none holds.
func (l *Locker) Parts(table chsql.LockTable, ids []string) [][]string {
	parts, order := make(map[*claim][]string), []*claim(nil)
	for _, id := range ids {
		_, c := l.holds.overlapping(table, []string{id})
		if parts[c] == nil {
			order = append(order, c)
		}
		parts[c] = append(parts[c], id)
	}
	divided := make([][]string, len(order))
	for i, c := range order {
		divided[i] = parts[c]
	}
	return divided
}

// covering returns the claim of the Hold that covers all the ids, or nil if none of them is held.
func (s *holds) covering(table chsql.LockTable, ids []string) (*claim, error) {
	id, c := s.overlapping(table, ids)
	if c == nil {
		return nil, nil
	}
	for _, other := range ids {
		if !c.covers(other) {
			return nil, fmt.Errorf("state_id %q is held by this process under lock_id %s, but %q is not: %w",
				id, c.fence.LockID, other, ErrPartlyHeld)
		}
	}
	return c, nil
}

// Covered returns the lock_id of the [Hold] of this Locker that covers the state_id, or "".
func (l *Locker) Covered(table chsql.LockTable, stateID string) string {
	if _, c := l.holds.overlapping(table, []string{stateID}); c != nil {
		return c.fence.LockID
	}
	return ""
}

// overlapping returns the claim of a Hold that covers one of the ids, and that id, or nil.
func (s *holds) overlapping(table chsql.LockTable, ids []string) (id string, c *claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.all {
		if h.claim.fence.Lock.Table != table.Table {
			continue
		}
		for _, id := range ids {
			if h.claim.covers(id) {
				return id, h.claim
			}
		}
	}
	return "", nil
}
