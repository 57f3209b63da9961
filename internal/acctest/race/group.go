package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/lock"
)

// groupContender increments several counters in one fenced write, under one lock of them all: what a bulk write does. It
// stands directly on package lock.
type groupContender struct {
	spec    workerSpec
	journal *journal
	inject  *injector
	random  *rand.Rand
	state   chsql.StateTable
	lock    chsql.LockTable
	// lockers has a locker, and its connection, for each group, so that the query log tells which one a statement is about.
	lockers map[string]locked
}

type locked struct {
	db     *chconn.Client
	locker *lock.Locker
}

// groupSeparator joins the counters of a group in a name.
const groupSeparator = "+"

func newGroup(spec workerSpec, log *journal, inject *injector) *groupContender {
	table := chsql.Table{Database: spec.Database, Name: tableName}
	return &groupContender{
		spec: spec, journal: log, inject: inject, random: rand.New(rand.NewPCG(spec.Seed, 3)),
		state:   chsql.StateTable{Table: table, Layout: chsql.Versioned},
		lock:    chsql.LockTable{Table: chsql.Table{Database: spec.Database, Name: chsql.LockTableName(tableName)}, Strict: spec.Strict, Holder: spec.Strict},
		lockers: map[string]locked{},
	}
}

// open returns the locker of a group.
func (g *groupContender) open(group string) (locked, error) {
	if known, ok := g.lockers[group]; ok {
		return known, nil
	}
	db, err := chconn.New(connection(g.spec.Server, g.spec.HTTP, g.spec.Label+"/"+group, slog.New(&statementLog{inject: g.inject})))
	if err != nil {
		return locked{}, err
	}
	t := g.spec.Timing
	locker, err := lock.New(db, lock.Options{
		Timeout: t.Timeout, Settle: t.Settle, RetryInterval: t.Retry, Scale: &lock.Scale{Stale: t.Stale, Backdate: t.Backdate},
	})
	g.lockers[group] = locked{db, locker}
	return g.lockers[group], err
}

// increment increments the counter and one or two others, or none of them.
func (g *groupContender) increment(ctx context.Context, counter, token string) error {
	group := []string{counter}
	for len(group) < 2 || g.random.IntN(2) == 0 && len(group) < min(3, len(g.spec.Counters)) {
		if other := pick(g.random, g.spec.Counters); !slices.Contains(group, other) {
			group = append(group, other)
		}
	}
	slices.Sort(group)
	with, err := g.open(strings.Join(group, groupSeparator))
	if err != nil {
		return err
	}
	w := &groupWrite{group: g, db: with.db, token: token}
	// As a refresh does; for the trace it is where a round opens.
	refresh := query("entry.read", g.state.Live(group))
	if err := with.db.Query(ctx, refresh, func(chconn.Row) error { return nil }); err != nil {
		g.journal.write(event{Kind: ended, Counter: counter, Outcome: unwritten, Error: err.Error()})
		time.Sleep(g.spec.Timing.Retry) // no connection, most likely
		return nil                      //nolint:nilerr // The journal has it.
	}
	err = with.locker.Do(ctx, g.lock, group, func(ctx context.Context, held *lock.Held) error { return w.run(ctx, held, group) })
	unreleased := errors.As(err, new(*lock.ReleaseError))
	if unreleased {
		err = nil // the work is done
	}
	e := event{Kind: ended, Counter: counter, Outcome: outcomeOf(err), Unreleased: unreleased || errors.As(err, new(*lock.WithdrawError))}
	if err != nil {
		e.Error = err.Error()
	}
	if len(w.rows) == 0 {
		e.Outcome = unwritten
		g.journal.write(e)
		return nil
	}
	e.Token = token
	for _, r := range w.rows {
		e.Counter, e.Parent, e.Version = r.counter, r.parent, w.version
		g.journal.write(e)
	}
	return nil
}

// A groupWrite is one fenced write of several rows.
type groupWrite struct {
	group *groupContender
	db    *chconn.Client
	token string
	rows  []groupRow
	// version is what all rows are stamped with.
	version uint64
}

type groupRow struct {
	counter, parent, value string
	seen                   uint64
}

// run reads the counters under the lock and writes them all.
func (w *groupWrite) run(ctx context.Context, held *lock.Held, group []string) error {
	rows, err := w.read(ctx, group)
	if err != nil {
		return err
	}
	if len(rows) != len(group) {
		return fmt.Errorf("%d of %d counters are there", len(rows), len(group))
	}
	w.rows = rows
	for _, r := range rows {
		w.group.journal.write(event{Kind: trying, Counter: r.counter, Token: w.token, Parent: r.parent})
	}
	return held.Write(ctx, lock.Write{
		Insert: func(f chsql.Fence) chconn.Statement {
			return query("entry.update.write", w.group.state.Write(f, group, rows[0].seen), w.incoming())
		},
		Verify: func(f chsql.Fence) chconn.Statement {
			return query("entry.update.verify", w.group.state.Verify(f, group, w.version), w.incoming())
		},
		Rows: uint64(len(rows)),
	})
}

// query makes of a query what a connection runs.
func query(operation string, q chsql.Query, tables ...chconn.Table) chconn.Statement {
	if q.IDs != nil {
		ids := chconn.Table{Name: chsql.IDs, Columns: []chconn.Column{{Name: "state_id", Type: "String"}}}
		for _, id := range q.IDs {
			ids.Rows = append(ids.Rows, []any{id})
		}
		tables = append(tables, ids)
	}
	return chconn.Statement{Operation: operation, Text: q.Text, Args: q.Args, Settings: q.Settings, External: tables}
}

func (w *groupWrite) read(ctx context.Context, group []string) ([]groupRow, error) {
	rows := make(map[string]groupRow, len(group))
	live := make(map[string]uint64, len(group))
	err := w.db.Query(ctx, query("entry.update.newest", w.group.state.Newest(group)), func(r chconn.Row) error {
		var (
			kind               uint8
			id                 string
			version, buried    uint64
			completed, partial *string
			micros             int64
		)
		if err := r.Scan(&kind, &id, &version, &buried, &completed, &partial, &micros); err != nil {
			return err
		}
		row := rows[id]
		switch kind {
		case chsql.NewestClock:
			w.version = max(w.version, uint64(micros))
			return nil
		case chsql.NewestStored:
			row.counter, row.seen = id, version
			w.version = max(w.version, version+1)
		case chsql.NewestLive:
			if completed == nil {
				return fmt.Errorf("counter %s is empty", id)
			}
			value, err := parseTally(*completed)
			if err != nil {
				return err
			}
			live[id] = version
			row.parent, row.value = value.Last, value.next(w.group.spec.Label, w.token).JSON()
		}
		rows[id] = row
		return nil
	})
	for id, row := range rows {
		if live[id] != row.seen {
			return nil, errors.Join(err, fmt.Errorf("counter %s was written while it was read", id)) // by a peer that is late
		}
	}
	return slices.Collect(maps.Values(rows)), err
}

// incoming are the rows of the write; see chsql.StateTable.Write.
func (w *groupWrite) incoming() chconn.Table {
	incoming := chconn.Table{Name: chsql.Incoming, Columns: []chconn.Column{
		{Name: "state_id", Type: "String"},
		{Name: "partial_state", Type: "Nullable(String)"},
		{Name: "completed_state", Type: "Nullable(String)"},
		{Name: "updated_at", Type: "DateTime64(3)"},
		{Name: "version", Type: "UInt64"},
		{Name: "is_deleted", Type: "UInt8"},
		{Name: "seen", Type: "UInt64"},
	}}
	for _, r := range w.rows {
		incoming.Rows = append(incoming.Rows, []any{
			r.counter, (*string)(nil), &r.value, time.UnixMicro(int64(w.version)).UTC(), w.version, uint8(0), r.seen,
		})
	}
	return incoming
}
