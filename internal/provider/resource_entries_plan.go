package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

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
	var replaces bool
	load(ctx, req.Private, replacesKey, &replaces, &resp.Diagnostics)
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
	// The mark is for a second plan of the same resource, as for a single entry.
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, replacesKey, nil)...)
	switch {
	case !creates && deletionPolicies.of(state.DeletionPolicy) == deletionDelete:
		save(ctx, resp.Private, replacesKey, true, &resp.Diagnostics)
	case creates && replaces:
		r.warnReplaced(ctx, plan, known, &resp.Diagnostics)
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

// warnLosses says what a plan would take from the bookmarks that are stored. A destroy plans no entries.
func (r *entriesResource) warnLosses(ctx context.Context, plan, state entriesResourceModel, all, prior declarations, known rows, diags *diag.Diagnostics) {
	edits := plan.edits(all, prior, known, plan.writePolicy() != state.writePolicy())
	if rewindPolicies.of(plan.OnRewind) != rewindAllow && len(edits) > 0 {
		plan.warnEdits(edits, r.stored(ctx, state, edits, prior, known, diags), all == nil, diags)
	}
}

// warnReplaced says what the destroy and create of all entries, which -replace asks for, would take. What is not known yet
// counts as nothing: when it is known, the rows are destroyed already.
func (r *entriesResource) warnReplaced(ctx context.Context, plan entriesResourceModel, known rows, diags *diag.Diagnostics) {
	all, ok := declarations{}, true
	if plan.known() {
		all, ok = readDeclared(&plan, diags)
	}
	if !ok || r.instance == nil || r.store == nil || !plan.placed() || rewindPolicies.of(plan.OnRewind) == rewindAllow {
		return
	}
	ids := sortedIDs(known.Versions)
	edits := make([]statestore.Edit, len(ids))
	for i, id := range ids {
		entry, again := all[id]
		edits[i] = statestore.Edit{StateID: id, Verb: statestore.EditDelete}
		if again {
			edits[i] = statestore.Edit{StateID: id, Verb: statestore.EditUpdate, Completed: statestore.Set(&entry.Completed), Partial: statestore.Set(&entry.Partial)}
		}
	}
	plan.OnRewind = types.StringValue(string(rewindPolicies.of(plan.OnRewind).replacing()))
	plan.warnEdits(edits, r.read(ctx, plan, ids, diags), false, diags)
}

// warnEdits says what edits take from what is stored: of entries that change, value by value, and of those that are deleted.
func (m *entriesResourceModel) warnEdits(edits []statestore.Edit, stored declarations, destroys bool, diags *diag.Diagnostics) {
	policy := rewindPolicies.of(m.OnRewind)
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
		switch {
		case len(said) == 0:
		case shown < listedIDs:
			diags.Append(said...)
			shown++
		default:
			more++
		}
	}
	addMoreRewinds(diags, policy, m.place(), more)
	addDeleted(diags, *m, destroys, deleted)
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
	if len(unknown) > 0 && r.instance != nil && r.store != nil {
		maps.Copy(all, r.read(ctx, state, unknown, diags))
	}
	return all
}

// read reads the rows of entries that are there.
func (r *entriesResource) read(ctx context.Context, at entriesResourceModel, ids []string, diags *diag.Diagnostics) declarations {
	found := make(declarations, len(ids))
	err := r.store.Each(ctx, at.Database.ValueString(), at.Table.ValueString(), ids, func(e statestore.Entry) { found[e.StateID] = storedEntry(e) })
	if err != nil && !errors.Is(err, statestore.ErrNotFound) {
		addError(diags, onApply("read", len(ids), at.place(), r.store), err)
	}
	return found
}
