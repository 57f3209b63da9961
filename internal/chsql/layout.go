package chsql

import (
	"strings"
	"time"
)

// A Layout is how the rows of a state table are told apart: which of two versions is the newer one, and which
// entry is deleted. Statements are the same on every layout but for what stands here.
type Layout struct {
	// Arguments are those of the engine ReplacingMergeTree.
	Arguments []string
	// Columns are the columns that a table needs, in the order in which we make them.
	Columns []Column
	// Unit is how much later by the server's clock the next version is at least.
	Unit time.Duration
	// version and deleted are the expressions of a row's version (UInt64, in units since 1970) and of whether
	// it is a tombstone (UInt8).
	version, deleted string
}

// A Column is a column as the server shows it. A Default is there for the rows that Meltano writes, which
// name three columns only.
type Column struct{ Name, Type, Default string }

// Versioned is the layout of the tables that we make: a delete is a row of its own, and versions are
// microseconds.
//
// The DEFAULT of version is in the unit and from the clock that our own stamps have, so that a row which
// Meltano inserts without it always comes after ours.
var Versioned = &Layout{
	Arguments: []string{"version", "is_deleted"},
	Columns: append(columns(),
		Column{"version", "UInt64", "toUnixTimestamp64Micro(now64(6))"},
		Column{"is_deleted", "UInt8", "0"},
	),
	Unit:    time.Microsecond,
	version: "version",
	deleted: "is_deleted",
}

// Meltano is the layout of the tables that Meltano makes: updated_at orders the versions, and a delete
// removes rows.
var Meltano = &Layout{
	Arguments: []string{"updated_at"},
	Columns:   columns(),
	Unit:      time.Millisecond,
	// Before 1970 there is nothing to tell apart.
	version: "toUInt64(greatest(toUnixTimestamp64Milli(updated_at), 0))",
	deleted: "toUInt8(0)",
}

// columns are those that Meltano works with.
func columns() []Column {
	return []Column{
		{"state_id", "String", ""},
		{"partial_state", "Nullable(String)", ""},
		{"completed_state", "Nullable(String)", ""},
		{"updated_at", "DateTime64(3)", "now64(3)"},
	}
}

// Version is the version that stands for an instant.
func (l *Layout) Version(t time.Time) uint64 { return uint64(t.UnixMicro() / l.Unit.Microseconds()) }

// Time is the instant that a version stands for.
func (l *Layout) Time(version uint64) time.Time {
	return time.UnixMicro(int64(version) * l.Unit.Microseconds()).UTC()
}

// Tombstones tells whether a delete leaves a row.
func (l *Layout) Tombstones() bool { return l == Versioned }

// LockColumns are the columns that a lock table needs.
func LockColumns() []Column {
	return []Column{
		{"state_id", "String", ""},
		{"lock_id", "String", ""},
		{"locked_at", "DateTime", "now()"},
	}
}

// holderColumn is the column that the lock tables which we make have as well.
var holderColumn = Column{"holder", "String", "''"}

// names lists the names of columns.
func names(columns []Column) string {
	list := make([]string, len(columns))
	for i, c := range columns {
		list[i] = c.Name
	}
	return strings.Join(list, ", ")
}

// definitions writes the columns of a CREATE TABLE.
func definitions(columns []Column) string {
	lines := make([]string, len(columns))
	for i, c := range columns {
		lines[i] = "    " + c.String()
	}
	return "(\n" + strings.Join(lines, ",\n") + "\n)"
}

// String writes the column as a CREATE TABLE or an ALTER TABLE does.
func (c Column) String() string {
	text := c.Name + " " + c.Type
	if c.Default != "" {
		text += " DEFAULT " + c.Default
	}
	return text
}
