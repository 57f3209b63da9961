// Package statestore keeps pipeline state in ClickHouse: the tables, and the entries in them.
//
// It speaks verbs. Every write happens inside the advisory lock of its state_id, stamps a version above
// every version that is stored, and is verified afterwards; see package lock for what that promises.
package statestore

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/lock"
)

// Config says which server to use, how, and how to lock there.
type Config struct {
	Connection chconn.Config
	Lock       LockOptions
	Logger     *slog.Logger
}

// LockOptions are the knobs of the advisory lock; a zero value is the default.
type LockOptions struct {
	// Timeout bounds the wait for a lock. Default 30 s.
	Timeout time.Duration
	// StaleAfter is our own lease: 10 s to 300 s. Default 300 s.
	StaleAfter time.Duration
	// Settle is the wait before a decision that a late claim could change. Default 1 s.
	Settle time.Duration
	// RetryInterval is the pause between two tries while another holds the lock. Default 1 s.
	RetryInterval time.Duration
	// Scale replaces the ages that all clients of a lock table agree on, for tests that cannot wait for
	// minutes. Nil means Meltano's.
	Scale *lock.Scale
}

// Store keeps state on one server. It is safe for concurrent use.
type Store struct {
	db     *chconn.Client
	locker *lock.Locker
	logger *slog.Logger
	quorum bool
	// writes and reads are of single entries.
	writes, reads grouper

	// atStep is called at each step of an upgrade; an error ends it there. For tests.
	atStep func(step string) error

	mu     sync.Mutex
	tables map[chsql.Table]*tableSlot
	// managed are the entries that this store has written. A second create of one is a mistake, even if it
	// would write the same.
	managed map[Address]struct{}
	// takenOver are the entries that this store has taken over as they were, by the version that they had.
	takenOver map[Address]uint64
}

// Open returns a store. It validates the configuration and connects to nothing: the first use does.
func Open(cfg Config) (*Store, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Connection.Logger == nil {
		cfg.Connection.Logger = cfg.Logger
	}
	db, err := chconn.New(cfg.Connection)
	if err != nil {
		return nil, err
	}
	locker, err := lock.New(db, lock.Options{
		Timeout:       cfg.Lock.Timeout,
		StaleAfter:    cfg.Lock.StaleAfter,
		Settle:        cfg.Lock.Settle,
		RetryInterval: cfg.Lock.RetryInterval,
		Scale:         cfg.Lock.Scale,
		Program:       "terraform-provider-clickhousestate/" + cfg.Connection.Version,
		Logger:        cfg.Logger,
	})
	if err != nil {
		return nil, err
	}
	return &Store{
		db:      db,
		locker:  locker,
		logger:  cfg.Logger,
		quorum:  cfg.Connection.Quorum,
		tables:  make(map[chsql.Table]*tableSlot),
		managed: make(map[Address]struct{}),

		takenOver: make(map[Address]uint64),
	}, nil
}

// closePatience bounds what Close waits for: Terraform kills a provider some two seconds after it has asked it
// to end.
const closePatience = 1500 * time.Millisecond

// Close releases the locks that are still held, within 1.5 s, closes the connections, and logs what was sent in all.
func (s *Store) Close(ctx context.Context) error {
	err := errors.Join(s.locker.ReleaseAll(ctx, closePatience), s.db.Close())
	for _, t := range s.db.Totals() {
		s.logger.LogAttrs(ctx, slog.LevelInfo, "statements in all", slog.String("operation", t.Operation), slog.Int("statements", t.Statements),
			slog.Uint64("rows_read", t.RowsRead), slog.Uint64("rows_written", t.RowsWritten), slog.Duration("took", t.Took))
	}
	return err
}

// Quorum tells whether writes and reads of replicated tables agree, whichever replica answers.
func (s *Store) Quorum() bool { return s.quorum }

// String describes the connection for messages: address, protocol, TLS and user, never a password.
func (s *Store) String() string { return s.db.String() }

// statement makes of a query what a connection runs.
func statement(operation string, q chsql.Query, external ...chconn.Table) chconn.Statement {
	if q.IDs != nil {
		external = append(external, chconn.Strings(chsql.IDs, "state_id", q.IDs).With("number", q.Numbers))
	}
	return chconn.Statement{Operation: operation, Text: q.Text, Args: q.Args, Settings: q.Settings, External: external}
}

// ddl runs a statement that changes tables: on a cluster, on all its hosts, and waits for them.
func (s *Store) ddl(ctx context.Context, operation string, cluster chsql.Cluster, q chsql.Query) error {
	if cluster == "" {
		return s.exec(ctx, operation, q)
	}
	failed := &ClusterError{Cluster: string(cluster)}
	hosts, err := query(ctx, s, statement(operation, q), func(r chconn.Row) (string, error) {
		var (
			host              string
			port              uint16
			status            *int64
			message           *string
			remaining, active uint64
		)
		err := r.Scan(&host, &port, &status, &message, &remaining, &active)
		switch name := net.JoinHostPort(host, strconv.Itoa(int(port))); {
		case status == nil:
			failed.Unfinished = append(failed.Unfinished, name)
		case *status != 0 && message != nil:
			failed.Failed = append(failed.Failed, name+": "+*message)
		}
		return host, err
	})
	if err == nil && len(hosts) > 0 && len(failed.Unfinished)+len(failed.Failed) > 0 {
		return failed
	}
	return err
}

// exec runs a statement that returns no rows.
func (s *Store) exec(ctx context.Context, operation string, q chsql.Query) error {
	_, err := s.db.Exec(ctx, statement(operation, q))
	return err
}

// query runs a statement and collects its rows.
func query[T any](ctx context.Context, s *Store, st chconn.Statement, scan func(chconn.Row) (T, error)) ([]T, error) {
	var all []T
	err := s.db.Query(ctx, st, func(r chconn.Row) error {
		one, err := scan(r)
		all = append(all, one)
		return err
	})
	return all, err
}
