package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/bookmark"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

// ValidateConfig warns of state that Meltano reads without finding a bookmark in it.
func (r *entryResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config entryResourceModel
	resp.Diagnostics.Append(config.fromRaw(ctx, req.Config.Raw)...)
	if resp.Diagnostics.HasError() || config.StateID.IsUnknown() { // Terraform asks again when it is known
		return
	}
	for _, state := range []struct {
		attribute string
		value     payload
	}{
		{"completed_state", config.CompletedState},
		{"partial_state", config.PartialState},
	} {
		if state.value.unset() {
			continue
		}
		document, err := bookmark.Parse(state.value.ValueString())
		if err != nil || document.IsEmpty() || document.HasSingerState() {
			continue // what is no state at all is the validator's to refuse
		}
		// Terraform folds warnings whose summaries are equal, so the state_id is in it.
		resp.Diagnostics.AddAttributeWarning(path.Root(state.attribute), fmt.Sprintf("State entry %q has no singer_state in its %s", config.StateID.ValueString(), state.attribute),
			"Meltano reads bookmarks from the key singer_state and finds none in this, so the next run starts from scratch. Did you mean jsonencode({ singer_state = { ... } })?")
	}
}

// replacesKey marks, in the private state that a plan hands on, the entry that a destroy would delete. Terraform plans a
// replacement as an update first and then as a create with no prior state, but with that private state: the mark is how
// the second plan knows, where -replace was given, that what it creates takes the place of what is stored.
const replacesKey = "replaces"

// blindKey marks, in the private state that a plan of a create hands on, that nothing was said of what it may replace.
// Terraform plans the replacement of a tainted resource as if there were none, and hands that private state to its Delete.
const blindKey = "blind"

var markSet = []byte("true")

// ModifyPlan plans what is computed, and says what the plan would set back. It takes no lock, and reads the row only
// where the state does not hold it.
func (r *entryResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var config, plan, state entryResourceModel
	creates, destroys := req.State.Raw.IsNull(), req.Plan.Raw.IsNull()
	if !creates {
		resp.Diagnostics.Append(state.fromRaw(ctx, req.State.Raw)...)
	}
	if !destroys {
		resp.Diagnostics.Append(config.fromRaw(ctx, req.Config.Raw)...)
		resp.Diagnostics.Append(plan.fromRaw(ctx, req.Plan.Raw)...)
	}
	replaces, diags := req.Private.GetKey(ctx, replacesKey)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	switch {
	case destroys:
		addDestroyed(&resp.Diagnostics, state, rewindPolicies.of(state.OnRewind))
		return
	case creates:
		r.planCreate(config, &plan)
	case plan.StateID.Equal(state.StateID):
		r.planUpdate(ctx, config, &plan, state, &resp.Diagnostics)
	default: // a replacement, whose destroy Terraform never shows alone
		addDestroyed(&resp.Diagnostics, state, rewindPolicies.of(plan.OnRewind))
		plan.unknownRow()
	}
	plan.ID = types.StringUnknown()
	if plan.placed() {
		plan.ID = types.StringValue(plan.address().String())
	}
	mark, err := json.Marshal(plan.ID.ValueString())
	if err != nil {
		resp.Diagnostics.AddError("Unable to plan state entry", sentence(err))
	}
	if creates && bytes.Equal(mark, replaces) {
		r.planReplace(ctx, plan, &resp.Diagnostics)
	}
	var blind []byte
	switch {
	case creates:
		if mark = nil; len(replaces) == 0 {
			blind = markSet
		}
	case !plan.StateID.Equal(state.StateID), deletionPolicies.of(state.DeletionPolicy) == deletionRetain:
		mark = markSet // a replacement, but not of what its create writes
	}
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, replacesKey, mark)...)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, blindKey, blind)...)
	resp.Diagnostics.Append(plan.toRaw(ctx, &resp.Plan.Raw)...)
}

// planCreate fills in the provider's places. Not as static defaults, which would move existing entries when the
// provider's change.
func (r *entryResource) planCreate(config entryResourceModel, plan *entryResourceModel) {
	plan.Database = orDefault(config.Database, r.database)
	plan.Table = orDefault(config.Table, r.table)
	plan.unknownRow()
	if plan.writePolicy() == policyEnforce { // a seed may find another row
		plan.MergedState, _ = merge(plan.CompletedState, plan.PartialState)
	}
}

// planUpdate plans an update in place, which writes a row or none.
func (r *entryResource) planUpdate(ctx context.Context, config entryResourceModel, plan *entryResourceModel, state entryResourceModel, diags *diag.Diagnostics) {
	if plan.WritePolicy.IsUnknown() { // nor is what becomes of what is not declared
		plan.unknownRow()
		plan.CompletedState = plan.CompletedState.undecided(config.CompletedState)
		plan.PartialState = plan.PartialState.undecided(config.PartialState)
		return
	}
	if plan.writePolicy() == policySeed { // the state is the declaration: what it leaves out is null, whatever is stored
		plan.CompletedState = plan.CompletedState.declared(config.CompletedState)
		plan.PartialState = plan.PartialState.declared(config.PartialState)
	}
	plan.keepRow(state)
	completed, partial := plan.writes(state)
	if completed.IsNull() && partial.IsNull() {
		warnSwitched(diags, *plan, state)
		return
	}
	plan.unknownRow()
	stored := statestore.Entry{Completed: state.CompletedState.ValueStringPointer(), Partial: state.PartialState.ValueStringPointer()}
	if !state.holdsRow() {
		var ok bool
		if stored, ok = r.storedRow(ctx, *plan, state, diags); !ok {
			return
		}
	}
	plan.MergedState, _ = merge(completed.over(stored.Completed), partial.over(stored.Partial)) // null where a payload is kept that is no state
	plan.rewind(state.MergedState).addWrite(diags)
}

// planReplace says what the destroy and create of one entry, which -replace asks for, would set back. Terraform shows the
// errors of this second plan, and drops its warnings: so it fails unless a rewind is allowed.
func (r *entryResource) planReplace(ctx context.Context, plan entryResourceModel, diags *diag.Diagnostics) {
	if r.store == nil {
		return
	}
	entry, err := r.store.Read(ctx, plan.address())
	if err != nil {
		if !errors.Is(err, statestore.ErrNotFound) {
			addError(diags, onEntry("read", plan.address(), r.store), err)
		}
		return
	}
	stored, _ := merge(payloadOf(entry.Completed), payloadOf(entry.Partial))
	plan.MergedState, _ = merge(plan.CompletedState, plan.PartialState)
	change := plan.rewind(stored)
	change.policy = change.policy.replacing()
	if plan.MergedState.IsUnknown() { // when it is known, the row is destroyed already
		change.planned = payloadOf(&nothing)
		change.addDestroy(diags)
		return
	}
	change.addWrite(diags)
}

// storedRow reads the row that a plan would write over. It reports an error if that is not the one in state any more,
// as the apply would. While the row cannot be read yet, there is none: in the apply, Terraform plans once more.
func (r *entryResource) storedRow(ctx context.Context, plan, state entryResourceModel, diags *diag.Diagnostics) (entry statestore.Entry, ok bool) {
	if r.store == nil || !plan.placed() {
		return entry, false
	}
	entry, err := r.store.Read(ctx, state.address())
	if errors.Is(err, statestore.ErrNotFound) && plan.address() != state.address() { // its table was renamed by now
		entry, err = r.store.Read(ctx, plan.address())
	}
	expect := versionOf(state.Version)
	switch {
	case errors.Is(err, statestore.ErrNotFound):
		err = &statestore.MovedError{Address: state.address(), Planned: expect, Gone: true}
	case err == nil && entry.Version != expect:
		err = &statestore.MovedError{Address: state.address(), Planned: expect, Found: entry.Version}
	}
	if err != nil {
		addError(diags, onEntry("update", state.address(), r.store), err)
	}
	return entry, err == nil
}

// rewind is what a plan does to what the next run would use.
func (m *entryResourceModel) rewind(stored payload) rewind {
	return rewind{
		stateID: m.StateID.ValueString(),
		policy:  rewindPolicies.of(m.OnRewind),
		seed:    m.writePolicy() == policySeed,
		stored:  stored,
		planned: m.MergedState,
	}
}

// addDestroyed says what the destroy of an entry would take from it.
func addDestroyed(diags *diag.Diagnostics, state entryResourceModel, policy rewindPolicy) {
	if deletionPolicies.of(state.DeletionPolicy) == deletionRetain {
		return
	}
	rewind{stateID: state.StateID.ValueString(), policy: policy, stored: state.MergedState, planned: payloadOf(&nothing)}.addDestroy(diags)
}

// warnSwitched says what another write policy will do: the switch itself writes nothing.
func warnSwitched(diags *diag.Diagnostics, plan, state entryResourceModel) {
	switch {
	case plan.writePolicy() == state.writePolicy():
	case plan.writePolicy() == policyEnforce:
		diags.AddWarning(fmt.Sprintf("State entry %q will be held to its declaration", plan.StateID.ValueString()),
			"With write_policy = \"enforce\", what is declared is the truth. Applying this writes nothing, but the next plan shows where the stored bookmark differs, and applying that one sets the pipeline back.")
	case !plan.CompletedState.means(state.CompletedState) || !plan.PartialState.means(state.PartialState):
		diags.AddWarning(fmt.Sprintf("State entry %q keeps what is stored", plan.StateID.ValueString()),
			"With write_policy = \"seed\", the declaration is where the pipeline started, and no longer what is stored. The plan shows it change, but applying this writes nothing.")
	}
}
