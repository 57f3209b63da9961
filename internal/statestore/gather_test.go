package statestore

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestGather: ten callers, each of whom comes back a little later with the next call, as Terraform does. Without being
// gathered they would be two halves that alternate. What a group does is only to take its time.
func TestGather(t *testing.T) {
	const callers, calls, pause = 10, 150, 40 * time.Millisecond
	var g grouper
	var groups, members, next atomic.Int64
	run := func(_ lane, m []*member) {
		groups.Add(1)
		members.Add(int64(len(m)))
		time.Sleep(pause)
		deliver(m, make([]outcome, len(m)))
	}
	call := func(id int64) {
		if _, err := g.join(context.Background(), lane{}, "test", task{id: fmt.Sprint(id)}, run); err != nil {
			t.Error(err)
		}
	}
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for id := next.Add(1); id <= calls; id = next.Add(1) {
				time.Sleep(time.Duration(caller) * time.Millisecond)
				call(id)
			}
		})
	}
	all.Wait()
	if members.Load() != calls {
		t.Fatalf("%d members, want %d", members.Load(), calls)
	}
	if n := groups.Load(); n > 27 { // 22, where no call is late; 30 where nobody is waited for
		t.Errorf("%d groups of %d calls by %d callers", n, calls, callers)
	}
	for idle := false; !idle; time.Sleep(time.Millisecond) {
		g.mu.Lock()
		idle = len(g.busy) == 0
		g.mu.Unlock()
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
		{0, 10, true}, // nobody: the lane ends
		{1, 1, true},  // a lone one
		{1, 2, true},  // one who came while another was under way
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
		if got := g.enough(&queue{waiting: make([]*member, tt.waiting), most: tt.most}); got != tt.want {
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
