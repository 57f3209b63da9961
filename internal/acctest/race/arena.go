package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest/meltano"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

// An arena is where one scenario takes place.
type arena struct {
	scenario
	server   acctest.Endpoint
	conn     driver.Conn
	database string
	// run marks the labels of this race in the query log.
	run      string
	seed     uint64
	counters []string
	// proxies stand before the server: for ours and for peers, which are not cut equally often.
	proxies map[kind]*proxied

	stopping atomic.Bool
	target   int64
	// finished is closed when there are enough increments.
	finished chan struct{}
	counts   faultCounts

	mu sync.Mutex
	// done counts acknowledged increments, children those that were made of the same value, by its token.
	done     int64
	children map[string]int
	// forked says that two were: one of them is lost.
	forked bool
	// processes are all that ever ran, running those that do now, by slot.
	processes []*process
	running   map[string]*process
	failures  []error
}

// proxied is both ports of the server, behind proxies.
type proxied struct{ native, http *proxy }

// endpoint is the server as it is to be reached through the proxies.
func (p *proxied) endpoint(server acctest.Endpoint) acctest.Endpoint {
	server.Host, server.NativePort, server.HTTPPort = "127.0.0.1", p.native.port(), p.http.port()
	return server
}

func (p *proxied) close() {
	p.native.close()
	p.http.close()
}

// enter makes the tables and the counters of a scenario.
func enter(ctx context.Context, server acctest.Endpoint, s scenario, seed uint64) (_ *arena, err error) {
	a := &arena{
		scenario: s, server: server, seed: seed,
		run:      "race" + uuid.NewString()[:8],
		proxies:  map[kind]*proxied{},
		finished: make(chan struct{}),
		children: map[string]int{},
		running:  map[string]*process{},
	}
	a.database = a.run
	if a.conn, err = openConn(server, false); err != nil {
		return nil, err
	}
	if err := a.makeTables(ctx); err != nil {
		return nil, err
	}
	peer := a.peer()
	for n := range s.Counters {
		counter := counterPrefix + strconv.Itoa(n)
		if err := peer.Set(ctx, counter, tally{Last: seedToken}.state()); err != nil {
			return nil, err
		}
		a.counters = append(a.counters, counter)
	}
	for _, k := range []kind{kindOurs, kindPeer} {
		if a.proxies[k], err = newProxied(server); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func (a *arena) peer() *meltano.Backend {
	return meltano.New(a.conn, meltano.Options{Database: a.database, Table: tableName})
}

// makeTables makes them as who makes them does, the lock table first: both sides use one that is there.
func (a *arena) makeTables(ctx context.Context) error {
	if a.MeltanoState {
		return a.peer().CreateTables(ctx)
	}
	if err := a.conn.Exec(ctx, "CREATE DATABASE "+a.database); err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	if !a.Strict {
		if err := a.peer().CreateLockTable(ctx); err != nil {
			return err
		}
	}
	store, err := openStore(a.server, false, a.Timing, a.run, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	table, _, err := store.CreateTable(ctx, statestore.TableSpec{Database: a.database, Name: tableName})
	if err == nil && (table.LockLayout == statestore.LayoutStrict) != a.Strict {
		err = fmt.Errorf("the lock table has layout %s", table.LockLayout)
	}
	return errors.Join(err, store.Close(ctx))
}

func newProxied(server acctest.Endpoint) (*proxied, error) {
	native, err := newProxy(server.NativeAddr())
	if err != nil {
		return nil, err
	}
	http, err := newProxy(server.HTTPAddr())
	return &proxied{native, http}, err
}

// fight lets the workers loose until there are enough acknowledged increments, or the time is over.
func (a *arena) fight(ctx context.Context, target int64, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	a.target = target
	var slots, chaos sync.WaitGroup
	for k, n := range map[kind]int{kindOurs: a.Ours, kindPeer: a.Peers} {
		for slot := range n {
			slots.Go(func() { a.fill(k, slot) })
		}
	}
	chaosCtx, endChaos := context.WithCancel(ctx)
	defer endChaos()
	a.unleash(chaosCtx, &chaos)
	select {
	case <-a.finished:
	case <-ctx.Done():
	}
	a.stopping.Store(true)
	endChaos()
	chaos.Wait()
	err := a.end(&slots)
	for _, p := range a.proxies {
		p.close()
	}
	return err
}

// end waits for the workers' last rounds. A round is bounded by the protocol's timeouts; who does not come to an end by
// then is stuck.
func (a *arena) end(slots *sync.WaitGroup) error {
	ended := make(chan struct{})
	go func() {
		slots.Wait()
		close(ended)
	}()
	patience := time.After(a.longestRound() + 2*a.Timing.Stale)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		a.mu.Lock()
		running := len(a.running)
		for _, p := range a.running {
			p.finish()
			p.resume()
		}
		a.mu.Unlock()
		select {
		case <-ended:
			return nil
		case <-patience:
			a.mu.Lock()
			for _, p := range a.running {
				_ = p.cmd.Process.Kill() // it has ended meanwhile, or it will
			}
			a.mu.Unlock()
			<-ended
			return fmt.Errorf("%d processes were stuck at the end", running)
		case <-tick.C:
		}
	}
}

// longestRound bounds a round that is not paused: the wait for the lock, the wait for a rival beside a write, its reading
// back, and the release.
func (a *arena) longestRound() time.Duration { return 3*a.Timing.Timeout + 15*time.Second }

// fill keeps a slot occupied: a process that has ended is followed by another one, with another label.
func (a *arena) fill(k kind, slot int) {
	for incarnation := 1; !a.stopping.Load(); incarnation++ {
		name := fmt.Sprintf("%s%d", k, slot)
		label := fmt.Sprintf("%s-%s.%d", a.run, name, incarnation)
		seed := a.seedOf(name, incarnation)
		spec := workerSpec{
			Kind: k, Label: label, Seed: seed, Server: a.proxies[k].endpoint(a.server), HTTP: slot%2 == 1,
			Database: a.database, Strict: a.Strict, Counters: a.some(seed), Timing: a.Timing, Work: a.Work, Faults: a.OursFaults,
		}
		switch {
		case k == kindPeer:
			spec.Faults = a.PeerFaults
		case slot%4 >= 2:
			spec.Crowd = crowd
		}
		p, wait, err := start(spec, a.see)
		if err != nil {
			a.fail(err)
			return
		}
		a.mu.Lock()
		a.processes = append(a.processes, p)
		a.running[name] = p
		a.mu.Unlock()
		err = wait()
		a.mu.Lock()
		delete(a.running, name)
		a.mu.Unlock()
		if err != nil {
			a.fail(fmt.Errorf("%s: %w", label, err))
		}
		if p.failed() && k == kindOurs {
			// Whatever happens to the connection, ours has an answer to it. A peer gives up.
			a.fail(fmt.Errorf("%s ended by itself: %s", label, p.said.String()))
			return
		}
	}
}

// some are the counters that a process knows.
func (a *arena) some(seed uint64) []string {
	counters := slices.Clone(a.counters[:min(hot, len(a.counters))])
	rest := slices.Clone(a.counters[len(counters):])
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	return append(counters, rest[:min(known-len(counters), len(rest))]...)
}

// seedOf makes each process's seed from the race's.
func (a *arena) seedOf(name string, incarnation int) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, fmt.Sprint(a.seed, a.Name, name, incarnation)) // a hash takes everything
	return h.Sum64()
}

// see watches the journals as they are written.
func (a *arena) see(p *process, e event) {
	switch e.Kind {
	case frozen:
		a.counts.freezes.Add(1)
		p.frozeItself(time.Duration(e.Millis) * time.Millisecond)
	case stalled:
		a.counts.stalls.Add(1)
	case ended:
		if e.Outcome == acknowledged {
			a.acknowledge(e)
		}
	}
}

// acknowledge counts an increment. Where plain Meltano has to lose one, there are not enough before it has.
func (a *arena) acknowledge(e event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	enough := func() bool { return a.done >= a.target && (a.forked || a.Promise != mustLose) }
	if enough() {
		return
	}
	value := e.Counter + " " + e.Parent
	a.children[value]++
	a.forked = a.forked || a.children[value] > 1
	a.done++
	if enough() {
		close(a.finished)
	}
}

func (a *arena) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failures = append(a.failures, err)
}
