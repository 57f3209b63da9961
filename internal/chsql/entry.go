package chsql

import "fmt"

// A StateTable is a state table and its layout.
type StateTable struct {
	Table
	Layout *Layout
}

// Live reads the live entries of the state_ids.
// Columns: state_id String, completed_state Nullable(String), partial_state Nullable(String),
// version UInt64, updated_at DateTime64(3).
func (t StateTable) Live(ids []string) Query {
	set, args, external := in(ids)
	return Query{
		Text: fmt.Sprintf(`SELECT state_id, completed_state, partial_state, %s, updated_at
FROM %s FINAL
WHERE state_id IN %s
ORDER BY state_id`, t.Layout.version, t, set),
		Args:     args,
		Settings: reading(),
		IDs:      external,
	}
}

// Newest reads what a write has to know of the state_ids. Columns: kind UInt8, state_id String, version UInt64,
// buried UInt64, completed_state and partial_state Nullable(String), micros Int64 (Unix microseconds). By kind:
//
//   - [NewestClock], one row: micros is the server's time.
//   - [NewestStored], one for each state_id that has a row: version is the newest, tombstones included, buried that
//     of a tombstone.
//   - [NewestLive], one for each live entry: what FINAL shows; micros is its updated_at.
//
// The newest version is a maximum without FINAL, so that tombstones count; the payload is FINAL's, which on
// equal versions takes the row inserted last, where argMax takes another.
// The two are read from two snapshots: they agree if the newest is the version of the live row, or of a
// tombstone where none is live. Otherwise somebody wrote in between.
func (t StateTable) Newest(ids []string) Query {
	set, args, external := in(ids)
	return Query{
		Text: fmt.Sprintf(`SELECT toUInt8(%[3]d), '', toUInt64(0), toUInt64(0), CAST(NULL, 'Nullable(String)'), CAST(NULL, 'Nullable(String)'), toUnixTimestamp64Micro(now64(6))
UNION ALL
SELECT toUInt8(%[4]d), state_id, max(%[6]s), maxIf(%[6]s, %[7]s = 1), NULL, NULL, toInt64(0)
FROM %[1]s WHERE state_id IN %[2]s
GROUP BY state_id
UNION ALL
SELECT toUInt8(%[5]d), state_id, %[6]s, toUInt64(0), completed_state, partial_state, 1000 * toUnixTimestamp64Milli(updated_at)
FROM %[1]s FINAL WHERE state_id IN %[2]s`, t, set, NewestClock, NewestStored, NewestLive, t.Layout.version, t.Layout.deleted),
		Args:     append(args, args...),
		Settings: reading(),
		IDs:      external,
	}
}

// The kinds of rows of [StateTable.Newest].
const (
	NewestClock  = 0
	NewestStored = 1
	NewestLive   = 2
)

// Write inserts the rows of [Incoming], one for each of the ids, or nothing: unless the fence holds for all
// of them, and the newest version of each is still the one that its row names as seen (for a single id, the
// one that is given here). The guard is one constant scalar; see [Fence].
//
// Incoming has the columns state_id String, partial_state Nullable(String), completed_state Nullable(String),
// updated_at DateTime64(3), version UInt64, is_deleted UInt8, seen UInt64.
func (t StateTable) Write(f Fence, ids []string, seen uint64) Query {
	fence, args, external := f.guard(ids)
	moved, movedArgs := t.moved(ids, seen)
	settings := writing()
	settings["max_execution_time"] = f.executionTime()
	return Query{
		Text: fmt.Sprintf(`INSERT INTO %[1]s (%[8]s)
WITH %[3]s AS guard
SELECT %[8]s
FROM %[2]s
WHERE NOT throwIf(guard = %[4]d, '%[5]s') AND NOT throwIf(guard != %[6]d, '%[7]s')`,
			t, Incoming, scalar(fmt.Sprintf("SELECT if(count() = 2, max(refused), %d) FROM (\n%s\nUNION ALL\n%s)", guardFence, fence, moved)),
			guardMoved, MarkerMoved, guardHolds, MarkerFence, names(t.Layout.Columns)),
		Args:     append(args, movedArgs...),
		Settings: settings,
		IDs:      external,
	}
}

// moved is a SELECT of one row and column: guardHolds or guardMoved.
func (t StateTable) moved(ids []string, seen uint64) (text string, args []any) {
	set, args, _ := in(ids)
	if len(ids) == 1 {
		text = fmt.Sprintf("SELECT if(max(%s) = ?, %d, %d) AS refused FROM %s WHERE state_id IN %s", t.Layout.version, guardHolds, guardMoved, t, set)
		return text, append([]any{seen}, args...)
	}
	return fmt.Sprintf(`SELECT if(count() = 0, %[1]d, %[2]d) AS refused FROM (
    SELECT state_id FROM (
        SELECT state_id, seen AS row_seen, toUInt64(0) AS row_version FROM %[3]s
        UNION ALL
        SELECT state_id, toUInt64(0), %[6]s FROM %[4]s WHERE state_id IN %[5]s
    )
    GROUP BY state_id HAVING max(row_seen) != max(row_version)
)`, guardHolds, guardMoved, Incoming, t, set, t.Layout.version), args
}

// Verify tells what became of a write. Where it was of several ids, [Incoming] has to travel beside the
// statement again, if only its columns state_id and version; for a single id, the version is given here.
// Columns: kind UInt8, ours UInt64, others UInt64. Two rows, by kind:
//
//   - [VerifyFence]: of how many state_ids a fresh claim of ours is there; how many live claims of others are.
//   - [VerifyRows]: of how many state_ids the version that was written is there; how many state_ids have another
//     row that is as new, or newer.
func (t StateTable) Verify(f Fence, ids []string, version uint64) Query {
	rows, args := t.landed(ids, version)
	return verify(f, ids, rows, args)
}

// verify is a Verify; rows is what comes after a SELECT of the two numbers of its VerifyRows.
func verify(f Fence, ids []string, rows string, rowsArgs []any) Query {
	counts, args := f.counts()
	set, setArgs, external := in(ids)
	args = append(append(args, setArgs...), seconds(f.Stale))
	return Query{
		Text: fmt.Sprintf(`SELECT toUInt8(%[1]d), %[2]s
FROM %[3]s WHERE state_id IN %[4]s AND locked_at >= now() - ?
UNION ALL
SELECT toUInt8(%[5]d), %[6]s`, VerifyFence, counts, f.Lock, set, VerifyRows, rows),
		Args:     append(args, rowsArgs...),
		Settings: reading(),
		IDs:      external,
	}
}

// landed is what comes after a SELECT of the two numbers of a VerifyRows.
func (t StateTable) landed(ids []string, version uint64) (text string, args []any) {
	set, setArgs, _ := in(ids)
	if len(ids) == 1 {
		text = fmt.Sprintf("uniqExactIf(state_id, %[1]s = ?), toUInt64(countIf(%[1]s >= ?) > 1 OR countIf(%[1]s > ?) > 0) FROM %[2]s WHERE state_id IN %[3]s",
			t.Layout.version, t, set)
		return text, append([]any{version, version, version}, setArgs...)
	}
	return fmt.Sprintf(`countIf(row_same > 0), countIf(row_same > 1 OR row_newest > row_stamp) FROM (
    SELECT max(stamp) AS row_stamp, max(stored) AS row_newest, countEqual(groupArray(stored), max(stamp)) AS row_same
    FROM (
        SELECT state_id, version AS stamp, toUInt64(0) AS stored FROM %[1]s
        UNION ALL
        SELECT state_id, toUInt64(0), %[4]s FROM %[2]s WHERE state_id IN %[3]s
    )
    GROUP BY state_id
)`, Incoming, t, set, t.Layout.version), setArgs
}

// The kinds of rows of [StateTable.Verify].
const (
	VerifyFence = 0
	VerifyRows  = 1
)
