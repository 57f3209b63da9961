package main

import (
	"fmt"
	"slices"
	"time"
)

// A verdict is what one race showed.
type verdict struct {
	Scenario scenario
	Elapsed  time.Duration
	// Rounds are attempts to get the lock; Increments those acknowledged, of ours and of peers.
	Rounds, IncrementsOurs, IncrementsPeers int
	// Unknown are increments of ours whose writer was killed or told that nobody can say, and UnknownStored those of them
	// that are in the history.
	Unknown, UnknownStored int
	Faults                 map[string]int64

	// Lost are acknowledged increments of ours that should be there. LostToLate were replaced by a peer that wrote when its
	// claim was stale; LostToHidden by one whose claim a merge hid, on a lock table where that happens.
	Lost, LostToLate, LostToHidden int
	// LostOfPeers are acknowledged increments of peers, replaced by peers.
	LostOfPeers int
	// Overlaps are writes within another's hold: of ours in ours, of ours in a peer's, of a peer's in ours, each with a
	// claim that counted. OverlapsLate are those of peers that were late, OverlapsHidden those within a hold whose claim
	// a merge took, which happens on a lock table of Meltano's.
	Overlaps, OverlapsLate, OverlapsHidden int
	// OverlapsOfPeers are those among peers.
	OverlapsOfPeers int
	// Refused are fenced writes that a guard refused.
	Refused int
	// Uncontended and Contended are how long acquiring took, as the server saw it; LongestRound is the longest round of
	// ours, pauses left out, as the client saw it.
	Uncontended, Contended durations
	LongestRound           time.Duration
	Claims                 claimsLeft
	// Violations are the broken promises, in words.
	Violations []string
}

// claimsLeft are the claims in the lock table after the end.
type claimsLeft struct {
	// Killed are of ours that were killed, Announced of ours that said so, Undone of ours that had read them gone: a plain
	// DELETE beside theirs brought them back. Unexplained are all others of ours.
	Killed, Announced, Undone, Unexplained int
	Peers                                  int
}

func (v *verdict) violation(format string, args ...any) {
	v.Violations = append(v.Violations, fmt.Sprintf(format, args...))
}

// judgeHistory finds what was lost, and to whom.
func (v *verdict) judgeHistory(byCounter map[string][]*increment, finals map[string]tally, landings []landing) {
	late, stored := map[string]bool{}, map[string]time.Time{}
	for _, l := range landings {
		if l.kind == kindPeer {
			late[l.token], stored[l.token] = l.late(v.Scenario.Timing.Stale), l.finish
		}
	}
	for counter, increments := range byCounter {
		for _, i := range increments {
			if at, ok := stored[i.token]; ok {
				i.at = at
			}
		}
		h, err := newHistory(increments, finals[counter])
		if err != nil {
			v.violation("%s: %v", counter, err)
			continue
		}
		for _, i := range increments {
			v.count(i, h)
		}
		for _, i := range h.denied() {
			v.violation("%s: %s was reported as not written (%s), but it is", counter, i.token, i.refusedBecause)
		}
		for _, l := range h.losses() {
			v.judgeLoss(l, late)
		}
	}
}

func (v *verdict) count(i *increment, h *history) {
	switch {
	case i.outcome == acknowledged && i.kind == kindOurs:
		v.IncrementsOurs++
	case i.outcome == acknowledged:
		v.IncrementsPeers++
	case i.outcome == unknown && i.kind == kindOurs:
		v.Unknown++
		if h.survivors[i.token] {
			v.UnknownStored++
		}
	}
}

func (v *verdict) judgeLoss(l loss, late map[string]bool) {
	switch {
	case l.kind == kindPeer && late[l.token]:
		v.LostOfPeers++ // whoever came meanwhile was right to take it for dead
	case l.by == nil:
		v.Lost++
		v.violation("%s: %s (version %d) was acknowledged and never seen again", l.counter, l.token, l.version)
	case l.by.kind == kindOurs:
		v.Lost++
		v.violation("%s: %s of ours (version %d) replaced %s (version %d) without having read it", l.counter, l.by.token, l.by.version,
			l.token, l.version)
	case l.kind == kindPeer:
		v.LostOfPeers++
	case late[l.by.token]:
		v.LostToLate++
	case v.Scenario.Promise == nothingOverwritten:
		v.LostToHidden++
	default:
		v.Lost++
		v.violation("%s: %s (version %d) of ours was replaced by %s of a peer that was not late", l.counter, l.token, l.version, l.by.token)
	}
}

// late tells that a write came when its claim did not count any more.
func (l landing) late(stale time.Duration) bool {
	return l.hold != nil && l.finish.Sub(l.hold.claimed) > stale
}

// judgeOverlaps finds the writes that came within another contender's hold.
func (v *verdict) judgeOverlaps(holds []*hold, landings []landing) {
	lease := map[kind]time.Duration{kindOurs: v.Scenario.Timing.Stale, kindPeer: v.Scenario.Timing.Stale}
	if !v.Scenario.Strict {
		lease[kindOurs] -= v.Scenario.Timing.Backdate
	}
	byCounter := map[string][]*hold{}
	for _, h := range holds {
		byCounter[h.counter] = append(byCounter[h.counter], h)
	}
	for _, l := range landings {
		for _, h := range byCounter[l.counter] {
			if h == l.hold || h.label == l.label || !h.entered.Before(l.finish) || !l.start.Before(h.until(lease[h.kind])) {
				continue
			}
			v.judgeOverlap(l, h)
		}
	}
}

func (v *verdict) judgeOverlap(l landing, h *hold) {
	switch {
	case l.kind == kindPeer && h.kind == kindPeer:
		v.OverlapsOfPeers++
	case l.kind == kindPeer && l.late(v.Scenario.Timing.Stale):
		v.OverlapsLate++
	case !v.Scenario.Strict && h.kind == kindOurs, v.Scenario.Promise == nothingOverwritten:
		// A merge took the holder's claim: it may be inside still, but it cannot write if it is ours.
		v.OverlapsHidden++
	default:
		v.Overlaps++
		v.violation("%s: %s wrote from %s to %s within the hold of %s, entered %s, claimed %s, left %s", l.counter, l.label,
			clock(l.start), clock(l.finish), h.label, clock(h.entered), clock(h.claimed), clock(h.left))
	}
}

func clock(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format("15:04:05.000000")
}

// judgeWaiting measures the rounds and checks that they come to an end in time.
func (v *verdict) judgeWaiting(processes []*process, bound time.Duration) {
	for _, p := range processes {
		var since time.Time
		for _, e := range p.events {
			at := time.UnixMicro(e.At)
			switch e.Kind {
			case began:
				since = at
				v.Rounds++
			case stalled:
				since = since.Add(time.Duration(e.Millis) * time.Millisecond)
			case ended:
				if p.spec.Kind == kindOurs {
					v.LongestRound = max(v.LongestRound, at.Sub(since)-p.paused(since, at))
				}
			}
		}
	}
	if v.LongestRound > bound {
		v.violation("a round of ours took %s, more than %s", v.LongestRound, bound)
	}
}

// judgeAcquiring measures how long acquiring took, of ours.
func (v *verdict) judgeAcquiring(holds []*hold, trace []statement) {
	for _, h := range holds {
		if h.kind != kindOurs {
			continue
		}
		if took := h.entered.Sub(h.opened); h.contended {
			v.Contended = append(v.Contended, took)
		} else {
			v.Uncontended = append(v.Uncontended, took)
		}
	}
	for _, s := range trace {
		switch {
		case s.role != write:
		case s.fenced:
			v.Refused++
		case s.stored() && s.written != s.rows:
			v.violation("%s: %s wrote %d of %d rows at %s", s.counter, s.label, s.written, s.rows, clock(s.start))
		}
	}
}

// conclude adds what the scenario's promise asks for beyond the violations that were met on the way.
func (v *verdict) conclude() {
	switch {
	case v.Scenario.Promise == mustLose && v.LostOfPeers == 0:
		v.violation("plain Meltano lost nothing: this race proves nothing")
	case v.Scenario.Ours > 0 && v.IncrementsOurs == 0, v.Scenario.Peers > 0 && v.IncrementsPeers == 0:
		v.violation("%d increments of ours and %d of peers: nobody contended", v.IncrementsOurs, v.IncrementsPeers)
	}
	if v.Claims.Unexplained > 0 {
		v.violation("%d claims of ours are left, and nobody said so", v.Claims.Unexplained)
	}
}

// durations can be ranked.
type durations []time.Duration

// percentile returns the value below which p of 100 lie; zero of none.
func (d durations) percentile(p int) time.Duration {
	if len(d) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(d))
	return sorted[min(len(sorted)*p/100, len(sorted)-1)]
}
