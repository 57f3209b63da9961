// Package meltano is Meltano's ClickHouse state backend as its tables see it: the statements that it sends, in the order
// in which it sends them, and its JSON. The tests contend with it.
//
// It is a peer, not a model of good manners: what Meltano's protocol gets wrong, this package gets wrong in the same way.
// It talks to the server by the driver itself, so that nothing of the product is in it.
package meltano

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// A Step is one statement of the protocol.
type Step string

// The steps, each with what it sends. S is the state table, L the lock table.
const (
	// StepGet: SELECT partial_state, completed_state FROM S FINAL WHERE state_id = ? LIMIT 1
	StepGet Step = "get"
	// StepSet: INSERT INTO S (state_id, partial_state, completed_state), one row as a block
	StepSet Step = "set"
	// StepDelete: DELETE FROM S WHERE state_id = ?
	StepDelete Step = "delete"
	// StepCount: SELECT count() FROM S FINAL
	StepCount Step = "count"
	// StepTruncate: TRUNCATE TABLE S
	StepTruncate Step = "truncate"
	// StepList: SELECT DISTINCT state_id FROM S FINAL WHERE state_id LIKE ?
	StepList Step = "list"
	// StepHolder: SELECT lock_id FROM L FINAL WHERE state_id = ? ORDER BY lock_id LIMIT 1
	StepHolder Step = "holder"
	// StepSweep: DELETE FROM L WHERE locked_at < now() - 300
	StepSweep Step = "sweep"
	// StepClaim: INSERT INTO L (state_id, lock_id), one row as a block
	StepClaim Step = "claim"
	// StepDecide: SELECT lock_id FROM L WHERE state_id = ?, after the settle
	StepDecide Step = "decide"
	// StepWithdraw: DELETE FROM L WHERE state_id = ? AND lock_id = ?
	StepWithdraw Step = "withdraw"
	// StepRelease: the same statement as StepWithdraw
	StepRelease Step = "release"
)

// ErrLocked is what Meltano raises when it has waited for a lock for as long as it does.
var ErrLocked = errors.New("could not acquire lock")

// ErrNoState is Meltano's None: no row.
var ErrNoState = errors.New("no state")

// Options are a backend's constants; the zero value is what Meltano has.
type Options struct {
	// Database and Table are where the state lies. Default: meltano and state.
	Database, Table string
	// Settle is the pause between a claim and the decision. Default 1 s.
	Settle time.Duration
	// Retry is the pause between two tries. Default 1 s.
	Retry time.Duration
	// Timeout bounds the tries: Meltano counts the pauses alone. Default 30 s.
	Timeout time.Duration
	// StaleAfter is the age in seconds at which claims are swept away. Default 300.
	StaleAfter int
	// Stall is called after each step, before the next; it may sleep, or end the process.
	Stall func(after Step)
	// Comment names a statement for the server's query log (log_comment). Nil: no comment, as Meltano.
	Comment func(Step) string
}

// Backend is one process of Meltano's. Its methods may be called by one goroutine at a time.
type Backend struct {
	conn    driver.Conn
	options Options
	// state and lock are the quoted names.
	state, lock string
}

// New returns a backend. It makes no tables, unlike Meltano's, which does so at once: see [Backend.CreateTables].
func New(conn driver.Conn, options Options) *Backend {
	options.Database = orDefault(options.Database, "meltano")
	options.Table = orDefault(options.Table, "state")
	options.Settle = orDefault(options.Settle, time.Second)
	options.Retry = orDefault(options.Retry, time.Second)
	options.Timeout = orDefault(options.Timeout, 30*time.Second)
	options.StaleAfter = orDefault(options.StaleAfter, 300)
	if options.Stall == nil {
		options.Stall = func(Step) {}
	}
	return &Backend{
		conn:    conn,
		options: options,
		state:   quote(options.Database) + "." + quote(options.Table),
		lock:    quote(options.Database) + "." + quote(options.Table+"_lock"),
	}
}

func orDefault[T comparable](value, byDefault T) T {
	var zero T
	if value == zero {
		return byDefault
	}
	return value
}

func quote(name string) string {
	return "`" + strings.NewReplacer("\\", "\\\\", "`", "\\`").Replace(name) + "`"
}

// CreateTables does what Meltano does when it starts: it makes the database and both tables, unless they are there.
func (b *Backend) CreateTables(ctx context.Context) error {
	for _, statement := range []string{
		"CREATE DATABASE IF NOT EXISTS " + quote(b.options.Database),
		`CREATE TABLE IF NOT EXISTS ` + b.state + ` (
			state_id String,
			partial_state Nullable(String),
			completed_state Nullable(String),
			updated_at DateTime64(3) DEFAULT now64(3)
		) ENGINE = ReplacingMergeTree(updated_at)
		ORDER BY state_id`,
	} {
		if err := b.conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("create tables: %w", err)
		}
	}
	return b.CreateLockTable(ctx)
}

// CreateLockTable makes the lock table alone, unless it is there. The TTL is always Meltano's 300 s.
func (b *Backend) CreateLockTable(ctx context.Context) error {
	err := b.conn.Exec(ctx, `CREATE TABLE IF NOT EXISTS `+b.lock+` (
			state_id String,
			lock_id String,
			locked_at DateTime DEFAULT now()
		) ENGINE = ReplacingMergeTree(locked_at)
		ORDER BY state_id
		TTL locked_at + INTERVAL 300 SECOND`)
	if err != nil {
		return fmt.Errorf("create lock table: %w", err)
	}
	return nil
}

// A State is what Meltano keeps of one state_id: two JSON objects. Nil and empty are the same.
type State struct {
	Completed, Partial map[string]any
}

// Set stores a state. It takes no lock: callers do.
func (b *Backend) Set(ctx context.Context, stateID string, state State) error {
	return b.insert(ctx, StepSet, b.state, []string{"state_id", "partial_state", "completed_state"},
		stateID, payload(state.Partial), payload(state.Completed))
}

// payload is the column's value: an empty object is stored as NULL.
func payload(object map[string]any) *string {
	if len(object) == 0 {
		return nil
	}
	text := Dumps(object)
	return &text
}

// Get reads a state; its numbers are [json.Number]. It returns ErrNoState where there is no row.
func (b *Backend) Get(ctx context.Context, stateID string) (State, error) {
	var state State
	found := false
	err := b.query(ctx, StepGet, func(rows driver.Rows) error {
		found = true
		var partial, completed *string
		if err := rows.Scan(&partial, &completed); err != nil {
			return err
		}
		var err error
		if state.Partial, err = loads(partial); err != nil {
			return err
		}
		state.Completed, err = loads(completed)
		return err
	}, "SELECT partial_state, completed_state FROM "+b.state+" FINAL WHERE state_id = ? LIMIT 1", stateID)
	if err == nil && !found {
		err = fmt.Errorf("get %q: %w", stateID, ErrNoState)
	}
	return state, err
}

// loads reads a payload. NULL and the empty text are an empty object.
func loads(text *string) (map[string]any, error) {
	object := map[string]any{}
	if text == nil || *text == "" {
		return object, nil
	}
	decoder := json.NewDecoder(strings.NewReader(*text))
	decoder.UseNumber()
	err := decoder.Decode(&object)
	return object, err
}

// Delete removes a state, every version of it.
func (b *Backend) Delete(ctx context.Context, stateID string) error {
	return b.exec(ctx, StepDelete, "DELETE FROM "+b.state+" WHERE state_id = ?", stateID)
}

// ClearAll removes everything and returns how many states there were. It takes no lock.
func (b *Backend) ClearAll(ctx context.Context) (count uint64, err error) {
	err = b.query(ctx, StepCount, func(rows driver.Rows) error { return rows.Scan(&count) }, "SELECT count() FROM "+b.state+" FINAL")
	if err != nil {
		return 0, err
	}
	return count, b.exec(ctx, StepTruncate, "TRUNCATE TABLE "+b.state)
}

// List returns the state_ids that a glob pattern matches, in no order; "" matches all. As in Meltano, `_` and `%` in the
// pattern stay wildcards of LIKE.
func (b *Backend) List(ctx context.Context, pattern string) ([]string, error) {
	text, args := "SELECT DISTINCT state_id FROM "+b.state+" FINAL", []any{}
	if pattern != "" && pattern != "*" {
		text += " WHERE state_id LIKE ?"
		args = append(args, strings.NewReplacer("*", "%", "?", "_").Replace(pattern))
	}
	var ids []string
	err := b.query(ctx, StepList, func(rows driver.Rows) error {
		var id string
		err := rows.Scan(&id)
		ids = append(ids, id)
		return err
	}, text, args...)
	return ids, err
}

// comment adds the step's comment to the context of a statement.
func (b *Backend) comment(ctx context.Context, step Step) context.Context {
	if b.options.Comment == nil {
		return ctx
	}
	return clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"log_comment": b.options.Comment(step)}))
}

// after ends a step.
func (b *Backend) after(step Step, err error) error {
	b.options.Stall(step)
	if err != nil {
		return fmt.Errorf("%s: %w", step, err)
	}
	return nil
}

func (b *Backend) exec(ctx context.Context, step Step, text string, args ...any) error {
	return b.after(step, b.conn.Exec(b.comment(ctx, step), text, args...))
}

func (b *Backend) query(ctx context.Context, step Step, scan func(driver.Rows) error, text string, args ...any) error {
	read := func() error {
		rows, err := b.conn.Query(b.comment(ctx, step), text, args...)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }() // rows.Err has the failure
		for rows.Next() {
			if err := scan(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	}
	return b.after(step, read())
}

// insert sends one row as column data, as Meltano's client does.
func (b *Backend) insert(ctx context.Context, step Step, table string, columns []string, row ...any) error {
	send := func() error {
		batch, err := b.conn.PrepareBatch(b.comment(ctx, step), "INSERT INTO "+table+" ("+strings.Join(columns, ", ")+")")
		if err != nil {
			return err
		}
		defer func() { _ = batch.Close() }() // sent already, or failed
		if err := batch.Append(row...); err != nil {
			return err
		}
		return batch.Send()
	}
	return b.after(step, send())
}
