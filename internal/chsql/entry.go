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
		Text: fmt.Sprintf(`SELECT state_id, completed_state, partial_state, version, updated_at
FROM %s FINAL
WHERE state_id IN %s
ORDER BY state_id`, t, set),
		Args:     args,
		Settings: reading(),
		IDs:      external,
	}
}

// Newest reads what a write has to know, for each state_id, whether it is stored or not.
// Columns: state_id String; newest UInt64, the newest version of any row, tombstones included, 0 for none;
// buried UInt64, the newest version of a tombstone; live UInt8, whether FINAL shows a row, and of that row:
// version UInt64, completed_state and partial_state Nullable(String), updated_at Int64 (Unix milliseconds);
// now Int64, the server's time in Unix microseconds.
//
// The newest version is a maximum without FINAL, so that tombstones count; the payload is FINAL's, which on
// equal versions takes the row inserted last, where argMax takes another.
// The two are read from two snapshots: they agree if newest is the version of the live row, or of a
// tombstone where none is live. Otherwise somebody wrote in between.
func (t StateTable) Newest(ids []string) Query {
	set, args, _ := in(ids)
	return Query{
		Text: fmt.Sprintf(`SELECT state_id, max(row_version), maxIf(row_version, row_deleted = 1), max(row_live),
    maxIf(row_version, row_live = 1), anyIf(row_completed, row_live = 1), anyIf(row_partial, row_live = 1),
    maxIf(row_updated, row_live = 1), toUnixTimestamp64Micro(now64(6))
FROM (
    SELECT state_id, toUInt64(0) AS row_version, toUInt8(0) AS row_deleted, toUInt8(0) AS row_live,
        CAST(NULL, 'Nullable(String)') AS row_completed, CAST(NULL, 'Nullable(String)') AS row_partial,
        toInt64(0) AS row_updated
    FROM %[2]s
    UNION ALL
    SELECT state_id, version, is_deleted, toUInt8(0), NULL, NULL, toInt64(0)
    FROM %[1]s WHERE state_id IN %[3]s
    UNION ALL
    SELECT state_id, version, toUInt8(0), toUInt8(1), completed_state, partial_state, toUnixTimestamp64Milli(updated_at)
    FROM %[1]s FINAL WHERE state_id IN %[3]s
)
GROUP BY state_id
ORDER BY state_id`, t, IDs, set),
		Args:     append(args, args...),
		Settings: reading(),
		IDs:      ids,
	}
}

// Write inserts the rows of [Incoming], one for each of the ids, or nothing: unless the fence holds for all
// of them, and the newest version of each is still the one that its row names as seen. Each guard is one
// constant scalar; see [Fence].
//
// Incoming has the columns state_id String, partial_state Nullable(String), completed_state Nullable(String),
// updated_at DateTime64(3), version UInt64, is_deleted UInt8, seen UInt64.
func (t StateTable) Write(f Fence, ids []string) Query {
	guard, args, external := f.scalar(ids)
	set, setArgs, _ := in(ids)
	settings := writing()
	settings["max_execution_time"] = f.executionTime()
	return Query{
		Text: fmt.Sprintf(`INSERT INTO %[1]s (state_id, partial_state, completed_state, updated_at, version, is_deleted)
SELECT state_id, partial_state, completed_state, updated_at, version, is_deleted
FROM %[2]s
WHERE NOT throwIf(%[3]s != %[4]d, '%[5]s')
  AND NOT throwIf(ifNull((
        SELECT count() FROM (
            SELECT state_id FROM (
                SELECT state_id, seen AS row_seen, toUInt64(0) AS row_version FROM %[2]s
                UNION ALL
                SELECT state_id, toUInt64(0), version FROM %[1]s WHERE state_id IN %[7]s
            )
            GROUP BY state_id HAVING max(row_seen) != max(row_version)
        )), 1) > 0, '%[6]s')`,
			t, Incoming, guard, FenceHolds, MarkerFence, MarkerMoved, set),
		Args:     append(args, setArgs...),
		Settings: settings,
		IDs:      external,
	}
}

// Verify tells what became of a write that stamped all the ids with one version.
// One row: fence UInt8, see below; missing UInt64, state_ids of which that version is not there; beyond
// UInt64, rows that are newer, or that have the same version twice.
// Fence is [FenceHolds], [FenceLost] or [FenceRival].
func (t StateTable) Verify(f Fence, ids []string, version uint64) Query {
	guard, args, external := f.scalar(ids)
	set, setArgs, _ := in(ids)
	args = append(args, len(ids), version, version, version, version)
	return Query{
		Text: fmt.Sprintf(`SELECT toUInt8(%[3]s), toUInt64(? - uniqExactIf(state_id, version = ?)),
    toUInt64(countIf(version > ?) + countIf(version = ?) - uniqExactIf(state_id, version = ?))
FROM %[1]s
WHERE state_id IN %[2]s`, t, set, guard),
		Args:     append(args, setArgs...),
		Settings: reading(),
		IDs:      external,
	}
}
