package main

import (
	"fmt"
	"slices"
	"time"
)

// An increment is one that a process set out to make.
type increment struct {
	kind           kind
	label, counter string
	token, parent  string
	outcome        outcome
	version        uint64
	refusedBecause string
	// at orders the writes of a counter: by the version of ours, which is the server's time, and by when a peer's was stored.
	at time.Time
}

// A history is all increments of one counter, and the value that is stored in the end.
type history struct {
	increments map[string]*increment
	final      tally
	// survivors are the increments that the final value is made of; after has, for the token of each of them and for the
	// seed, the one that was made of it.
	survivors map[string]bool
	after     map[string]*increment
}

// newHistory follows the final value back to the seed. An error means that the stored value is nobody's.
func newHistory(increments []*increment, final tally) (*history, error) {
	h := &history{
		increments: map[string]*increment{},
		final:      final,
		survivors:  map[string]bool{},
		after:      map[string]*increment{},
	}
	for _, i := range increments {
		h.increments[i.token] = i
	}
	counts := map[string]int{}
	for token := final.Last; token != seedToken; {
		i := h.increments[token]
		if i == nil || h.survivors[token] {
			return nil, fmt.Errorf("the value was made of %q, which nobody wrote", token)
		}
		h.survivors[token] = true
		h.after[i.parent] = i
		counts[i.label]++
		token = i.parent
	}
	for label, n := range final.Counts {
		if counts[label] != n {
			return nil, fmt.Errorf("%s is counted %d times, but %d of its increments are there", label, n, counts[label])
		}
	}
	return h, nil
}

// A loss is an acknowledged increment that is not in the final value.
type loss struct {
	*increment
	// by is the write that replaced it without having read it; nil if it was never to be seen.
	by *increment
}

// losses returns what was lost, in the order of the tokens.
func (h *history) losses() []loss {
	var lost []loss
	for _, i := range h.increments {
		if i.outcome != acknowledged || h.survivors[i.token] {
			continue
		}
		// Back to where the lost one parted from those that survived, and from there on to the first that came later.
		fork := i
		for fork.parent != seedToken && !h.survivors[fork.parent] && h.increments[fork.parent] != nil {
			fork = h.increments[fork.parent]
		}
		by := h.after[fork.parent]
		for by != nil && by.at.Before(i.at) {
			by = h.after[by.token]
		}
		lost = append(lost, loss{increment: i, by: by})
	}
	slices.SortFunc(lost, func(a, b loss) int { return compareTokens(a.token, b.token) })
	return lost
}

func compareTokens(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	if a < b {
		return -1
	}
	return 1
}

// denied returns the increments that are in the final value although their writer was told that they are not.
func (h *history) denied() []*increment {
	var found []*increment
	for token := range h.survivors {
		if i := h.increments[token]; i.outcome == unwritten {
			found = append(found, i)
		}
	}
	return found
}

// incrementsOf reads the journals of processes that have ended, by counter.
func incrementsOf(processes []*process) map[string][]*increment {
	byCounter := map[string][]*increment{}
	for _, p := range processes {
		// One of a group has the same token as the others.
		known := map[[2]string]*increment{}
		for _, e := range p.events {
			if e.Token == "" {
				continue
			}
			key := [2]string{e.Counter, e.Token}
			i := known[key]
			if i == nil {
				i = &increment{
					kind: p.spec.Kind, label: p.spec.Label, counter: e.Counter, token: e.Token, parent: e.Parent, outcome: unknown,
					at: time.UnixMicro(e.At),
				}
				known[key] = i
				byCounter[e.Counter] = append(byCounter[e.Counter], i)
			}
			if e.Kind == ended {
				i.outcome, i.version, i.refusedBecause = e.Outcome, e.Version, e.Error
				if e.Version > 0 {
					i.at = time.UnixMicro(int64(e.Version))
				}
			}
		}
	}
	return byCounter
}
