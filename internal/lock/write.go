package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/google/uuid"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
)

// Held is a lock that is held. It is valid while the function that it was handed to runs.
type Held struct{ claim *claim }

// Confirm renews the lock now. Nil means that it was held, and alone, until then, and that its lease begins anew. A
// rival that has turned up is waited out, as before a write. It returns a *LostError if the lock is lost.
func (h *Held) Confirm(ctx context.Context) error {
	c := h.claim
	for deadline := time.Now().Add(c.locker.options.Timeout); ; {
		err := c.renew(ctx)
		if err == nil || errors.As(err, new(*LostError)) || time.Now().After(deadline) {
			return err
		}
		if err := sleep(ctx, c.pollInterval()); err != nil {
			return err
		}
	}
}

// A Write is one fenced INSERT and the SELECT that verifies it. Both are made from the fence that the lock
// hands them; see chsql.Fence. Sending the same Write twice must be harmless where the first was refused.
type Write struct {
	// Insert makes the INSERT: it must write all its rows or nothing, and refuse with error 395 and one of
	// chsql's markers.
	Insert func(chsql.Fence) chconn.Statement
	// Verify makes the SELECT that tells what became of it; see chsql.StateTable.Verify.
	Verify func(chsql.Fence) chconn.Statement
	// Rows is how many rows the INSERT has to write, one for each state_id.
	Rows uint64
	// Removes says that it is no INSERT but a DELETE, of all that was seen of Rows state_ids: it does not say what
	// it did, and does nothing in silence where the fence does not hold; see chsql.StateTable.Remove.
	Removes bool
}

// settleTimeout bounds the reading back of a write, which goes on after a cancellation.
const settleTimeout = 10 * time.Second

// Write sends a fenced write and verifies it. Nil means that all rows are stored, are the newest, and that
// the lock was held throughout.
//
// A rival's claim that has turned up is waited out, as in acquiring, and the same write is sent again; so it is if
// the table has too many parts. What became of an INSERT that was not answered, or that failed on the server, is
// settled by reading back. It returns a *LostError or ErrMoved if nothing was written for that reason, a *BusyError
// if a rival did not go, an *UncertainError if nobody can say what is stored, or else what the server answered: then
// nothing is.
func (h *Held) Write(ctx context.Context, w Write) error {
	c := h.claim
	start := time.Now()
	deadline := start.Add(c.locker.options.Timeout)
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = c.pollInterval(), max(c.pollInterval(), maxPause)
	for unanswered := false; ; {
		queryID, err := c.send(ctx, w)
		switch {
		case err == nil:
			err = c.verify(ctx, w, deadline)
		case errors.Is(err, ErrMoved) && unanswered:
			err = c.settleMoved(ctx, w, deadline)
		case queryID != "":
			unanswered = unanswered || errors.As(err, new(*chconn.NoAnswerError))
			err = c.settle(ctx, w, queryID, err, deadline)
		}
		pause := c.pollInterval()
		switch {
		case crowded(err):
			if time.Since(start) > crowdedTimeout {
				return err
			}
			pause = pauses.NextBackOff()
		case !errors.Is(err, errAgain):
			return err
		case time.Now().After(deadline):
			return c.inTheWay(ctx, w, start)
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

const (
	// crowdedTimeout bounds how often a write is sent again to a table with too many parts. Others wait for the lock
	// meanwhile, Meltano for 30 s at most.
	crowdedTimeout = 10 * time.Second
	// maxPause is the longest pause between two such attempts.
	maxPause = 2 * time.Second
)

// crowded tells that a statement wrote nothing because its table has too many parts: merges may catch up.
func crowded(err error) bool {
	var serverErr *chconn.ServerError
	return errors.As(err, &serverErr) && serverErr.Code == chconn.CodeTooManyParts && !errors.As(err, new(*UncertainError))
}

// inTheWay says who is in the way of a write.
func (c *claim) inTheWay(ctx context.Context, w Write, start time.Time) error {
	seen, err := c.read(ctx, c.readTimeout())
	if err != nil {
		return err
	}
	busy := c.busy(seen)
	if busy.LockID == "" && w.Removes {
		return &UncertainError{Reason: fmt.Sprintf("the server has not carried out the delete within %s: its mutations may be stopped or waiting (see system.mutations)",
			time.Since(start).Round(time.Second))}
	}
	busy.Waited = time.Since(start)
	return busy
}

// settleMoved finds out whether the newer version that is stored is ours: the first copy of a write that was given up
// without an answer may have landed after all.
func (c *claim) settleMoved(caller context.Context, w Write, deadline time.Time) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(caller), settleTimeout)
	defer cancel()
	v, err := c.verdict(ctx, w)
	switch {
	case err != nil:
		return &UncertainError{Reason: "the write got no answer, and what became of it could not be read back", Err: err}
	case v.stored():
		return c.verify(caller, w, deadline)
	}
	return ErrMoved
}

// errAgain says that nothing was written and that the same write may be sent again.
var errAgain = errors.New("not written, send again")

// send sends the INSERT once, unless the lock is lost already. If it failed so that rows may be stored all the
// same, queryID names it.
func (c *claim) send(ctx context.Context, w Write) (queryID string, err error) {
	if err := c.statement.take(ctx); err != nil {
		return "", err
	}
	defer c.statement.leave()
	if err := c.lostError(); err != nil {
		return "", err
	}
	st := w.Insert(c.fence)
	st.QueryID = uuid.NewString()
	expires, _ := c.expiry()
	// No longer than until a renewal is due: it waits for this statement.
	st.Timeout = max(min(time.Until(expires), c.renewInterval()), time.Second)
	result, err := c.exec(ctx, st)
	// More rows than were sent are those of materialized views on the table.
	switch {
	case err == nil && (w.Removes || result.WrittenRows >= w.Rows):
		return "", nil
	case err == nil:
		return st.QueryID, fmt.Errorf("the server wrote %d of %d rows", result.WrittenRows, w.Rows)
	case errors.As(err, new(*chconn.NoAnswerError)):
		return st.QueryID, err
	}
	var serverErr *chconn.ServerError
	if !errors.As(err, &serverErr) || refused(serverErr) {
		return "", err
	}
	if serverErr.Code != chconn.CodeThrowIf {
		return st.QueryID, err
	}
	switch chsql.Refusal(serverErr.Message) {
	case chsql.MarkerMoved:
		return "", ErrMoved
	case chsql.MarkerFence:
		return "", c.refusal(ctx)
	}
	return st.QueryID, err
}

// refused tells exceptions that come before anything is written: the statement was not carried out at all.
func refused(err *chconn.ServerError) bool {
	switch err.Code {
	case chconn.CodeAccessDenied, chconn.CodeReadOnly, chconn.CodeSettingConstraint, chconn.CodeUnknownTable, chconn.CodeUnknownDatabase,
		chconn.CodeUnknownSetting, chconn.CodeSyntaxError:
		return true
	}
	return false
}

// refusal finds out why the fence refused: a rival, who is waited out, or the lock is lost.
func (c *claim) refusal(ctx context.Context) error {
	seen, err := c.read(ctx, c.readTimeout())
	if err != nil {
		return err
	}
	if !c.fresh(seen) {
		return c.lose(ctx, "the fence found its claim missing or too old")
	}
	return errAgain
}

// A verdict is what Verify reads.
type verdict struct {
	// claimed and written count the state_ids on which our claim and our rows are.
	claimed, written uint64
	// rivals are live claims of others; newer is not zero if there is a row besides ours that is not older.
	rivals, newer uint64
	// rows is how many there should be.
	rows uint64
}

// stored: all is there as it was written; nothing: none of it is; claimsLost: a claim of ours is missing or too old.
func (v verdict) stored() bool     { return v.written == v.rows && v.newer == 0 }
func (v verdict) nothing() bool    { return v.written == 0 && v.newer == 0 }
func (v verdict) claimsLost() bool { return v.claimed != v.rows }

// verify reads back a write that was acknowledged, until no rival is in sight.
func (c *claim) verify(caller context.Context, w Write, deadline time.Time) error {
	// What was written has to be known, also when the work was cancelled meanwhile.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(caller), max(time.Until(deadline), settleTimeout))
	defer cancel()
	for start := time.Now(); ; {
		v, err := c.verdict(ctx, w)
		switch {
		case err != nil:
			return &UncertainError{Reason: "the write was acknowledged, but could not be read back", Err: err}
		case !v.stored() && w.Removes:
			return c.unremoved(ctx, v)
		case !v.stored():
			return &UncertainError{Reason: "the write was acknowledged, but is not what is stored now"}
		case v.claimsLost():
			return &UncertainError{Reason: "the lock was lost while the write was under way", Err: c.lose(ctx, "its claim was gone after a write")}
		case v.rivals == 0:
			return nil
		case time.Now().After(deadline), caller.Err() != nil && time.Since(start) > 2*c.locker.options.Settle:
			return &UncertainError{Reason: "another client's claim turned up beside the write and did not go"}
		}
		if err := sleep(ctx, c.pollInterval()); err != nil {
			return &UncertainError{Reason: "another client's claim turned up beside the write", Err: err}
		}
	}
}

// unremoved says why a DELETE that was acknowledged has left rows: the fence did not hold, somebody wrote a newer
// version, or the server has overlooked some, which a busy one does now and then.
func (c *claim) unremoved(ctx context.Context, v verdict) error {
	switch {
	case v.newer > 0:
		return ErrMoved
	case !v.claimsLost():
		return errAgain
	}
	lost := c.lose(ctx, "its claim was gone after a delete")
	if v.written == 0 {
		return lost
	}
	return &UncertainError{Reason: "the lock was lost while the delete was under way, and some of it is done", Err: lost}
}

// settle finds out what became of a write that failed with cause. One that was not answered is killed first,
// so that it cannot land after the reading.
func (c *claim) settle(caller context.Context, w Write, queryID string, cause error, deadline time.Time) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(caller), settleTimeout)
	defer cancel()
	noAnswer := errors.As(cause, new(*chconn.NoAnswerError))
	ended := !noAnswer
	for {
		var err error
		if !ended {
			err = c.kill(ctx, queryID)
			ended = err == nil
		}
		v, readErr := c.verdict(ctx, w)
		switch {
		case readErr == nil && v.stored():
			return c.verify(caller, w, deadline)
		case readErr == nil && w.Removes && ended && noAnswer && caller.Err() == nil:
			// Its mutation may still come. It removes the same then, or nothing once our claim is gone.
			return errAgain
		case readErr == nil && v.nothing() && ended:
			if noAnswer && caller.Err() == nil {
				return errAgain
			}
			return cause
		case readErr == nil && ended:
			return &UncertainError{Reason: "the write failed, and something else is stored now", Err: cause}
		}
		// Not known yet: no connection, or a statement that may still run.
		if sleepErr := sleep(ctx, releasePause); sleepErr != nil {
			return &UncertainError{Reason: "the write failed, and what became of it could not be read back", Err: errors.Join(cause, err, readErr)}
		}
	}
}

func (c *claim) verdict(ctx context.Context, w Write) (verdict, error) {
	v := verdict{rows: w.Rows}
	err := c.locker.db.Query(ctx, w.Verify(c.fence), func(r chconn.Row) error {
		var (
			kind         uint8
			ours, others uint64
		)
		err := r.Scan(&kind, &ours, &others)
		if kind == chsql.VerifyFence {
			v.claimed, v.rivals = ours, others
		} else {
			v.written, v.newer = ours, others
		}
		return err
	})
	return v, err
}
