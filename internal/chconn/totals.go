package chconn

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// A Total is what the statements of one operation have come to, repeated ones included.
type Total struct {
	Operation             string
	Statements            int
	RowsRead, RowsWritten uint64
	Took                  time.Duration
}

// totals counts. The zero value is ready.
type totals struct {
	mu  sync.Mutex
	all map[string]*Total
}

func (t *totals) add(operation string, x *exchange, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = make(map[string]*Total)
	}
	one := t.all[operation]
	if one == nil {
		one = &Total{Operation: operation}
		t.all[operation] = one
	}
	one.Statements++
	one.RowsRead += x.read
	one.RowsWritten += x.written.Load()
	one.Took += took
}

// Totals returns what each operation has come to since the client was made, sorted by its name.
func (c *Client) Totals() []Total {
	c.totals.mu.Lock()
	defer c.totals.mu.Unlock()
	all := make([]Total, 0, len(c.totals.all))
	for _, one := range c.totals.all {
		all = append(all, *one)
	}
	slices.SortFunc(all, func(a, b Total) int { return cmp.Compare(a.Operation, b.Operation) })
	return all
}
