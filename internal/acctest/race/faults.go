package main

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest/meltano"
)

// A fault hits with a probability, for a time between two bounds.
type fault struct {
	P        float64
	Min, Max time.Duration
}

func (f fault) duration(random *rand.Rand) time.Duration {
	return f.Min + time.Duration(random.Int64N(int64(f.Max-f.Min)+1))
}

// faults are what a process does to itself between two steps of its protocol.
type faults struct {
	// Stall pauses the goroutine that waits for a statement: a slow network, a slow disk. The renewer goes on.
	Stall fault
	// Linger is a stall beyond the age at which locks are stale.
	Linger fault
	// Freeze stops the whole process (SIGSTOP), renewer and all; the arena continues it.
	Freeze fault
	// Die kills it (SIGKILL).
	Die float64
}

// An injector decides, step by step, which fault hits. It may be used by several goroutines.
type injector struct {
	faults  faults
	journal *journal
	// work is the longest pause that is no fault: what a contender does between reading and writing.
	work time.Duration

	mu     sync.Mutex
	random *rand.Rand
}

// working pauses for the work under the lock.
func (i *injector) working() {
	i.mu.Lock()
	d := time.Duration(i.random.Int64N(int64(i.work) + 1))
	i.mu.Unlock()
	time.Sleep(d)
}

// weights are of the steps at which a pause hurts most: when the way seems free, when the lock is held, and when what will
// be written over has been read. Pauses are that much more frequent there.
var weights = map[string]float64{
	"lock.read": 8, "entry.update.newest": 4, "entry.update.live": 8,
	string(meltano.StepHolder): 2, string(meltano.StepDecide): 2, string(meltano.StepGet): 2,
}

// at is called after each step, before the next.
func (i *injector) at(step string) {
	weight := max(1, weights[step])
	i.mu.Lock()
	r := i.random.Float64()
	stall, linger, freeze := i.faults.Stall.duration(i.random), i.faults.Linger.duration(i.random), i.faults.Freeze.duration(i.random)
	i.mu.Unlock()
	for _, choice := range []struct {
		p   float64
		hit func()
	}{
		{i.faults.Die, func() {
			i.journal.write(event{Kind: dying, Step: step})
			killSelf()
		}},
		{i.faults.Freeze.P * weight, func() {
			i.journal.write(event{Kind: frozen, Step: step, Millis: freeze.Milliseconds()})
			freezeSelf()
		}},
		{i.faults.Linger.P * weight, func() { i.pause(step, linger) }},
		{i.faults.Stall.P * weight, func() { i.pause(step, stall) }},
	} {
		if r < choice.p {
			choice.hit()
			return
		}
		r -= choice.p
	}
}

func (i *injector) pause(step string, d time.Duration) {
	i.journal.write(event{Kind: stalled, Step: step, Millis: d.Milliseconds()})
	time.Sleep(d)
}
