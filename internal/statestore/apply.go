package statestore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/lock"
)

// MaxBatchRows and MaxBatchBytes bound what is written under one lock: a pipeline waits for at most 30 s, so that a
// batch has to be done well before that. The bytes are those of the payloads.
const (
	MaxBatchRows  = 10_000
	MaxBatchBytes = 64 << 20
)

// maxBatchRemovals bounds the deletes under one lock where each removes rows: a hundred of them take the server 0.1 s to
// 0.3 s.
const maxBatchRemovals = 1000

// progressInterval is how often long work tells how far it is.
const progressInterval = 5 * time.Second

// An ApplyError says what kept edits from being applied.
type ApplyError struct {
	// Errs are the errors of the batch that failed: one for each entry that refused, or the one that was about all of
	// them. At least one.
	Errs []error
	// Done is how many edits are applied, in the batches before, of Total.
	Done, Total int
}

func (e *ApplyError) Error() string {
	text := fmt.Sprintf("%d of %d entries are done; %v", e.Done, e.Total, e.Errs[0])
	if more := len(e.Errs) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more such errors)", more)
	}
	return text
}

// Unwrap returns the errors of the batch that failed.
func (e *ApplyError) Unwrap() []error { return e.Errs }

// Apply carries out edits of one table, whose state_ids must differ: in batches, in their order, each under one lock
// of all its entries and as one INSERT. It returns what was applied, by state_id; a delete leaves an entry without a
// version.
//
// A batch is applied as a whole or not at all, but for deletes in a table of Meltano's: they come first, a hundred at a
// time, and stay done. The first one that is not ends the work with an *ApplyError. Edits of
// which nobody can say whether they are stored are not among the applied ones, but have an *UncertainError there.
//
// A batch has MaxBatchRows entries at most, and MaxBatchBytes of payload unless a single entry has more. Entries that a
// Hold of this store covers form batches of their own.
func (s *Store) Apply(ctx context.Context, database, table string, edits []Edit) (map[string]Written, error) {
	work := &application{store: s, table: chsql.Table{Database: database, Name: table}, applied: make(map[string]Written, len(edits))}
	start := time.Now()
	stop := work.report(ctx, len(edits))
	defer stop()
	maxDeletes := MaxBatchRows
	if found, err := s.resolve(ctx, work.table); err == nil && !found.state.Layout.Tombstones() {
		maxDeletes = maxBatchRemovals
	}
	for left := edits; len(left) > 0; {
		var batch []Edit
		batch, left = split(left, maxDeletes)
		if errs := work.apply(ctx, batch); len(errs) > 0 {
			return work.applied, &ApplyError{Errs: errs, Done: len(work.applied), Total: len(edits)}
		}
	}
	s.logger.InfoContext(ctx, "entries applied", slog.String("table", work.table.String()), slog.Int("entries", len(edits)),
		slog.Duration("took", time.Since(start)))
	return work.applied, nil
}

// split takes the next batch off the edits.
func split(edits []Edit, maxDeletes int) (batch, left []Edit) {
	size, deletes := 0, 0
	for i, e := range edits {
		size += payloadSize(e.Completed.text) + payloadSize(e.Partial.text)
		if e.deletes() {
			deletes++
		}
		if i == MaxBatchRows || i > 0 && size > MaxBatchBytes || deletes > maxDeletes {
			return edits[:i], edits[i:]
		}
	}
	return edits, nil
}

// An application is one Apply under way.
type application struct {
	store   *Store
	table   chsql.Table
	applied map[string]Written
	// done counts the edits that are applied, for the log.
	done atomic.Int64
}

// apply applies one batch, or returns what kept it from being applied.
func (a *application) apply(ctx context.Context, batch []Edit) []error {
	tasks, deletes := make([]task, len(batch)), 0
	for i, e := range batch {
		tasks[i] = a.store.task(a.at(e), e)
		if e.deletes() {
			deletes++
		}
	}
	outcomes, err := a.store.write(ctx, a.table, "entries.apply", tasks, together)
	switch {
	case errors.Is(err, lock.ErrPartlyHeld):
		return a.applyParts(ctx, batch)
	case errors.As(err, new(*NoTableError)) && deletes == len(batch):
		outcomes = make([]outcome, len(batch)) // Nothing can be in a table that is gone.
	case err != nil:
		return []error{err}
	}
	return a.take(batch, outcomes)
}

func (a *application) at(e Edit) Address {
	return Address{Database: a.table.Database, Table: a.table.Name, StateID: e.StateID}
}

// take takes note of what became of a batch. Where an edit refused, none of the others was written either.
func (a *application) take(batch []Edit, outcomes []outcome) (errs []error) {
	refused := false
	for _, result := range outcomes {
		if result.err != nil {
			errs = append(errs, result.err)
			refused = refused || !errors.As(result.err, new(*UncertainError))
		}
	}
	for i, e := range batch {
		if outcomes[i].done || outcomes[i].err == nil && !refused {
			a.applied[e.StateID] = e.written(outcomes[i])
		}
	}
	a.done.Store(int64(len(a.applied)))
	return errs
}

// applyParts applies a batch of which a Hold covers some entries.
func (a *application) applyParts(ctx context.Context, batch []Edit) []error {
	table, err := a.store.lockable(ctx, a.table)
	if err != nil {
		return []error{err}
	}
	byID, ids := make(map[string]Edit, len(batch)), make([]string, len(batch))
	for i, e := range batch {
		byID[e.StateID], ids[i] = e, e.StateID
	}
	for _, part := range a.store.locker.Parts(table.lock, ids) {
		edits := make([]Edit, len(part))
		for i, id := range part {
			edits[i] = byID[id]
		}
		if errs := a.apply(ctx, edits); len(errs) > 0 {
			return errs
		}
	}
	return nil
}

// report tells now and then how far the work is, until it is stopped.
func (a *application) report(ctx context.Context, total int) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ticks := time.NewTicker(progressInterval)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-ticks.C:
				a.store.logger.InfoContext(ctx, "applying entries", slog.String("table", a.table.String()),
					slog.Int64("done", a.done.Load()), slog.Int("total", total))
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		ticks.Stop()
		cancel()
		<-ended
	}
}
