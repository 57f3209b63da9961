package statestore

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestGather: ten callers, each of whom comes back with the next call. What a group does is only to take its time.
func TestGather(t *testing.T) {
	const callers, calls = 10, 150
	for _, tt := range []struct {
		name string
		// takes is how long a group takes; between makes what a caller does between two calls.
		takes   time.Duration
		between func() func(caller int)
		// within is how long all of it may take: nobody is waited for who cannot come.
		within time.Duration
	}{
		// Without being gathered they would be two halves that alternate: 30 groups.
		{"all at once", 40 * time.Millisecond, func() func(int) {
			return func(caller int) { time.Sleep(time.Duration(caller) * time.Millisecond) }
		}, 1400 * time.Millisecond},
		// Terraform has one thing to do for each in turn. Here it takes a little longer than a group does. If the lane were idle
		// as soon as all are served, nearly each would set out alone: 142 groups.
		{"one by one", 10 * time.Millisecond, func() func(int) { return oneByOne(15 * time.Millisecond) }, 2450 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var g grouper
				between := tt.between()
				var groups, members, next atomic.Int64
				run := func(_ lane, m []*member) {
					groups.Add(1)
					members.Add(int64(len(m)))
					time.Sleep(tt.takes)
					deliver(m, make([]outcome, len(m)))
				}
				var all sync.WaitGroup
				for caller := range callers {
					all.Go(func() {
						for id := next.Add(1); id <= calls; id = next.Add(1) {
							if _, err := g.join(context.Background(), lane{}, "test", task{id: fmt.Sprint(id)}, run); err != nil {
								t.Error(err)
							}
							between(caller)
						}
					})
				}
				start := time.Now()
				all.Wait()
				if took := time.Since(start); took > tt.within {
					t.Errorf("took %s", took)
				}
				if members.Load() != calls {
					t.Fatalf("%d members, want %d", members.Load(), calls)
				}
				if n := groups.Load(); n > 24 { // of seven each, but for the first and the last ones
					t.Errorf("%d groups of %d calls by %d callers", n, calls, callers)
				}
				time.Sleep(maxGathering)
				synctest.Wait()
				if len(g.busy) != 0 {
					t.Error("the lane has not ended")
				}
			})
		})
	}
}

// oneByOne makes a function that takes the callers in turn, each for so long.
func oneByOne(d time.Duration) func(int) {
	turn := make(chan struct{}, 1)
	return func(int) {
		turn <- struct{}{}
		time.Sleep(d)
		<-turn
	}
}

// TestGatherLone: who finds the lane idle sets out at once, alone, and one who comes meanwhile waits for no third.
func TestGatherLone(t *testing.T) {
	var g grouper
	q, idle := g.enter(lane{}, &member{})
	if members := g.next(lane{}, q); !idle || len(members) != 1 {
		t.Errorf("idle: %t, the first group has %d members", idle, len(members))
	}
	if _, idle := g.enter(lane{}, &member{}); idle {
		t.Error("the lane is idle beside a group")
	}
	g.done(q, 1)
	g.gather(q, time.Hour)
	if q.most != 2 { // as it is after waiting in vain
		t.Error("the second waited for a third")
	}
}

func TestGatherEnough(t *testing.T) {
	for _, tt := range []struct {
		waiting, most int
		want          bool
	}{
		{0, 0, true},  // nobody has come for a while: the lane ends
		{0, 1, true},  // nor does it wait for the next of those who come one at a time
		{0, 2, false}, // two were under way together: it lingers
		{0, 10, false},
		{1, 1, true}, // a lone one
		{1, 2, true}, // one who came while another was under way
		{1, 3, false},
		{2, 3, true},
		{6, 10, false},
		{7, 10, true},
		{70, 100, false},
		{75, 100, true},
		{74, 250, false},
		{100, 250, true}, // no more fit in
	} {
		var g grouper
		q := &queue{most: tt.most}
		for range tt.waiting {
			q.waiting = append(q.waiting, &member{})
		}
		if got := g.enough(q); got != tt.want {
			t.Errorf("%d of %d are enough: %t, want %t", tt.waiting, tt.most, got, tt.want)
		}
	}
}

// TestGatherWithout: some do not come back. The others wait for them once, and no longer.
func TestGatherWithout(t *testing.T) {
	var g grouper
	var q *queue
	for i := range 10 {
		q, _ = g.enter(lane{}, &member{task: task{id: fmt.Sprint(i)}})
	}
	if members := g.next(lane{}, q); len(members) != 10 {
		t.Fatalf("a group of %d", len(members))
	}
	g.done(q, 10)
	g.enter(lane{}, &member{})
	g.gather(q, time.Millisecond) // ends
	if q.most != 1 || !g.enough(q) {
		t.Errorf("%d are waited for", q.most)
	}
	left := &member{}
	left.leave()
	g.enter(lane{}, left)
	if members := g.next(lane{}, q); len(members) != 1 || q.underway != 1 {
		t.Errorf("a group of %d, %d under way", len(members), q.underway)
	}
	g.done(q, 1)
	if members := g.next(lane{}, q); len(members) != 0 || len(g.busy) != 0 {
		t.Error("the lane did not end")
	}
}

// TestGatherLeft: who has left is neither there nor awaited.
func TestGatherLeft(t *testing.T) {
	var g grouper
	var q *queue
	for i := range 10 {
		m := &member{task: task{id: fmt.Sprint(i)}}
		q, _ = g.enter(lane{}, m)
		if i > 0 {
			m.leave()
		}
	}
	if g.enough(q) {
		t.Error("one of ten is enough")
	}
	if g.settle(q); q.most != 1 || !g.enough(q) {
		t.Errorf("%d are waited for", q.most)
	}
	if members := g.next(lane{}, q); len(members) != 1 {
		t.Errorf("a group of %d", len(members))
	}
}

// TestGatherBounded: however long a group takes, those who are there wait for the others no longer than that.
func TestGatherBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g grouper
		q := &queue{most: 10, arrived: make(chan struct{}, 1)}
		start := time.Now()
		g.gather(q, time.Hour)
		if took := time.Since(start); took != maxGathering {
			t.Errorf("took %s, want %s", took, maxGathering)
		}
	})
}
