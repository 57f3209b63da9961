package statestore

import (
	"context"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
)

// Match returns the state_ids of the live entries that a pattern matches, sorted; see Filter. It takes no lock. It
// returns a *NoTableError if there is no table.
func (s *Store) Match(ctx context.Context, database, name, pattern string) ([]string, error) {
	table, err := s.resolve(ctx, chsql.Table{Database: database, Name: name})
	if err != nil {
		return nil, err
	}
	ids, err := query(ctx, s, statement("entries.match", table.state.Match(pattern)), func(r chconn.Row) (id string, err error) { return id, r.Scan(&id) })
	return ids, s.tableGone(ctx, table.state.Table, err)
}

// Clear deletes the live entries that a pattern matches, whatever they hold when their turn comes, and returns them as
// Apply does, whose batches and errors it has. What is stored under a new state_id meanwhile stays.
func (s *Store) Clear(ctx context.Context, database, name, pattern string) (map[string]Written, error) {
	ids, err := s.Match(ctx, database, name, pattern)
	if err != nil {
		return nil, err
	}
	edits := make([]Edit, len(ids))
	for i, id := range ids {
		edits[i] = Edit{StateID: id, Verb: EditClear}
	}
	return s.Apply(ctx, database, name, edits)
}
