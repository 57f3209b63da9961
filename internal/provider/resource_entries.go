package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

var (
	_ resource.ResourceWithConfigure        = (*entriesResource)(nil)
	_ resource.ResourceWithConfigValidators = (*entriesResource)(nil)
	_ resource.ResourceWithImportState      = (*entriesResource)(nil)
	_ resource.ResourceWithModifyPlan       = (*entriesResource)(nil)
	_ resource.ResourceWithValidateConfig   = (*entriesResource)(nil)
)

// NewEntriesResource returns the resource clickhousestate_entries.
func NewEntriesResource() resource.Resource { return &entriesResource{} }

// entriesResource is many entries of one state table, written and read together.
type entriesResource struct {
	configured
}

// Create writes entries that are not live yet; a seed leaves the live ones as they are. With an error it leaves no state,
// also if some batches are written: that would taint the resource, and the next apply would destroy what is stored.
func (r *entriesResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan entriesResourceModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	timeout, diags := plan.Timeouts.Create(ctx, defaultTimeout)
	resp.Diagnostics.Append(diags...)
	store := r.open(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	all, ok := readDeclared(&plan, &resp.Diagnostics)
	if !ok {
		return
	}
	known := rows{Versions: map[string]uint64{}, Declared: plan.writePolicy() == policySeed}
	edits := plan.edits(all, nil, known, false)
	applied, err := store.Apply(ctx, plan.Database.ValueString(), plan.Table.ValueString(), edits)
	if err != nil {
		addError(&resp.Diagnostics, onApply("create", len(edits), plan.place(), store), err)
		return
	}
	known.apply(applied)
	warnApplied(&resp.Diagnostics, plan, applied)
	plan.summarize(all)
	known.save(ctx, resp.Private, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
}

// Read refreshes the entries by one query, and forgets those that are gone. It takes no lock.
func (r *entriesResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state entriesResourceModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	timeout, diags := state.Timeouts.Read(ctx, defaultTimeout)
	resp.Diagnostics.Append(diags...)
	var pattern string
	load(ctx, req.Private, importKey, &pattern, &resp.Diagnostics)
	store := r.open(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	known, err := state.refresh(ctx, store, pattern, &resp.Diagnostics)
	if errors.Is(err, statestore.ErrNotFound) || pattern != "" && err == nil && len(known.Versions) == 0 {
		tflog.Info(ctx, "no state entries are there, removing them from state", map[string]any{"table": state.place()})
		resp.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		addError(&resp.Diagnostics, onApply("read", int(state.EntryCount.ValueInt64()), state.place(), store), err)
		return
	}
	known.save(ctx, resp.Private, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, importKey, nil)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
}

// Update writes what changed, and deletes what is not declared any more. Where no row changed, it writes none.
func (r *entriesResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state entriesResourceModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	timeout, diags := plan.Timeouts.Update(ctx, defaultTimeout)
	resp.Diagnostics.Append(diags...)
	known := loadRows(ctx, req.Private, &resp.Diagnostics)
	store := r.open(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	all, ok := readDeclared(&plan, &resp.Diagnostics)
	prior, priorOK := readDeclared(&state, &resp.Diagnostics)
	if !ok || !priorOK {
		return
	}
	if err := state.movedTo(ctx, store, plan, known); err != nil {
		addError(&resp.Diagnostics, onApply("move", len(prior), plan.place(), store), err)
		return
	}
	switched := plan.writePolicy() != state.writePolicy()
	edits := plan.edits(all, prior, known, switched)
	applied, err := store.Apply(ctx, plan.Database.ValueString(), plan.Table.ValueString(), edits)
	known.apply(applied)
	warnApplied(&resp.Diagnostics, plan, applied)
	if err != nil {
		// What is written is in the state, in its form; the next plan shows what is missing.
		addError(&resp.Diagnostics, onApply("update", len(edits), plan.place(), store), err)
		var declared declarations
		if state.writePolicy() == policySeed {
			declared = all
		}
		left, changed := prior.apply(edits, applied, declared)
		state.Database, state.Table, state.ID = plan.Database, plan.Table, plan.ID // the rows are there
		resp.Diagnostics.Append(state.take(left, changed)...)
		known.keep(left)
		known.save(ctx, resp.Private, &resp.Diagnostics)
		resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
		return
	}
	known.keep(all)
	known.Declared = known.Declared || switched // until the next refresh, if what is declared is the truth now
	plan.summarize(all)
	known.save(ctx, resp.Private, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
}

// Delete writes tombstones over the entries that are still the ones in state, or only forgets them.
func (r *entriesResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state entriesResourceModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if deletionPolicies.of(state.DeletionPolicy) == deletionRetain {
		return
	}
	timeout, diags := state.Timeouts.Delete(ctx, defaultTimeout)
	resp.Diagnostics.Append(diags...)
	known := loadRows(ctx, req.Private, &resp.Diagnostics)
	store := r.open(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	prior, ok := readDeclared(&state, &resp.Diagnostics)
	if !ok {
		return
	}
	edits := state.edits(nil, prior, known, false)
	if len(edits) > 0 && len(known.Versions) == 0 { // Terraform hands on no private state of what is tainted
		addTainted(&resp.Diagnostics, several(sortedIDs(prior), "is tainted", "are tainted"))
		return
	}
	applied, err := store.Apply(ctx, state.Database.ValueString(), state.Table.ValueString(), edits)
	warnApplied(&resp.Diagnostics, state, applied)
	if err == nil {
		return
	}
	addError(&resp.Diagnostics, onApply("delete", len(edits), state.place(), store), err)
	// Without what is deleted; and with what is stored now, since Terraform 1.11 plans the destroy of a resource whose
	// configuration is gone from the state as it was before the refresh: the next plan would start from the same versions.
	left, changed := prior.apply(edits, applied, nil)
	resp.Diagnostics.Append(state.take(left, changed)...)
	known.keep(left)
	if fresh, err := state.refresh(ctx, store, "", &resp.Diagnostics); err == nil {
		known = fresh
	}
	known.save(ctx, resp.Private, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
}

// ImportState finds the table and the pattern; the Read that follows fills in the rest.
func (r *entriesResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	// At most twice, from the left: a pattern may hold slashes.
	parts := strings.SplitN(req.ID, "/", 3)
	if len(parts) < 2 || parts[0] == "" || parts[1] == "" || len(parts) == 3 && parts[2] == "" {
		resp.Diagnostics.AddError("Invalid import id", fmt.Sprintf("The import id of entries is database/table, for all that are there, or database/table/pattern, such as "+
			"meltano/state/prod:*, got: %q.", req.ID))
		return
	}
	pattern := "*"
	if len(parts) == 3 {
		pattern = parts[2]
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("database"), parts[0])...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("table"), parts[1])...)
	save(ctx, resp.Private, importKey, pattern, &resp.Diagnostics)
}

// readDeclared reads the entries of a model.
func readDeclared(m *entriesResourceModel, diags *diag.Diagnostics) (declarations, bool) {
	all, err := m.declared()
	if err != nil {
		diags.AddError("Unable to read state entries", "What is declared cannot be read.\n\n"+sentence(err))
	}
	return all, err == nil
}
