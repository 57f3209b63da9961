package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// faultCounts are what was done to the contenders. Kills are counted at the end, by how the processes ended.
type faultCounts struct {
	stalls, freezes, merges, cuts atomic.Int64
}

// unleash starts what the plan says, until the context is done.
func (a *arena) unleash(ctx context.Context, wait *sync.WaitGroup) {
	plan := a.Chaos
	for i, each := range []struct {
		every time.Duration
		act   func(random *rand.Rand)
	}{
		{plan.StopOurs, func(r *rand.Rand) { a.stopOne(r, kindOurs, plan.StopOursFor) }},
		{plan.StopPeers, func(r *rand.Rand) { a.stopOne(r, kindPeer, plan.StopPeersFor) }},
		{plan.Kill, a.killOne},
		{plan.Merge, func(*rand.Rand) { a.merge(ctx) }},
		{plan.CutOurs, func(r *rand.Rand) { a.cut(r, kindOurs) }},
		{plan.CutPeers, func(r *rand.Rand) { a.cut(r, kindPeer) }},
	} {
		if each.every == 0 {
			continue
		}
		random := rand.New(rand.NewPCG(a.seed, uint64(i)))
		wait.Go(func() {
			for pause(ctx, time.Duration((0.5+random.Float64())*float64(each.every))) {
				each.act(random)
			}
		})
	}
}

// pause waits, and tells whether the context is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// victim picks a process of a kind, or of any.
func (a *arena) victim(random *rand.Rand, kinds ...kind) *process {
	a.mu.Lock()
	defer a.mu.Unlock()
	var of []*process
	for _, p := range a.running {
		if slices.Contains(kinds, p.spec.Kind) {
			of = append(of, p)
		}
	}
	if len(of) == 0 {
		return nil
	}
	return of[random.IntN(len(of))]
}

func (a *arena) stopOne(random *rand.Rand, k kind, length fault) {
	if p := a.victim(random, k); p != nil && p.freeze(length.duration(random)) {
		a.counts.freezes.Add(1)
	}
}

func (a *arena) killOne(random *rand.Rand) {
	if p := a.victim(random, kindOurs, kindPeer); p != nil {
		_ = p.cmd.Process.Kill() // it may have ended meanwhile; those that were killed are counted at their end
	}
}

// merge forces what background merges do at a moment of their own choice.
func (a *arena) merge(ctx context.Context) {
	if a.conn.Exec(ctx, "OPTIMIZE TABLE "+a.database+"."+tableName+"_lock FINAL") == nil {
		a.counts.merges.Add(1)
	}
}

func (a *arena) cut(random *rand.Rand, k kind) {
	choose := func() bool { return random.IntN(3) == 0 }
	a.counts.cuts.Add(int64(a.proxies[k].native.cut(choose) + a.proxies[k].http.cut(choose)))
}
