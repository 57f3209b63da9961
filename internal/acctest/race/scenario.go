package main

import (
	"fmt"
	"time"
)

// hot is how many counters are fought over: every process knows them, and takes one of them a quarter of the time. known is how
// many a process knows at all.
const (
	hot   = 4
	known = 12
)

// crowd is how many increments every other process of ours has in flight.
const crowd = 4

// tableName is the state table of every scenario, each in its own database.
const tableName = "state"

// A scenario is one race: who contends, on which tables, and what is done to them.
type scenario struct {
	Name string
	// Ours and Peers are how many processes of each kind there are.
	Ours, Peers int
	// Strict says that the lock table is ours, not Meltano's; MeltanoState that the state table is Meltano's, too.
	Strict, MeltanoState bool
	// Counters is how many there are. Each process knows the hot ones and some others.
	Counters int
	Timing   timing
	// Work is how long contenders work under the lock, at most.
	Work time.Duration
	// OursFaults and PeerFaults are what the processes do to themselves.
	OursFaults, PeerFaults faults
	// Chaos is what the arena does to them.
	Chaos chaosPlan
	// Share is the part of the increments asked for that this scenario makes.
	Share float64
	// Promise is what has to hold.
	Promise promise
}

// A promise is what a scenario has to show; otherwise the race is lost.
type promise string

const (
	// nothingLost: no acknowledged update of ours is lost and no write overlaps a hold, but by peers that were late.
	nothingLost promise = "nothing lost"
	// nothingOverwritten: ours never overwrites what it has not read. On lock tables where peers hide each other's claims,
	// their unfenced writes may still destroy ours.
	nothingOverwritten promise = "nothing overwritten unseen"
	// mustLose: plain Meltano has to lose updates here, or the harness would not notice if ours did.
	mustLose promise = "must lose updates"
)

// chaosPlan is what the arena does, each at a mean interval; zero is never.
type chaosPlan struct {
	// StopOurs and StopPeers freeze a random process at any moment, also within a statement.
	StopOurs, StopPeers       time.Duration
	StopOursFor, StopPeersFor fault
	Kill                      time.Duration
	Merge                     time.Duration
	// CutOurs and CutPeers break each connection of a kind with a probability of a third.
	CutOurs, CutPeers time.Duration
}

// pace is how the times are scaled down, and how often faults hit.
type pace struct {
	timing timing
	// rate multiplies every probability of a fault, and divides every interval.
	rate float64
}

var (
	// long is for `make race`.
	long = pace{rate: 1, timing: timing{
		Stale: 6 * time.Second, Backdate: time.Second, Settle: 100 * time.Millisecond, Retry: 250 * time.Millisecond, Timeout: 15 * time.Second,
	}}
	// short is for the test, which has less than a minute.
	short = pace{rate: 4, timing: timing{
		Stale: 4 * time.Second, Backdate: time.Second, Settle: 60 * time.Millisecond, Retry: 60 * time.Millisecond, Timeout: 10 * time.Second,
	}}
)

// scenarios are the races, in the order of the table.
func scenarios(p pace) []scenario {
	t, rate := p.timing, p.rate
	seldom := func(d time.Duration) time.Duration { return time.Duration(float64(d) / rate) }
	stall := func(probability float64) fault {
		return fault{P: min(probability*rate, 0.1), Min: t.Settle * 3 / 2, Max: t.Settle * 4}
	}
	beyond := func(probability float64) fault {
		return fault{P: probability * rate, Min: t.Stale * 11 / 10, Max: t.Stale * 18 / 10}
	}
	within := func(probability float64) fault {
		return fault{P: probability * rate, Min: t.Settle * 2, Max: t.Stale / 4}
	}
	oursFaults := faults{Stall: stall(0.01), Linger: beyond(0.0005), Freeze: beyond(0.0006), Die: 0.0004 * rate}
	peerFaults := faults{Stall: stall(0.03), Freeze: within(0.005), Die: 0.001 * rate}
	latePeers := faults{Stall: stall(0.03), Freeze: beyond(0.005), Die: 0.001 * rate}
	everything := chaosPlan{
		StopOurs: seldom(12 * time.Second), StopOursFor: beyond(1),
		StopPeers: seldom(4 * time.Second), StopPeersFor: within(1),
		Kill:    seldom(12 * time.Second),
		Merge:   seldom(time.Second),
		CutOurs: seldom(3 * time.Second), CutPeers: seldom(20 * time.Second),
	}
	stopLonger := everything
	stopLonger.StopPeersFor = beyond(1)
	wide := t
	wide.Settle *= 4 // beyond what a statement takes, which is what a lock table of Meltano's asks for
	// Where a claim can be hidden, one has to come late, and a merge just then.
	hidden, mergeMore := peerFaults, everything
	hidden.Stall = fault{P: stall(0.06).P, Min: wide.Settle * 3 / 2, Max: wide.Settle * 3}
	mergeMore.Merge /= 4
	return []scenario{
		{
			Name: "strict, peers paused below stale", Strict: true, Ours: 8, Peers: 4, Counters: 40, Timing: t, Work: 2 * t.Settle,
			OursFaults: oursFaults, PeerFaults: peerFaults, Chaos: everything, Share: 1, Promise: nothingLost,
		},
		{
			Name: "strict, peers paused beyond stale", Strict: true, Ours: 6, Peers: 4, Counters: 20, Timing: t, Work: 2 * t.Settle,
			OursFaults: oursFaults, PeerFaults: latePeers, Chaos: stopLonger, Share: 0.15, Promise: nothingLost,
		},
		{
			Name: "meltano lock table, one peer", Ours: 6, Peers: 1, Counters: 20, Timing: wide, Work: 2 * t.Settle,
			OursFaults: oursFaults, PeerFaults: peerFaults, Chaos: everything, Share: 0.1, Promise: nothingLost,
		},
		{
			Name: "meltano lock table, several peers", Ours: 4, Peers: 6, Counters: 6, Timing: wide, Work: 2 * wide.Settle,
			OursFaults: oursFaults, PeerFaults: hidden, Chaos: mergeMore, Share: 0.06, Promise: nothingOverwritten,
		},
		{
			Name: "plain Meltano alone, stalls and merges only", MeltanoState: true, Peers: 8, Counters: 2, Timing: t, Work: 8 * t.Settle,
			PeerFaults: faults{Stall: stall(0.1)}, Chaos: chaosPlan{Merge: everything.Merge}, Share: 0.05, Promise: mustLose,
		},
	}
}

func (s scenario) contenders() string {
	switch {
	case s.Peers == 0:
		return fmt.Sprintf("%d ours", s.Ours)
	case s.Ours == 0:
		return fmt.Sprintf("%d peers", s.Peers)
	}
	return fmt.Sprintf("%d ours, %d peers", s.Ours, s.Peers)
}
