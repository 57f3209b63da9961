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

// holds are the Holds of one Locker. The zero value is ready.
type holds struct {
	mu  sync.Mutex
	all []*Hold
	// working counts the calls of Do that have a claim of their own.
	working sync.WaitGroup
}

// Hold acquires the lock of all the state_ids, all or none, and keeps it by itself until Release. Calls of Do
// of this Locker run under it meanwhile; those of others wait. A timeout of zero is the Locker's own. It
// returns a *BusyError at once if this Locker holds one of the state_ids already.
func (l *Locker) Hold(ctx context.Context, table chsql.LockTable, ids []string, timeout time.Duration) (*Hold, error) {
	if timeout == 0 {
		timeout = l.options.Timeout
	}
	leave, err := l.queue.enter(ctx, table, ids, timeout)
	if err != nil {
		return nil, err
	}
	defer leave()
	if id, c := l.holds.overlapping(table, ids); c != nil {
		return nil, &BusyError{Table: table.String(), StateID: id, LockID: c.fence.LockID, Holder: l.options.Holder}
	}
	c, err := l.acquire(ctx, table, ids, timeout)
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
	leave, err := c.locker.queue.enter(context.WithoutCancel(ctx), c.fence.Lock, c.ids, c.locker.options.Timeout)
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

// ReleaseAll releases every Hold that is left, and waits for calls of Do to release theirs, within the
// timeout. It is for the end of the process; the work of those calls must be cancelled already.
func (l *Locker) ReleaseAll(ctx context.Context, timeout time.Duration) error {
	l.holds.mu.Lock()
	left := slices.Clone(l.holds.all)
	l.holds.mu.Unlock()
	errs := make([]error, len(left))
	var group sync.WaitGroup
	for i, h := range left {
		group.Go(func() { errs[i] = h.release(ctx, timeout) })
	}
	done := make(chan struct{})
	go func() {
		group.Wait()
		l.holds.working.Wait()
		close(done)
	}()
	select {
	case <-done:
		return errors.Join(errs...)
	case <-time.After(timeout):
		return fmt.Errorf("locks are still being released after %s", timeout)
	}
}

// covering returns the claim of the Hold that covers all the ids, or nil if none of them is held.
func (s *holds) covering(table chsql.LockTable, ids []string) (*claim, error) {
	id, c := s.overlapping(table, ids)
	if c == nil {
		return nil, nil
	}
	for _, other := range ids {
		if !slices.Contains(c.ids, other) {
			return nil, fmt.Errorf("state_id %q is held by this process under lock_id %s, but %q is not: one write cannot span both",
				id, c.fence.LockID, other)
		}
	}
	return c, nil
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
			if slices.Contains(h.claim.ids, id) {
				return id, h.claim
			}
		}
	}
	return "", nil
}
