package model

// stepTime lets a claim grow older, and a TTL merge drop it.
//
// There is no clock. Time is what it can do: any claim may cross a border of age at any moment, unless
// something else comes first.
func (m *machine) stepTime(s *state, who int) {
	c := s.claim(who)
	st := step{who: who, order: inOrder, next: *s}
	next := st.next.claim(who)
	switch {
	case c.there() && c.age == stale:
		next.rank = 0
		st.op = opExpires
		m.add(st)
		return
	case !c.there() && !s.believes(who), c.age == stale, m.landsFirst(s, c):
		return
	}
	watched := !m.isPeer(who) && (s.ours[who].renewing || s.ours[who].at < leaving)
	switch {
	case c.age == fresh && watched:
		next.age, st.op = aging, opAges
		if m.Bound != Unbounded {
			next.during |= s.flying(m)
		}
	case m.isPeer(who) && !s.isDead(who) && !m.Overstay:
		return
	case m.olderLives(s, c):
		return
	default:
		next.age, st.op = stale, opStale
	}
	// While a dead one's claim stands, all have to wait for time to pass.
	for i := range m.actors() {
		other := m.actor(i)
		st.progress = st.progress || s.isDead(other) && s.claim(other).live()
	}
	m.add(st)
}

func (s *state) isDead(who int) bool {
	if who < MaxOurs {
		return s.ours[who].at == dead
	}
	return s.peers[who-MaxOurs].at == gone
}

// believes tells whether it still matters to the actor how old its claim is when the row is gone.
func (s *state) believes(who int) bool {
	if who < MaxOurs {
		return s.ours[who].holds() || s.ours[who].renewing
	}
	return s.peers[who-MaxOurs].holds()
}

// landsFirst tells whether a statement under way must land before the claim grows older: it began before the
// claim was made, or before its last tenth began, and a bounded statement takes less than a tenth of a lease.
func (m *machine) landsFirst(s *state, c *claim) bool {
	if m.Bound == Unbounded {
		return false
	}
	for j := range m.Ours {
		o := &s.ours[j]
		bounded := o.at == writing || o.renewing && !m.RenewalApart || o.at == claiming && m.Bound == WithinSettle
		if bounded && c.during.has(j) {
			return true
		}
	}
	return false
}

// olderLives tells whether an older row is not stale yet.
func (m *machine) olderLives(s *state, c *claim) bool {
	for i := range m.actors() {
		if other := s.claim(m.actor(i)); c.there() && other.live() && other.rank < c.rank {
			return true
		}
	}
	return false
}

// stepMerge lets a background merge drop the older of any two claims, where the table's order lets it.
func (m *machine) stepMerge(s *state) {
	if m.Layout == Strict {
		return
	}
	for i := range m.actors() {
		who := m.actor(i)
		for j := range m.actors() {
			if s.claim(who).there() && s.claim(m.actor(j)).rank > s.claim(who).rank {
				n := *s
				n.claim(who).rank = 0
				m.may(n, who, opMerged)
				break
			}
		}
	}
}
