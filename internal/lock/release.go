package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
)

const (
	// releaseTimeout bounds a release, which goes on after its caller was cancelled.
	releaseTimeout = 5 * time.Second
	// releasePause lies between two tries.
	releasePause = 20 * time.Millisecond
	// releaseChunk is how many state_ids one DELETE names, to keep its text within the server's limit.
	releaseChunk = 1000
)

// release deletes the claims and sees that they are gone, within the timeout. It does not depend on ctx's
// cancellation.
//
// Patch parts mask rows at once, but come undone for good if a plain DELETE was in flight beside them; so
// they are trusted only if no mutation is unfinished afterwards, and no row is left after that. Even a plain
// DELETE leaves a row behind now and then on a busy server: hence the reading back.
func (c *claim) release(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	c.stop()
	c.statement.Lock()
	defer c.statement.Unlock()
	patch := c.fence.Lock.Strict
	for {
		err := c.releaseOnce(ctx, &patch)
		if err == nil {
			return nil
		}
		if sleepErr := sleep(ctx, releasePause); sleepErr != nil || !worthRepeating(err) {
			_, expires := c.expiry()
			return &ReleaseError{Table: c.fence.Lock.String(), LockID: c.fence.LockID, Expires: expires, Err: err}
		}
	}
}

// errLeft is a release after which claims are still there.
var errLeft = errors.New("claims are left after the delete")

// worthRepeating tells failures that may pass from the server's final word.
func worthRepeating(err error) bool {
	var serverErr *chconn.ServerError
	return !errors.As(err, &serverErr) || serverErr.Code != chconn.CodeAccessDenied
}

// releaseOnce deletes and reads back. It turns patch off when patch parts are not to be trusted.
func (c *claim) releaseOnce(ctx context.Context, patch *bool) error {
	c.mu.Lock()
	unanswered := c.unanswered
	c.mu.Unlock()
	for _, queryID := range unanswered {
		// It is best effort: an INSERT that has ended is not there to be killed.
		if err := c.locker.db.Kill(ctx, queryID); err != nil {
			c.locker.options.Logger.WarnContext(ctx, "unanswered statement not killed", "query_id", queryID, "error", err)
		}
	}
	for ids := range slices.Chunk(c.ids, releaseChunk) {
		if err := c.releaseChunk(ctx, ids, patch); err != nil {
			return err
		}
	}
	return nil
}

// releaseChunk does that for some of the state_ids.
func (c *claim) releaseChunk(ctx context.Context, ids []string, patch *bool) error {
	st := newStatement("lock.release", c.fence.Lock.Release(c.fence.LockID, ids, *patch))
	if _, err := c.locker.db.Exec(ctx, st); err != nil {
		return fmt.Errorf("delete claims: %w", err)
	}
	var unfinished, left uint64
	st = newStatement("lock.left", c.fence.Lock.Left(c.fence.LockID, ids))
	err := c.locker.db.Query(ctx, st, func(r chconn.Row) error { return r.Scan(&unfinished, &left) })
	switch {
	case err != nil:
		return fmt.Errorf("read back claims: %w", err)
	case *patch && unfinished > 0:
		*patch = false
		return errLeft
	case left > 0:
		return errLeft
	}
	return nil
}

// newStatement makes of a query what a connection runs.
func newStatement(operation string, q chsql.Query) chconn.Statement {
	st := chconn.Statement{Operation: operation, Text: q.Text, Args: q.Args, Settings: q.Settings, QueryID: uuid.NewString()}
	if q.IDs != nil {
		ids := chconn.Table{Name: chsql.IDs, Columns: []chconn.Column{{Name: "state_id", Type: "String"}}}
		for _, id := range q.IDs {
			ids.Rows = append(ids.Rows, []any{id})
		}
		st.External = []chconn.Table{ids}
	}
	return st
}
