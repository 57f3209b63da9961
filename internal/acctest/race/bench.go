package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest/meltano"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

// A cycle is an uncontended update of one entry: acquire, read, write, release.
type cycle struct {
	name string
	// run makes one, number n.
	run func(ctx context.Context, n int) error
	// statements counts what was sent so far.
	statements *int
	// times is how often it is run.
	times int
}

// bench measures our cycle beside Meltano's, with the times that both have in production.
func bench(ctx context.Context, server acctest.Endpoint, out io.Writer) (err error) {
	conn, err := openConn(server, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	database := "bench" + strings.ReplaceAll(uuid.NewString(), "-", "")
	if err := conn.Exec(ctx, "CREATE DATABASE "+database); err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	defer func() {
		err = errors.Join(err, conn.Exec(context.WithoutCancel(ctx), "DROP DATABASE "+database+" SYNC"))
	}()

	table := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "acquire + write + release of one entry\tcycles\tstatements\tp50\tp99")
	for _, overHTTP := range []bool{false, true} {
		ours, closeStore, err := oursCycle(ctx, server, overHTTP, database)
		if err != nil {
			return err
		}
		err = errors.Join(ours.measure(ctx, table), closeStore(ctx))
		if err != nil {
			return err
		}
	}
	peer, err := peerCycle(server, database)
	if err != nil {
		return err
	}
	if err := peer.measure(ctx, table); err != nil {
		return err
	}
	return table.Flush()
}

// measure runs a cycle and prints a line.
func (c cycle) measure(ctx context.Context, out io.Writer) error {
	var took durations
	before := 0
	for n := range c.times + 1 {
		start := time.Now()
		if err := c.run(ctx, n); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		if n == 0 { // to get to know the server
			before = *c.statements
			continue
		}
		took = append(took, time.Since(start))
	}
	fmt.Fprintf(out, "%s\t%d\t%.1f\t%.1f ms\t%.1f ms\n", c.name, c.times, float64(*c.statements-before)/float64(c.times),
		took.percentile(50).Seconds()*1000, took.percentile(99).Seconds()*1000)
	return nil
}

func oursCycle(ctx context.Context, server acctest.Endpoint, overHTTP bool, database string) (c cycle, closeStore func(context.Context) error, err error) {
	log := &statementCount{}
	name := "ours, native"
	if overHTTP {
		name = "ours, HTTP"
	}
	store, err := openStore(server, overHTTP, timing{}, "bench", slog.New(log))
	if err != nil {
		return cycle{}, nil, err
	}
	at := statestore.Address{Database: database, Table: tableName, StateID: "dev:" + name}
	if _, err := store.Table(ctx, statestore.TableIdentity{Database: database, Name: tableName}); errors.Is(err, statestore.ErrNotFound) {
		if _, _, err := store.CreateTable(ctx, statestore.TableSpec{Database: database, Name: tableName}); err != nil {
			return cycle{}, nil, err
		}
	}
	var version uint64
	return cycle{name: name, statements: &log.n, times: 300, run: func(ctx context.Context, n int) error {
		value := tally{Last: strconv.Itoa(n)}.JSON()
		if n == 0 {
			written, err := store.Create(ctx, at, &value, nil)
			version = written.Entry.Version
			return err
		}
		written, err := store.Update(ctx, at, version, statestore.Set(&value), statestore.Keep())
		version = written.Entry.Version
		return err
	}}, store.Close, nil
}

func peerCycle(server acctest.Endpoint, database string) (cycle, error) {
	conn, err := openConn(server, true) // as Meltano does
	if err != nil {
		return cycle{}, err
	}
	statements := 0
	backend := meltano.New(conn, meltano.Options{Database: database, Table: tableName, Stall: func(meltano.Step) { statements++ }})
	return cycle{name: "Meltano's protocol, HTTP", statements: &statements, times: 20, run: func(ctx context.Context, n int) error {
		lock, err := backend.AcquireLock(ctx, "dev:peer")
		if err != nil {
			return err
		}
		if _, err := backend.Get(ctx, "dev:peer"); err != nil && !errors.Is(err, meltano.ErrNoState) {
			return err
		}
		return errors.Join(backend.Set(ctx, "dev:peer", tally{Last: strconv.Itoa(n)}.state()), lock.Release(ctx))
	}}, nil
}

// A statementCount counts the statements that the connection logs.
type statementCount struct{ n int }

func (*statementCount) Enabled(context.Context, slog.Level) bool { return true }

func (c *statementCount) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "operation" {
			c.n++
		}
		return true
	})
	return nil
}

func (c *statementCount) WithAttrs([]slog.Attr) slog.Handler { return c }
func (c *statementCount) WithGroup(string) slog.Handler      { return c }
