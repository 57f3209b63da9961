package provider

import (
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/bookmark"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

// listedIDs is how many entries a message about many of them names.
const listedIDs = 20

// several begins a summary about entries: the first one and how many more, since Terraform folds equal summaries, and then
// what one is, or many are.
func several(ids []string, is, are string) string {
	if len(ids) == 1 {
		return fmt.Sprintf("State entry %q %s", ids[0], is)
	}
	return fmt.Sprintf("State entries %q and %d more %s", ids[0], len(ids)-1, are)
}

// listed names the first ones, indented so that Terraform does not wrap them.
func listed(ids []string) string {
	var out strings.Builder
	for _, id := range ids[:min(listedIDs, len(ids))] {
		fmt.Fprintf(&out, "  %s\n", hclQuote(id))
	}
	if more := len(ids) - listedIDs; more > 0 {
		fmt.Fprintf(&out, "  and %d more\n", more)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// mergedPayload is what the next run would use of two payloads; null if they are no state.
func mergedPayload(completed, partial *string) payload {
	merged, _ := merge(payloadOf(completed), payloadOf(partial))
	return merged
}

// losesBookmarks reports whether a delete would make the next run a full refresh.
func losesBookmarks(stored payload) bool {
	document, err := bookmark.Parse(stored.ValueString())
	return err == nil && bookmark.FullRefresh(document, bookmark.Document{})
}

// addMoreRewinds counts the entries that would be set back beside those that are named.
func addMoreRewinds(diags *diag.Diagnostics, policy rewindPolicy, place string, more int) {
	if more > 0 {
		rewind{policy: policy}.add(diags, fmt.Sprintf("%d more state entries in table %s would be set back", more, place),
			"They are shown in the plan, but not value by value.")
	}
}

// addDeleted says which entries would lose all their bookmarks by being deleted: by an update, or by the destroy of what
// m is the state of.
func addDeleted(diags *diag.Diagnostics, m entriesResourceModel, destroys bool, ids []string) {
	if len(ids) == 0 {
		return
	}
	policy := rewindPolicies.of(m.OnRewind)
	effect, allow := "They are not declared, so applying this deletes what the pipelines have stored: ", "set"
	keep := `To keep what is stored, declare it, or let deletion_policy = "retain" forget what is not declared.`
	switch {
	case destroys:
		effect, allow = "Destroying this deletes what the pipelines have stored: ", "apply"
		keep = keepAdvice
	case policy == rewindReplace:
		effect, keep = "They would be destroyed, and are not declared, or not known yet: ", replaceAdvice
	case m.Exclusive.ValueBool():
		keep = "To keep what is stored, declare it, or set exclusive = false."
	}
	if policy == rewindError {
		keep += fmt.Sprintf(` To delete it on purpose, %s on_rewind = "warn" or "allow" first.`, allow)
	}
	rewind{policy: policy}.add(diags, several(ids, "would lose all its bookmarks", "would lose all their bookmarks"),
		effect+"their next run is a full refresh, which reads everything anew.", listed(ids), keep)
}

// warnApplied warns of what the user would not expect of writes that happened.
func warnApplied(diags *diag.Diagnostics, m entriesResourceModel, applied map[string]statestore.Written) {
	var tookOver, ahead, left []string
	var until time.Time
	var unreleased *statestore.ReleaseError
	for _, id := range sortedIDs(applied) {
		written := applied[id]
		if written.TookOver {
			tookOver = append(tookOver, id)
		}
		if written.Left {
			left = append(left, id)
		}
		if written.Ahead > 0 {
			ahead = append(ahead, id)
			if written.Entry.UpdatedAt.After(until) {
				until = written.Entry.UpdatedAt
			}
		}
		if written.Unreleased != nil {
			unreleased = written.Unreleased
		}
	}
	if len(tookOver) > 0 {
		diags.AddWarning(several(tookOver, "was there already", "were there already"), tookOverDetail(m.writePolicy())+"\n\n"+listed(tookOver))
	}
	if len(left) > 0 {
		diags.AddWarning(several(left, "was left as it is", "were left as they are"), leftDetail+"\n\n"+listed(left))
	}
	if len(ahead) > 0 {
		diags.AddWarning(several(ahead, "hides", "hide")+" what Meltano writes until "+until.UTC().Format(time.RFC3339),
			"Versions from the future were stored, so these writes had to be stamped ahead of the server's clock to be seen at all. "+
				"Until the clock has caught up, what a pipeline stores stays hidden behind them, and each run starts from the same bookmark.\n\n"+listed(ahead))
	}
	if unreleased != nil {
		diags.AddWarning(fmt.Sprintf("Locks of state entries in table %s may not be released", m.place()), unreleasedDetail(unreleased))
	}
}
