package chsql

import (
	"fmt"
	"time"
)

// rowHash tells rows apart where versions do not.
const rowHash = "sipHash64(tuple(partial_state, completed_state, updated_at))"

// IDs lists the state_ids that have a row. Column: state_id String.
func (t StateTable) IDs() Query {
	return Query{Text: fmt.Sprintf("SELECT DISTINCT state_id FROM %s", t), Settings: reading()}
}

// CopyTo inserts the live rows of a table into another one, which has tombstones, except for those that are there
// already. Versions keep their numbers.
func (t StateTable) CopyTo(to StateTable) Query {
	return Query{
		Text: t.copyTo(to) + fmt.Sprintf("\nWHERE (state_id, %s, %s) NOT IN (SELECT state_id, %s, %s FROM %s FINAL)",
			t.Layout.version, rowHash, to.Layout.version, rowHash, to),
		Settings: writing(),
	}
}

// CopyLateTo is CopyTo for the rows that were written since an instant, in Unix milliseconds, while the other table
// is written as well: what is newer there stays the newest.
func (t StateTable) CopyLateTo(to StateTable, since int64) Query {
	return Query{
		Text: t.copyTo(to) + fmt.Sprintf("\nWHERE toUnixTimestamp64Milli(updated_at) >= ? AND (state_id, %s, %s) NOT IN (SELECT state_id, %s, %s FROM %s)",
			t.Layout.version, rowHash, to.Layout.version, rowHash, to),
		Args:     []any{since},
		Settings: writing(),
	}
}

func (t StateTable) copyTo(to StateTable) string {
	return fmt.Sprintf(`INSERT INTO %s (%s)
SELECT state_id, partial_state, completed_state, updated_at, %s, %s
FROM %s FINAL`, to, names(to.Layout.Columns), t.Layout.version, t.Layout.deleted, t)
}

// BuryIn inserts a tombstone into another table for each of its live entries that this one does not have.
func (t StateTable) BuryIn(to StateTable) Query {
	return Query{
		Text: fmt.Sprintf(`INSERT INTO %[1]s (%[2]s)
SELECT state_id, NULL, NULL, updated_at, version + 1, 1
FROM %[1]s FINAL
WHERE state_id NOT IN (SELECT state_id FROM %[3]s)`, to, names(to.Layout.Columns), t),
		Settings: writing(),
	}
}

// Clock reads the server's time: one Int64, in Unix milliseconds.
func Clock() Query {
	return Query{Text: "SELECT toUnixTimestamp64Milli(now64(3))", Settings: reading()}
}

// Compare compares the live rows of two tables, row by row, except for what was written into this one since an
// instant, in Unix milliseconds. One row: missing UInt64, rows that the other one does not have, or not like this;
// extra UInt64, rows of the other one whose state_ids this one does not have.
func (t StateTable) Compare(other StateTable, since int64) Query {
	return Query{
		Text: fmt.Sprintf(`SELECT
    ifNull((SELECT count() FROM %[1]s FINAL
        WHERE toUnixTimestamp64Milli(updated_at) < ? AND (state_id, %[2]s, %[5]s) NOT IN (SELECT state_id, %[4]s, %[5]s FROM %[3]s FINAL)), 1),
    ifNull((SELECT count() FROM %[3]s FINAL
        WHERE state_id NOT IN (SELECT state_id FROM %[1]s)), 1)`, t, t.Layout.version, other, other.Layout.version, rowHash),
		Args:     []any{since},
		Settings: reading(),
	}
}

// CarriedOver is the holder of claims that were copied from a lock table which has no holders.
const CarriedOver = "carried over from the lock table that was here before"

// CopyClaimsTo inserts the live claims of a lock table into a strict one, as [CarriedOver], except for those of the
// given lock_ids.
func (l LockTable) CopyClaimsTo(to LockTable, stale time.Duration, except []string) Query {
	set, args, external := in(except)
	return Query{
		Text: fmt.Sprintf(`INSERT INTO %s (state_id, lock_id, locked_at, holder)
SELECT state_id, lock_id, locked_at, ? FROM %s
WHERE locked_at >= now() - ? AND lock_id NOT IN %s`, to, l, set),
		Args:     append([]any{CarriedOver, seconds(stale)}, args...),
		Settings: writing(),
		IDs:      external,
	}
}

// Exchange swaps the names of two tables, at once.
func Exchange(a, b Table) Query { return Query{Text: fmt.Sprintf("EXCHANGE TABLES %s AND %s", a, b)} }

// Views lists the views that read from a table. Column: name String.
func (t Table) Views() Query {
	return Query{
		Text:     "SELECT arrayJoin(dependencies_table) FROM system.tables WHERE database = ? AND name = ?",
		Args:     []any{t.Database, t.Name},
		Settings: reading(),
	}
}
