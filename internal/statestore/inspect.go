package statestore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
)

// versionDefault is the DEFAULT of the version column: without it, or in another unit, rows that Meltano
// writes would stay behind ours for ever.
const versionDefault = "toUnixTimestamp64Micro(now64(6))"

// description is a table as the system tables show it.
type description struct {
	name, uuid, engine, engineFull, sortingKey, partitionKey, comment string
	columns                                                           []columnDescription
}

type columnDescription struct{ name, kind, defaultKind, defaultExpression string }

// column returns the named column; ok is false if there is none.
func (d description) column(name string) (c columnDescription, ok bool) {
	i := slices.IndexFunc(d.columns, func(c columnDescription) bool { return c.name == name })
	if i < 0 {
		return columnDescription{}, false
	}
	return d.columns[i], true
}

// describe reads the tables of one database that are there, by name.
func (s *Store) describe(ctx context.Context, database string, names ...string) (map[string]*description, error) {
	found, err := query(ctx, s, statement("table.describe", chsql.Tables(database, names...)), func(r chconn.Row) (*description, error) {
		var d description
		err := r.Scan(&d.name, &d.uuid, &d.engine, &d.engineFull, &d.sortingKey, &d.partitionKey, &d.comment)
		return &d, err
	})
	if err != nil {
		return nil, err
	}
	tables := make(map[string]*description, len(found))
	for _, d := range found {
		tables[d.name] = d
	}
	if len(tables) == 0 {
		return tables, nil
	}
	_, err = query(ctx, s, statement("table.columns", chsql.Columns(database, names...)), func(r chconn.Row) (struct{}, error) {
		var (
			table string
			c     columnDescription
		)
		err := r.Scan(&table, &c.name, &c.kind, &c.defaultKind, &c.defaultExpression)
		if d := tables[table]; d != nil {
			d.columns = append(d.columns, c)
		}
		return struct{}{}, err
	})
	return tables, err
}

// absent makes sure that a table which the system tables do not show is not there: they leave out what the
// user may not see, and what is taken for gone is forgotten and made again. It returns nil if it is not there.
func (s *Store) absent(ctx context.Context, table chsql.Table) error {
	there, err := query(ctx, s, statement("table.exists", table.Exists()), func(r chconn.Row) (found uint8, err error) { return found, r.Scan(&found) })
	var serverErr *chconn.ServerError
	switch {
	case errors.As(err, &serverErr) && (serverErr.Code == chconn.CodeUnknownDatabase || serverErr.Code == chconn.CodeUnknownTable):
		return nil
	case err != nil:
		return err
	case there[0] == 1:
		return fmt.Errorf("table %s exists, but system.tables does not show it: does the user have SELECT on it?", table)
	}
	return nil
}

// replicated tells whether other replicas of a table may lag behind.
func (d description) replicated() bool {
	return strings.HasPrefix(d.engine, "Replicated") || strings.HasPrefix(d.engine, "Shared")
}

// family splits an engine clause such as "ReplicatedReplacingMergeTree('/path', '{replica}', version) ORDER BY ..."
// into the family, without the prefixes that mean the same layout, and its column arguments.
func (d description) family() (family string, columns []string) {
	family = strings.TrimPrefix(strings.TrimPrefix(d.engine, "Replicated"), "Shared")
	rest, ok := strings.CutPrefix(d.engineFull, d.engine+"(")
	if !ok {
		return family, nil
	}
	for _, argument := range splitList(rest) {
		if !strings.HasPrefix(argument, "'") {
			columns = append(columns, strings.Trim(argument, "`"))
		}
	}
	return family, columns
}

// settings returns the settings that the engine clause names.
func (d description) settings() map[string]string {
	settings := make(map[string]string)
	_, clause, ok := strings.Cut(d.engineFull, " SETTINGS ")
	if !ok {
		return settings
	}
	for _, pair := range splitList(clause) {
		if name, value, ok := strings.Cut(pair, " = "); ok {
			settings[name] = unquote(value)
		}
	}
	return settings
}

// splitList splits a list at its commas, up to the parenthesis that ends it, and leaves alone what stands in
// quotes or in parentheses.
func splitList(text string) []string {
	var (
		parts []string
		start int
		depth int
		quote byte
	)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '`':
			quote = c
		case c == '(':
			depth++
		case c == ')' && depth == 0:
			return append(parts, strings.TrimSpace(text[start:i]))
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			parts = append(parts, strings.TrimSpace(text[start:i]))
			start = i + 1
		}
	}
	return append(parts, strings.TrimSpace(text[start:]))
}

// unquote returns the value of a literal as the server prints it.
func unquote(literal string) string {
	if len(literal) < 2 || literal[0] != '\'' {
		return literal
	}
	return strings.NewReplacer(`\\`, `\`, `\'`, `'`).Replace(literal[1 : len(literal)-1])
}

// misfits are the things that do not fit, each with what would fix it.
type misfits []string

func (m *misfits) add(format string, args ...any) { *m = append(*m, fmt.Sprintf(format, args...)) }

// engine checks the engine, its arguments and its keys.
func (m *misfits) engine(d *description, arguments, sortingKey []string, what string) {
	family, columns := d.family()
	if family != "ReplacingMergeTree" || !slices.Equal(columns, arguments) {
		m.add("%s has the engine %s, but ReplacingMergeTree(%s) is needed; an engine cannot be altered, so copy the rows into a new table",
			what, strings.TrimSpace(firstClause(d.engineFull)), strings.Join(arguments, ", "))
	}
	if got := splitKey(d.sortingKey); !slices.Equal(got, sortingKey) {
		m.add("%s is ordered by (%s), but ORDER BY (%s) is needed; copy the rows into a new table", what, strings.Join(got, ", "), strings.Join(sortingKey, ", "))
	}
	if d.partitionKey != "" {
		m.add("%s is partitioned by %s: versions of one state_id in two partitions never collapse; copy the rows into a table without PARTITION BY",
			what, d.partitionKey)
	}
}

// columns checks that columns are there with their types.
func (m *misfits) columns(d *description, what string, wanted map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		c, ok := d.column(name)
		switch {
		case !ok:
			m.add("%s has no column %s %s", what, name, wanted[name])
		case c.kind != wanted[name]:
			m.add("column %s of %s is %s, but %s is needed", name, what, c.kind, wanted[name])
		}
	}
}

// splitKey splits a sorting key of plain columns. A single one may stand in parentheses.
func splitKey(key string) []string {
	if inner, ok := strings.CutPrefix(key, "("); ok {
		key = strings.TrimSuffix(inner, ")")
	}
	return strings.Split(strings.ReplaceAll(key, "`", ""), ", ")
}

// firstClause is an engine clause up to its first key.
func firstClause(engineFull string) string {
	clause := engineFull
	for _, keyword := range []string{" PARTITION BY ", " PRIMARY KEY ", " ORDER BY "} {
		clause, _, _ = strings.Cut(clause, keyword)
	}
	return clause
}

// checkState lists what does not fit in a state table of layout versioned.
func (m *misfits) checkState(d *description) {
	m.engine(d, []string{"version", "is_deleted"}, []string{"state_id"}, "the state table")
	m.columns(d, "the state table", map[string]string{
		"state_id":        "String",
		"partial_state":   "Nullable(String)",
		"completed_state": "Nullable(String)",
		"updated_at":      "DateTime64(3)",
		"version":         "UInt64",
		"is_deleted":      "UInt8",
	})
	if c, ok := d.column("version"); ok && c.defaultExpression != versionDefault {
		m.add("column version of the state table has no DEFAULT %[1]s, so rows that Meltano writes stay hidden behind older ones; "+
			"ALTER TABLE ... MODIFY COLUMN version UInt64 DEFAULT %[1]s", versionDefault)
	}
}

// checkLock lists what does not fit in a lock table, and tells its shape.
func (m *misfits) checkLock(d *description) (strict, holder bool) {
	strict = slices.Equal(splitKey(d.sortingKey), []string{"state_id", "lock_id"})
	key := []string{"state_id"}
	if strict {
		key = append(key, "lock_id")
	}
	m.engine(d, []string{"locked_at"}, key, "the lock table "+d.name)
	m.columns(d, "the lock table "+d.name, map[string]string{"state_id": "String", "lock_id": "String", "locked_at": "DateTime"})
	_, holder = d.column("holder")
	return strict, holder
}
