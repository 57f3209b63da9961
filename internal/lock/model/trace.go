package model

import (
	"fmt"
	"strings"
)

// An op is a kind of step, for the reader of a trace.
type op uint8

const (
	opClaim op = iota
	opClaimChecks
	opClaimLands
	opClaimKilled
	opSeesNone
	opSeesSmaller
	opSeesLarger
	opYields
	opHolds
	opReads
	opFenceLost
	opFenceMoved
	opFenceChecks
	opWrite
	opWriteLands
	opWriteHidden
	opWriteKilled
	opAcknowledged
	opUncertain
	opVerified
	opRenewal
	opRenewalChecks
	opRenewalLands
	opRenewalKilled
	opRenewalLost
	opRenewalLate
	opDelete
	opGivesUp
	opCrashes
	opSeesNoHolder
	opSeesHolder
	opSweeps
	opInserts
	opWins
	opLoses
	opPeerReads
	opPeerWrites
	opExpires
	opStale
	opAges
	opMerged
)

var opTexts = [...]string{
	opClaim:         "claim: the guard lets it pass, the row is inserted",
	opClaimChecks:   "claim: the guard lets it pass, the insert is under way",
	opClaimLands:    "claim: the row lands",
	opClaimKilled:   "claim: no answer, killed before the row landed",
	opSeesNone:      "reads the claims: its own is gone, starts again",
	opSeesSmaller:   "reads the claims: a smaller one is there, withdraws",
	opSeesLarger:    "reads the claims: a larger one is there, keeps its own and polls",
	opYields:        "reads the claims: a larger one of ours stays, withdraws",
	opHolds:         "reads the claims: it is the one, HOLDS",
	opReads:         "reads the newest version and takes its stamp",
	opFenceLost:     "write: refused, its claim is gone or too old",
	opFenceMoved:    "write: refused, the version has moved",
	opFenceChecks:   "write: the fence lets it pass, the insert is under way",
	opWrite:         "WRITES, fenced",
	opWriteLands:    "WRITES: the row lands",
	opWriteHidden:   "WRITES: the row lands below a newer version",
	opWriteKilled:   "write: no answer, killed before the row landed",
	opAcknowledged:  "takes the write's acknowledgement for success",
	opUncertain:     "verifies: reports the write as uncertain",
	opVerified:      "verifies: reports the write as done",
	opRenewal:       "renews",
	opRenewalChecks: "renewal: the check passes, the insert is under way",
	opRenewalLands:  "renewal: the row lands and counts",
	opRenewalKilled: "renewal: no answer, killed before the row landed",
	opRenewalLost:   "renewal: refused, its claim is gone or too old: lost",
	opRenewalLate:   "renewal: the row lands, but its claim had expired: lost",
	opDelete:        "deletes its claim",
	opGivesUp:       "gives up",
	opCrashes:       "CRASHES",
	opSeesNoHolder:  "reads the holder: nobody",
	opSeesHolder:    "reads the holder: somebody",
	opSweeps:        "deletes stale claims",
	opInserts:       "inserts its claim",
	opWins:          "has settled, reads all claims: its own is the smallest, HOLDS",
	opLoses:         "has settled, reads all claims: its own is not the smallest, withdraws",
	opPeerReads:     "reads the bookmark",
	opPeerWrites:    "WRITES, unfenced",
	opExpires:       "(a TTL merge drops its claim)",
	opStale:         "(its claim is older than 300 s now)",
	opAges:          "(its claim is older than nine tenths of its lease now)",
	opMerged:        "(a merge drops its claim, which is older than another)",
}

// A Trace is a shortest way to a state, one line a step, with what stands in the tables after it.
type Trace []string

func (t Trace) String() string { return "\n  " + strings.Join(t, "\n  ") }

// trace follows the parents back to the first state and then takes the steps again, to give the owners the
// names that they keep. The last step is one that breaks promises, if it breaks any by itself.
func (e *explorer) trace(at, to uint32, breaks Promise) Trace {
	var path []uint32
	if at != to {
		path = append(path, to)
	}
	for ; at != 0; at = e.parents[at] {
		path = append(path, at)
	}
	names := [MaxOurs + MaxPeers]string{"A", "B", "C", "P", "Q"}
	var t Trace
	m := machine{Variant: e.Variant}
	s := e.seen.keys[0].unpack(&e.Variant)
	for i := len(path) - 1; i >= 0; i-- {
		for _, st := range m.from(&s) {
			if st.next.pack(&e.Variant) != e.seen.keys[path[i]] || i == 0 && st.breaks&breaks != breaks {
				continue
			}
			who := names[st.who]
			before := names
			for j := range m.Ours {
				names[j] = before[st.order[j]]
			}
			s = st.next
			t = append(t, fmt.Sprintf("%2d. %s %-78s | %s", len(path)-i, who, opTexts[st.op], s.describe(&m, names[:])))
			break
		}
	}
	return t
}

// describe tells what stands in the two tables.
func (s *state) describe(m *machine, names []string) string {
	var b strings.Builder
	b.WriteString("claims:")
	for i := range m.actors() {
		if c := s.claim(m.actor(i)); c.there() {
			fmt.Fprintf(&b, " %s", names[m.actor(i)])
			if c.age != fresh {
				fmt.Fprintf(&b, "(%s)", [...]string{aging: "old", stale: "stale"}[c.age])
			}
		}
	}
	b.WriteString("; bookmark holds:")
	for i := range m.Ours {
		if s.contents.has(i) {
			b.WriteString(" " + names[i])
		}
	}
	return b.String()
}
