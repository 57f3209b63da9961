package lock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chsql"
)

// A queue serialises the callers of one process by state_id, so that they do not contend on the server. The
// zero value is ready.
type queue struct {
	mu   sync.Mutex
	busy map[queueKey]chan struct{}
}

type queueKey struct {
	table chsql.Table
	id    string
}

// enter waits until no other caller is in for any of the ids, of which there must be one. They are taken in one
// order by everybody, so that two callers with overlapping ids never wait for each other.
func (q *queue) enter(ctx context.Context, table chsql.LockTable, ids []string, deadline time.Time) (leave func(), err error) {
	if len(ids) == 0 {
		return nil, errors.New("lock: no state_id to lock")
	}
	start := time.Now()
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	sorted := slices.Compact(slices.Sorted(slices.Values(ids)))
	var taken []queueKey
	leave = func() { q.leave(taken) }
	for _, id := range sorted {
		key := queueKey{table: table.Table, id: id}
		for {
			wait := q.take(key)
			if wait == nil {
				taken = append(taken, key)
				break
			}
			select {
			case <-wait:
			case <-ctx.Done():
				leave()
				return nil, context.Cause(ctx)
			case <-timer.C:
				leave()
				return nil, &BusyError{Table: table.String(), StateID: id, Holder: "another operation of this process", Waited: time.Since(start)}
			}
		}
	}
	return leave, nil
}

// take takes a key, or returns a channel that is closed when it is free again.
func (q *queue) take(key queueKey) <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if wait, taken := q.busy[key]; taken {
		return wait
	}
	if q.busy == nil {
		q.busy = make(map[queueKey]chan struct{})
	}
	q.busy[key] = make(chan struct{})
	return nil
}

func (q *queue) leave(keys []queueKey) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, key := range keys {
		close(q.busy[key])
		delete(q.busy, key)
	}
}
