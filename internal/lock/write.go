package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
)

// Held is a lock that is held. It is valid while the function that it was handed to runs.
type Held struct{ claim *claim }

// A Write is one fenced INSERT and the SELECT that verifies it. Both are made from the fence that the lock
// hands them; see chsql.Fence. Sending the same Write twice must be harmless where the first was refused.
type Write struct {
	// Insert makes the INSERT: it must write all its rows or nothing, and refuse with error 395 and one of
	// chsql's markers.
	Insert func(chsql.Fence) chconn.Statement
	// Verify makes a SELECT of one row: the fence's state, how many state_ids are not written yet, and how
	// many have something newer; see chsql.StateTable.Verify.
	Verify func(chsql.Fence) chconn.Statement
	// Rows is how many rows the INSERT has to write.
	Rows uint64
}

// settleTimeout bounds the reading back of a write whose answer was lost, which goes on after a cancellation.
const settleTimeout = 10 * time.Second

// Write sends a fenced write and verifies it. Nil means that all rows are stored, are the newest, and that
// the lock was held throughout.
//
// A rival's claim that has turned up is waited out, as in acquiring, and the same write is sent again. An
// answer that was lost is settled by reading back. It returns a *LostError or ErrMoved if nothing was
// written for that reason, an *UncertainError if nobody can say, or what the server answered.
func (h *Held) Write(ctx context.Context, w Write) error {
	c := h.claim
	deadline := time.Now().Add(c.locker.options.Timeout)
	for {
		err := c.send(ctx, w)
		switch {
		case err == nil:
			err = c.verify(ctx, w, deadline)
		case errors.As(err, new(*chconn.NoAnswerError)):
			err = c.settle(ctx, w, err, deadline)
		}
		if !errors.Is(err, errAgain) {
			return err
		}
		if time.Now().After(deadline) {
			return c.busy(ctx)
		}
		if err := sleep(ctx, c.pollInterval()); err != nil {
			return err
		}
	}
}

// busy says who is in the way of a write.
func (c *claim) busy(ctx context.Context) error {
	busy := &BusyError{Table: c.fence.Lock.String(), StateID: c.ids[0], Waited: c.locker.options.Timeout}
	rows, err := c.read(ctx)
	if err != nil {
		return err
	}
	c.note(busy, rows)
	return busy
}

// errAgain says that nothing was written and that the same write may be sent again.
var errAgain = errors.New("not written, send again")

// send sends the INSERT once, unless the lock is lost already.
func (c *claim) send(ctx context.Context, w Write) error {
	c.statement.Lock()
	defer c.statement.Unlock()
	if err := c.lostError(); err != nil {
		return err
	}
	st := w.Insert(c.fence)
	st.QueryID = uuid.NewString()
	result, err := c.exec(ctx, st)
	if err != nil {
		return c.refusal(ctx, err)
	}
	// More rows than were sent are those of materialized views on the table.
	if result.WrittenRows < w.Rows {
		return &UncertainError{Reason: fmt.Sprintf("the server wrote %d of %d rows", result.WrittenRows, w.Rows)}
	}
	return nil
}

// refusal turns the exceptions of the guards into what they mean.
func (c *claim) refusal(ctx context.Context, err error) error {
	var serverErr *chconn.ServerError
	if !errors.As(err, &serverErr) || serverErr.Code != chconn.CodeThrowIf {
		return err
	}
	switch chsql.Refusal(serverErr.Message) {
	case chsql.MarkerMoved:
		return ErrMoved
	case chsql.MarkerFence:
		rows, readErr := c.read(ctx)
		if readErr != nil {
			return readErr
		}
		if !c.fresh(rows) {
			return c.lose(ctx, "the fence found its claim missing or too old", nil)
		}
		return errAgain
	}
	return err
}

// fresh tells whether all our claims are in rows, young enough to be built on.
func (c *claim) fresh(rows []row) bool {
	ours := 0
	for _, r := range rows {
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

// A verdict is what Verify reads.
type verdict struct {
	fence           uint8
	missing, beyond uint64
}

func (v verdict) stored() bool { return v.missing == 0 && v.beyond == 0 }

// verify reads back a write that was acknowledged, until no rival is in sight.
func (c *claim) verify(ctx context.Context, w Write, deadline time.Time) error {
	// What was written has to be known, also when the work was cancelled meanwhile.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(time.Until(deadline), settleTimeout))
	defer cancel()
	for {
		v, err := c.verdict(ctx, w)
		switch {
		case err != nil:
			return &UncertainError{Reason: "the write was acknowledged, but could not be read back", Err: err}
		case !v.stored():
			return &UncertainError{Reason: "the write was acknowledged, but is not what is stored now"}
		case v.fence == chsql.FenceHolds:
			return nil
		case v.fence == chsql.FenceLost:
			return &UncertainError{Reason: "the lock was lost while the write was under way", Err: c.lose(ctx, "its claim was gone after a write", nil)}
		case time.Now().After(deadline):
			return &UncertainError{Reason: "another client's claim turned up beside the write and did not go"}
		}
		if err := sleep(ctx, c.pollInterval()); err != nil {
			return &UncertainError{Reason: "another client's claim turned up beside the write", Err: err}
		}
	}
}

// settle finds out what became of a write whose answer was lost. The INSERT is killed first, so that it
// cannot land after the reading.
func (c *claim) settle(ctx context.Context, w Write, cause error, deadline time.Time) error {
	detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	c.mu.Lock()
	queryID := c.unanswered[len(c.unanswered)-1]
	c.mu.Unlock()
	for {
		err := c.locker.db.Kill(detached, queryID)
		var v verdict
		if err == nil {
			v, err = c.verdict(detached, w)
		}
		if err != nil {
			if sleepErr := sleep(detached, releasePause); sleepErr != nil {
				return &UncertainError{Reason: "the answer to the write was lost, and it could not be read back", Err: errors.Join(cause, err)}
			}
			continue
		}
		switch {
		case v.stored():
			return c.verify(ctx, w, deadline)
		case v.missing == w.Rows && v.beyond == 0 && ctx.Err() == nil:
			return errAgain
		case v.missing == w.Rows && v.beyond == 0:
			return cause
		}
		return &UncertainError{Reason: "the answer to the write was lost, and something else is stored now", Err: cause}
	}
}

func (c *claim) verdict(ctx context.Context, w Write) (v verdict, err error) {
	st := w.Verify(c.fence)
	err = c.locker.db.Query(ctx, st, func(r chconn.Row) error { return r.Scan(&v.fence, &v.missing, &v.beyond) })
	return v, err
}
