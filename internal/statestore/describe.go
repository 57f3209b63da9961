package statestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
)

// A description is a table as the system tables show it, taken apart.
type description struct {
	name, uuid, engineFull, comment string
	engine                          Engine
	// mark is taken off the comment.
	mark       mark
	sortingKey []string
	// partitionKey is empty for a table that is not partitioned.
	partitionKey string
	settings     map[string]string
	columns      []columnDescription
}

type columnDescription struct{ name, kind, defaultKind, defaultExpression string }

// An Engine is an engine clause, taken apart.
type Engine struct {
	// Name is the engine as the server shows it, such as ReplicatedReplacingMergeTree.
	Name string
	// Family is the name without the prefixes Replicated and Shared, which mean the same layout.
	Family string
	// Path and Replica are where a replicated table finds its other replicas, macros and all. Otherwise, or where
	// the server chooses, they are empty.
	Path, Replica string
	// Columns are the columns that the engine works with, such as version and is_deleted.
	Columns []string
}

// Replicated tells whether there may be other replicas, which lag behind.
func (e Engine) Replicated() bool { return e.Name != e.Family }

// Is tells whether the engine is the one that was asked for, or what a cloud has made of it.
func (e Engine) Is(wanted EngineSpec) bool {
	name := cmp.Or(wanted.Name, "ReplacingMergeTree")
	return name == e.Name || name == e.Family && strings.HasPrefix(e.Name, "Shared")
}

// sibling is the engine of a table beside one of this engine: on as many replicas, which find each other by the
// server's default path.
func (e Engine) sibling() EngineSpec {
	if strings.HasPrefix(e.Name, "Replicated") {
		return EngineSpec{Name: e.Name}
	}
	return EngineSpec{} // Shared is what the server makes of it.
}

// parseEngine takes an engine clause apart, such as
// "ReplicatedReplacingMergeTree('/path', '{replica}', version) ORDER BY ...".
func parseEngine(name, full string) Engine {
	e := Engine{Name: name, Family: strings.TrimPrefix(strings.TrimPrefix(name, "Replicated"), "Shared")}
	arguments, ok := strings.CutPrefix(full, name+"(")
	if !ok {
		return e
	}
	var literals []string
	for _, argument := range splitList(arguments) {
		switch {
		case strings.HasPrefix(argument, "'"):
			literals = append(literals, unquote(argument))
		case argument != "":
			e.Columns = append(e.Columns, strings.Trim(argument, "`"))
		}
	}
	if len(literals) == 2 {
		e.Path, e.Replica = literals[0], literals[1]
	}
	return e
}

// column returns the named column; ok is false if there is none.
func (d description) column(name string) (c columnDescription, ok bool) {
	i := slices.IndexFunc(d.columns, func(c columnDescription) bool { return c.name == name })
	if i < 0 {
		return columnDescription{}, false
	}
	return d.columns[i], true
}

// extra lists the columns that are not among those wanted, in the order of the table.
func (d description) extra(wanted []chsql.Column) (names []string) {
	for _, c := range d.columns {
		if !slices.ContainsFunc(wanted, func(w chsql.Column) bool { return w.Name == c.name }) {
			names = append(names, c.name)
		}
	}
	return names
}

// unfinished tells whether an upgrade of the table is not finished, given what is beside it.
func (d description) unfinished(beside *description) bool {
	return d.mark.uuid != "" || beside != nil && beside.mark.uuid == d.uuid
}

// describe reads the tables of one database that are there, by name.
func (s *Store) describe(ctx context.Context, database string, names ...string) (map[string]*description, error) {
	found, err := query(ctx, s, statement("table.describe", chsql.Tables(database, names...)), scanDescription)
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

func scanDescription(r chconn.Row) (*description, error) {
	var (
		d                  description
		engine, sortingKey string
	)
	err := r.Scan(&d.name, &d.uuid, &engine, &d.engineFull, &sortingKey, &d.partitionKey, &d.comment)
	d.engine, d.sortingKey, d.settings = parseEngine(engine, d.engineFull), splitKey(sortingKey), parseSettings(d.engineFull)
	d.comment, d.mark = splitMark(d.comment)
	return &d, err
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

// parseSettings returns the settings that an engine clause names.
func parseSettings(engineFull string) map[string]string {
	settings := make(map[string]string)
	_, clause, ok := strings.Cut(engineFull, " SETTINGS ")
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

// splitKey splits a sorting key of plain columns. A single one may stand in parentheses.
func splitKey(key string) []string {
	if inner, ok := strings.CutPrefix(key, "("); ok {
		key = strings.TrimSuffix(inner, ")")
	}
	return strings.Split(strings.ReplaceAll(key, "`", ""), ", ")
}

// unquote returns the value of a literal as the server prints it.
func unquote(literal string) string {
	if len(literal) < 2 || literal[0] != '\'' {
		return literal
	}
	return strings.NewReplacer(`\\`, `\`, `\'`, `'`).Replace(literal[1 : len(literal)-1])
}
