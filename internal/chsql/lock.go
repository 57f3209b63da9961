package chsql

import (
	"fmt"
	"strings"
	"time"
)

// A LockTable is a lock table and the shape that it has.
type LockTable struct {
	Table
	// Strict says that it is ordered by (state_id, lock_id), so that a merge never swallows a rival
	// claim. A table that Meltano made is ordered by state_id alone.
	Strict bool
	// Replicated says that claims are put on one of several replicas, and are seen on others only later.
	Replicated bool
	// Holder says that it has the column holder.
	Holder bool
}

// Hides tells whether a claim that was put may not be seen by everybody: a merge may drop it, or another replica
// may lag behind.
func (l LockTable) Hides() bool { return !l.Strict || l.Replicated }

// A Fence is what a claim is held to: the numbers behind "ours is there, fresh, and the only live one".
type Fence struct {
	Lock   LockTable
	LockID string
	// Lease is how long a claim of ours counts, from the moment it was made. Whole milliseconds.
	Lease time.Duration
	// Stale is when a claim of anybody is taken for dead, by its locked_at. Whole seconds.
	Stale time.Duration
	// Backdate is how far in the past our claims' locked_at lie. Whole seconds.
	Backdate time.Duration
}

// Markers begin the message of the exception by which a guarded statement refuses to write. The message goes
// on with the expression that threw, in which the other marker may stand as well: see [Refusal].
const (
	// MarkerFence: the fence does not hold.
	MarkerFence = "clickhousestate:fence"
	// MarkerMoved: a newer version is stored than the one that was read inside the lock.
	MarkerMoved = "clickhousestate:moved"
)

// Refusal returns the marker by which the message of an error 395 says which guard refused, or "".
func Refusal(message string) string {
	fence, moved := strings.Index(message, MarkerFence), strings.Index(message, MarkerMoved)
	switch {
	case fence < 0 && moved < 0:
		return ""
	case moved < 0, fence >= 0 && fence < moved:
		return MarkerFence
	}
	return MarkerMoved
}

// counts are two aggregates over the live claims of a set of state_ids: of how many a fresh claim of ours is
// there, and how many claims of others are. The age is in plain milliseconds, since the server takes a third of a millisecond
// longer to plan an interval.
func (f Fence) counts() (text string, args []any) {
	text = "uniqExactIf(state_id, lock_id = ? AND toUnixTimestamp64Milli(now64(3)) - 1000 * toUnixTimestamp(locked_at) < ?), countIf(lock_id != ?)"
	return text, []any{f.LockID, (f.Backdate + f.Fresh()).Milliseconds(), f.LockID}
}

// holds is a SELECT of one row and column: 1 if our claims are there, fresh, and the only live ones, else 0.
func (f Fence) holds(ids []string) (text string, args []any, external []string) {
	counts, args := f.counts()
	set, setArgs, external := in(ids)
	text = fmt.Sprintf("SELECT (%s) = (?, 0) FROM %s WHERE state_id IN %s AND locked_at >= now() - ?", counts, f.Lock, set)
	args = append(append(args, len(ids)), setArgs...)
	return text, append(args, seconds(f.Stale)), external
}

// Fresh is the age up to which a claim of ours may still be built on: nine tenths of the lease. The last
// tenth is for the statement that relies on it, whose execution time is bounded by it.
func (f Fence) Fresh() time.Duration { return f.Lease * 9 / 10 }

// executionTime bounds a statement that relies on the fence, in seconds.
func (f Fence) executionTime() string {
	return fmt.Sprintf("%.3f", max(f.Lease/10-100*time.Millisecond, 50*time.Millisecond).Seconds())
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

// Claim puts one claim per state_id, and puts nothing if a live claim of another exists for any of them. The
// locked_at of a claim is taken in the statement, by the server's clock.
//
// The guard is a HAVING without GROUP BY: the claims are made of its one row, after everything was counted.
func (f Fence) Claim(ids []string, holder string) Query {
	set, setArgs, external := in(ids)
	list, listArgs := list(ids)
	text := fmt.Sprintf(`INSERT INTO %[1]s %[2]s
SELECT arrayJoin(%[4]s), ?, now() - ?%[3]s FROM %[1]s
WHERE state_id IN %[5]s AND lock_id != ? AND locked_at >= now() - ?
HAVING count() = 0`,
		f.Lock, f.Lock.columns(), f.Lock.holderValue(), list, set)
	args := append(append(listArgs, f.Lock.claimArgs(f, holder)...), setArgs...)
	return Query{Text: text, Args: append(args, f.LockID, seconds(f.Stale)), Settings: withoutPayload(ids, writing()), IDs: external}
}

// Renew puts the same claims again with a fresh locked_at, but only while they are there, fresh and alone:
// a renewal that checks first and inserts afterwards brings a swept claim back inside another's hold.
func (f Fence) Renew(ids []string, holder string) Query {
	counts, countsArgs := f.counts()
	set, setArgs, external := in(ids)
	list, listArgs := list(ids)
	text := fmt.Sprintf(`INSERT INTO %[1]s %[2]s
SELECT arrayJoin(%[4]s), ?, now() - ?%[3]s FROM %[1]s
WHERE state_id IN %[5]s AND locked_at >= now() - ?
HAVING (%[6]s) = (?, 0)`, f.Lock, f.Lock.columns(), f.Lock.holderValue(), list, set, counts)
	settings := withoutPayload(ids, writing())
	settings["max_execution_time"] = f.executionTime()
	args := append(append(listArgs, f.Lock.claimArgs(f, holder)...), setArgs...)
	args = append(append(args, seconds(f.Stale)), countsArgs...)
	return Query{Text: text, Args: append(args, len(ids)), Settings: settings, IDs: external}
}

func (l LockTable) columns() string {
	if l.Holder {
		return "(state_id, lock_id, locked_at, holder)"
	}
	return "(state_id, lock_id, locked_at)"
}

func (l LockTable) holderValue() string {
	if l.Holder {
		return ", ?"
	}
	return ""
}

func (l LockTable) claimArgs(f Fence, holder string) []any {
	args := []any{f.LockID, seconds(f.Backdate)}
	if l.Holder {
		args = append(args, holder)
	}
	return args
}

// Claims reads the live claims of the state_ids, without FINAL: of a claim that was renewed, each row.
// Columns: state_id String, lock_id String, locked_at Int64 (Unix seconds), holder String,
// now Int64 (Unix milliseconds).
func (l LockTable) Claims(ids []string, stale time.Duration) Query {
	set, args, external := in(ids)
	holder := "''"
	if l.Holder {
		holder = "holder"
	}
	return Query{
		Text: fmt.Sprintf(`SELECT state_id, lock_id, toInt64(toUnixTimestamp(locked_at)), %s, toUnixTimestamp64Milli(now64(3))
FROM %s
WHERE state_id IN %s AND locked_at >= now() - ?`, holder, l, set),
		Args:     append(args, seconds(stale)),
		Settings: withoutPayload(ids, reading()),
		IDs:      external,
	}
}

// A DeleteMode is how a Release deletes.
type DeleteMode int

const (
	// DeletePatch masks the rows at once by patch parts, where the server and the table know them.
	DeletePatch DeleteMode = iota
	// DeleteMutation is the plain lightweight DELETE, which is a mutation.
	DeleteMutation
	// DeleteAsConfigured leaves the mode to the server and the user's profile.
	DeleteAsConfigured
)

// Release deletes the claims of one lock_id on the given state_ids. Where those are too many to be named, it
// goes by the lock_id alone, which is never used twice. Never a throwIf in a DELETE: the failing mutation
// would block everybody's next one.
func (l LockTable) Release(lockID string, ids []string, mode DeleteMode) Query {
	q := Query{
		Text: fmt.Sprintf("DELETE FROM %s WHERE lock_id = ?", l),
		Args: []any{lockID},
		// Before 23.3, lightweight deletes were an experiment.
		Settings: withoutPayload(ids, map[string]string{"allow_experimental_lightweight_delete": "1", "lightweight_deletes_sync": "2"}),
	}
	if fits(ids) {
		q.Text += " AND state_id IN ?"
		q.Args = append(q.Args, ids)
	}
	switch mode {
	case DeletePatch:
		q.Settings["lightweight_delete_mode"] = "lightweight_update"
	case DeleteMutation:
		q.Settings["lightweight_delete_mode"] = "alter_update"
	case DeleteAsConfigured:
	}
	return q
}

// BreakText is a whole statement, values and all, that deletes one claim: for people to read and to run by
// hand, and not for this program.
func (l LockTable) BreakText(stateID, lockID string) string {
	return fmt.Sprintf("DELETE FROM %s WHERE state_id = %s AND lock_id = %s", l, quote(stateID), quote(lockID))
}

// AllClaims reads the claims of one state_id, or of all of them if it is nil, stale ones included, and the newest
// locked_at of each; sorted. Columns: as [LockTable.Claims].
func (l LockTable) AllClaims(stateID *string) Query {
	q := Query{Settings: reading()}
	where, holder := "", "''"
	if l.Holder {
		holder = "max(holder)"
	}
	if stateID != nil {
		where = "WHERE state_id = ?\n"
		q.Args = []any{*stateID}
	}
	q.Text = fmt.Sprintf(`SELECT state_id, lock_id, toInt64(toUnixTimestamp(max(locked_at))), %s, toUnixTimestamp64Milli(now64(3))
FROM %s
%sGROUP BY state_id, lock_id
ORDER BY state_id, lock_id`, holder, l, where)
	return q
}

// Left tells what a Release left. One row: unfinished UInt64, mutations of the lock table that are not done
// (a plain DELETE in flight can bring masked rows back); left UInt64, claims of the lock_id on the given
// state_ids.
//
// Both are scalar subqueries, since those are evaluated one after the other in the order of the list, and
// the rows must be counted after the mutations were.
func (l LockTable) Left(lockID string, ids []string) Query {
	q := Query{Args: []any{l.Database, l.Name, lockID}, Settings: withoutPayload(ids, reading())}
	only := ""
	if fits(ids) {
		only = " AND state_id IN ?"
		q.Args = append(q.Args, ids)
	}
	q.Text = fmt.Sprintf(`SELECT
    ifNull((SELECT count() FROM system.mutations WHERE database = ? AND table = ? AND NOT is_done), 1),
    ifNull((SELECT count() FROM %s WHERE lock_id = ?%s), 1)`, l, only)
	return q
}
