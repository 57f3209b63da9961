package lock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
)

// keep renews the claims until the claim is released or lost.
func (c *claim) keep(ctx context.Context) {
	// The renewer goes on after a cancellation of the work, until release stops it.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	finished := make(chan struct{})
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
	go func() {
		defer close(finished)
		c.renewUntil(ctx, done)
	}()
}

// patience is how long a release waits for a renewal in flight before it cuts it off.
const patience = time.Second

func (c *claim) renewUntil(ctx context.Context, done <-chan struct{}) {
	pause := c.renewInterval()
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

// errRefused is a renewal whose guard was closed although our claims are there: a rival is in sight.
var errRefused = errors.New("renewal refused: a rival claim is in sight")

// renew renews the claims once. It returns a *LostError if the lock is lost, and another error if a later
// try may succeed.
//
// It counts only what is read afterwards, and only if that was before the previous lease ended: a renewal
// that was slow on its way must not bring a claim back that others have taken for dead meanwhile.
func (c *claim) renew(ctx context.Context) error {
	c.statement.Lock()
	defer c.statement.Unlock()
	if err := c.lostError(); err != nil {
		return err
	}
	expires, serverExpires := c.expiry()
	st := newStatement("lock.renew", c.fence.Renew(c.ids, c.locker.options.Holder))
	st.Timeout = c.fence.Lease / 10
	result, execErr := c.exec(ctx, st)
	rows, err := c.read(ctx)
	if err != nil {
		if time.Now().After(expires) {
			return c.lose(ctx, "it could not be renewed in time", errors.Join(execErr, err))
		}
		return err
	}
	switch s := c.sight(rows); {
	case s.ours < len(c.ids):
		return c.lose(ctx, "its claim is gone from the lock table", execErr)
	case !rows[0].now.Before(serverExpires):
		return c.lose(ctx, "its lease ended before it was renewed", execErr)
	case execErr != nil && !errors.As(execErr, new(*chconn.NoAnswerError)):
		return execErr
	case execErr == nil && result.WrittenRows == 0 && s.rival():
		return errRefused
	case execErr == nil && result.WrittenRows == 0:
		return c.lose(ctx, "its claim was too old to be renewed", nil)
	}
	c.extend(rows)
	return nil
}
