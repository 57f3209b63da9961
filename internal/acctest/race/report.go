package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// columns of the table, each with what it shows of a verdict.
var columns = []struct {
	name string
	show func(*verdict) string
}{
	{"scenario", func(v *verdict) string { return v.Scenario.Name }},
	{"contenders", func(v *verdict) string { return v.Scenario.contenders() }},
	{"stale after, settle", func(v *verdict) string {
		return fmt.Sprintf("%s, %s", v.Scenario.Timing.Stale, v.Scenario.Timing.Settle)
	}},
	{"rounds", func(v *verdict) string { return fmt.Sprint(v.Rounds) }},
	{"increments (ours + peers)", func(v *verdict) string { return fmt.Sprintf("%d + %d", v.IncrementsOurs, v.IncrementsPeers) }},
	{"outcome unknown to ours, of these stored", func(v *verdict) string {
		if v.Scenario.Ours == 0 {
			return "–"
		}
		return fmt.Sprintf("%d, %d", v.Unknown, v.UnknownStored)
	}},
	{"faults", func(v *verdict) string {
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(v.Faults)) {
			parts = append(parts, fmt.Sprintf("%d %s", v.Faults[name], name))
		}
		return strings.Join(parts, ", ")
	}},
	{"overlaps that wrote", func(v *verdict) string { return ifOurs(v, v.Overlaps) }},
	{"… by peers that were late", func(v *verdict) string { return ifOurs(v, v.OverlapsLate) }},
	{"… within holds hidden by a merge", func(v *verdict) string { return ifOurs(v, v.OverlapsHidden) }},
	{"lost updates of ours", func(v *verdict) string { return ifOurs(v, v.Lost) }},
	{"… replaced by late peers", func(v *verdict) string { return ifOurs(v, v.LostToLate) }},
	{"… replaced by peers hidden by a merge", func(v *verdict) string { return ifOurs(v, v.LostToHidden) }},
	{"updates of peers lost among peers", func(v *verdict) string { return fmt.Sprint(v.LostOfPeers) }},
	{"fenced writes refused", func(v *verdict) string { return ifOurs(v, v.Refused) }},
	{"acquire uncontended p50/p99", func(v *verdict) string { return percentiles(v.Uncontended) }},
	{"acquire contended p50/p99", func(v *verdict) string { return percentiles(v.Contended) }},
	{"longest round", func(v *verdict) string {
		if v.Scenario.Ours == 0 {
			return "–"
		}
		return v.LongestRound.Round(100 * time.Millisecond).String()
	}},
	{"claims of ours left", func(v *verdict) string {
		if v.Scenario.Ours == 0 {
			return "–"
		}
		return fmt.Sprintf("%d killed, %d undone, %d announced, %d other", v.Claims.Killed, v.Claims.Undone, v.Claims.Announced, v.Claims.Unexplained)
	}},
	{"time", func(v *verdict) string { return v.Elapsed.Round(time.Second).String() }},
}

// ifOurs is a number that means nothing where none of ours took part.
func ifOurs(v *verdict, n int) string {
	if v.Scenario.Ours == 0 {
		return "–"
	}
	return fmt.Sprint(n)
}

func percentiles(d durations) string {
	if len(d) == 0 {
		return "–"
	}
	return fmt.Sprintf("%s/%s", millis(d.percentile(50)), millis(d.percentile(99)))
}

func millis(d time.Duration) string { return fmt.Sprintf("%.0f ms", d.Seconds()*1000) }

// writeText prints the table turned around: a column for each scenario would be too wide for a terminal.
func writeText(w io.Writer, verdicts []*verdict) {
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, v := range verdicts {
		for _, c := range columns {
			fmt.Fprintf(table, "%s\t%s\n", c.name, c.show(v))
		}
		for _, text := range v.Violations {
			fmt.Fprintf(table, "VIOLATION\t%s\n", text)
		}
		fmt.Fprintln(table)
	}
	_ = table.Flush() // as the other prints: there is nowhere else to say that it failed
}

// writeMarkdown prints the table for the documentation, turned around for the same reason: a row for each figure.
func writeMarkdown(w io.Writer, verdicts []*verdict) {
	for i, c := range columns {
		fmt.Fprintf(w, "| %s |", c.name)
		for _, v := range verdicts {
			fmt.Fprintf(w, " %s |", c.show(v))
		}
		fmt.Fprintln(w)
		if i == 0 {
			fmt.Fprintf(w, "|%s\n", strings.Repeat("---|", len(verdicts)+1))
		}
	}
}
