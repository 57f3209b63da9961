package statestore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/lock"
)

// stored is what a write has read of a state_id inside the lock.
type stored struct {
	entry Entry
	live  bool
	// newest is the newest version of any row, tombstones included; buried that of a tombstone.
	newest, buried uint64
	// now is the server's time, in Unix microseconds.
	now uint64
}

// moved says what is stored instead of the version that was expected.
func (s stored) moved(at Address, expect uint64) error {
	return &MovedError{Address: at, Planned: expect, Found: s.newest, Gone: !s.live}
}

// consistent tells whether the two halves of the reading agree; see chsql.StateTable.Newest.
func (s stored) consistent() bool {
	if s.live {
		return s.entry.Version == s.newest
	}
	return s.newest == s.buried
}

// A change is the next version of an entry.
type change struct {
	// none: nothing is to be written.
	none               bool
	deleted            bool
	completed, partial *string
}

// outcome is a Written, and whether nothing had to be written.
type outcome struct {
	Written
	unwritten bool
}

// rereads bounds how often a write starts again because a pipeline, which nothing fences, wrote meanwhile.
const rereads = 5

// writeOne changes one entry under its lock: it reads what is stored, asks decide what is to become of it,
// and writes that, unless something newer is stored by then.
func (s *Store) writeOne(ctx context.Context, at Address, operation string, decide func(stored) (change, error)) (result outcome, err error) {
	table, err := s.lockable(ctx, at.table())
	if err != nil {
		return outcome{}, err
	}
	err = s.locker.Do(ctx, table.lock, []string{at.StateID}, func(ctx context.Context, held *lock.Held) error {
		for attempt := 1; ; attempt++ {
			now, err := s.newest(ctx, table, at, operation)
			if err != nil {
				return err
			}
			next, err := decide(now)
			if err != nil {
				return err
			}
			if next.none {
				result = outcome{Written: Written{Entry: now.entry}, unwritten: true}
				return nil
			}
			result, err = s.put(ctx, table, at, operation, held, now, next)
			if !errors.Is(err, lock.ErrMoved) || attempt == rereads {
				return err
			}
		}
	})
	var unreleased *lock.ReleaseError
	if errors.As(err, &unreleased) {
		result.Unreleased, err = unreleased, nil
	}
	if err != nil {
		return outcome{}, s.tableGone(ctx, at.table(), err)
	}
	return result, nil
}

// newest reads what is stored of an entry, until both halves of the reading agree.
func (s *Store) newest(ctx context.Context, table resolved, at Address, operation string) (stored, error) {
	for range rereads {
		found, err := query(ctx, s, statement(operation+".newest", table.state.Newest([]string{at.StateID})), scanStored)
		if err != nil {
			return stored{}, err
		}
		if len(found) == 1 && found[0].consistent() {
			return found[0], nil
		}
	}
	return stored{}, fmt.Errorf("%s: entry %s is written all the time by a client that holds no lock", operation, at)
}

func scanStored(r chconn.Row) (now stored, err error) {
	var (
		live    uint8
		updated int64
		micros  int64
	)
	err = r.Scan(&now.entry.StateID, &now.newest, &now.buried, &live, &now.entry.Version,
		&now.entry.Completed, &now.entry.Partial, &updated, &micros)
	now.live, now.now = live == 1, uint64(micros)
	now.entry.UpdatedAt = time.UnixMilli(updated).UTC()
	return now, err
}

// put writes the next version of an entry over what was read.
func (s *Store) put(ctx context.Context, table resolved, at Address, operation string, held *lock.Held, now stored, next change) (outcome, error) {
	stamp, err := now.stamp()
	if err != nil {
		return outcome{}, fmt.Errorf("%s: entry %s: %w", operation, at, err)
	}
	if size := payloadSize(next.completed) + payloadSize(next.partial); size > maxPayload {
		return outcome{}, fmt.Errorf("%s: entry %s has %d bytes, but the server stores at most %d as one block", operation, at, size, maxPayload)
	}
	entry := Entry{
		StateID:   at.StateID,
		Completed: next.completed,
		Partial:   next.partial,
		Version:   stamp,
		UpdatedAt: time.UnixMicro(int64(stamp)).UTC().Truncate(time.Millisecond),
	}
	ids := []string{at.StateID}
	err = held.Write(ctx, lock.Write{
		Insert: func(f chsql.Fence) chconn.Statement {
			return statement(operation+".write", table.state.Write(f, ids), incoming(entry, next.deleted, now.newest))
		},
		Verify: func(f chsql.Fence) chconn.Statement {
			return statement(operation+".verify", table.state.Verify(f, ids, stamp))
		},
		Rows: 1,
	})
	var uncertain *lock.UncertainError
	if errors.As(err, &uncertain) {
		return outcome{}, s.uncertain(ctx, table, at, stamp, uncertain)
	}
	if err != nil {
		return outcome{}, err
	}
	result := outcome{Written: Written{Entry: entry}}
	if ahead := time.Duration(stamp-now.now) * time.Microsecond; ahead > time.Second {
		result.Ahead = ahead
	}
	return result, nil
}

// maxPayload is how many bytes of payload one write may carry: beyond a block, an INSERT is not atomic.
const maxPayload = chsql.MaxBlockBytes - 1<<20

func payloadSize(payload *string) int {
	if payload == nil {
		return 0
	}
	return len(*payload)
}

// newestVersion is the largest version that has a successor: updated_at, the same instant, is a DateTime64,
// which ends with the year 2299.
var newestVersion = uint64(time.Date(2299, 12, 31, 23, 59, 59, 0, time.UTC).UnixMicro())

// stamp is the version of the next write: the server's time, or one more than what is stored.
func (s stored) stamp() (uint64, error) {
	if s.newest >= newestVersion {
		return 0, fmt.Errorf("version %d is stored, which no later version can follow; delete that row by hand", s.newest)
	}
	return max(s.now, s.newest+1), nil
}

// uncertain looks up what is stored now, for the error of a write of which nobody can say what became of it.
func (s *Store) uncertain(ctx context.Context, table resolved, at Address, stamp uint64, cause error) error {
	result := &UncertainError{Address: at, Stamp: stamp, Err: cause}
	if now, err := s.newest(context.WithoutCancel(ctx), table, at, "entry.uncertain"); err == nil {
		result.Stored = now.newest
	}
	return result
}

// incoming carries the row of a write; see chsql.StateTable.Write.
func incoming(e Entry, deleted bool, seen uint64) chconn.Table {
	var isDeleted uint8
	if deleted {
		isDeleted = 1
	}
	return chconn.Table{
		Name: chsql.Incoming,
		Columns: []chconn.Column{
			{Name: "state_id", Type: "String"},
			{Name: "partial_state", Type: "Nullable(String)"},
			{Name: "completed_state", Type: "Nullable(String)"},
			{Name: "updated_at", Type: "DateTime64(3)"},
			{Name: "version", Type: "UInt64"},
			{Name: "is_deleted", Type: "UInt8"},
			{Name: "seen", Type: "UInt64"},
		},
		Rows: [][]any{{e.StateID, e.Partial, e.Completed, e.UpdatedAt, e.Version, isDeleted, seen}},
	}
}
