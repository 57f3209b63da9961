package statestore

import (
	"context"
	"time"

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
	table, err := s.resolve(ctx, chsql.Table{Database: database, Name: name})
	if err != nil {
		return nil, err
	}
	entries, err := query(ctx, s, statement("entry.list", table.state.List(filter.query())), scanEntry)
	if err != nil {
		return nil, s.tableGone(ctx, table.state.Table, err)
	}
	return entries, nil
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
