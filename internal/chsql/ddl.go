package chsql

import (
	"fmt"
	"slices"
	"strings"
)

// CreateDatabase creates a database that is not there yet.
func CreateDatabase(name string, on Cluster) Query {
	return on.ddl("CREATE DATABASE IF NOT EXISTS " + Ident(name) + on.on())
}

// Create creates the state table in its layout. The table must not be there yet.
func (t StateTable) Create(d Definition) Query {
	return d.create("CREATE TABLE ", t.Table, t.Layout.Columns, d.Engine.clause(t.Layout.Arguments...), "ORDER BY state_id")
}

// Create creates the lock table, unless it is there: strict, or as Meltano makes it. With patch, a strict one
// has the columns that patch parts need, so that a release is masked at once; older servers do not know them.
//
// The TTL is Meltano's: a claim that old is dead to everybody.
func (l LockTable) Create(d Definition, patch bool) Query {
	columns, key := LockColumns(), "state_id"
	d.Settings = nil
	if l.Strict {
		columns, key = append(columns, holderColumn), "(state_id, lock_id)"
		if patch {
			d.Settings = map[string]string{"enable_block_number_column": "1", "enable_block_offset_column": "1"}
		}
	}
	return d.create("CREATE TABLE IF NOT EXISTS ", l.Table, columns, d.Engine.clause("locked_at"),
		"ORDER BY "+key+"\nTTL locked_at + INTERVAL 300 SECOND")
}

// ModifyComment changes a table's comment in place.
func (t Table) ModifyComment(comment string, on Cluster) Query {
	return on.ddl(fmt.Sprintf("ALTER TABLE %s%s MODIFY COMMENT ?", t, on.on()), comment)
}

// ModifySettings changes MergeTree settings in place.
func (t Table) ModifySettings(settings map[string]string, on Cluster) Query {
	return on.ddl(fmt.Sprintf("ALTER TABLE %s%s MODIFY SETTING %s", t, on.on(), assignments(settings)))
}

// ResetSettings puts MergeTree settings back to the server's defaults.
func (t Table) ResetSettings(names []string, on Cluster) Query {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = Ident(name)
	}
	return on.ddl(fmt.Sprintf("ALTER TABLE %s%s RESET SETTING %s", t, on.on(), strings.Join(quoted, ", ")))
}

// Optimize merges all parts of a table into one, and is an error where the server does not do it. Cleanup also
// removes tombstones for good; it needs the table's setting [CleanupSetting].
func (t Table) Optimize(cleanup bool) Query {
	text := fmt.Sprintf("OPTIMIZE TABLE %s FINAL", t)
	if cleanup {
		text += " CLEANUP"
	}
	return Query{Text: text, Settings: map[string]string{"optimize_throw_if_noop": "1"}}
}

// CleanupSetting is the MergeTree setting, off by default, with which tombstones may be removed.
const CleanupSetting = "allow_experimental_replacing_merge_with_cleanup"

// Drop drops a table and waits until it is gone.
func (t Table) Drop(on Cluster) Query {
	return on.ddl(fmt.Sprintf("DROP TABLE IF EXISTS %s%s SYNC", t, on.on()))
}

// A Move is a table's way from one name to another.
type Move struct{ From, To Table }

// Rename moves tables, one after the other: where the server stops, those before have moved.
func Rename(on Cluster, moves ...Move) Query {
	pairs := make([]string, len(moves))
	for i, m := range moves {
		pairs[i] = fmt.Sprintf("%s TO %s", m.From, m.To)
	}
	return on.ddl("RENAME TABLE " + strings.Join(pairs, ", ") + on.on())
}

// Rows counts the rows of a table as they are stored, old versions and tombstones included: one UInt64.
func (t Table) Rows() Query {
	return Query{Text: fmt.Sprintf("SELECT count() FROM %s", t), Settings: reading()}
}

// Tables describes tables of one database by name.
// Columns: name, uuid, engine, engine_full, sorting_key, partition_key, comment: all String.
func Tables(database string, names ...string) Query {
	return Query{
		Text: `SELECT name, toString(uuid), engine, engine_full, sorting_key, partition_key, comment
FROM system.tables
WHERE database = ? AND name IN ?`,
		Args:     []any{database, names},
		Settings: reading(),
	}
}

// TablesByUUID finds a table whatever its name. Columns: database, name: String.
func TablesByUUID(uuid string) Query {
	return Query{
		Text:     "SELECT database, name FROM system.tables WHERE uuid = toUUIDOrZero(?)",
		Args:     []any{uuid},
		Settings: reading(),
	}
}

// Exists tells whether a table is there: one UInt8. Unlike the system tables, which leave out what a user may
// not see, it is an error for a user who may not know.
func (t Table) Exists() Query {
	return Query{Text: "EXISTS TABLE " + t.String(), Settings: reading()}
}

// Columns describes the columns of tables of one database.
// Columns: table, name, type, default_kind, default_expression: all String; in the order of the table.
func Columns(database string, tables ...string) Query {
	return Query{
		Text: `SELECT table, name, type, default_kind, default_expression
FROM system.columns
WHERE database = ? AND table IN ?
ORDER BY table, position`,
		Args:     []any{database, tables},
		Settings: reading(),
	}
}

// KnownTableSettings tells which of the named MergeTree settings the server knows. Column: name String.
func KnownTableSettings(names ...string) Query {
	return Query{
		Text:     "SELECT name FROM system.merge_tree_settings WHERE name IN ?",
		Args:     []any{names},
		Settings: reading(),
	}
}

func settingsClause(settings map[string]string) string {
	if len(settings) == 0 {
		return ""
	}
	return "\nSETTINGS " + assignments(settings)
}

// assignments writes "name = value" pairs in a fixed order. Values are literals: a number as it is, all else
// as a string, which the server converts.
func assignments(settings map[string]string) string {
	names := make([]string, 0, len(settings))
	for name := range settings {
		names = append(names, name)
	}
	slices.Sort(names)
	pairs := make([]string, len(names))
	for i, name := range names {
		pairs[i] = Ident(name) + " = " + literal(settings[name])
	}
	return strings.Join(pairs, ", ")
}

// literal writes a value that a statement cannot take as an argument, since DDL keeps it in its own text.
func literal(value string) string {
	if value != "" && strings.Trim(value, "0123456789") == "" {
		return value
	}
	return quote(value)
}

// quote writes a string literal.
func quote(value string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
}
