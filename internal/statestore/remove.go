package statestore

import (
	"context"
	"errors"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/lock"
)

// remove takes the deletes out of a batch and carries them out, where they are no rows that can be written. They
// come first: when what is left of the batch has to start again, they are found done.
func (s *Store) remove(ctx context.Context, held *lock.Held, w *batch) error {
	if w.table.state.Layout.Tombstones() {
		return nil
	}
	var rest []row
	doomed := batch{table: w.table, operation: w.operation, outcomes: w.outcomes}
	for _, r := range w.rows {
		if r.deleted {
			doomed.rows = append(doomed.rows, r)
		} else {
			rest = append(rest, r)
		}
	}
	w.rows = rest
	for len(doomed.rows) > 0 {
		ids := doomed.ids()
		part := doomed
		part.rows = doomed.rows[:chsql.Removable(ids)]
		if err := s.removePart(ctx, held, &part); err != nil {
			return err
		}
		doomed.rows = doomed.rows[len(part.rows):]
	}
	return nil
}

// removePart removes as many entries as one statement can name. After an error, none of the parts that follow is tried.
func (s *Store) removePart(ctx context.Context, held *lock.Held, w *batch) error {
	ids, seen := w.ids(), make([]uint64, len(w.rows))
	for i, r := range w.rows {
		seen[i] = r.seen
	}
	err := held.Write(ctx, lock.Write{
		Insert: func(f chsql.Fence) chconn.Statement {
			return statement(w.operation+".remove", w.table.state.Remove(f, ids, seen))
		},
		Verify: func(f chsql.Fence) chconn.Statement {
			return statement(w.operation+".verify", w.table.state.VerifyRemoved(f, ids, seen))
		},
		Rows:    uint64(len(ids)),
		Removes: true,
	})
	var uncertain *lock.UncertainError
	if errors.As(err, &uncertain) {
		s.uncertain(ctx, w, ids, uncertain)
	}
	if err != nil {
		return err
	}
	for _, r := range w.rows {
		w.outcomes[r.task] = outcome{Written: Written{Entry: r.Entry}, done: true}
	}
	return nil
}

// ids are the state_ids of a batch.
func (w *batch) ids() []string {
	ids := make([]string, len(w.rows))
	for i, r := range w.rows {
		ids[i] = r.StateID
	}
	return ids
}
