package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest/meltano"
)

// peerContender increments as a pipeline does: it locks, reads, runs, writes and releases.
type peerContender struct {
	spec    workerSpec
	journal *journal
	backend *meltano.Backend
	inject  *injector
	// counter and token are what its statements are about.
	counter, token string
}

// comment marks the statements of peers in the query log.
const peerComment = "meltano"

func newPeer(spec workerSpec, log *journal, inject *injector) (*peerContender, error) {
	conn, err := openConn(spec.Server, spec.HTTP)
	if err != nil {
		return nil, err
	}
	p := &peerContender{spec: spec, journal: log, inject: inject}
	p.backend = meltano.New(conn, meltano.Options{
		Database:   spec.Database,
		Table:      tableName,
		Settle:     spec.Timing.Settle,
		Retry:      spec.Timing.Retry,
		Timeout:    spec.Timing.Timeout,
		StaleAfter: int(spec.Timing.Stale / time.Second),
		Stall:      func(after meltano.Step) { inject.at(string(after)) },
		Comment: func(step meltano.Step) string {
			return fmt.Sprintf("%s/%s/%s %s %s", peerComment, spec.Label, p.counter, step, p.token)
		},
	})
	return p, nil
}

// openConn opens a connection of the driver's own.
func openConn(server acctest.Endpoint, overHTTP bool) (driver.Conn, error) {
	addr, protocol := server.NativeAddr(), clickhouse.Native
	if overHTTP {
		addr, protocol = server.HTTPAddr(), clickhouse.HTTP
	}
	return clickhouse.Open(&clickhouse.Options{
		Addr:        []string{addr},
		Protocol:    protocol,
		Auth:        clickhouse.Auth{Username: server.Username, Password: server.Password},
		DialTimeout: 30 * time.Second, // a busy machine is no failure
	})
}

// increment makes one increment. Anything but a lock that others have ends the process, its lock still held: nobody can
// say what became of the statement, and a peer that releases would let others in before it has.
func (p *peerContender) increment(ctx context.Context, counter, token string) error {
	p.counter, p.token = counter, token
	e := event{Kind: ended, Counter: counter, Outcome: unwritten}
	defer func() { p.journal.write(e) }()

	lock, err := p.backend.AcquireLock(ctx, counter)
	if errors.Is(err, meltano.ErrLocked) {
		e.Error = err.Error()
		return nil
	}
	if err != nil {
		e.Error = err.Error()
		return err
	}
	state, err := p.backend.Get(ctx, counter)
	if err != nil {
		e.Error = err.Error()
		return err
	}
	value, err := tallyOf(state)
	if err != nil {
		return err
	}
	p.inject.working()
	e.Token, e.Parent, e.Outcome = token, value.Last, unknown
	p.journal.write(event{Kind: trying, Counter: counter, Token: e.Token, Parent: e.Parent})
	if err := p.backend.Set(ctx, counter, value.next(p.spec.Label, token).state()); err != nil {
		e.Error = err.Error()
		return err
	}
	e.Outcome = acknowledged
	if err := lock.Release(ctx); err != nil {
		e.Error, e.Unreleased = err.Error(), true
		return err
	}
	return nil
}

// tallyOf reads the value from what Meltano keeps.
func tallyOf(state meltano.State) (tally, error) { return parseTally(meltano.Dumps(state.Completed)) }

// state is the value as Meltano keeps it.
func (t tally) state() meltano.State {
	return meltano.State{Completed: map[string]any{"singer_state": t}}
}
