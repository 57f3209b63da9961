package chsql

import "fmt"

// Health counts what is stored in a state table. One row: rows UInt64, versions and tombstones included; keys
// UInt64, different state_ids; live UInt64, entries that FINAL shows; waiting Int64, the seconds since the
// oldest version was replaced that no merge has dropped yet, 0 for none; ahead Int64, the microseconds by which
// the newest version lies ahead of the server's clock, negative if it does not.
//
// FINAL reads another snapshot than the rest: on a table that is written, live may differ by those writes.
func (t StateTable) Health() Query {
	return Query{
		Text: fmt.Sprintf(`SELECT sum(key_rows), count(), ifNull((SELECT count() FROM %[1]s FINAL), 0),
    greatest(toInt64(max(if(key_rows > 1, dateDiff('second', key_updated[2], now64(3)), 0))), 0),
    toInt64(max(key_version)) * %[3]d - toUnixTimestamp64Micro(now64(6))
FROM (
    SELECT state_id, count() AS key_rows, max(%[2]s) AS key_version, arraySort(groupArray(updated_at)) AS key_updated
    FROM %[1]s
    GROUP BY state_id
)`, t, t.Layout.version, t.Layout.Unit.Microseconds()),
		Settings: reading(),
	}
}

// Parts counts what a table has on disk. One row: active parts with rows in them UInt64, their bytes UInt64. Empty
// parts, which a clean-up leaves for some seconds, do not count.
func (t Table) Parts() Query {
	return Query{
		Text:     "SELECT count(), sum(bytes_on_disk) FROM system.parts WHERE database = ? AND table = ? AND active AND rows > 0",
		Args:     []any{t.Database, t.Name},
		Settings: reading(),
	}
}
