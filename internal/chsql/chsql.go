// Package chsql writes the SQL of this project; nobody else does. It is pure text: nothing here runs.
//
// A statement is safe by construction. Identifiers pass through [Ident]; ids and other small values are
// arguments, to be bound; rows and payloads are columns of a table that travels beside the
// statement (see [Incoming], [IDs]), and never stand in the text.
//
// Aliases never repeat the name of a column, so that the texts mean the same whatever the user's
// prefer_column_name_to_alias says, and nothing is joined, so that join_use_nulls and join_algorithm do not matter.
package chsql

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Query is a statement's text, the arguments for its placeholders, and the settings that it relies on or is cheaper with.
type Query struct {
	Text     string
	Args     []any
	Settings map[string]string
	// IDs are the rows of the external table [IDs] that has to travel beside the statement; nil for none.
	IDs []string
	// Numbers are the second column of that table; nil for none.
	Numbers []uint64
}

// IDs is the name of the external table whose column state_id (String) lists the state_ids that a statement is about,
// where they are too many to be bound. If it is about a number of each, that is the column number (UInt64).
const IDs = "_ids"

// maxBound is how many state_ids are bound as arguments, and maxBoundBytes how long they may be together: a list
// costs the server a third less than a set made from a table. But each byte may be escaped, and the text of a statement is
// limited: to 256 KiB (max_query_size), where a list may stand in it six times, and over HTTP beside an external table to
// 128 KiB (http_max_field_value_size), where it stands in it four times.
const (
	maxBound      = 100
	maxBoundBytes = 15 << 10
)

// fits tells whether state_ids may be bound.
func fits(ids []string) bool {
	size := 0
	for _, id := range ids {
		size += len(id)
	}
	return len(ids) <= maxBound && size <= maxBoundBytes
}

// in is the right side of "state_id IN".
func in(ids []string) (text string, args []any, external []string) {
	if fits(ids) {
		return "?", []any{ids}, nil
	}
	return "(SELECT state_id FROM " + IDs + ")", nil, ids
}

// list is the state_ids as one array.
func list(ids []string) (text string, args []any) {
	if fits(ids) {
		return "?", []any{ids}
	}
	return "(SELECT groupArray(state_id) FROM " + IDs + ")", nil
}

// numbers is an expression of the number that goes with the state_id of a row, which must be one of the ids. Where they
// are too many to be bound, [IDs] has to carry them as its second column. That is read into two lists, sorted, so that
// the two fit together whatever the order in which each reading finds the rows.
func numbers(ids []string, values []uint64) (text string, args []any, column []uint64) {
	switch {
	case len(slices.Compact(slices.Clone(values))) == 1:
		return "?", []any{values[0]}, nil
	case fits(ids):
		return "transform(state_id, ?, ?, toUInt64(0))", []any{ids, values}, nil
	}
	pairs := fmt.Sprintf("(SELECT arraySort(groupArray((state_id, number))) FROM %s)", IDs)
	return fmt.Sprintf("transform(state_id, tupleElement(%[1]s, 1), tupleElement(%[1]s, 2), toUInt64(0))", pairs), nil, values
}

// Incoming is the name of the external table that carries the rows of a write.
const Incoming = "_incoming"

// Ident quotes an identifier: any name that ClickHouse can store comes out as itself.
//
// Backslash escapes are understood inside backticks, so both are escaped.
// See https://clickhouse.com/docs/sql-reference/syntax#identifiers.
func Ident(name string) string {
	return "`" + strings.NewReplacer("\\", "\\\\", "`", "\\`").Replace(name) + "`"
}

// A Table names a table in a database.
type Table struct{ Database, Name string }

// String returns the quoted, qualified name.
func (t Table) String() string { return Ident(t.Database) + "." + Ident(t.Name) }

// LockTableName is the name of the lock table that goes with a state table, by Meltano's convention.
func LockTableName(table string) string { return table + "_lock" }

// reading is what every SELECT relies on. Where a user's profile has other values, the answer would be
// another one: final = 1 hides tombstones from a read without FINAL, a query cache hides what was just
// written, a mask that is not applied shows rows that were deleted.
func reading() map[string]string {
	return map[string]string{
		"aggregate_functions_null_for_empty":          "0",
		"apply_deleted_mask":                          "1",
		"apply_patch_parts":                           "1",
		"do_not_merge_across_partitions_select_final": "0",
		"empty_result_for_aggregation_by_empty_set":   "0",
		"final":           "0",
		"use_query_cache": "0",
	}
}

// withoutPayload adds to the settings of a statement that reads no payload what makes it cheaper: there is nothing to
// gain from PREWHERE, and planning it takes time.
func withoutPayload(ids []string, settings map[string]string) map[string]string {
	settings["optimize_move_to_prewhere"] = "0"
	return inOneThread(ids, settings)
}

// inOneThread adds to the settings of a statement about a few state_ids what keeps it in one thread: to wake others, be it to
// compute or to read a file, costs more than they save. (The server lets others read where the file system cannot tell
// whether it has the file in memory, such as tmpfs and ZFS.)
func inOneThread(ids []string, settings map[string]string) map[string]string {
	if fits(ids) {
		settings["max_threads"] = "1"
		settings["local_filesystem_read_method"] = "pread"
	}
	return settings
}

// writing is what every INSERT relies on: acknowledged means visible (async_insert), and all rows go in as
// one block, since beyond a block an INSERT is not atomic.
func writing() map[string]string {
	settings := reading()
	settings["async_insert"] = "0"
	settings["deduplicate_insert"] = "disable"
	settings["max_insert_threads"] = "1"
	settings["min_insert_block_size_rows"] = strconv.Itoa(MaxBlockRows)
	settings["min_insert_block_size_bytes"] = strconv.Itoa(MaxBlockBytes)
	settings["timeout_overflow_mode"] = "throw"
	return settings
}

// MaxBlockRows and MaxBlockBytes bound one atomic INSERT: what [writing] asks the server to keep together.
const (
	MaxBlockRows  = 1_048_449
	MaxBlockBytes = 268_402_944
)
