package lock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"time"

	"github.com/google/uuid"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
)

// DB is what this package asks of a connection. *chconn.Client is one.
type DB interface {
	Query(ctx context.Context, st chconn.Statement, scan func(chconn.Row) error) error
	Exec(ctx context.Context, st chconn.Statement) (chconn.Result, error)
	// Kill ends a statement that may still run, and waits for its end.
	Kill(ctx context.Context, queryID string) error
}

// Bounds of the protocol that all parties share. Meltano's backend has them as constants.
const (
	// Stale is the age at which everybody takes a claim for dead, and Meltano sweeps it away.
	Stale = 300 * time.Second
	// Backdate is how far our claims are dated back on a lock table that Meltano made.
	Backdate = 10 * time.Second
	// MinStaleAfter is the shortest lease that may be configured.
	MinStaleAfter = 10 * time.Second
)

// Options configure a Locker. The zero value is the default.
type Options struct {
	// Timeout bounds the wait for a lock, and for a rival that turns up before a write. Default 30 s.
	Timeout time.Duration
	// StaleAfter is our own lease, at most Stale. Default Stale. Others' claims are stale after Stale,
	// whatever this says.
	StaleAfter time.Duration
	// Settle is the time within which a Meltano claimant that comes later withdraws. Default 1 s.
	Settle time.Duration
	// RetryInterval is the pause between two tries while another holds, give or take a quarter. Default 1 s.
	RetryInterval time.Duration
	// Holder tells others who holds. Default: user@host and the process.
	Holder string
	// Program is named in the default Holder.
	Program string
	Logger  *slog.Logger
	// Scale replaces Stale and Backdate, for tests that cannot wait for minutes. Whole seconds.
	Scale *Scale
}

// A Scale is another Stale and Backdate; every party has to use the same.
type Scale struct{ Stale, Backdate time.Duration }

func (o Options) withDefaults() (Options, error) {
	if o.Scale == nil {
		o.Scale = &Scale{Stale: Stale, Backdate: Backdate}
		if o.StaleAfter != 0 && o.StaleAfter < MinStaleAfter {
			return o, fmt.Errorf("lock: stale_after is %s, but must be at least %s", o.StaleAfter, MinStaleAfter)
		}
	}
	for _, d := range []struct {
		value    *time.Duration
		standard time.Duration
		name     string
	}{
		{&o.Timeout, 30 * time.Second, "timeout"},
		{&o.StaleAfter, o.Scale.Stale, "stale_after"},
		{&o.Settle, time.Second, "settle"},
		{&o.RetryInterval, time.Second, "retry_interval"},
	} {
		if *d.value < 0 {
			return o, fmt.Errorf("lock: %s is negative", d.name)
		}
		if *d.value == 0 {
			*d.value = d.standard
		}
	}
	if o.StaleAfter > o.Scale.Stale {
		return o, fmt.Errorf("lock: stale_after is %s, but Meltano takes a lock for dead after %s", o.StaleAfter, o.Scale.Stale)
	}
	if o.Settle > o.StaleAfter/5 {
		// Else a claim that settles is renewed before it is decided on.
		return o, fmt.Errorf("lock: settle (%s) must be at most a fifth of stale_after (%s)", o.Settle, o.StaleAfter)
	}
	if o.Settle >= o.Timeout {
		return o, fmt.Errorf("lock: settle (%s) must be shorter than timeout (%s)", o.Settle, o.Timeout)
	}
	if o.Holder == "" {
		o.Holder = holder(o.Program)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

// holder names this process to others.
func holder(program string) string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s@%s pid %d %s", name, host, os.Getpid(), program)
}

// A Locker acquires locks. Two calls of one Locker for the same state_id queue up in the process and never
// contend on the server. It is safe for concurrent use.
type Locker struct {
	db      DB
	options Options
	queue   queue
	holds   *holds
}

// New returns a Locker. It fails on options that contradict each other.
func New(db DB, options Options) (*Locker, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Locker{db: db, options: options, holds: newHolds()}, nil
}

// Do acquires the lock of all the state_ids, all or none, runs work, and releases. If this Locker holds them
// already (see [Locker.Hold]), work runs under that lock instead, one call at a time for each state_id.
//
// The context that work gets is cancelled when the lock is lost; its cause is the *LostError then. Release
// does not depend on ctx: it happens after a cancellation as well. Do returns work's error, or a *BusyError,
// or what the server answered; if only the release failed, a *ReleaseError.
func (l *Locker) Do(ctx context.Context, table chsql.LockTable, ids []string, work func(ctx context.Context, held *Held) error) error {
	return l.do(ctx, table, ids, l.options.Timeout, work)
}

// Try is Do without waiting for others: if somebody is in the way, it returns the *BusyError at once.
func (l *Locker) Try(ctx context.Context, table chsql.LockTable, ids []string, work func(ctx context.Context, held *Held) error) error {
	return l.do(ctx, table, ids, 0, work)
}

func (l *Locker) do(ctx context.Context, table chsql.LockTable, ids []string, wait time.Duration, work func(ctx context.Context, held *Held) error) error {
	deadline := time.Now().Add(wait)
	ctx, end, err := l.holds.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	leave, err := l.queue.enter(ctx, table, ids, deadline)
	if err != nil {
		return err
	}
	defer leave()
	c, err := l.holds.covering(table, ids)
	if err != nil {
		return err
	}
	if c != nil {
		return c.run(ctx, work)
	}
	c, err = l.acquire(ctx, table, ids, deadline)
	if err != nil {
		return err
	}
	c.keep(ctx)
	err = c.run(ctx, work)
	releaseErr := c.release(ctx, releaseTimeout)
	if err == nil {
		return releaseErr
	}
	if releaseErr != nil {
		// As text alone: a *ReleaseError means that the work is done.
		return fmt.Errorf("%w; %s", err, releaseErr.Error())
	}
	return err
}

// run runs work under the claim.
func (c *claim) run(ctx context.Context, work func(ctx context.Context, held *Held) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.gone, func() { cancel(context.Cause(c.gone)) })()
	if err := c.lostError(); err != nil {
		return err
	}
	err := work(ctx, &Held{claim: c})
	if lost := c.lostError(); lost != nil && err != nil && !errors.As(err, new(*LostError)) {
		err = fmt.Errorf("%w (%w)", err, lost)
	}
	return err
}

// ourPrefix is what the text of our lock_ids begins with.
const ourPrefix = "00000000-0000-8"

// newLockID returns a lock_id that sorts before every UUIDv4 in text order: a version 8 UUID (RFC 9562,
// section 5.8) whose first 48 bits are zero and whose other free bits are random. It is never used twice.
func newLockID() string {
	id := uuid.New()
	copy(id[:6], make([]byte, 6))
	id[6] = id[6]&0x0f | 0x80
	return id.String()
}
