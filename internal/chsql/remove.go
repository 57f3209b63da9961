package chsql

import "fmt"

// Remove deletes the rows of the ids up to the version that was seen of each, where a delete leaves no tombstone.
// It removes nothing where the fence does not hold for all of them, and says neither how many nor whether: see
// [StateTable.VerifyRemoved]. A newer version that came in meanwhile stays.
//
// It is a mutation, whose condition the server evaluates when it comes to it: the fence is that of the moment,
// also if nobody waits for it any more. So the ids are bound, since no external table is there then; see
// [Removable]. Never a throwIf: a mutation that fails blocks everybody's next one.
func (t StateTable) Remove(f Fence, ids []string, seen []uint64) Query {
	fence, fenceArgs, _ := f.holds(ids)
	conditions, args := t.removed(ids, seen)
	return Query{
		Text: fmt.Sprintf("DELETE FROM %s WHERE (%s) AND ifNull((%s), 0)", t, conditions, fence),
		Args: append(args, fenceArgs...),
		Settings: map[string]string{
			// Before 23.3, lightweight deletes were an experiment.
			"allow_experimental_lightweight_delete": "1",
			"lightweight_deletes_sync":              "2",
			"lightweight_delete_mode":               "alter_update",
			// A replicated table takes a subquery in a mutation only if it may be evaluated when the mutation is
			// carried out, which is what the fence asks for.
			"allow_nondeterministic_mutations":                "1",
			"mutations_execute_nondeterministic_on_initiator": "0",
			"mutations_execute_subqueries_on_initiator":       "0",
		},
	}
}

// VerifyRemoved tells what became of a Remove, in two rows as [StateTable.Verify] does. Its VerifyRows has: of how
// many state_ids nothing is left up to the version that was seen; how many have a newer one.
func (t StateTable) VerifyRemoved(f Fence, ids []string, seen []uint64) Query {
	conditions, args := t.removed(ids, seen)
	rows := fmt.Sprintf("toUInt64(? - uniqExactIf(state_id, %[1]s)), uniqExactIf(state_id, NOT (%[1]s)) FROM %[2]s WHERE state_id IN ?", conditions, t)
	all := append([]any{len(ids)}, args...)
	return verify(f, ids, rows, append(append(all, args...), ids))
}

// removed is the condition that a row is one of those to remove. As a pair of comparisons for each id it would be clearer,
// but cost the server half a second for a hundred of them.
func (t StateTable) removed(ids []string, seen []uint64) (text string, args []any) {
	number, numberArgs, _ := numbers(ids, seen)
	return fmt.Sprintf("state_id IN ? AND %s <= %s", t.Layout.version, number), append([]any{ids}, numberArgs...)
}

// Removable is how many of the ids, from the first on, one Remove can name: at least one, if there is one.
func Removable(ids []string) int {
	n := min(len(ids), maxBound)
	for n > 1 && !fits(ids[:n]) {
		n /= 2
	}
	return n
}
