package statestore

import (
	"context"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
)

// A Filter says which entries List returns.
type Filter struct {
	// Pattern is a glob that the whole state_id has to match: * is any number of characters, ? is one, everything else
	// is itself. "*" is every entry.
	Pattern string
	// UpdatedAfter and UpdatedBefore are instants that updated_at has to lie between, both excluded. The zero time is
	// no bound.
	UpdatedAfter, UpdatedBefore time.Time
	// Limit is how many entries are returned at most, the first ones. Zero is no limit.
	Limit int
}

// List returns the live entries of a table that a filter lets through, in the order of their state_ids; none is no
// error. It is one query, and takes no lock. It returns a *NoTableError if there is no table.
func (s *Store) List(ctx context.Context, database, name string, filter Filter) ([]Entry, error) {
	var entries []Entry
	if err := s.EachMatch(ctx, database, name, filter, func(e Entry) { entries = append(entries, e) }); err != nil {
		return nil, err
	}
	return entries, nil
}

// EachMatch hands what List returns to a function, entry by entry as they arrive. The function must not use the store.
func (s *Store) EachMatch(ctx context.Context, database, name string, filter Filter, each func(Entry)) error {
	list := func(t chsql.StateTable) chsql.Query { return t.List(filter.query()) }
	return s.each(ctx, chsql.Table{Database: database, Name: name}, "entry.list", list, each)
}

// Each hands the live ones of the entries to a function, in the order of their state_ids, as they arrive. It is one
// query, and takes no lock. The function must not use the store. It returns a *NoTableError if there is no table.
func (s *Store) Each(ctx context.Context, database, name string, stateIDs []string, each func(Entry)) error {
	live := func(t chsql.StateTable) chsql.Query { return t.Live(stateIDs) }
	return s.each(ctx, chsql.Table{Database: database, Name: name}, "entries.read", live, each)
}

func (s *Store) each(ctx context.Context, name chsql.Table, operation string, read func(chsql.StateTable) chsql.Query, each func(Entry)) error {
	table, err := s.resolve(ctx, name)
	if err != nil {
		return err
	}
	err = s.db.Query(ctx, statement(operation, read(table.state)), func(r chconn.Row) error {
		entry, err := scanEntry(r)
		if err == nil {
			each(entry)
		}
		return err
	})
	return s.tableGone(ctx, name, err)
}

// query rounds the bounds to the milliseconds that updated_at has, such that no entry changes sides.
func (f Filter) query() chsql.Filter {
	q := chsql.Filter{Glob: f.Pattern, Limit: f.Limit}
	if !f.UpdatedAfter.IsZero() {
		after := f.UpdatedAfter.UnixMilli()
		q.After = &after
	}
	if !f.UpdatedBefore.IsZero() {
		before := f.UpdatedBefore.Add(time.Millisecond - time.Nanosecond).UnixMilli()
		q.Before = &before
	}
	return q
}
