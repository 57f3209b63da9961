package provider

import (
	"testing"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/bookmark"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

// TestDeclarations_apply: after an update that failed midway, the state of a seed holds what was declared of an entry that was
// found live, and not what the pipeline stored: else the next plan would take that for a declaration that changed.
func TestDeclarations_apply(t *testing.T) {
	theirs, declared := `{"singer_state": {"n": 9}}`, bookmark.Entry{Completed: `{"singer_state": {"n": 0}}`}
	edits := []statestore.Edit{{StateID: "a", Verb: statestore.EditSeed}, {StateID: "b", Verb: statestore.EditSeed}, {StateID: "c", Verb: statestore.EditDelete}}
	applied := map[string]statestore.Written{
		"a": {Entry: statestore.Entry{StateID: "a", Completed: &theirs}, TookOver: true},
		"c": {},
	}
	prior, plan := declarations{"c": declared, "d": declared}, declarations{"a": declared, "b": declared, "d": declared}

	next, changed := prior.apply(edits, applied, plan)
	if len(next) != 2 || next["a"] != declared || next["d"] != declared || !changed["a"] || len(changed) != 1 {
		t.Errorf("a seed: got %v, changed %v", next, changed)
	}
	next, _ = prior.apply(edits, applied, nil)
	if len(next) != 2 || next["a"].Completed != theirs {
		t.Errorf("held to its declaration: got %v", next)
	}
}
