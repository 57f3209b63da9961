package model

// stepOurs is what one of ours can do next.
func (m *machine) stepOurs(s *state, i int) {
	o := &s.ours[i]
	switch o.at {
	case idle:
		m.claim(s, i)
	case claiming:
		m.landClaim(*s, i, opClaimLands)
		n := *s
		n.ours[i].at = idle
		m.may(n, i, opClaimKilled)
	case placed, polling:
		m.decide(s, i)
	case inside:
		m.read(s, i)
	case ready:
		m.fence(s, i)
	case writing:
		m.landWrite(*s, i, opWriteLands)
		m.killWrite(*s, i)
	case written:
		m.verify(s, i)
	case leaving:
		if o.renewing && m.guarded(RenewalJoined) {
			break
		}
		n := *s
		n.ours[i].claim.rank = 0
		n.ours[i].at = idle
		if o.acked {
			n.ours[i].at = done
		}
		m.proceed(n, i, opDelete)
	}
	m.renew(s, i)
	m.fail(s, i)
}

// claim sends the guarded INSERT of a claim with a new lock_id. If it is refused nothing changes, and it is
// tried again later.
func (m *machine) claim(s *state, i int) {
	if s.ours[i].renewing || m.guarded(ClaimGuard) && s.rivals(m, i) != nobody {
		return
	}
	// A new lock_id may lie anywhere among those that there are.
	named := 0
	for j := range m.Ours {
		if s.ours[j].named() {
			named++
		}
	}
	for at := range named + 1 {
		n := *s
		var o order
		for j, k := 0, 0; j < m.Ours; j++ {
			if j == at {
				o[j] = uint8(i)
				continue
			}
			if k == i {
				k++
			}
			o[j] = uint8(k)
			k++
		}
		m.reorder(&n, o)
		if m.Steps.claims() {
			n.ours[at].at = claiming
			m.add(step{who: i, op: opClaimChecks, next: n, order: o, progress: true})
			continue
		}
		n.ours[at].at = placed
		m.land(n, at, func(n state) {
			m.add(step{who: i, op: opClaim, next: n, order: o, progress: true})
		})
	}
}

func (m *machine) landClaim(s state, i int, op op) {
	m.land(s, i, func(n state) {
		n.ours[i].at = placed
		m.proceed(n, i, op)
	})
}

// decide reads the live claims.
func (m *machine) decide(s *state, i int) {
	o := &s.ours[i]
	if o.at == placed && m.Layout == Meltano && m.guarded(DecideSettled) && m.settling(s, o.claim) {
		return
	}
	n := *s
	rivals := s.rivals(m, i)
	if !m.guarded(DecideAlone) {
		rivals &= smaller
	}
	switch {
	case !o.claim.live():
		n.ours[i].at = leaving
		m.proceed(n, i, opSeesNone)
	case rivals&smaller != 0:
		n.ours[i].at = leaving
		m.proceed(n, i, opSeesSmaller)
	case rivals != nobody:
		if o.at == polling && rivals&largerOurs != 0 && m.guarded(YieldToOurs) {
			yields := n
			yields.ours[i].at = leaving
			m.proceed(yields, i, opYields)
		}
		n.ours[i].at = polling
		if o.at == placed {
			m.proceed(n, i, opSeesLarger)
		}
	default:
		n.ours[i].at = inside
		m.proceed(n, i, opHolds)
	}
}

// settling tells whether a settle cannot have passed since the claim was made, because a statement of ours that
// began before is still under way.
func (m *machine) settling(s *state, c claim) bool {
	return m.Bound == WithinSettle && c.during&s.flying(m) != 0
}

// Rivals are the live claims beside one of ours, by their lock_ids.
type rivals uint8

const (
	smaller rivals = 1 << iota // of ours
	largerOurs
	largerPeer
	nobody rivals = 0
)

func (s *state) rivals(m *machine, i int) (r rivals) {
	for j := range m.Ours {
		switch {
		case j == i || !s.ours[j].claim.live():
		case j < i:
			r |= smaller
		default:
			r |= largerOurs
		}
	}
	for j := range m.Peers {
		if s.peers[j].claim.live() {
			r |= largerPeer
		}
	}
	return r
}

// read takes the newest version, its contents and a stamp.
func (m *machine) read(s *state, i int) {
	n := *s
	o := &n.ours[i]
	o.at, o.current = ready, true
	o.stamp = n.top + 1
	if !m.Ahead {
		// By the server's clock: newer than every stamp that was taken before.
		for j := range m.Ours {
			if j != i && n.ours[j].hasStamp(m) {
				o.stamp = max(o.stamp, n.ours[j].stamp+1)
			}
		}
	}
	m.proceed(n, i, opReads)
}

// fence sends the fenced write.
func (m *machine) fence(s *state, i int) {
	o := &s.ours[i]
	if o.renewing && m.guarded(RenewalJoined) {
		return
	}
	n := *s
	switch {
	case m.guarded(FenceThere) && !o.claim.live(), m.guarded(FenceFresh) && o.claim.age == aging:
		n.ours[i].at = leaving
		m.proceed(n, i, opFenceLost)
	case m.guarded(FenceAlone) && s.rivals(m, i) != nobody:
		// Refused, and sent again when the rival has gone.
	case m.guarded(FenceVersion) && !o.current:
		n.ours[i].at = leaving
		m.proceed(n, i, opFenceMoved)
	case m.Steps.fence():
		n.ours[i].at = writing
		m.proceed(n, i, opFenceChecks)
	default:
		m.landWrite(n, i, opWrite)
	}
}

// landWrite puts the row into the state table. It becomes the newest version unless a newer one has come
// between; of equal ones the last inserted counts.
func (m *machine) landWrite(s state, i int, op op) {
	o := &s.ours[i]
	o.at = written
	st := step{who: i, op: op, order: inOrder, progress: true}
	for j := range m.Ours {
		if other := &s.ours[j]; j != i && other.holds() && other.claim.live() {
			st.breaks |= S1
		}
	}
	for j := range m.Peers {
		if p := &s.peers[j]; p.holds() && p.claim.age != stale {
			st.breaks |= S2
		}
	}
	if o.stamp < s.top {
		st.op = opWriteHidden
	} else {
		from := o.base
		if o.current {
			from = s.contents
		} else {
			st.breaks |= S3b
		}
		s.replace(from|1<<i, o.stamp)
	}
	st.next = s
	m.add(st)
}

// replace makes a new version the newest.
func (s *state) replace(contents set, stamp uint8) {
	for j := range s.ours {
		if other := &s.ours[j]; other.current {
			other.current, other.base = false, s.contents
		}
	}
	s.contents, s.top = contents, stamp
}

// killWrite is a fenced write whose answer was lost: the INSERT is killed before it landed, and reading back
// says so.
func (m *machine) killWrite(n state, i int) {
	o := &n.ours[i]
	o.at = ready
	if o.stamp < n.top {
		o.at = leaving
	}
	m.may(n, i, opWriteKilled)
}

// verify reads back.
func (m *machine) verify(s *state, i int) {
	o := &s.ours[i]
	n := *s
	n.ours[i].at = leaving
	switch {
	case !m.guarded(Verify):
		n.ours[i].acked = true
		m.proceed(n, i, opAcknowledged)
	case o.stamp != s.top, !o.claim.there(), o.claim.age != fresh:
		m.proceed(n, i, opUncertain)
	case s.rivals(m, i) != nobody:
		// Waited out.
	default:
		n.ours[i].acked = true
		m.proceed(n, i, opVerified)
	}
}

// renew sends a renewal, or lets one land.
func (m *machine) renew(s *state, i int) {
	o := &s.ours[i]
	if o.renewing {
		n := *s
		n.ours[i].renewing = false
		m.may(n, i, opRenewalKilled)
		m.landRenewal(n, i, opRenewalLands)
		return
	}
	if !o.holdsOrPolls() || o.at == writing {
		return
	}
	if m.settling(s, o.claim) && !m.Hasty {
		return // not due yet
	}
	n := *s
	if m.guarded(RenewalCheck) {
		switch {
		case !o.claim.there() || o.claim.age != fresh:
			n.ours[i].at = leaving
			m.proceed(n, i, opRenewalLost)
			return
		case s.rivals(m, i) != nobody:
			return // refused, and sent again shortly
		}
	}
	if m.Steps.claims() || m.RenewalApart {
		n.ours[i].renewing = true
		m.proceed(n, i, opRenewalChecks)
		return
	}
	m.landRenewal(n, i, opRenewal)
}

func (m *machine) landRenewal(s state, i int, op op) {
	expired := s.ours[i].claim.age == stale
	m.land(s, i, func(n state) {
		op := op
		if late := expired || n.ours[i].claim.age == stale; late && m.guarded(RenewalCount) && n.ours[i].holdsOrPolls() {
			n.ours[i].at = leaving
			op = opRenewalLate
		}
		m.proceed(n, i, op)
	})
}

// fail is how an owner stops short: it gives up (a timeout, a failure of its own), or it crashes.
func (m *machine) fail(s *state, i int) {
	o := &s.ours[i]
	switch o.at {
	case placed, polling, inside, ready, written:
		n := *s
		n.ours[i].at = leaving
		m.may(n, i, opGivesUp)
	}
	if o.at > idle && o.at < done {
		n := *s
		n.ours[i].at, n.ours[i].renewing = dead, false
		m.may(n, i, opCrashes)
	}
}
