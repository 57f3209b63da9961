package model

// A machine makes the steps out of a state.
type machine struct {
	Variant
	steps []step
}

// A step is one thing that can happen next.
type step struct {
	who int
	op  op
	// next is the state after it, and order says who its owners were.
	next  state
	order order
	// breaks are the promises that the step itself breaks.
	breaks Promise
	// progress: the step needs no crash, no surrender and no lease that runs out.
	progress bool
}

// Actors are numbered through: ours from 0, peers from MaxOurs.
func (m *machine) actors() int { return m.Ours + m.Peers }

func (m *machine) actor(i int) int {
	if i < m.Ours {
		return i
	}
	return MaxOurs + i - m.Ours
}

func (m *machine) isPeer(who int) bool { return who >= MaxOurs }

func (s *state) claim(who int) *claim {
	if who < MaxOurs {
		return &s.ours[who].claim
	}
	return &s.peers[who-MaxOurs].claim
}

// from returns all that can happen in s. The slice is valid until the next call.
func (m *machine) from(s *state) []step {
	m.steps = m.steps[:0]
	for i := range m.Ours {
		m.stepOurs(s, i)
	}
	for i := range m.Peers {
		m.stepPeer(s, i)
	}
	for i := range m.actors() {
		m.stepTime(s, m.actor(i))
	}
	m.stepMerge(s)
	return m.steps
}

// add adds a step, with the state after it in its normal form.
func (m *machine) add(st step) {
	sorted := m.normal(&st.next)
	for j := range sorted {
		sorted[j] = st.order[sorted[j]]
	}
	st.order = sorted
	m.steps = append(m.steps, st)
}

// proceed adds a step that gets the protocol on.
func (m *machine) proceed(next state, who int, op op) {
	m.add(step{who: who, op: op, next: next, order: inOrder, progress: true})
}

// may adds a step that can happen, but that nobody must depend on.
func (m *machine) may(next state, who int, op op) {
	m.add(step{who: who, op: op, next: next, order: inOrder})
}

var inOrder = order{0, 1, 2}

// land puts who's row into the lock table, in every place where its locked_at may stand among the others'.
// The statement that it comes from began before those rows landed that have who in during.
func (m *machine) land(s state, who int, emit func(state)) {
	c := s.claim(who)
	c.age, c.rank, c.during = fresh, 0, s.flying(m)&^(1<<who)
	// Our locked_at is the time at which the statement began. It is later than that of all rows that were
	// there, on either side of ours that have landed since, since they may have begun before, and earlier
	// than a peer's, which is the time at which it lands. Without backdating, ours and a peer's may be the
	// same second, and the row that lands last counts as the newer.
	low, high, top := uint8(0), uint8(7), uint8(0)
	for i := range m.actors() {
		other := m.actor(i)
		k := s.claim(other)
		if !k.there() || other == who {
			continue
		}
		top = max(top, k.rank)
		since := !m.isPeer(who) && k.during.has(who) && (k.age == fresh || m.Bound == Unbounded)
		switch {
		case m.isPeer(other) && since && (m.Layout == Strict || m.guarded(Backdate)):
			high = min(high, k.rank)
		case m.isPeer(other) && !m.isPeer(who) && k.live():
			// Dated back, ours may stand before a peer's that was there, but the guards let no two be there.
		case !since:
			low = max(low, k.rank)
		}
	}
	for after := low; after == low || after < min(high, top+1); after++ {
		n := s
		bornStale := false
		for i := range m.actors() {
			other := m.actor(i)
			if k := n.claim(other); other != who && k.rank > after {
				k.rank++
				bornStale = bornStale || k.age == stale
			}
		}
		n.claim(who).rank = after + 1
		if bornStale {
			n.claim(who).age = stale
		}
		emit(n)
	}
}

// flying are those of ours who have a statement under way.
func (s *state) flying(m *machine) (flying set) {
	for i := range m.Ours {
		if s.ours[i].inFlight() {
			flying |= 1 << i
		}
	}
	return flying
}

// broken are the promises that do not hold in s.
func (m *machine) broken(s *state) Promise {
	var broken Promise
	inside := 0
	for i := range m.Ours {
		o := &s.ours[i]
		if o.acked && !s.contents.has(i) {
			broken |= S3a
		}
		if o.holds() && o.claim.age != stale {
			inside++
		}
		if (o.at == idle || o.at == done) && o.claim.there() {
			broken |= S5
		}
	}
	for i := range m.Peers {
		if p := &s.peers[i]; p.holds() && p.claim.age != stale && inside > 0 {
			broken |= S4
		}
	}
	if inside > 1 {
		broken |= S4
	}
	return broken
}

// finished tells whether all of ours are through or dead.
func (m *machine) finished(s *state) bool {
	for i := range m.Ours {
		if at := s.ours[i].at; at != done && at != dead {
			return false
		}
	}
	return true
}
