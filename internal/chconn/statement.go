package chconn

import (
	"slices"
	"time"
)

// A Statement is one SQL statement and everything that travels beside its text.
//
// Values never stand in the text: small ones are bound (Args, one for each "?"), rows and payloads
// travel as column data (External).
type Statement struct {
	// Operation says what the statement is for, in dotted form ("entry.write", "lock.claim").
	// It goes into log_comment and the logs.
	Operation string
	// Text is the SQL, as package chsql wrote it.
	Text string
	// Args are bound to the text's placeholders, in order: strings, integers, booleans, times, nil, and lists of
	// strings or numbers. They become part of the text, which a server bounds (max_query_size, 256 KiB by default): long
	// lists travel as External.
	Args []any
	// External are the tables that the text reads its rows from.
	External []Table
	// Settings are what the statement relies on, or is cheaper with (those that a user's profile fixes or bounds are left
	// out), by ClickHouse's setting names. A setting that the
	// server does not know is left out; one that has this value already is not sent, since a user with
	// readonly = 1 may read with a setting but not change it.
	Settings map[string]string
	// QueryID identifies the statement on the server. Empty: a new one is made.
	QueryID string
	// Timeout bounds the statement, on the client by a timer and nowhere else. Zero: the
	// connection's query timeout.
	Timeout time.Duration
}

// A Table is rows that travel beside a statement as column data (ClickHouse's "external data"), so that
// any bytes in them reach the server unchanged.
type Table struct {
	// Name is what the statement calls the table.
	Name string
	// Columns are the table's columns.
	Columns []Column
	// Rows hold one Go value for each column: string for String, *string for Nullable(String), uint64
	// for UInt64, uint8 for UInt8, time.Time for DateTime64.
	Rows [][]any
}

// A Column is a name and a ClickHouse type.
type Column struct {
	Name, Type string
}

// A Result is what the server reports of a statement that returned no rows.
type Result struct {
	// QueryID is the id that the statement ran under.
	QueryID string
	// WrittenRows counts the rows written, over both protocols.
	WrittenRows uint64
}

// A Row is one row of a result, to be scanned into Go values in column order.
type Row interface {
	Scan(dest ...any) error
}

// Strings is a table of one column of type String.
func Strings(name, column string, values []string) Table {
	table := Table{Name: name, Columns: []Column{{Name: column, Type: "String"}}, Rows: make([][]any, len(values))}
	for i, value := range values {
		table.Rows[i] = []any{value}
	}
	return table
}

// With is the table with one more column of type UInt64, a number for each row. Without numbers it is the table itself.
func (t Table) With(column string, numbers []uint64) Table {
	if numbers == nil {
		return t
	}
	with := Table{Name: t.Name, Columns: append(slices.Clone(t.Columns), Column{Name: column, Type: "UInt64"}), Rows: make([][]any, len(t.Rows))}
	for i, row := range t.Rows {
		with.Rows[i] = append(slices.Clone(row), numbers[i])
	}
	return with
}
