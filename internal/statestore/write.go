package statestore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/lock"
)

// stored is what a write has read of a state_id inside the lock.
type stored struct {
	// entry is the live one. Where nobody needs its payload, it may have no more than its state_id and version.
	entry Entry
	live  bool
	// known tells whether any row was found, be it a tombstone.
	known bool
	// newest is the newest version of any row, tombstones included; tied says that only FINAL tells whether it is a
	// tombstone's: other rows have the same, or it is 0, which also stands for none.
	newest uint64
	tied   bool
	// now is the server's time, in Unix microseconds.
	now uint64
}

// moved says what is stored instead of the version that was expected.
func (s stored) moved(at Address, expect uint64) error {
	return &MovedError{Address: at, Planned: expect, Found: s.newest, Gone: !s.live}
}

// A change is the next version of an entry.
type change struct {
	// none: nothing is to be written. With takes, what is stored has found another owner in this store.
	none, takes        bool
	deleted            bool
	completed, partial *string
}

// A task is one entry that a write is about. Decide says what is to become of it, given what is stored; it may be
// asked again, if a pipeline wrote meanwhile.
type task struct {
	id string
	// versionsOnly says that neither Decide nor its outcome needs the payload of a live entry.
	versionsOnly bool
	decide       func(stored) (change, error)
}

// An outcome is what became of a task: its error, or what is stored now. With an error and nothing done, nothing was
// written for it, unless that is an *UncertainError.
type outcome struct {
	Written
	// done tells that it was written, or removed; unwritten that nothing had to be; takes is that of its change.
	done, unwritten, takes bool
	// live tells whether the entry is live now.
	live bool
	err  error
}

// rereads bounds how often a write starts again because a pipeline, which nothing fences, wrote meanwhile. After a reading
// whose halves did not fit together comes a pause.
const (
	rereads     = 5
	rereadPause = 200 * time.Millisecond
)

// A manner is how the tasks of a write belong together.
type manner int

const (
	// each: a task that refuses has that error in its outcome, and the others are written.
	each manner = iota
	// eachNow is each, but does not wait for a lock that somebody holds.
	eachNow
	// together: a task that refuses keeps all from being written. The others' outcomes are empty then.
	together
)

// write changes entries of one table under one lock of them all: it reads what is stored, asks each task what is
// to become of it, and writes that as one INSERT, unless something newer is stored by then. The outcomes are in
// the order of the tasks, whose ids must differ. An error instead of outcomes is about all of them, and nothing
// was written. Where a delete leaves no row, deletes come first, in statements of their own: then some tasks may be done
// and others have an error, together or not.
func (s *Store) write(ctx context.Context, at chsql.Table, operation string, tasks []task, how manner) (outcomes []outcome, err error) {
	table, err := s.lockable(ctx, at)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(tasks))
	for i, t := range tasks {
		ids[i] = t.id
	}
	do := s.locker.Do
	if how == eachNow {
		do = s.locker.Try
	}
	err = do(ctx, table.lock, ids, func(ctx context.Context, held *lock.Held) error {
		w := batch{table: table, operation: operation, outcomes: make([]outcome, len(tasks))}
		outcomes = w.outcomes
		for attempt := 1; ; attempt++ {
			found, err := s.newest(ctx, table, ids, tasks, operation)
			if err != nil {
				return err
			}
			refused := w.plan(tasks, found)
			if refused && how == together {
				return nil
			}
			if len(w.rows) > 0 {
				err = s.put(ctx, held, &w)
			}
			if !errors.Is(err, lock.ErrMoved) || attempt == rereads {
				err = w.end(err)
				s.manage(at, outcomes)
				return err
			}
		}
	})
	var unreleased *lock.ReleaseError
	if errors.As(err, &unreleased) {
		for i := range outcomes {
			outcomes[i].Unreleased = unreleased
		}
		err = nil
	}
	if err != nil {
		return nil, s.tableGone(ctx, at, err)
	}
	return outcomes, nil
}

// newest reads what is stored of the ids, which tasks are about, until the versions and the payloads, which are read one
// after the other, fit together. They may not where somebody writes meanwhile, or where another replica answers.
func (s *Store) newest(ctx context.Context, table resolved, ids []string, tasks []task, operation string) (map[string]stored, error) {
	for attempt := 1; ; attempt++ {
		var torn []string
		found, err := s.versions(ctx, table, ids, operation)
		if err == nil {
			torn, err = s.payloads(ctx, table, tasks, found, operation)
		}
		switch {
		case err != nil:
			return nil, err
		case len(torn) == 0:
			return found, nil
		case attempt == rereads:
			return nil, fmt.Errorf("%s: state_id %q in %s is written all the time by a client that holds no lock, or replicas of the table "+
				"lag behind each other: let the pipeline end, or set the provider's quorum, and try again", operation, torn[0], table.state)
		}
		select {
		case <-time.After(rereadPause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// versions reads the newest version of each entry, and whether it is a live one.
func (s *Store) versions(ctx context.Context, table resolved, ids []string, operation string) (map[string]stored, error) {
	found := make(map[string]stored, len(ids))
	var now uint64
	err := s.db.Query(ctx, statement(operation+".newest", table.state.Versions(ids)), func(r chconn.Row) error {
		var (
			id            string
			alive, buried uint64
			micros        int64
		)
		if err := r.Scan(&id, &alive, &buried, &micros); err != nil {
			return err
		}
		if micros > 0 {
			now = uint64(micros)
			return nil
		}
		found[id] = stored{live: alive > buried, known: true, newest: max(alive, buried), tied: alive == buried}
		return nil
	})
	for _, id := range ids {
		one := found[id]
		one.now, one.entry.StateID = now, id
		if one.live {
			one.entry.Version = one.newest
		}
		found[id] = one
	}
	return found, err
}

// payloads adds what FINAL shows of the live entries whose tasks look at payloads, and of those of which nothing else tells
// whether they are live. Torn are those of which it shows another version than was found: somebody has just written.
func (s *Store) payloads(ctx context.Context, table resolved, tasks []task, found map[string]stored, operation string) (torn []string, err error) {
	var ids []string
	for _, t := range tasks {
		if one := found[t.id]; one.tied || one.live && !t.versionsOnly {
			ids = append(ids, t.id)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	entries, err := query(ctx, s, statement(operation+".live", table.state.Live(ids)), scanEntry)
	shown := make(map[string]Entry, len(entries))
	for _, e := range entries {
		shown[e.StateID] = e
	}
	for _, id := range ids {
		one := found[id]
		entry, live := shown[id]
		if live && entry.Version != one.newest || !live && !one.tied {
			torn = append(torn, id)
		}
		one.live, one.entry = live, Entry{StateID: id}
		if live {
			one.entry = entry
		}
		found[id] = one
	}
	return torn, err
}

// A batch is one INSERT of several entries.
type batch struct {
	table     resolved
	operation string
	// outcomes are those of all tasks; rows are the ones that are written.
	outcomes []outcome
	rows     []row
}

// A row is the next version of an entry.
type row struct {
	// task is the index of its task.
	task int
	Entry
	deleted bool
	// seen is the newest version that was stored, if known; ahead is how far ours lies ahead of the server's clock.
	seen  uint64
	known bool
	ahead time.Duration
}

// plan asks the tasks what is to be written, but for those that were done before. It reports whether one of them refused.
func (w *batch) plan(tasks []task, found map[string]stored) (refused bool) {
	w.rows = nil
	for i, t := range tasks {
		if w.outcomes[i].done {
			continue
		}
		w.outcomes[i] = outcome{}
		now := found[t.id]
		next, err := t.decide(now)
		var stamp uint64
		if err == nil && !next.none {
			stamp, err = now.stamp(w.table.state.Layout)
		}
		switch {
		case err != nil:
			w.outcomes[i].err, refused = err, true
		case next.none:
			w.outcomes[i] = outcome{Written: Written{Entry: now.entry}, unwritten: true, live: now.live, takes: next.takes}
		default:
			w.rows = append(w.rows, row{
				task: i,
				Entry: Entry{
					StateID:   t.id,
					Completed: next.completed,
					Partial:   next.partial,
					Version:   stamp,
					UpdatedAt: w.table.state.Layout.Time(stamp).Truncate(time.Millisecond),
				},
				deleted: next.deleted,
				seen:    now.newest,
				known:   now.known,
				ahead:   w.table.state.Layout.Time(stamp).Sub(time.UnixMicro(int64(now.now))),
			})
		}
	}
	return refused
}

// end hands an error to the tasks that it kept from being done, if others are done or uncertain. Else it is about all of
// them, and end returns it.
func (w *batch) end(err error) error {
	if err == nil || !slices.ContainsFunc(w.outcomes, func(o outcome) bool { return o.done || errors.As(o.err, new(*UncertainError)) }) {
		return err
	}
	for i, o := range w.outcomes {
		if !o.done && !o.unwritten && o.err == nil {
			w.outcomes[i].err = fmt.Errorf("not tried any more: %w", err)
		}
	}
	return nil
}

// put writes the rows of a batch over what was read. It returns an error for those that have none of their own.
func (s *Store) put(ctx context.Context, held *lock.Held, w *batch) error {
	size := 0
	for _, r := range w.rows {
		size += payloadSize(r.Completed) + payloadSize(r.Partial)
	}
	if size > maxPayload || len(w.rows) > chsql.MaxBlockRows {
		return fmt.Errorf("%s: %d entries of %s with %d bytes, but the server stores at most %d bytes and %d entries as one block",
			w.operation, len(w.rows), w.table.state, size, maxPayload, chsql.MaxBlockRows)
	}
	if err := s.remove(ctx, held, w); err != nil || len(w.rows) == 0 {
		return err
	}
	ids, limits, versions := w.ids(), make([]uint64, len(w.rows)), make([]uint64, len(w.rows))
	for i, r := range w.rows {
		versions[i] = r.Version
		if r.known {
			limits[i] = r.seen + 1
		}
	}
	err := held.Write(ctx, lock.Write{
		Insert: func(f chsql.Fence) chconn.Statement {
			return statement(w.operation+".write", w.table.state.Write(f, ids, limits), w.incoming())
		},
		Verify: func(f chsql.Fence) chconn.Statement {
			return statement(w.operation+".verify", w.table.state.Verify(f, ids, versions))
		},
		Rows: uint64(len(ids)),
	})
	var uncertain *lock.UncertainError
	if errors.As(err, &uncertain) {
		s.uncertain(ctx, w, ids, uncertain)
		return nil
	}
	if err != nil {
		return err
	}
	for _, r := range w.rows {
		w.outcomes[r.task] = outcome{Written: Written{Entry: r.Entry}, done: true, live: !r.deleted}
		if r.ahead > time.Second {
			w.outcomes[r.task].Ahead = r.ahead
		}
	}
	return nil
}

// maxPayload is how many bytes of payload one write may carry: beyond a block, an INSERT is not atomic.
const maxPayload = chsql.MaxBlockBytes - 1<<20

func payloadSize(payload *string) int {
	if payload == nil {
		return 0
	}
	return len(*payload)
}

// lastInstant is the last one that a version may stand for: updated_at, the same instant, is a DateTime64, which
// ends with the year 2299.
var lastInstant = time.Date(2299, 12, 31, 23, 59, 59, 0, time.UTC)

// stamp is the version of the next write: the server's time, or one more than what is stored.
func (s stored) stamp(layout *chsql.Layout) (uint64, error) {
	if s.newest >= layout.Version(lastInstant) {
		return 0, fmt.Errorf("version %d is stored, which no later version can follow; delete that row by hand", s.newest)
	}
	return max(layout.Version(time.UnixMicro(int64(s.now))), s.newest+1), nil
}

// uncertain looks up what is stored now, for the errors of a write of which nobody can say what became of it.
func (s *Store) uncertain(ctx context.Context, w *batch, ids []string, cause error) {
	found, err := s.versions(context.WithoutCancel(ctx), w.table, ids, "entry.uncertain")
	for _, r := range w.rows {
		at := Address{Database: w.table.state.Database, Table: w.table.state.Name, StateID: r.StateID}
		result := &UncertainError{Address: at, Stamp: r.Version, Removed: r.deleted && !w.table.state.Layout.Tombstones(), Err: cause}
		if err == nil {
			result.Stored = found[r.StateID].newest
		}
		w.outcomes[r.task].err = result
	}
}

// incoming carries the rows of a batch; see chsql.StateTable.Write.
func (w *batch) incoming() chconn.Table {
	table := chconn.Table{
		Name: chsql.Incoming,
		Columns: []chconn.Column{
			{Name: "state_id", Type: "String"},
			{Name: "partial_state", Type: "Nullable(String)"},
			{Name: "completed_state", Type: "Nullable(String)"},
			{Name: "updated_at", Type: "DateTime64(3)"},
			{Name: "version", Type: "UInt64"},
			{Name: "is_deleted", Type: "UInt8"},
		},
		Rows: make([][]any, len(w.rows)),
	}
	for i, r := range w.rows {
		var isDeleted uint8
		if r.deleted {
			isDeleted = 1
		}
		table.Rows[i] = []any{r.StateID, r.Partial, r.Completed, r.UpdatedAt, r.Version, isDeleted}
	}
	return table
}
