package chsql

import (
	"fmt"
	"slices"
)

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
		Settings: inOneThread(ids, reading()),
		IDs:      external,
	}
}

// Versions reads which versions are stored of the state_ids. Columns: state_id String, alive UInt64, buried UInt64, micros
// Int64 (Unix microseconds). One row is the server's time, in micros, which is zero in all others. Those are one for each
// state_id that has a row: alive is the newest version that is no tombstone, buried that of a tombstone, each zero for none.
//
// The versions are maxima without FINAL, so that tombstones count. They tell what FINAL shows, unless they are equal: of equal
// versions it takes the row that was inserted last, and of none and version 0 nobody can tell.
func (t StateTable) Versions(ids []string) Query {
	set, args, external := in(ids)
	return Query{
		Text: fmt.Sprintf(`SELECT '', toUInt64(0), toUInt64(0), toUnixTimestamp64Micro(now64(6))
UNION ALL
SELECT state_id, maxIf(%[3]s, NOT %[4]s), maxIf(%[3]s, %[4]s), toInt64(0)
FROM %[1]s WHERE state_id IN %[2]s
GROUP BY state_id`, t, set, t.Layout.version, t.Layout.deleted),
		Args:     args,
		Settings: withoutPayload(ids, reading()),
		IDs:      external,
	}
}

// Write inserts the rows of [Incoming], one for each of the ids, or nothing: unless the fence holds for all of them,
// and of each the newest version that is stored is just below its limit. A limit of zero is for a state_id of which no
// row was found: none may have come.
//
// Both guards are sets of one row, which are made before the first row of Incoming is looked at; none, or a NULL, would
// refuse. (As scalar subqueries they would be as good, but the server would analyse them twice, which is most of what they
// cost.)
//
// Incoming has the columns state_id String, partial_state Nullable(String), completed_state Nullable(String),
// updated_at DateTime64(3), version UInt64, is_deleted UInt8.
func (t StateTable) Write(f Fence, ids []string, limits []uint64) Query {
	fence, args, external := f.holds(ids)
	unmoved, unmovedArgs, column := t.unmoved(ids, limits)
	settings := withoutPayload(ids, writing())
	settings["max_execution_time"] = f.executionTime()
	return Query{
		Text: fmt.Sprintf(`INSERT INTO %[1]s (%[2]s)
SELECT %[2]s
FROM %[3]s
WHERE NOT throwIf(1 NOT IN (%[4]s), '%[5]s')
    AND NOT throwIf(1 NOT IN (%[6]s), '%[7]s')`,
			t, names(t.Layout.Columns), Incoming, fence, MarkerFence, unmoved, MarkerMoved),
		Args:     append(args, unmovedArgs...),
		Settings: settings,
		IDs:      external,
		Numbers:  column,
	}
}

// unmoved is a SELECT of one row and column: 1 if the newest version of each state_id is just below its limit, else 0.
func (t StateTable) unmoved(ids []string, limits []uint64) (text string, args []any, column []uint64) {
	known := 0
	for _, limit := range limits {
		if limit > 0 {
			known++
		}
	}
	set, setArgs, _ := in(ids)
	limit, limitArgs, column := numbers(ids, limits)
	text, args = fmt.Sprintf("countIf(%s >= %s) = 0", t.Layout.version, limit), limitArgs
	if known > 0 {
		text += fmt.Sprintf(" AND uniqExactIf(state_id, %s + 1 = %s) = ?", t.Layout.version, limit)
		args = slices.Concat(args, limitArgs, []any{known})
	}
	return fmt.Sprintf("SELECT %s FROM %s WHERE state_id IN %s", text, t, set), slices.Concat(args, setArgs), column
}

// Verify tells what became of a write of these versions. Columns: kind UInt8, ours UInt64, others UInt64. Two rows, by
// kind:
//
//   - [VerifyFence]: of how many state_ids a fresh claim of ours is there; how many live claims of others are.
//   - [VerifyRows]: of how many state_ids the version that was written is there; how many other rows are as new as
//     that, or newer.
func (t StateTable) Verify(f Fence, ids []string, versions []uint64) Query {
	set, setArgs, _ := in(ids)
	number, numberArgs, column := numbers(ids, versions)
	rows := fmt.Sprintf("uniqExactIf(state_id, %[1]s = %[2]s), toUInt64(countIf(%[1]s >= %[2]s) - uniqExactIf(state_id, %[1]s = %[2]s)) FROM %[3]s WHERE state_id IN %[4]s",
		t.Layout.version, number, t, set)
	q := verify(f, ids, rows, slices.Concat(numberArgs, numberArgs, numberArgs, setArgs))
	q.Numbers = column
	return q
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
		Settings: withoutPayload(ids, reading()),
		IDs:      external,
	}
}

// The kinds of rows of [StateTable.Verify].
const (
	VerifyFence = 0
	VerifyRows  = 1
)
