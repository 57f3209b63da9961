package model

// stepPeer is what a Meltano client can do next. It goes round for ever.
func (m *machine) stepPeer(s *state, i int) {
	p := &s.peers[i]
	who := MaxOurs + i
	n := *s
	next := &n.peers[i]
	switch p.at {
	case looking:
		next.at = entering
		op := opSeesNoHolder
		for j := range m.actors() {
			if s.claim(m.actor(j)).there() {
				next.at, op = sweeping, opSeesHolder
			}
		}
		m.proceed(n, who, op)
	case sweeping:
		for j := range m.actors() {
			if c := n.claim(m.actor(j)); c.age == stale {
				c.rank = 0
			}
		}
		next.at = looking
		m.proceed(n, who, opSweeps)
	case entering:
		next.at = settling
		m.land(n, who, func(n state) { m.proceed(n, who, opInserts) })
	case settling:
		m.settle(s, i)
	case holding:
		next.at, next.base = loaded, s.contents
		m.proceed(n, who, opPeerReads)
	case loaded:
		next.at = through
		if !m.Ahead {
			// By the server's clock: newer than every stamp that was taken before.
			newest := n.top
			for j := range m.Ours {
				if n.ours[j].hasStamp(m) {
					newest = max(newest, n.ours[j].stamp)
				}
			}
			n.replace(p.base, newest+1)
		}
		m.proceed(n, who, opPeerWrites)
	case through, withdrawing:
		next.at, next.claim.rank = looking, 0
		m.proceed(n, who, opDelete)
	}
	m.failPeer(s, i)
}

// settle is the end of a peer's wait: it reads all claims, however old, and the smallest lock_id holds.
func (m *machine) settle(s *state, i int) {
	p := &s.peers[i]
	if m.settling(s, p.claim) {
		return
	}
	n := *s
	wins := p.claim.there()
	for j := range m.Ours {
		wins = wins && !s.ours[j].claim.there()
	}
	for j := range i {
		wins = wins && !s.peers[j].claim.there()
	}
	op := opLoses
	n.peers[i].at = withdrawing
	if wins {
		n.peers[i].at, op = holding, opWins
	}
	m.proceed(n, MaxOurs+i, op)
}

// failPeer is a run that fails before it writes, or crashes.
func (m *machine) failPeer(s *state, i int) {
	switch s.peers[i].at {
	case holding, loaded:
		n := *s
		n.peers[i].at = through
		m.may(n, MaxOurs+i, opGivesUp)
	}
	if at := s.peers[i].at; at >= settling && at < gone {
		n := *s
		n.peers[i].at = gone
		m.may(n, MaxOurs+i, opCrashes)
	}
}
