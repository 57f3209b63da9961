package provider

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// What a test of the decision table does with an entry.
const (
	opCreate        = "create"
	opRefresh       = "refresh"        // nothing is changed
	opUpdate        = "update"         // another completed_state is declared
	opDestroy       = "destroy"        //
	opIgnoreChanges = "ignore_changes" // as an update, of another option too, but changes of completed_state are ignored
)

// What is stored when the plan is made.
const (
	rowAbsent        = "absent"
	rowTombstone     = "tombstone"
	rowLiveEqual     = "live equal"     // what is declared, as Meltano spells it
	rowLiveDifferent = "live different" // what a pipeline stored
	rowMoved         = "moved"          // what a plan finds is as declared (in a create: nothing), what the apply finds is what a pipeline stored
)

// The payloads of the decision table. declared is what is stored when a configuration is made that is then refreshed,
// updated, destroyed, or updated with changes ignored; again is what an update declares.
const (
	declared = `{"singer_state":{"bookmarks":{"issues":{"since":"2026-01-01"}}}}`
	theirs   = `{"singer_state": {"bookmarks": {"issues": {"since": "2026-02-01"}}}}`
	again    = `{"singer_state":{"bookmarks":{"issues":{"since":"2026-01-02"}}}}`
	rewrote  = `{"singer_state": {"bookmarks": {"issues": {"since": "2026-01-01"}}}}` // declared, by Meltano
	gone     = "gone"
)

// decision is a row of the decision table: what is planned, what is stored afterwards, and what the apply says.
type decision struct {
	op, row string
	policy  writePolicy
	action  string // of the plan; "" where the entry is not in it
	stored  string // its completed_state, or gone
	fails   bool   // the apply fails and writes nothing
	says    string // in the summary of a warning, or in an error
}

const (
	changedSince = "changed since it was planned"
	wasThere     = "was there already"
	setBack      = "would be set back"
	losesAll     = "would lose all its bookmarks"
)

var decisions = []decision{
	{op: opCreate, row: rowAbsent, policy: policyEnforce, action: "create", stored: declared},
	{op: opCreate, row: rowTombstone, policy: policyEnforce, action: "create", stored: declared},
	{op: opCreate, row: rowLiveEqual, policy: policyEnforce, action: "create", stored: rewrote, says: wasThere},
	{op: opCreate, row: rowLiveDifferent, policy: policyEnforce, action: "create", stored: theirs, fails: true, says: "already exists"},
	{op: opCreate, row: rowMoved, policy: policyEnforce, action: "create", stored: theirs, fails: true, says: "already exists"},

	{op: opRefresh, row: rowAbsent, policy: policyEnforce, action: "create", stored: declared},
	{op: opRefresh, row: rowTombstone, policy: policyEnforce, action: "create", stored: declared},
	{op: opRefresh, row: rowLiveEqual, policy: policyEnforce, action: "no-op", stored: rewrote},
	{op: opRefresh, row: rowLiveDifferent, policy: policyEnforce, action: "update", stored: declared, says: setBack},
	{op: opRefresh, row: rowMoved, policy: policyEnforce, action: "no-op", stored: theirs},

	{op: opUpdate, row: rowAbsent, policy: policyEnforce, action: "create", stored: again},
	{op: opUpdate, row: rowTombstone, policy: policyEnforce, action: "create", stored: again},
	{op: opUpdate, row: rowLiveEqual, policy: policyEnforce, action: "update", stored: again},
	{op: opUpdate, row: rowLiveDifferent, policy: policyEnforce, action: "update", stored: again, says: setBack},
	{op: opUpdate, row: rowMoved, policy: policyEnforce, action: "update", stored: theirs, fails: true, says: changedSince},

	{op: opDestroy, row: rowAbsent, policy: policyEnforce, action: "", stored: gone},
	{op: opDestroy, row: rowTombstone, policy: policyEnforce, action: "", stored: gone},
	{op: opDestroy, row: rowLiveEqual, policy: policyEnforce, action: "delete", stored: gone, says: losesAll},
	{op: opDestroy, row: rowLiveDifferent, policy: policyEnforce, action: "delete", stored: gone, says: losesAll},
	{op: opDestroy, row: rowMoved, policy: policyEnforce, action: "delete", stored: theirs, fails: true, says: changedSince},

	{op: opIgnoreChanges, row: rowAbsent, policy: policyEnforce, action: "create", stored: again},
	{op: opIgnoreChanges, row: rowTombstone, policy: policyEnforce, action: "create", stored: again},
	{op: opIgnoreChanges, row: rowLiveEqual, policy: policyEnforce, action: "update", stored: rewrote},
	{op: opIgnoreChanges, row: rowLiveDifferent, policy: policyEnforce, action: "update", stored: theirs},
	{op: opIgnoreChanges, row: rowMoved, policy: policyEnforce, action: "update", stored: theirs},

	{op: opCreate, row: rowAbsent, policy: policySeed, action: "create", stored: declared},
	{op: opCreate, row: rowTombstone, policy: policySeed, action: "create", stored: declared},
	{op: opCreate, row: rowLiveEqual, policy: policySeed, action: "create", stored: rewrote, says: wasThere},
	{op: opCreate, row: rowLiveDifferent, policy: policySeed, action: "create", stored: theirs, says: wasThere},
	{op: opCreate, row: rowMoved, policy: policySeed, action: "create", stored: theirs, says: wasThere},

	{op: opRefresh, row: rowAbsent, policy: policySeed, action: "create", stored: declared},
	{op: opRefresh, row: rowTombstone, policy: policySeed, action: "create", stored: declared},
	{op: opRefresh, row: rowLiveEqual, policy: policySeed, action: "no-op", stored: rewrote},
	{op: opRefresh, row: rowLiveDifferent, policy: policySeed, action: "no-op", stored: theirs},
	{op: opRefresh, row: rowMoved, policy: policySeed, action: "no-op", stored: theirs},

	{op: opUpdate, row: rowAbsent, policy: policySeed, action: "create", stored: again},
	{op: opUpdate, row: rowTombstone, policy: policySeed, action: "create", stored: again},
	{op: opUpdate, row: rowLiveEqual, policy: policySeed, action: "update", stored: again},
	{op: opUpdate, row: rowLiveDifferent, policy: policySeed, action: "update", stored: again, says: setBack},
	{op: opUpdate, row: rowMoved, policy: policySeed, action: "update", stored: theirs, fails: true, says: changedSince},

	{op: opDestroy, row: rowAbsent, policy: policySeed, action: "", stored: gone},
	{op: opDestroy, row: rowTombstone, policy: policySeed, action: "", stored: gone},
	{op: opDestroy, row: rowLiveEqual, policy: policySeed, action: "delete", stored: gone, says: losesAll},
	{op: opDestroy, row: rowLiveDifferent, policy: policySeed, action: "delete", stored: gone, says: losesAll},
	{op: opDestroy, row: rowMoved, policy: policySeed, action: "delete", stored: theirs, fails: true, says: changedSince},

	{op: opIgnoreChanges, row: rowAbsent, policy: policySeed, action: "create", stored: again},
	{op: opIgnoreChanges, row: rowTombstone, policy: policySeed, action: "create", stored: again},
	{op: opIgnoreChanges, row: rowLiveEqual, policy: policySeed, action: "update", stored: rewrote},
	{op: opIgnoreChanges, row: rowLiveDifferent, policy: policySeed, action: "update", stored: theirs},
	{op: opIgnoreChanges, row: rowMoved, policy: policySeed, action: "update", stored: theirs},
}

// key names the entry of a decision: in its state_id, and as the key of its instance.
func (d decision) key() string { return fmt.Sprintf("%s %s %s", d.policy, d.op, d.row) }

func (d decision) address() string {
	return fmt.Sprintf("clickhousestate_entry.%s[%q]", d.op, d.key())
}

// The documentation shows the decision table.
func TestEntry_decisionsDocumented(t *testing.T) {
	t.Parallel()
	const file = "../../templates/resources/entry.md.tmpl"
	documented, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cells := map[decision]string{} // by operation, row and policy
	for _, d := range decisions {
		cells[decision{op: d.op, row: d.row, policy: d.policy}] = d.cell()
	}
	var table strings.Builder
	table.WriteString("| Terraform | stored is | `enforce` | `seed` |\n|---|---|---|---|\n")
	for _, op := range []struct{ op, title string }{
		{opCreate, "creates"},
		{opRefresh, "finds the configuration unchanged"},
		{opUpdate, "finds another `completed_state` declared"},
		{opIgnoreChanges, "finds another option, and ignores changes of `completed_state`"},
		{opDestroy, "destroys"},
	} {
		for _, row := range []struct{ row, title string }{
			{rowAbsent, "nothing"},
			{rowLiveEqual, "what is declared"},
			{rowLiveDifferent, "something else"},
			{rowMoved, "moved"},
		} {
			fmt.Fprintf(&table, "| %s | %s |", op.title, row.title)
			for _, policy := range []writePolicy{policyEnforce, policySeed} {
				cell := cells[decision{op: op.op, row: row.row, policy: policy}]
				if row.row == rowAbsent && cell != cells[decision{op: op.op, row: rowTombstone, policy: policy}] {
					t.Errorf("%s, %s: a tombstone is not the same as nothing", op.op, policy)
				}
				fmt.Fprintf(&table, " %s |", cell)
			}
			table.WriteString("\n")
		}
	}
	if !strings.Contains(string(documented), table.String()) {
		t.Errorf("%s does not have this table:\n%s", file, table.String())
	}
}

// cell is a decision for readers.
func (d decision) cell() string {
	var cell string
	switch {
	case d.fails:
		return "error"
	case d.action == "":
		return "forgets it"
	case d.action == "no-op":
		return "no change"
	case d.action == "delete":
		cell = "deletes it"
	case d.stored == declared && d.op == opRefresh && d.action == "update":
		cell = "puts it back"
	case d.stored == declared || d.stored == again:
		cell = "writes it"
	case d.op == opIgnoreChanges:
		return "writes no row"
	default:
		cell = "takes it over as it is"
	}
	if d.says != "" {
		cell += ", warns"
	}
	return cell
}
