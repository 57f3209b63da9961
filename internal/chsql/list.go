package chsql

import (
	"fmt"
	"strings"
)

// A Filter says which live entries a listing returns.
type Filter struct {
	// Glob is a pattern of whole state_ids; see [Like].
	Glob string
	// After and Before are Unix milliseconds, which updated_at has to lie between, both excluded. Nil is no bound.
	After, Before *int64
	// Limit is how many entries there are at most, the first ones. Zero is no limit.
	Limit int
}

// List reads the live entries that a filter lets through, in the order of their state_ids. The filters are on what
// FINAL shows: an older version that would match does not count.
// Columns: those of [StateTable.Live].
func (t StateTable) List(f Filter) Query {
	where, args := []string{"state_id LIKE ?"}, []any{Like(f.Glob)}
	if f.After != nil {
		where, args = append(where, "toUnixTimestamp64Milli(updated_at) > ?"), append(args, *f.After)
	}
	if f.Before != nil {
		where, args = append(where, "toUnixTimestamp64Milli(updated_at) < ?"), append(args, *f.Before)
	}
	limit := ""
	if f.Limit > 0 {
		limit, args = "\nLIMIT ?", append(args, f.Limit)
	}
	return Query{
		Text: fmt.Sprintf(`SELECT state_id, completed_state, partial_state, %s, updated_at
FROM %s FINAL
WHERE %s
ORDER BY state_id%s`, t.Layout.version, t, strings.Join(where, " AND "), limit),
		Args:     args,
		Settings: reading(),
	}
}

// Match reads the state_ids of the live entries that a glob matches, sorted.
// Columns: state_id String.
func (t StateTable) Match(glob string) Query {
	return Query{
		Text:     fmt.Sprintf("SELECT state_id FROM %s FINAL WHERE state_id LIKE ? ORDER BY state_id", t),
		Args:     []any{Like(glob)},
		Settings: reading(),
	}
}

// Like makes a pattern for LIKE of a glob: * is any number of characters, ? is one, and everything else is itself,
// also what LIKE would take for a wildcard.
func Like(glob string) string {
	return strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`, "*", "%", "?", "_").Replace(glob)
}
