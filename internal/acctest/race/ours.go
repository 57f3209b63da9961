package main

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/lock"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

// oursContender increments as an apply updates entries: it reads, and later writes if what it read is still there.
type oursContender struct {
	spec    workerSpec
	journal *journal
	random  *rand.Rand
	store   *statestore.Store
}

func newOurs(spec workerSpec, log *journal, inject *injector) (*oursContender, error) {
	store, err := openStore(spec.Server, spec.HTTP, spec.Timing, spec.Label+"/"+anyCounter, slog.New(&statementLog{inject: inject}))
	return &oursContender{spec: spec, journal: log, random: rand.New(rand.NewPCG(spec.Seed, 3)), store: store}, err
}

// connection is how ours reach the server. The version goes into log_comment.
func connection(server acctest.Endpoint, overHTTP bool, version string, logger *slog.Logger) chconn.Config {
	config := chconn.Config{
		Host: server.Host, Port: server.NativePort, Protocol: chconn.Native, Username: server.Username, Password: server.Password,
		Version: version, Logger: logger,
	}
	if overHTTP {
		config.Port, config.Protocol = server.HTTPPort, chconn.HTTP
	}
	return config
}

// openStore opens the product, with scaled times, or its own for the zero timing.
func openStore(server acctest.Endpoint, overHTTP bool, t timing, version string, logger *slog.Logger) (*statestore.Store, error) {
	options := statestore.LockOptions{Timeout: t.Timeout, Settle: t.Settle, RetryInterval: t.Retry}
	if t != (timing{}) {
		options.Scale = &lock.Scale{Stale: t.Stale, Backdate: t.Backdate}
	}
	return statestore.Open(statestore.Config{Connection: connection(server, overHTTP, version, logger), Logger: logger, Lock: options})
}

// increment makes one attempt, or as many at a time as the spec says, on other counters too: what is in flight together
// shares its statements. The next attempt is another increment.
func (o *oursContender) increment(ctx context.Context, counter, token string) error {
	counters := []string{counter}
	for len(counters) < min(o.spec.Crowd, len(o.spec.Counters)) {
		if other := pick(o.random, o.spec.Counters); !slices.Contains(counters, other) {
			counters = append(counters, other)
		}
	}
	errs := make([]error, len(counters))
	var calls sync.WaitGroup
	for i, counter := range counters {
		calls.Go(func() { errs[i] = o.incrementOne(ctx, counter, token) })
	}
	calls.Wait()
	return errors.Join(errs...)
}

func (o *oursContender) incrementOne(ctx context.Context, counter, token string) error {
	store := o.store
	at := statestore.Address{Database: o.spec.Database, Table: tableName, StateID: counter}
	e := event{Kind: ended, Counter: counter, Outcome: unwritten}
	defer func() { o.journal.write(e) }()

	entry, err := store.Read(ctx, at)
	if err != nil {
		e.Error = err.Error()
		time.Sleep(o.spec.Timing.Retry) // no connection, most likely
		return nil
	}
	if entry.Completed == nil {
		return errors.New("a counter without a value")
	}
	value, err := parseTally(*entry.Completed)
	if err != nil {
		return err
	}
	e.Token, e.Parent = token, value.Last
	o.journal.write(event{Kind: trying, Counter: counter, Token: e.Token, Parent: e.Parent})
	text := value.next(o.spec.Label, token).JSON()
	written, err := store.Update(ctx, at, entry.Version, statestore.Set(&text), statestore.Keep())
	e.Outcome, e.Version = outcomeOf(err), written.Entry.Version
	e.Unreleased = written.Unreleased != nil || errors.As(err, new(*lock.WithdrawError))
	if err != nil {
		e.Error = err.Error()
	}
	return nil
}

// outcomeOf reads the promise in an error of statestore's, or of lock's.
func outcomeOf(err error) outcome {
	switch {
	case err == nil:
		return acknowledged
	case errors.As(err, new(*lock.WithdrawError)):
		return unwritten
	case errors.As(err, new(*statestore.UncertainError)), errors.As(err, new(*lock.UncertainError)), errors.As(err, new(*chconn.NoAnswerError)):
		return unknown
	case errors.As(err, new(*statestore.MovedError)), errors.Is(err, lock.ErrMoved), errors.As(err, new(*lock.BusyError)),
		errors.As(err, new(*lock.LostError)), errors.As(err, new(*chconn.ConnectError)):
		return unwritten
	}
	return unknown
}

// A statementLog is where faults enter the product without a seam of their own: the connection logs each statement when its
// answer is there, from the goroutine that waits for it, so that a pause in the log is one between two steps.
type statementLog struct{ inject *injector }

func (*statementLog) Enabled(context.Context, slog.Level) bool { return true }

func (l *statementLog) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key != "operation" {
			return true
		}
		operation := a.Value.String()
		if strings.HasPrefix(operation, "lock.") || strings.HasPrefix(operation, "entry.update.") {
			l.inject.at(operation)
		}
		if operation == "entry.update.live" {
			l.inject.working()
		}
		return false
	})
	return nil
}

func (l *statementLog) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l *statementLog) WithGroup(string) slog.Handler      { return l }
