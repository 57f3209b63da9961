package provider

import (
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/bookmark"
)

// rewindLines is how many values a diagnostic names. An entry may have thousands of partitions.
const rewindLines = 20

// nothing is the state that holds no bookmark.
var nothing = "{}"

// A rewind is what a plan takes from the bookmarks of an entry.
type rewind struct {
	stateID string
	policy  rewindPolicy
	// seed says that the payloads in the state are no more than a declaration.
	seed bool
	// stored and planned are what the next run would use, before and after.
	stored, planned payload
}

// addWrite says what a write would set back.
func (r rewind) addWrite(diags *diag.Diagnostics) {
	stored, planned, ok := r.documents()
	if !ok {
		return
	}
	changes := bookmark.Compare(stored, planned)
	lost, refresh := losses(changes), bookmark.FullRefresh(stored, planned)
	if len(lost) == 0 && refresh {
		lost = changes
	}
	if len(lost) == 0 {
		return
	}
	summary := fmt.Sprintf("State entry %q would be set back", r.stateID)
	effect := "Applying this sets the pipeline back: its next run reads again what it has read since."
	if refresh {
		summary = fmt.Sprintf("State entry %q would lose all its bookmarks", r.stateID)
		effect = "Applying this leaves the pipeline no bookmark: its next run is a full refresh, which reads everything anew."
	}
	advice := `To keep what is stored, declare it, or let write_policy = "seed" leave it to the pipeline.`
	if r.seed {
		advice = "To keep what is stored, put the old declaration back."
	}
	switch r.policy {
	case rewindReplace:
		advice = replaceAdvice
	case rewindError:
		advice += ` To set it back on purpose, set on_rewind to "warn" or "allow".`
	default:
		advice += ` To set it back on purpose, apply; with on_rewind = "allow" nothing is said.`
	}
	r.add(diags, summary, effect, lines(lost), advice)
}

// keepAdvice tells how to destroy a resource, and keep what is stored. Not deletion_policy alone: under enforce, to apply
// that would put back what has drifted.
const keepAdvice = `To keep what is stored and only forget it, first apply write_policy = "seed" together with deletion_policy = "retain", which writes nothing, ` +
	`or use a removed block with lifecycle { destroy = false }, or "terraform state rm". To rename the resource, use a moved block.`

// replaceAdvice tells how to do without a replacement.
const replaceAdvice = `This is an error, since Terraform shows no warnings of what takes the place of a resource that it replaces. ` +
	`To keep what is stored, take back the -replace or replace_triggered_by, and change it in place. To set it back on purpose, set on_rewind = "allow".`

// addDestroy says what a destroy would take.
func (r rewind) addDestroy(diags *diag.Diagnostics) {
	stored, none, ok := r.documents()
	if !ok {
		return
	}
	lost := losses(bookmark.Compare(stored, none))
	if len(lost) == 0 {
		return
	}
	effect := "Destroying it deletes what the pipeline has stored: its next run is a full refresh, which reads everything anew."
	advice := keepAdvice
	switch r.policy {
	case rewindReplace:
		effect = "It would be destroyed, and what takes its place will be known only after that: at worst, the next run is a full refresh, which reads everything anew."
		advice = replaceAdvice
	case rewindError:
		advice += ` To delete it on purpose, apply on_rewind = "warn" or "allow" first.`
	}
	r.add(diags, fmt.Sprintf("State entry %q would lose all its bookmarks", r.stateID),
		effect, lines(lost), advice)
}

// addTainted refuses the destroy of what is tainted: no plan could say what its replacement sets back.
func addTainted(diags *diag.Diagnostics, summary string) {
	diags.AddError(summary, "Terraform plans to replace what is tainted as if nothing were there, so that no plan could say what it sets back. Nothing was deleted. "+
		`To keep what is stored, run "terraform untaint" with the address of this resource. To replace it on purpose, do that too, and then set on_rewind = "allow" and plan with -replace.`)
}

// documents returns what there is to compare. What cannot be read is not compared, nor what is not known yet: that is in
// the apply, where Terraform plans once more.
func (r rewind) documents() (stored, planned bookmark.Document, ok bool) {
	if r.policy == rewindAllow || r.stored.unset() || r.planned.unset() {
		return stored, planned, false
	}
	stored, err := bookmark.Parse(r.stored.ValueString())
	if err != nil {
		return stored, planned, false
	}
	planned, err = bookmark.Parse(r.planned.ValueString())
	return stored, planned, err == nil
}

func (r rewind) add(diags *diag.Diagnostics, summary string, paragraphs ...string) {
	detail := strings.Join(paragraphs, "\n\n")
	if r.policy.fails() {
		diags.AddError(summary, detail)
	} else {
		diags.AddWarning(summary, detail)
	}
}

// losses are the changes that set a bookmark back. One that has no order, such as another token, is none.
func losses(changes []bookmark.Change) []bookmark.Change {
	var lost []bookmark.Change
	for _, change := range changes {
		if change.Kind != bookmark.Changed {
			lost = append(lost, change)
		}
	}
	return lost
}

// lines shows the first ones, indented so that Terraform does not wrap them.
func lines(changes []bookmark.Change) string {
	shown := make([]string, 0, rewindLines+1)
	for _, change := range changes[:min(rewindLines, len(changes))] {
		shown = append(shown, "  "+change.String())
	}
	if more := len(changes) - rewindLines; more > 0 {
		shown = append(shown, fmt.Sprintf("  and %d more", more))
	}
	return strings.Join(shown, "\n")
}
