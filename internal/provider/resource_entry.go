package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

var (
	_ resource.ResourceWithConfigure      = (*entryResource)(nil)
	_ resource.ResourceWithIdentity       = (*entryResource)(nil)
	_ resource.ResourceWithImportState    = (*entryResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*entryResource)(nil)
	_ resource.ResourceWithValidateConfig = (*entryResource)(nil)
)

// NewEntryResource returns the resource clickhousestate_entry.
func NewEntryResource() resource.Resource { return &entryResource{} }

// entryResource is one entry of a state table: the bookmarks of one pipeline.
type entryResource struct {
	configured
}

// Create writes an entry that is not live yet; a seed leaves a live one as it is. With an error it leaves no state: that
// would taint the resource, and the next apply would destroy what is stored.
func (r *entryResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan entryResourceModel
	resp.Diagnostics.Append(plan.fromRaw(ctx, req.Plan.Raw)...)
	timeout, diags := plan.Timeouts.Create(ctx, defaultTimeout)
	resp.Diagnostics.Append(diags...)
	store := r.open(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	at := plan.address()
	create := store.Create
	if plan.writePolicy() == policySeed {
		create = store.Seed
	}
	written, err := create(ctx, at, plan.CompletedState.ValueStringPointer(), plan.PartialState.ValueStringPointer())
	if err != nil {
		addError(&resp.Diagnostics, onEntry("create", at, store), err)
		return
	}
	warnWritten(&resp.Diagnostics, at, plan.writePolicy(), written)
	plan.take(written.Entry)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, blindKey, nil)...)
	resp.Diagnostics.Append(plan.toRaw(ctx, &resp.State.Raw)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, plan.identity())...)
}

// Read refreshes an entry, and forgets one that is gone. It takes no lock.
func (r *entryResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state entryResourceModel
	resp.Diagnostics.Append(state.fromRaw(ctx, req.State.Raw)...)
	timeout, diags := state.Timeouts.Read(ctx, defaultTimeout)
	resp.Diagnostics.Append(diags...)
	store := r.open(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	at := state.address()
	resp.Diagnostics.Append(resp.Identity.Set(ctx, state.identity())...)
	entry, err := store.Read(ctx, at)
	if errors.Is(err, statestore.ErrNotFound) {
		tflog.Info(ctx, "state entry is gone, removing it from state", map[string]any{"id": at.String()})
		resp.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		addError(&resp.Diagnostics, onEntry("read", at, store), err)
		return
	}
	state.refresh(entry)
	if state.MergedState.IsNull() {
		resp.Diagnostics.AddWarning(fmt.Sprintf("State entry %q holds no pipeline state", at.StateID),
			"What is stored is not a JSON object, so Meltano cannot read it, and merged_state is null. Declare the right state to replace it.")
	}
	resp.Diagnostics.Append(state.toRaw(ctx, &resp.State.Raw)...)
}

// Update writes what changed. Where nothing of the row changed, it writes no row.
func (r *entryResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state entryResourceModel
	resp.Diagnostics.Append(plan.fromRaw(ctx, req.Plan.Raw)...)
	resp.Diagnostics.Append(state.fromRaw(ctx, req.State.Raw)...)
	timeout, diags := plan.Timeouts.Update(ctx, defaultTimeout)
	resp.Diagnostics.Append(diags...)
	store := r.open(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	at, expect := plan.address(), versionOf(state.Version)
	if at != state.address() {
		if err := moved(ctx, store, state.address(), at, expect); err != nil {
			addError(&resp.Diagnostics, onEntry("move", at, store), err)
			return
		}
	}
	plan.keepRow(state)
	if completed, partial := plan.writes(state); !completed.IsNull() || !partial.IsNull() {
		written, err := store.Update(ctx, at, expect, completed.value(), partial.value())
		if err != nil {
			addError(&resp.Diagnostics, onEntry("update", at, store), err)
			return
		}
		warnWritten(&resp.Diagnostics, at, plan.writePolicy(), written)
		plan.take(written.Entry)
	}
	resp.Diagnostics.Append(plan.toRaw(ctx, &resp.State.Raw)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, plan.identity())...)
}

// Delete writes a tombstone, if the entry is still the one in state, or only forgets it.
func (r *entryResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state entryResourceModel
	resp.Diagnostics.Append(state.fromRaw(ctx, req.State.Raw)...)
	if deletionPolicies.of(state.DeletionPolicy) == deletionRetain {
		return
	}
	blind, problems := req.Private.GetKey(ctx, blindKey)
	resp.Diagnostics.Append(problems...)
	if len(blind) > 0 && rewindPolicies.of(state.OnRewind) != rewindAllow && losesBookmarks(state.MergedState) {
		addTainted(&resp.Diagnostics, fmt.Sprintf("State entry %q is tainted", state.StateID.ValueString()))
		return
	}
	timeout, diags := state.Timeouts.Delete(ctx, defaultTimeout)
	resp.Diagnostics.Append(diags...)
	store := r.open(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	at := state.address()
	written, err := store.Delete(ctx, at, versionOf(state.Version))
	if err != nil {
		addError(&resp.Diagnostics, onEntry("delete", at, store), err)
		if errors.As(err, new(*statestore.MovedError)) {
			// Terraform 1.11 plans the destroy of an entry whose configuration is gone from the state as it was before
			// the refresh. Without this, the next plan would start from the same old version, and fail for ever.
			if entry, err := store.Read(ctx, at); err == nil {
				state.refresh(entry)
				resp.Diagnostics.Append(state.toRaw(ctx, &resp.State.Raw)...)
			}
		}
		return
	}
	warnWritten(&resp.Diagnostics, at, state.writePolicy(), written)
}

// ImportState finds the address; the Read that follows fills in the rest.
func (r *entryResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	identity := entryIdentityModel{}
	if req.ID != "" {
		// At most twice, from the left: a state_id may hold slashes.
		parts := strings.SplitN(req.ID, "/", 3)
		if len(parts) < 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
			resp.Diagnostics.AddError("Invalid import id", fmt.Sprintf("An entry's import id is database/table/state_id, such as "+
				"meltano/state/prod:tap-github-to-target-clickhouse, got: %q.", req.ID))
			return
		}
		identity.Database, identity.Table, identity.StateID = types.StringValue(parts[0]), types.StringValue(parts[1]), types.StringValue(parts[2])
	} else {
		resp.Diagnostics.Append(req.Identity.Get(ctx, &identity)...)
		identity.Database = orDefault(identity.Database, r.database)
		identity.Table = orDefault(identity.Table, r.table)
		if identity.Database.IsUnknown() || identity.Table.IsUnknown() {
			resp.Diagnostics.AddError("Unable to import yet", "The identity names no database or table, and the provider's own will be known only after apply.")
		}
	}
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("database"), identity.Database)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("table"), identity.Table)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("state_id"), identity.StateID)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, identity)...)
}

// moved checks that the row of one address is found at another, as it is after a table was renamed. It returns an
// error if not: rows are not copied from table to table.
func moved(ctx context.Context, store *statestore.Store, from, to statestore.Address, version uint64) error {
	entry, err := store.Read(ctx, to)
	switch {
	case errors.Is(err, statestore.ErrNotFound):
		return &moveError{from: from, to: to}
	case err != nil:
		return err
	case entry.Version != version:
		return &moveError{from: from, to: to, found: entry.Version}
	}
	return nil
}

// orDefault returns a value, or the default where it is null.
func orDefault(value, def types.String) types.String {
	if value.IsNull() {
		return def
	}
	return value
}

// warnWritten warns of what the user would not expect of a write that happened, or of one that did not.
func warnWritten(diags *diag.Diagnostics, at statestore.Address, policy writePolicy, written statestore.Written) {
	if written.TookOver {
		diags.AddWarning(fmt.Sprintf("State entry %q was there already", at.StateID), tookOverDetail(policy))
	}
	if written.Left {
		diags.AddWarning(fmt.Sprintf("State entry %q was left as it is", at.StateID), leftDetail)
	}
	if written.Ahead > 0 {
		diags.AddWarning(fmt.Sprintf("State entry %q hides what Meltano writes until %s", at.StateID, written.Entry.UpdatedAt.UTC().Format(time.RFC3339)),
			fmt.Sprintf("A version from the future was stored, so this write had to be stamped %s ahead of the server's clock to be seen at all. "+
				"Until the clock has caught up, what a pipeline stores for this state_id stays hidden behind it, and each run starts from the same bookmark.",
				written.Ahead.Round(time.Second)))
	}
	if written.Unreleased != nil {
		diags.AddWarning(fmt.Sprintf("The lock of state entry %q may not be released", at.StateID), unreleasedDetail(written.Unreleased))
	}
}

func tookOverDetail(policy writePolicy) string {
	if policy == policySeed {
		return "A seed leaves it as it is, and nothing was written. The next run uses what is stored."
	}
	return "It held what is declared, so it is taken over as it is, and nothing was written. Terraform manages it from now on."
}

const leftDetail = "Another resource has taken it over in this run, so it was not deleted, but only forgotten. To rename a resource, use a moved block."

func unreleasedDetail(err *statestore.ReleaseError) string {
	return fmt.Sprintf("The write is done, but removing the lock was not confirmed, so pipelines may have to wait until it expires at %s.\n\n%s",
		err.Expires.UTC().Format(time.RFC3339), sentence(err))
}
