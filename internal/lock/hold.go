package lock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
)

// patience is how long a release waits for a renewal in flight before it cuts it off.
const patience = 500 * time.Millisecond

// keep renews the claims until the claim is released or lost.
func (c *claim) keep(ctx context.Context) {
	// The renewer goes on after a cancellation of the work, until release stops it.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { c.renewUntil(ctx, done) })
	running.Go(func() { c.watch(ctx, done) })
	finished := make(chan struct{})
	go func() {
		running.Wait()
		close(finished)
	}()
	c.stop = sync.OnceFunc(func() {
		close(done)
		// A statement in flight gets a moment to end by itself. One that is cut off is killed by release.
		select {
		case <-finished:
		case <-time.After(patience):
		}
		cancel()
		<-finished
	})
}

// watch tells the work that the lease has ended, whatever the renewer is waiting for.
func (c *claim) watch(ctx context.Context, done <-chan struct{}) {
	for {
		expires, _ := c.expiry()
		left := time.Until(expires)
		if left <= 0 {
			_ = c.lose(ctx, "its lease ended before it was renewed")
			return
		}
		select {
		case <-time.After(left):
		case <-done:
			return
		}
	}
}

func (c *claim) renewUntil(ctx context.Context, done <-chan struct{}) {
	// The claim has an age when it is kept.
	expires, _ := c.expiry()
	pause := time.Until(expires) - c.fence.Lease + c.renewInterval()
	for {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-done:
			timer.Stop()
			return
		}
		err := c.renew(ctx)
		switch {
		case errors.As(err, new(*LostError)):
			return
		case err != nil:
			// A rival in sight, or no connection: try again shortly, well within what is left.
			pause = c.renewInterval() / 4
		default:
			pause = c.renewInterval()
		}
	}
}

// renewInterval is a fifth of the lease.
func (c *claim) renewInterval() time.Duration { return c.fence.Lease / 5 }

// errNotRenewed is a renewal that was refused or lost on its way although our claims are there: a rival is in
// sight, or was.
var errNotRenewed = errors.New("not renewed")

// renew renews the claims once. It returns a *LostError if the lock is lost, and another error if a later
// try may succeed.
//
// It counts only what is read afterwards, and only if that was before the previous lease ended: a renewal
// that was slow on its way must not bring a claim back that others have taken for dead meanwhile.
func (c *claim) renew(ctx context.Context) error {
	if err := c.statement.take(ctx); err != nil {
		return err
	}
	defer c.statement.leave()
	if err := c.lostError(); err != nil {
		return err
	}
	_, before := c.expiry()
	st := newStatement("lock.renew", c.fence.Renew(c.ids, c.locker.options.Holder))
	st.Timeout = c.readTimeout()
	result, execErr := c.exec(ctx, st)
	seen, err := c.read(ctx, c.readTimeout())
	if err != nil {
		return errors.Join(execErr, err)
	}
	switch {
	case c.sight(seen).ours < len(c.ids):
		return c.lose(ctx, "its claim is gone from the lock table")
	case !seen.now().Before(before):
		return c.lose(ctx, "its lease ended before it was renewed")
	case execErr != nil && !errors.As(execErr, new(*chconn.NoAnswerError)):
		return execErr
	}
	c.extend(seen)
	_, after := c.expiry()
	switch {
	case execErr == nil && result.WrittenRows > 0, after.After(before):
		return nil
	case !c.fresh(seen):
		return c.lose(ctx, "its claim is too old to be renewed")
	}
	return errNotRenewed
}
