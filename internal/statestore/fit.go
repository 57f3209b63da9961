package statestore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
)

// A Layout is the shape of a state table or of a lock table.
type Layout string

const (
	// LayoutVersioned is the state table with a version and an is_deleted column.
	LayoutVersioned Layout = "versioned"
	// LayoutMeltano is a table as Meltano makes it.
	LayoutMeltano Layout = "meltano"
	// LayoutStrict is the lock table ordered by (state_id, lock_id).
	LayoutStrict Layout = "strict"
)

// TableLayouts lists the layouts of state tables.
func TableLayouts() []Layout { return []Layout{LayoutVersioned, LayoutMeltano} }

// LockLayouts lists the layouts of lock tables.
func LockLayouts() []Layout { return []Layout{LayoutStrict, LayoutMeltano} }

// state returns what statements have to know of the layout.
func (l Layout) state() *chsql.Layout {
	if l == LayoutMeltano {
		return chsql.Meltano
	}
	return chsql.Versioned
}

// lockLayout names the shape of a lock table.
func lockLayout(strict bool) Layout {
	if strict {
		return LayoutStrict
	}
	return LayoutMeltano
}

// misfits are the things that do not fit, each with what would fix it.
type misfits []string

func (m *misfits) add(format string, args ...any) { *m = append(*m, fmt.Sprintf(format, args...)) }

// err returns an *UnfitError, or nil if all fits.
func (m misfits) err(name chsql.Table) error {
	if len(m) == 0 {
		return nil
	}
	return &UnfitError{Database: name.Database, Table: name.Name, Reasons: m}
}

// checkState tells the layout of a state table, and lists what does not fit in it.
func (m *misfits) checkState(d *description) Layout {
	// What has no version and is ordered by updated_at is measured by what Meltano makes.
	layout := LayoutVersioned
	if _, versioned := d.column("version"); !versioned && slices.Equal(d.engine.Columns, chsql.Meltano.Arguments) {
		layout = LayoutMeltano
	}
	const what = "the state table"
	m.checkEngine(d, what, layout.state().Arguments)
	m.checkKeys(d, what, "state_id")
	m.checkColumns(d, what, layout.state().Columns)
	return layout
}

// checkLock lists what does not fit in a lock table, and tells its shape.
func (m *misfits) checkLock(d *description) (strict, holder bool) {
	what := "the lock table " + d.name
	strict = slices.Equal(d.sortingKey, []string{"state_id", "lock_id"})
	m.checkEngine(d, what, []string{"locked_at"})
	if strict {
		m.checkKeys(d, what, "state_id", "lock_id")
	} else {
		m.checkKeys(d, what, "state_id")
	}
	m.checkColumns(d, what, chsql.LockColumns())
	_, holder = d.column("holder")
	return strict, holder
}

func (m *misfits) checkEngine(d *description, what string, arguments []string) {
	if d.engine.Family != "ReplacingMergeTree" || !slices.Equal(d.engine.Columns, arguments) {
		m.add("%s has the engine %s, but ReplacingMergeTree(%s) is needed; an engine cannot be altered, so copy the rows into a new table",
			what, strings.TrimSpace(firstClause(d.engineFull)), strings.Join(arguments, ", "))
	}
}

func (m *misfits) checkKeys(d *description, what string, sortingKey ...string) {
	if !slices.Equal(d.sortingKey, sortingKey) {
		m.add("%s is ordered by (%s), but ORDER BY (%s) is needed; copy the rows into a new table",
			what, strings.Join(d.sortingKey, ", "), strings.Join(sortingKey, ", "))
	}
	if d.partitionKey != "" {
		m.add("%s is partitioned by %s: versions of one state_id in two partitions never collapse; copy the rows into a table without PARTITION BY",
			what, d.partitionKey)
	}
}

// checkColumns checks that columns are there, with their types and with the defaults that Meltano's rows need.
// Others may be there as well.
func (m *misfits) checkColumns(d *description, what string, wanted []chsql.Column) {
	for _, want := range wanted {
		c, ok := d.column(want.Name)
		switch {
		case !ok:
			m.add("%s has no column %s; ALTER TABLE ... ADD COLUMN does, where the column is no part of the engine", what, want)
		case c.kind != want.Type:
			m.add("column %s of %s is %s, but %s is needed; copy the rows into a new table", want.Name, what, c.kind, want.Type)
		case c.defaultExpression == "" && want.Default == "0":
			// That is the type's own default.
		case want.Default != "" && (c.defaultKind != "DEFAULT" || c.defaultExpression != want.Default):
			m.add("column %s of %s has no DEFAULT %s, so rows that Meltano writes, which leave it out, stay hidden or come out of order; ALTER TABLE ... MODIFY COLUMN %s",
				want.Name, what, want.Default, want)
		}
	}
}

// firstClause is an engine clause up to its first key.
func firstClause(engineFull string) string {
	clause := engineFull
	for _, keyword := range []string{" PARTITION BY ", " PRIMARY KEY ", " ORDER BY "} {
		clause, _, _ = strings.Cut(clause, keyword)
	}
	return clause
}
