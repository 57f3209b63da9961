package model

import (
	"flag"
	"fmt"
	"strings"
	"testing"
)

var raceModel = flag.Bool("race-model", false, "explore the largest variants as well, which takes minutes")

func in(l Layout, ours, peers int, s Steps, b Bound) Variant {
	return Variant{Layout: l, Ours: ours, Peers: peers, Steps: s, Bound: b}
}

func without(v Variant, g Guard) Variant {
	v.Without = g
	return v
}

func apart(v Variant) Variant {
	v.RenewalApart = true
	return v
}

func overstay(v Variant) Variant {
	v.Overstay = true
	return v
}

func hasty(v Variant) Variant {
	v.Hasty = true
	return v
}

func ahead(v Variant) Variant {
	v.Ahead = true
	return v
}

// TestPromises says which promise holds where, exactly.
func TestPromises(t *testing.T) {
	const lateWrites = S1 | S2 | S3b
	type world struct {
		Variant
		breaks Promise
	}
	worlds := []world{
		// A strict lock table, statements within a tenth of the lease: everything holds.
		{in(Strict, 2, 1, Atomic, WithinTenth), 0},
		{in(Strict, 2, 1, FenceInTwo, WithinTenth), 0},
		{in(Strict, 2, 1, ClaimsInTwo, WithinTenth), 0},
		{in(Strict, 2, 1, AllInTwo, WithinTenth), 0},
		{in(Strict, 2, 2, AllInTwo, WithinTenth), 0},
		// Meltano's, statements within a settle: only who thinks that it holds may be wrong.
		{in(Meltano, 2, 1, Atomic, WithinSettle), S4},
		{in(Meltano, 2, 1, FenceInTwo, WithinSettle), S4},
		{in(Meltano, 2, 1, ClaimsInTwo, WithinSettle), S4},
		{in(Meltano, 2, 1, AllInTwo, WithinSettle), S4},
		{in(Meltano, 3, 0, AllInTwo, WithinSettle), 0},
		{hasty(in(Meltano, 2, 1, AllInTwo, WithinSettle)), S4},
		// The same without a settle before each decision: of two of ours, one may write inside the other's
		// hold, and be replaced unread. It reports its write as uncertain, but for hasty renewals.
		{without(in(Meltano, 2, 1, AllInTwo, WithinSettle), DecideSettled), S1 | S3b | S4},
		{hasty(without(in(Meltano, 2, 1, AllInTwo, WithinSettle), DecideSettled)), S1 | S3a | S3b | S4 | L1},
		// Statements without a bound, which max_execution_time rules out: a write may land late, but on a
		// strict table none that was verified is lost. Claims and renewals may take as long as they like.
		{in(Strict, 2, 1, FenceInTwo, Unbounded), lateWrites},
		{in(Strict, 2, 1, ClaimsInTwo, Unbounded), 0},
		{in(Strict, 2, 1, AllInTwo, Unbounded), lateWrites},
		{in(Meltano, 2, 1, FenceInTwo, Unbounded), lateWrites | S4},
		{in(Meltano, 2, 1, ClaimsInTwo, Unbounded), S4 | L1},
		{in(Meltano, 2, 1, AllInTwo, Unbounded), lateWrites | S3a | S4 | L1},
		// Not promised. A peer past 300 s is entered over, and its late write replaces ours.
		{overstay(in(Strict, 2, 1, Atomic, WithinTenth)), S3a},
		{overstay(in(Strict, 2, 1, AllInTwo, WithinTenth)), S3a},
		// Not promised. Of two peers on Meltano's table, one hides the other's claim and withdraws.
		{in(Meltano, 1, 2, Atomic, WithinSettle), S2 | S3a | S4},
		// Two stamps can be equal if the newest version lies ahead of the clock. Within the bound that does no harm.
		{ahead(in(Strict, 2, 1, AllInTwo, WithinTenth)), 0},
		{ahead(in(Meltano, 2, 1, AllInTwo, WithinSettle)), S4},
		{ahead(in(Strict, 2, 0, FenceInTwo, Unbounded)), S1 | S3a | S3b},
	}
	// Whatever the other steps can do, all in two can do as well.
	if !underRace {
		worlds = append(worlds,
			world{in(Strict, 3, 1, AllInTwo, WithinTenth), 0},
			world{in(Meltano, 3, 1, AllInTwo, WithinSettle), S4},
		)
	}
	if *raceModel {
		worlds = append(worlds,
			world{in(Strict, 3, 1, Atomic, WithinTenth), 0},
			world{in(Strict, 3, 1, FenceInTwo, WithinTenth), 0},
			world{in(Strict, 3, 1, ClaimsInTwo, WithinTenth), 0},
			world{in(Meltano, 3, 1, Atomic, WithinSettle), S4},
			world{in(Meltano, 3, 1, FenceInTwo, WithinSettle), S4},
			world{in(Meltano, 3, 1, ClaimsInTwo, WithinSettle), S4},
			world{in(Meltano, 2, 2, AllInTwo, WithinSettle), S2 | S3a | S4},
			world{without(in(Meltano, 3, 1, AllInTwo, WithinSettle), DecideSettled), S1 | S3b | S4},
			world{in(Strict, 3, 2, AllInTwo, WithinTenth), 0},
			world{in(Strict, 3, 1, AllInTwo, Unbounded), lateWrites},
		)
	}
	results := make([]Result, len(worlds))
	t.Run("each", func(t *testing.T) {
		for i, w := range worlds {
			t.Run(w.String(), func(t *testing.T) {
				t.Parallel()
				results[i] = Explore(w.Variant, 0)
				for p := Promise(1); p < all; p <<= 1 {
					switch trace := results[i].Traces[p]; {
					case w.breaks&^results[i].Broken&p != 0:
						t.Errorf("%s holds, and should not", p)
					case results[i].Broken&^w.breaks&p != 0:
						t.Errorf("%s does not hold:%s", p, trace)
					case trace != nil:
						t.Logf("%s does not hold here:%s", p, trace)
					}
				}
			})
		}
	})
	t.Log(promiseTable(results))
}

// promiseTable sets the results out for a reader.
func promiseTable(results []Result) string {
	var b strings.Builder
	b.WriteString("which promise holds where (BREAKS: it does not)\n")
	for p := Promise(1); p < all; p <<= 1 {
		fmt.Fprintf(&b, "%-7s", p)
	}
	fmt.Fprintf(&b, "%9s  %s\n", "states", "variant")
	for _, r := range results {
		for p := Promise(1); p < all; p <<= 1 {
			word := "holds"
			if r.Broken&p != 0 {
				word = "BREAKS"
			}
			fmt.Fprintf(&b, "%-7s", word)
		}
		fmt.Fprintf(&b, "%9d  %s\n", r.States, r.Variant)
	}
	return b.String()
}

// TestGuards takes out one guard after the other, each in a small world in which the promise needs it.
func TestGuards(t *testing.T) {
	for _, c := range []struct {
		breaks Promise
		Variant
	}{
		// Acquiring.
		{S3a, without(in(Meltano, 1, 1, Atomic, WithinSettle), ClaimGuard)},
		{S4, without(in(Strict, 1, 1, ClaimsInTwo, WithinTenth), DecideAlone)},
		{S1, without(in(Strict, 2, 0, AllInTwo, WithinTenth), DecideAlone)},
		{S1, without(in(Meltano, 2, 0, AllInTwo, WithinSettle), DecideSettled)},
		{S3b, without(in(Meltano, 2, 0, AllInTwo, WithinSettle), DecideSettled)},
		{S3a, hasty(without(in(Meltano, 2, 0, AllInTwo, WithinSettle), DecideSettled))},
		{L1, without(in(Strict, 2, 0, ClaimsInTwo, WithinTenth), YieldToOurs)},
		{S2, without(in(Meltano, 1, 1, ClaimsInTwo, Unbounded), Backdate)},
		{S3a, without(in(Meltano, 1, 1, ClaimsInTwo, Unbounded), Backdate)},
		// Renewing: a blind INSERT, a check in a statement of its own, and each half of the guard.
		{S4, without(in(Strict, 1, 1, Atomic, WithinTenth), RenewalGuard)},
		{S1, without(in(Strict, 2, 0, FenceInTwo, WithinTenth), RenewalGuard)},
		{S4, apart(without(in(Strict, 1, 1, Atomic, WithinTenth), RenewalCount))},
		{S3a, without(in(Meltano, 1, 1, Atomic, WithinSettle), RenewalCheck)},
		{S4, without(in(Strict, 1, 1, ClaimsInTwo, Unbounded), RenewalCount)},
		{S5, without(in(Strict, 1, 1, ClaimsInTwo, WithinTenth), RenewalJoined)},
		// Writing.
		{S1, without(in(Strict, 2, 0, Atomic, WithinTenth), FenceClaim)},
		{S2, without(in(Strict, 1, 1, Atomic, WithinTenth), FenceClaim)},
		{S2, without(in(Strict, 1, 1, FenceInTwo, WithinTenth), FenceThere)},
		{S1, without(in(Strict, 2, 0, FenceInTwo, WithinTenth), FenceFresh)},
		{S2, without(in(Meltano, 1, 1, FenceInTwo, WithinSettle), FenceAlone)},
		{S3a, without(in(Meltano, 2, 0, ClaimsInTwo, Unbounded), FenceVersion)},
		{S3b, without(in(Meltano, 2, 0, ClaimsInTwo, Unbounded), FenceVersion)},
		{S3a, without(in(Strict, 1, 1, FenceInTwo, Unbounded), Verify)},
	} {
		t.Run(fmt.Sprintf("%s %s", c.breaks, c.Variant), func(t *testing.T) {
			t.Parallel()
			guarded := c.Variant
			guarded.Without, guarded.RenewalApart = 0, false
			if r := Explore(guarded, c.breaks); r.Broken&c.breaks != 0 {
				t.Errorf("%s does not hold with the guard either:%s", c.breaks, r.Traces[c.breaks])
			}
			r := Explore(c.Variant, c.breaks)
			if r.Broken&c.breaks == 0 {
				t.Fatalf("%s holds without the guard as well: %d states", c.breaks, r.States)
			}
			t.Logf("%s does not hold without the guard:%s", c.breaks, r.Traces[c.breaks])
		})
	}
}

// TestCoding: a state survives its key, wherever it comes up.
func TestCoding(t *testing.T) {
	v := in(Meltano, 2, 1, AllInTwo, Unbounded)
	m := machine{Variant: v}
	seen := newTable()
	var first state
	m.normal(&first)
	seen.add(first.pack(&v))
	for at := 0; at < len(seen.keys) && at < 20_000; at++ {
		s := seen.keys[at].unpack(&v)
		for _, st := range m.from(&s) {
			k := st.next.pack(&v)
			if back := k.unpack(&v); back != st.next {
				t.Fatalf("%+v came back as %+v", st.next, back)
			}
			again := st.next
			m.normal(&again)
			if again != st.next {
				t.Fatalf("%+v is not in its normal form %+v", st.next, again)
			}
			seen.add(k)
		}
	}
	if len(seen.keys) < 20_000 {
		t.Fatalf("only %d states", len(seen.keys))
	}
}
