package model

// An order says where each owner of a state stood before: owner j was owner order[j].
type order [MaxOurs]uint8

// normal forgets what cannot matter any more and puts the owners in order. States with the same future
// become equal by it, which is what keeps them countable.
func (m *machine) normal(s *state) order {
	var known set // updates that somebody was told of, or is about to be
	for i := range m.Ours {
		o := &s.ours[i]
		m.forget(o)
		if o.acked || o.at == written {
			known |= 1 << i
		}
	}
	s.contents &= known
	for i := range m.Ours {
		s.ours[i].base &= known
	}
	for i := range m.Peers {
		p := &s.peers[i]
		if p.at != loaded {
			p.base = 0
		}
		p.base &= known
		if !p.claim.there() && !p.holds() {
			p.claim.age = fresh
		}
	}
	m.denseRanks(s)
	m.denseStamps(s)
	return m.sort(s)
}

// forget drops what an owner does not need where it is.
func (m *machine) forget(o *owner) {
	if !o.claim.there() && !o.holds() && !o.renewing || o.claim.age == aging && (o.at == leaving || o.at == dead) && !o.renewing {
		o.claim.age = fresh
	}
	switch {
	case o.at == written:
		o.current, o.base = false, 0
	case o.at != ready && o.at != writing:
		o.current, o.base, o.stamp = false, 0, 0
	case o.current:
		o.base = 0
	case o.at == ready && m.guarded(FenceVersion):
		o.base, o.stamp = 0, 0
	}
}

// denseRanks renumbers the rows, and forgets of those who were under way when they landed whoever has arrived.
func (m *machine) denseRanks(s *state) {
	flying := s.flying(m)
	var present [MaxOurs + MaxPeers]*claim
	n := 0
	for i := range m.actors() {
		c := s.claim(m.actor(i))
		relevant := flying
		waiting := m.isPeer(m.actor(i)) && s.peers[m.actor(i)-MaxOurs].at == settling
		if !c.there() && !waiting && !s.believes(m.actor(i)) {
			relevant = 0
		}
		c.during &= relevant
		if !c.there() {
			continue
		}
		at := n
		for at > 0 && present[at-1].rank > c.rank {
			present[at] = present[at-1]
			at--
		}
		present[at] = c
		n++
	}
	for rank, c := range present[:n] {
		c.rank = uint8(rank + 1)
	}
}

// denseStamps renumbers the versions that still matter.
func (m *machine) denseStamps(s *state) {
	var used [8]bool
	used[s.top] = true
	for i := range m.Ours {
		if s.ours[i].hasStamp(m) {
			used[s.ours[i].stamp] = true
		}
	}
	var to [8]uint8
	n := uint8(0)
	for from, ok := range used {
		if ok {
			to[from] = n
			n++
		}
	}
	s.top = to[s.top]
	for i := range m.Ours {
		if s.ours[i].hasStamp(m) {
			s.ours[i].stamp = to[s.ours[i].stamp]
		}
	}
}

// hasStamp tells whether its stamp will be compared with others again.
func (o *owner) hasStamp(m *machine) bool {
	return o.at == writing || o.at == written || o.at == ready && (o.current || !m.guarded(FenceVersion))
}

// sort puts the owners with a lock_id first, as they are, and the others by what they are.
func (m *machine) sort(s *state) order {
	var o order
	weight := func(i uint8) int {
		c := &s.ours[i]
		if c.named() {
			return 0
		}
		w := int(c.at)<<2 + 1<<8
		if c.acked {
			w += 2
		}
		if s.contents.has(int(i)) {
			w++
		}
		return w
	}
	for i := range uint8(m.Ours) {
		at := i
		for at > 0 && weight(o[at-1]) > weight(i) {
			o[at] = o[at-1]
			at--
		}
		o[at] = i
	}
	m.reorder(s, o)
	return o
}

// reorder makes owner order[j] owner j, in every place where owners are named.
func (m *machine) reorder(s *state, o order) {
	same := true
	for j := range uint8(m.Ours) {
		same = same && o[j] == j
	}
	if same {
		return
	}
	remap := func(old *set) {
		var mapped set
		for j := range m.Ours {
			if old.has(int(o[j])) {
				mapped |= 1 << j
			}
		}
		*old = mapped
	}
	ours := s.ours
	for j := range m.Ours {
		s.ours[j] = ours[o[j]]
		remap(&s.ours[j].base)
		remap(&s.ours[j].claim.during)
	}
	for i := range m.Peers {
		remap(&s.peers[i].base)
		remap(&s.peers[i].claim.during)
	}
	remap(&s.contents)
}
