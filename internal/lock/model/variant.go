package model

import (
	"fmt"
	"strings"
)

// A Layout is how the lock table is ordered, which decides what a merge may drop.
type Layout uint8

const (
	// Strict is ordered by (state_id, lock_id): a merge drops nobody's claim.
	Strict Layout = iota
	// Meltano is ordered by state_id alone: of two claims, a merge keeps the one with the newer locked_at,
	// and of equal ones the one that was inserted last.
	Meltano
)

func (l Layout) String() string { return [...]string{"strict", "meltano"}[l] }

// Steps tells which guarded statements of ours check in one step and write in another, as ClickHouse does.
type Steps uint8

const (
	// Atomic statements check and write at once.
	Atomic Steps = iota
	// FenceInTwo is the fenced write as check, then insert. Claims and renewals are atomic.
	FenceInTwo
	// ClaimsInTwo is claims and renewals as check, then insert. The fenced write is atomic.
	ClaimsInTwo
	// AllInTwo is every guarded statement as check, then insert.
	AllInTwo
)

func (s Steps) String() string {
	return [...]string{"atomic", "fence in two", "claims in two", "all in two"}[s]
}

func (s Steps) fence() bool  { return s == FenceInTwo || s == AllInTwo }
func (s Steps) claims() bool { return s == ClaimsInTwo || s == AllInTwo }

// A Bound is how long statements in two steps of ours may take between their check and their insert.
type Bound uint8

const (
	// WithinTenth bounds renewals and fenced writes by a tenth of the lease, as max_execution_time does. A peer
	// may settle meanwhile, and a claim may take for ever.
	WithinTenth Bound = iota
	// WithinSettle bounds all statements by the settle as well.
	WithinSettle
	// Unbounded lets them all take for ever.
	Unbounded
)

func (b Bound) String() string { return [...]string{"under a tenth", "under a settle", "unbounded"}[b] }

// A Guard is a rule of our protocol that a Variant can do without.
type Guard uint32

const (
	// ClaimGuard lets a claim in only if no live claim of another is there.
	ClaimGuard Guard = 1 << iota
	// DecideAlone holds only if ours is the only live claim. Without it: if ours is the smallest.
	DecideAlone
	// DecideSettled waits, on layout meltano, for a settle before the first reading, so that whoever
	// checked before our claim was there has inserted by then.
	DecideSettled
	// YieldToOurs withdraws a claim that keeps finding a larger one of ours beside it, since that one may
	// be a holder whose fence waits for us to go.
	YieldToOurs
	// Backdate dates our claims back, on layout meltano, so that a merge drops ours and not a peer's.
	Backdate
	// RenewalCheck renews only if our claim is there, fresh and alone.
	RenewalCheck
	// RenewalCount takes a renewal into account only if the claim before it had not expired.
	RenewalCount
	// RenewalJoined keeps renewals from overlapping with fenced writes and with the release.
	RenewalJoined
	// FenceThere refuses a fenced write if there is no live claim of ours.
	FenceThere
	// FenceFresh refuses a fenced write if our claim is older than nine tenths of the lease.
	FenceFresh
	// FenceAlone refuses a fenced write if a live claim of another is there.
	FenceAlone
	// FenceVersion refuses a fenced write if the newest version is not the one read inside the lock.
	FenceVersion
	// Verify reads back after a fenced write, and reports it as uncertain if anything is amiss.
	Verify

	// RenewalGuard is both halves of a renewal's guard: without it, it is a blind INSERT.
	RenewalGuard = RenewalCheck | RenewalCount
	// FenceClaim is all that a fenced write checks about claims.
	FenceClaim = FenceThere | FenceFresh | FenceAlone
)

var guardNames = [...]string{
	"claim guard", "decide alone", "decide settled", "yield to ours", "backdating", "renewal check",
	"renewal count", "renewal joined", "fence there", "fence fresh", "fence alone", "fence version", "verification",
}

func (g Guard) String() string {
	var names []string
	for i, name := range guardNames {
		if g&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// A Variant is one world to explore. The zero value of everything but the actors is the protocol as it is, on
// a strict lock table, with atomic statements.
type Variant struct {
	Layout Layout
	// Ours and Peers are how many actors there are: at most MaxOurs of ours and MaxPeers Meltano clients.
	Ours, Peers int
	Steps       Steps
	Bound       Bound
	// Without takes guards out.
	Without Guard
	// Hasty lets a first renewal come before a settle has passed since the claim, as where a fifth of the lease
	// is shorter than that.
	Hasty bool
	// RenewalApart makes a renewal two statements: a SELECT that checks and a blind INSERT, with any stall
	// of the client in between.
	RenewalApart bool
	// Overstay lets a peer hold for longer than 300 s. Without it, only a dead peer's claim turns stale.
	Overstay bool
	// Ahead is a newest version that lies ahead of the server's clock: every stamp is the newest version
	// plus one, so that two can be equal, and what a peer writes stays hidden.
	Ahead bool
}

func (v Variant) String() string {
	text := fmt.Sprintf("%s, %d of ours and %d peers, %s", v.Layout, v.Ours, v.Peers, v.Steps)
	if v.Steps != Atomic || v.RenewalApart {
		text += ", " + v.Bound.String()
	}
	for _, more := range []struct {
		is   bool
		text string
	}{
		{v.Hasty, "renewals at once"},
		{v.RenewalApart, "renewal apart"},
		{v.Overstay, "peers past 300 s"},
		{v.Ahead, "versions ahead of the clock"},
		{v.Without != 0, "without " + v.Without.String()},
	} {
		if more.is {
			text += ", " + more.text
		}
	}
	return text
}

func (v Variant) guarded(g Guard) bool { return v.Without&g == 0 }
