package provider

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/bookmark"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

// ValidateConfig refuses what Meltano could not read, and warns of state in which it finds no bookmark.
func (r *entriesResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config entriesResourceModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	all := declarations{}
	for id, value := range config.Entries.Elements() {
		if value.IsUnknown() || value.IsNull() {
			if value.IsNull() {
				resp.Diagnostics.AddAttributeError(path.Root("entries").AtMapKey(id), "Invalid state entry", "An entry must not be null. "+entryShape)
			}
			continue
		}
		entry, err := bookmark.ParseEntry(textOf(value))
		if err != nil {
			addInvalidEntry(&resp.Diagnostics, path.Root("entries").AtMapKey(id), err)
		}
		all[id] = entry
	}
	at := path.Root("entries")
	if !config.Export.IsNull() && !config.Export.IsUnknown() {
		var err error
		at = path.Root("export")
		if all, err = bookmark.ParseExport(config.Export.ValueString()); err != nil {
			addInvalidEntry(&resp.Diagnostics, at, err)
		}
	}
	var bare []string
	for _, id := range sortedIDs(all) {
		if id == "" || !utf8.ValidString(id) {
			resp.Diagnostics.AddAttributeError(at, "Invalid state id", fmt.Sprintf("A state id must be text that is not empty, got: %q.", id))
		}
		if lacksState(all[id].Completed) || lacksState(all[id].Partial) {
			bare = append(bare, id)
		}
	}
	if len(bare) > 0 {
		resp.Diagnostics.AddAttributeWarning(at, several(bare, "has no singer_state", "have no singer_state"),
			"Meltano reads bookmarks from the key singer_state and finds none in these, so the next run starts from scratch. Did you mean jsonencode({ completed = { singer_state = { ... } } })?\n\n"+listed(bare))
	}
}

// entryShape says what an entry is.
const entryShape = "Each entry is a JSON object with the keys completed and partial, both optional, as jsonencode({ completed = { singer_state = { ... } } }) writes it."

func addInvalidEntry(diags *diag.Diagnostics, at path.Path, err error) {
	detail := entryShape
	if errors.Is(err, bookmark.ErrDuplicateKey) {
		detail = "JSON objects with a repeated key are refused, since readers differ in which value they take."
	}
	diags.AddAttributeError(at, "Invalid state entry", detail+"\n\n"+sentence(err))
}

// lacksState reports whether a declared payload has no singer_state, though it holds something.
func lacksState(text string) bool {
	if bookmark.IsEmpty(text) {
		return false
	}
	document, err := bookmark.Parse(text)
	return err == nil && !document.HasSingerState()
}

// ModifyPlan plans what is computed, and says what the plan would set back. It takes no lock, and reads only the rows that
// change and that the state does not hold.
func (r *entriesResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var config, plan, state entriesResourceModel
	creates, destroys := req.State.Raw.IsNull(), req.Plan.Raw.IsNull()
	if !creates {
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	}
	if !destroys {
		resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
		resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	}
	known := loadRows(ctx, req.Private, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	prior := declarations{}
	if !creates {
		var ok bool
		if prior, ok = readDeclared(&state, &resp.Diagnostics); !ok {
			return
		}
	}
	if destroys {
		r.warnLosses(ctx, state, state, nil, prior, known, &resp.Diagnostics)
		return
	}
	plan.Database, plan.Table = orDefault(plan.Database, r.database), orDefault(plan.Table, r.table)
	if creates {
		plan.Database, plan.Table = orDefault(config.Database, r.database), orDefault(config.Table, r.table)
	}
	plan.Entries, plan.Export = config.Entries, config.Export
	plan.ID, plan.EntryCount = types.StringUnknown(), types.Int64Unknown()
	if plan.placed() {
		plan.ID = types.StringValue(plan.place())
	}
	if !config.Entries.IsNull() && !config.Entries.IsUnknown() {
		plan.EntryCount = types.Int64Value(int64(len(config.Entries.Elements())))
	}
	if plan.known() {
		r.planKnown(ctx, &plan, state, prior, known, &resp.Diagnostics)
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
}

// planKnown plans entries that are known. Those that mean what the state holds are planned as that, in their spelling.
func (r *entriesResource) planKnown(ctx context.Context, plan *entriesResourceModel, state entriesResourceModel, prior declarations, known rows, diags *diag.Diagnostics) {
	all, ok := readDeclared(plan, diags)
	if !ok {
		return
	}
	plan.EntryCount = types.Int64Value(int64(len(all)))
	sameForm := plan.Entries.IsNull() || !state.Entries.IsNull()
	sameForm = sameForm && (plan.Export.IsNull() || !state.Export.IsNull())
	if state.ID.IsNull() { // a create
		return
	}
	if sameForm && all.declares(prior) {
		plan.Entries, plan.Export = state.Entries, state.Export
	}
	if plan.WritePolicy.IsUnknown() || plan.DeletionPolicy.IsUnknown() || plan.Exclusive.IsUnknown() {
		return
	}
	switch from, to := state.writePolicy(), plan.writePolicy(); {
	case from == to:
	case to == policyEnforce:
		diags.AddWarning(fmt.Sprintf("The state entries in table %s will be held to their declaration", plan.place()),
			"With write_policy = \"enforce\", what is declared is the truth. Applying this writes no bookmark that is there already, but the next plan shows where those differ, and applying that one sets the pipelines back.")
	case !all.declares(prior):
		diags.AddWarning(fmt.Sprintf("The state entries in table %s keep what is stored", plan.place()),
			"With write_policy = \"seed\", the declaration is where the pipelines started, and no longer what is stored. The plan shows it change, but applying this writes no bookmark that is there already.")
	}
	r.warnLosses(ctx, *plan, state, all, prior, known, diags)
}

// warnLosses says what a plan would take from the bookmarks that are stored: of entries that change, value by value, and of
// those that are deleted. A destroy plans none.
func (r *entriesResource) warnLosses(ctx context.Context, plan, state entriesResourceModel, all, prior declarations, known rows, diags *diag.Diagnostics) {
	policy := rewindPolicies.of(plan.OnRewind)
	edits := plan.edits(all, prior, known, plan.writePolicy() != state.writePolicy())
	if policy == rewindAllow || len(edits) == 0 {
		return
	}
	stored := r.stored(ctx, state, edits, prior, known, diags)
	var deleted []string
	shown, more := 0, 0
	for _, edit := range edits {
		now, ok := stored[edit.StateID]
		if !ok {
			continue
		}
		before := mergedPayload(&now.Completed, &now.Partial)
		if edit.Verb == statestore.EditDelete {
			if losesBookmarks(before) {
				deleted = append(deleted, edit.StateID)
			}
			continue
		}
		after := mergedPayload(edit.Completed.Over(&now.Completed), edit.Partial.Over(&now.Partial))
		var said diag.Diagnostics
		rewind{stateID: edit.StateID, policy: policy, stored: before, planned: after}.addWrite(&said)
		if len(said) == 0 {
			continue
		}
		if shown < listedIDs {
			diags.Append(said...)
			shown++
		} else {
			more++
		}
	}
	addMoreRewinds(diags, policy, plan.place(), more)
	addDeleted(diags, plan, all == nil, deleted)
}

// stored returns what is stored of the entries that edits change: what the state holds, or where that is not all, the row.
// While rows cannot be read yet, they are left out: in the apply, Terraform plans once more.
func (r *entriesResource) stored(ctx context.Context, state entriesResourceModel, edits []statestore.Edit, prior declarations, known rows, diags *diag.Diagnostics) declarations {
	all := make(declarations, len(edits))
	var unknown []string
	for _, edit := range edits {
		entry, ok := prior[edit.StateID]
		switch {
		case !ok: // a create
		case known.Declared || entry.Completed == "" || entry.Partial == "":
			unknown = append(unknown, edit.StateID)
		default:
			all[edit.StateID] = entry
		}
	}
	if len(unknown) == 0 || r.instance == nil || r.store == nil {
		return all
	}
	err := r.store.Each(ctx, state.Database.ValueString(), state.Table.ValueString(), unknown, func(e statestore.Entry) { all[e.StateID] = storedEntry(e) })
	if err != nil && !errors.Is(err, statestore.ErrNotFound) {
		addError(diags, onApply("read", len(unknown), state.place(), r.store), err)
	}
	return all
}
