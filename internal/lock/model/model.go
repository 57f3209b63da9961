package model

import (
	"slices"
	"strings"
)

// A Promise is what must hold in every state or at every step.
type Promise uint8

const (
	// S1 promises: no write of ours lands inside the hold of another of ours whose claim is in place.
	S1 Promise = 1 << iota
	// S2 promises: no write of ours lands inside the hold of a live peer.
	S2
	// S3a promises: no update of ours that was acknowledged and verified is lost.
	S3a
	// S3b promises: no write of ours replaces a version that it was not made from.
	S3b
	// S4 promises: no two are inside at once, each on a claim that is not stale. It is what those rely on who hold
	// the lock for something else than a fenced write.
	S4
	// S5 promises: nobody who is through leaves a claim behind.
	S5
	// L1 promises: from every state, all of ours that live can finish, without anybody crashing, giving up or
	// outliving a lease on the way, and without the help of a merge.
	L1

	all = L1<<1 - 1
)

var promiseNames = [...]string{"S1", "S2", "S3a", "S3b", "S4", "S5", "L1"}

func (p Promise) String() string {
	var names []string
	for i, name := range promiseNames {
		if p&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// A Result is what exploring a variant found.
type Result struct {
	Variant Variant
	// States is how many there are, or were seen when the search was stopped.
	States int
	// Broken are the promises that do not hold, and Traces a shortest way to break each.
	Broken Promise
	Traces map[Promise]Trace
}

// Explore visits every state that can be reached, those that take fewer steps first. It stops at the first
// break of a promise in stopAt; with none, it is complete.
func Explore(v Variant, stopAt Promise) Result {
	e := explorer{machine: machine{Variant: v}, seen: newTable(), result: Result{Variant: v, Traces: map[Promise]Trace{}}}
	var first state
	e.normal(&first)
	e.seen.add(first.pack(&v))
	e.parents = append(e.parents, 0)
	for at := 0; at < len(e.seen.keys) && e.result.Broken&stopAt == 0; at++ {
		e.visit(uint32(at))
	}
	e.result.States = len(e.seen.keys)
	if e.result.Broken&stopAt == 0 {
		e.checkEnds()
	}
	return e.result
}

type explorer struct {
	machine
	seen *table
	// parents are the states from which each was reached first.
	parents []uint32
	// edges are the steps that get the protocol on, those of state i from first[i] to first[i+1].
	edges []uint32
	first []uint32
	// ends are the states in which all of ours are through, and later those that lead there.
	ends   []bool
	result Result
}

// visit takes all the steps out of a state.
func (e *explorer) visit(at uint32) {
	s := e.seen.keys[at].unpack(&e.Variant)
	e.ends = append(e.ends, e.finished(&s))
	e.first = append(e.first, uint32(len(e.edges)))
	for i := range e.from(&s) {
		st := &e.steps[i]
		to, isNew := e.seen.add(st.next.pack(&e.Variant))
		breaks := st.breaks
		if isNew {
			e.parents = append(e.parents, at)
			breaks |= e.broken(&st.next)
		}
		if st.progress && to != at {
			e.edges = append(e.edges, to)
		}
		if breaks&^e.result.Broken != 0 {
			e.found(breaks, e.trace(at, to, st.breaks))
		}
	}
}

// found notes the first break of each promise.
func (e *explorer) found(breaks Promise, t Trace) {
	for p := Promise(1); p < all; p <<= 1 {
		if breaks&^e.result.Broken&p != 0 {
			e.result.Traces[p] = t
		}
	}
	e.result.Broken |= breaks
}

// checkEnds finds the states out of which not all can finish: all but those that lead to an end.
func (e *explorer) checkEnds() {
	e.first = append(e.first, uint32(len(e.edges)))
	for changed := true; changed; {
		changed = false
		for at := len(e.ends) - 1; at >= 0; at-- {
			if e.ends[at] {
				continue
			}
			for _, to := range e.edges[e.first[at]:e.first[at+1]] {
				if e.ends[to] {
					e.ends[at], changed = true, true
					break
				}
			}
		}
	}
	if at := slices.Index(e.ends, false); at >= 0 {
		e.found(L1, e.trace(uint32(at), uint32(at), 0))
	}
}

// A table numbers keys in the order in which they come.
type table struct {
	keys []key
	// slots hold, of each key, the upper half of its hash and below it its number + 1. The hash says where
	// it belongs, and spares most looks at other keys.
	slots []uint64
}

func newTable() *table { return &table{slots: make([]uint64, 1<<12)} }

func (t *table) add(k key) (number uint32, isNew bool) {
	if 2*len(t.keys) >= len(t.slots) {
		t.grow()
	}
	hash := k.hash()
	slot := t.home(hash)
	for ; t.slots[slot] != 0; slot = t.after(slot) {
		if n := uint32(t.slots[slot]) - 1; t.slots[slot]>>32 == hash>>32 && t.keys[n] == k {
			return n, false
		}
	}
	t.keys = append(t.keys, k)
	t.slots[slot] = hash>>32<<32 | uint64(len(t.keys))
	return uint32(len(t.keys) - 1), true
}

func (t *table) home(hash uint64) uint64  { return hash >> 32 & uint64(len(t.slots)-1) }
func (t *table) after(slot uint64) uint64 { return (slot + 1) & uint64(len(t.slots)-1) }

func (t *table) grow() {
	old := t.slots
	t.slots = make([]uint64, 2*len(old))
	for _, entry := range old {
		if entry == 0 {
			continue
		}
		slot := t.home(entry)
		for t.slots[slot] != 0 {
			slot = t.after(slot)
		}
		t.slots[slot] = entry
	}
}

func (k key) hash() uint64 {
	h := k[0]*0x9e3779b97f4a7c15 ^ (k[1]+0x7f4a7c15)*0xc2b2ae3d27d4eb4f
	h ^= h >> 29
	h *= 0xbf58476d1ce4e5b9
	return h ^ h>>32
}
