package lock

import (
	"errors"
	"fmt"
	"time"
)

// ErrMoved is returned by a write whose state_ids do not have the newest version any more that was read
// inside the lock. Nothing was written.
var ErrMoved = errors.New("a newer version was stored while the lock was held")

// ErrPartlyHeld is returned by [Locker.Do] for state_ids of which a Hold of this Locker covers some, but not all:
// one write cannot stand under two locks. [Locker.Parts] divides them.
var ErrPartlyHeld = errors.New("a lock that this process holds covers only a part of the state_ids")

// A BusyError says that a lock was not acquired within the timeout, and who has it. Nothing of ours is left.
type BusyError struct {
	// Table is the lock table, quoted and qualified.
	Table   string
	StateID string
	// LockID and Holder identify the claim that was in the way. Both are empty if none was seen at the end.
	// Holder is empty for a Meltano client. A Holder without a LockID is an operation of this process, and a
	// LockID without Since a lock that this process holds.
	LockID, Holder string
	// Since is when the claim was made or last renewed, Stale when it becomes stale unless renewed, and Now
	// the server's time when it was read; all by the server's clock.
	Since, Stale, Now time.Time
	// Break is the SQL statement that removes exactly the claim in the way, for people to run if they know
	// that its holder is dead. Empty if no claim was seen.
	Break string
	// Slow is set if nobody was in the way, but the INSERT of the last attempt took this long: on a lock table
	// that Meltano made, more than a settle is too long to be sure.
	Slow time.Duration
	// Waited is how long this side waited.
	Waited time.Duration
}

func (e *BusyError) Error() string {
	if e.Slow > 0 {
		return fmt.Sprintf("state_id %q in %s: the server took %s to store a claim, which is longer than the settle; gave up after %s",
			e.StateID, e.Table, e.Slow.Round(time.Millisecond), e.Waited.Round(time.Millisecond))
	}
	if e.LockID == "" && e.Holder != "" {
		return fmt.Sprintf("state_id %q in %s: in use by %s, gave up after %s", e.StateID, e.Table, e.Holder, e.Waited.Round(time.Millisecond))
	}
	if e.LockID == "" {
		return fmt.Sprintf("state_id %q in %s: lock not acquired after %s", e.StateID, e.Table, e.Waited.Round(time.Millisecond))
	}
	if e.Since.IsZero() {
		return fmt.Sprintf("state_id %q in %s: locked by this process already (lock_id %s)", e.StateID, e.Table, e.LockID)
	}
	return fmt.Sprintf("state_id %q in %s: locked by %s (lock_id %s) since %s, gave up after %s", e.StateID, e.Table, e.holder(),
		e.LockID, e.Since.UTC().Format(time.RFC3339), e.Waited.Round(time.Millisecond))
}

func (e *BusyError) holder() string {
	if e.Holder == "" {
		return "another client"
	}
	return e.Holder
}

// A LostError says that a lock was lost while it was held: nothing is written under it any more.
type LostError struct {
	Table  string
	LockID string
	// Reason says how that was noticed.
	Reason string
}

func (e *LostError) Error() string {
	return fmt.Sprintf("lock %s in %s lost: %s", e.LockID, e.Table, e.Reason)
}

// An UncertainError says that a write was sent and that its verification did not find it as it should be:
// what is stored now has to be read.
type UncertainError struct {
	Reason string
	Err    error
}

func (e *UncertainError) Error() string {
	if e.Err == nil {
		return "write is uncertain: " + e.Reason
	}
	return fmt.Sprintf("write is uncertain: %s: %v", e.Reason, e.Err)
}

func (e *UncertainError) Unwrap() error { return e.Err }

// A ReleaseError says that claims may be left behind, and until when: the work that they guarded is done.
type ReleaseError struct {
	Table   string
	LockID  string
	Expires time.Time
	Err     error
}

func (e *ReleaseError) Error() string {
	expires := ""
	if !e.Expires.IsZero() {
		expires = "; it expires at " + e.Expires.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("lock %s in %s not released%s: %v", e.LockID, e.Table, expires, e.Err)
}

func (e *ReleaseError) Unwrap() error { return e.Err }

// A WithdrawError says that a lock was not acquired, and that claims of the attempt may be left behind until they
// expire. Unlike after a *ReleaseError, nothing was done under them.
type WithdrawError struct {
	Table   string
	LockID  string
	Expires time.Time
	Err     error
}

func (e *WithdrawError) Error() string {
	return fmt.Sprintf("lock in %s not acquired, and its claim %s not withdrawn; it expires at %s: %v", e.Table, e.LockID,
		e.Expires.UTC().Format(time.RFC3339), e.Err)
}

func (e *WithdrawError) Unwrap() error { return e.Err }
