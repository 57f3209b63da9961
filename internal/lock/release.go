package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
)

const (
	// releaseTimeout bounds a release, which goes on after its caller was cancelled.
	releaseTimeout = 5 * time.Second
	// releasePause lies between two tries, at first.
	releasePause = 20 * time.Millisecond
	// killTimeout bounds one attempt to end a statement.
	killTimeout = 2 * time.Second
)

// release deletes the claims and sees that they are gone, within the timeout. It does not depend on ctx's
// cancellation. It returns a *ReleaseError if they may still be there.
//
// Patch parts mask rows at once, but come undone for good if a plain DELETE was in flight beside them; so
// they are trusted only if no mutation is unfinished afterwards, and no row is left after that. Even a plain
// DELETE leaves a row behind now and then on a busy server: hence the reading back.
func (c *claim) release(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	c.stop()
	err := c.statement.take(ctx)
	if err == nil {
		defer c.statement.leave()
		err = c.releaseUntil(ctx)
	}
	if err == nil {
		return nil
	}
	_, expires := c.expiry()
	return &ReleaseError{Table: c.fence.Lock.String(), LockID: c.fence.LockID, Expires: expires, Err: err}
}

// releaseUntil tries to release until ctx ends or there is no use in trying.
func (c *claim) releaseUntil(ctx context.Context) error {
	mode := chsql.DeleteMutation
	if c.fence.Lock.Strict {
		mode = chsql.DeletePatch
	}
	for pause := releasePause; ; pause = min(2*pause, 500*time.Millisecond) {
		unfinished, err := c.releaseOnce(ctx, mode)
		var serverErr *chconn.ServerError
		switch {
		case err == nil && mode == chsql.DeletePatch && unfinished:
			mode, err = chsql.DeleteMutation, errLeft
		case err == nil:
			return nil
		case errors.As(err, &serverErr):
			switch {
			case serverErr.Code == chconn.CodeUnknownTable, serverErr.Code == chconn.CodeUnknownDatabase:
				return nil // The claims are gone with their table.
			case mode != chsql.DeleteAsConfigured:
				// The server may know less, or the user's profile may fix the mode.
				mode++
			case refused(serverErr):
				return err
			}
		}
		if sleepErr := sleep(ctx, pause); sleepErr != nil {
			return err
		}
	}
}

// errLeft is a release after which claims are still there.
var errLeft = errors.New("claims are left after the delete")

// releaseOnce deletes and reads back. It tells whether mutations of the lock table were unfinished afterwards.
func (c *claim) releaseOnce(ctx context.Context, mode chsql.DeleteMode) (unfinished bool, err error) {
	c.killUnanswered(ctx)
	st := newStatement("lock.release", c.fence.Lock.Release(c.fence.LockID, c.ids, mode))
	if _, err := c.locker.db.Exec(ctx, st); err != nil {
		return false, fmt.Errorf("delete claims: %w", err)
	}
	var mutations, left uint64
	st = newStatement("lock.left", c.fence.Lock.Left(c.fence.LockID, c.ids))
	err = c.locker.db.Query(ctx, st, func(r chconn.Row) error { return r.Scan(&mutations, &left) })
	switch {
	case err != nil:
		return false, fmt.Errorf("read back claims: %w", err)
	case left > 0:
		return mutations > 0, errLeft
	}
	return mutations > 0, nil
}

// killUnanswered ends INSERTs that may still run and put a claim after the DELETE. It is best effort.
func (c *claim) killUnanswered(ctx context.Context) {
	c.mu.Lock()
	unanswered := c.unanswered
	c.unanswered = nil
	c.mu.Unlock()
	for _, queryID := range unanswered {
		if err := c.kill(ctx, queryID); err != nil {
			c.locker.options.Logger.WarnContext(ctx, "unanswered statement not killed", "query_id", queryID, "error", err)
		}
	}
}

func (c *claim) kill(ctx context.Context, queryID string) error {
	ctx, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	return c.locker.db.Kill(ctx, queryID)
}
