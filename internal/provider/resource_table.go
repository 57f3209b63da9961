package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

var (
	_ resource.ResourceWithConfigure   = (*tableResource)(nil)
	_ resource.ResourceWithImportState = (*tableResource)(nil)
	_ resource.ResourceWithModifyPlan  = (*tableResource)(nil)
)

// NewTableResource returns the resource clickhousestate_table.
func NewTableResource() resource.Resource { return &tableResource{} }

// tableResource is a state table and its lock table.
type tableResource struct {
	configured
}

type tableResourceModel struct {
	Database           types.String   `tfsdk:"database"`
	Name               types.String   `tfsdk:"name"`
	Layout             types.String   `tfsdk:"layout"`
	LockLayout         types.String   `tfsdk:"lock_layout"`
	Cluster            types.String   `tfsdk:"cluster"`
	Engine             types.String   `tfsdk:"engine"`
	Comment            types.String   `tfsdk:"comment"`
	Settings           types.Map      `tfsdk:"settings"`
	CreateDatabase     types.Bool     `tfsdk:"create_database"`
	DeletionProtection types.Bool     `tfsdk:"deletion_protection"`
	Timeouts           timeouts.Value `tfsdk:"timeouts"`
	ID                 types.String   `tfsdk:"id"`
	LockTable          types.String   `tfsdk:"lock_table"`
	UUID               types.String   `tfsdk:"uuid"`
	EngineFull         types.String   `tfsdk:"engine_full"`
}

// Create makes both tables, and the database if that is asked for.
func (r *tableResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan tableResourceModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	timeout, diags := plan.Timeouts.Create(ctx, defaultTimeout)
	resp.Diagnostics.Append(diags...)
	settings := settingsOf(ctx, plan.Settings, &resp.Diagnostics)
	store := r.open(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	table, tookOver, err := store.CreateTable(ctx, statestore.TableSpec{
		Database:       plan.Database.ValueString(),
		Name:           plan.Name.ValueString(),
		Comment:        plan.Comment.ValueString(),
		Settings:       settings,
		Layout:         statestore.Layout(plan.Layout.ValueString()),
		Engine:         engineOf(plan.Engine.ValueString()),
		Cluster:        plan.Cluster.ValueString(),
		LockLayout:     statestore.Layout(plan.LockLayout.ValueString()),
		CreateDatabase: plan.CreateDatabase.ValueBool(),
	})
	if err != nil {
		addError(&resp.Diagnostics, onTable("create", plan.id(), store), err)
		return
	}
	if tookOver {
		resp.Diagnostics.AddWarning(fmt.Sprintf("State table %s was there already", plan.id()),
			"It is empty and just as declared, so it is taken over as it is. Terraform manages it from now on.")
	}
	warnTable(&resp.Diagnostics, table, store.Quorum())
	plan.take(table)
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
}

// warnTable warns of an upgrade that is not finished, and of a lock table on which several pipelines cannot lock
// each other out.
func warnTable(diags *diag.Diagnostics, table statestore.Table, quorum bool) {
	if strings.HasPrefix(table.Engine.Name, "Replicated") && !quorum {
		diags.AddWarning(fmt.Sprintf("State table %s/%s is replicated", table.Database, table.Name),
			"Replicas lag behind each other, so what one has acknowledged another may not show yet: then two clients can hold the same lock, and a read can miss a write. Let Terraform and Meltano connect to the same replica. "+
				"If they reach several, set quorum = true in the provider's configuration, and the same settings for Meltano's user.")
	}
	if table.Upgrading || table.LockUpgrading {
		diags.AddWarning(fmt.Sprintf("Upgrade of state table %s/%s is not finished", table.Database, table.Name),
			"It was interrupted. The table that is in use is complete, and pipelines go on with it. To finish the upgrade and remove what it has left behind, apply layout = \"versioned\" and lock_layout = \"strict\", whichever it was.")
	}
	if table.LockLayout != statestore.LayoutMeltano {
		return
	}
	diags.AddWarning(fmt.Sprintf("Lock table %s/%s is as Meltano makes it", table.Database, table.LockTable),
		"It is ordered by state_id alone, so a merge can hide the lock of one Meltano client behind that of another, and both write. "+
			"What this provider writes is checked against that; what several pipelines write for one state_id at the same time is not. lock_layout = \"strict\" rebuilds it in place.")
}

// Read refreshes a table, and forgets one that is gone. One that became something else is an error, never a planned
// replacement: that would drop what is in it.
func (r *tableResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state tableResourceModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	timeout, diags := state.Timeouts.Read(ctx, defaultTimeout)
	resp.Diagnostics.Append(diags...)
	configured := settingsOf(ctx, state.Settings, &resp.Diagnostics)
	store := r.open(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	table, err := store.Table(ctx, state.identity())
	if errors.Is(err, statestore.ErrNotFound) {
		tflog.Info(ctx, "state table is gone, removing it from state", map[string]any{"id": state.id()})
		resp.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		addError(&resp.Diagnostics, onTable("read", state.id(), store), err)
		return
	}
	if configured != nil {
		// Only what is configured is ours to compare: the server adds settings of its own.
		maps.DeleteFunc(table.Settings, func(name, _ string) bool { _, found := configured[name]; return !found })
		state.Settings, diags = types.MapValueFrom(ctx, types.StringType, table.Settings)
		resp.Diagnostics.Append(diags...)
	}
	warnTable(&resp.Diagnostics, table, store.Quorum())
	state.Comment = types.StringValue(table.Comment)
	state.take(table)
	resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
}

// Update changes in place whatever differs.
func (r *tableResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state tableResourceModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	timeout, diags := plan.Timeouts.Update(ctx, defaultTimeout)
	resp.Diagnostics.Append(diags...)
	before, after := settingsOf(ctx, state.Settings, &resp.Diagnostics), settingsOf(ctx, plan.Settings, &resp.Diagnostics)
	store := r.open(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	id := state.identity()
	id.Cluster = plan.Cluster.ValueString()
	table, err := store.AlterTable(ctx, id, tableChange(state, plan, before, after))
	if err != nil {
		addError(&resp.Diagnostics, onTable("update", state.id(), store), err)
		return
	}
	plan.take(table)
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
}

// Delete drops both tables.
func (r *tableResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state tableResourceModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	timeout, diags := state.Timeouts.Delete(ctx, defaultTimeout)
	resp.Diagnostics.Append(diags...)
	store := r.open(&resp.Diagnostics)
	if state.DeletionProtection.ValueBool() { // the plan refuses too, but does not see every replacement
		resp.Diagnostics.Append(protectedError(state))
	}
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	if err := store.DropTable(ctx, state.identity()); err != nil {
		addError(&resp.Diagnostics, onTable("delete", state.id(), store), err)
	}
}

// ImportState finds the address; the Read that follows fills in the rest. What is no property of the table gets its
// default here, so that the first plan is empty.
func (r *tableResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	database, name, found := strings.Cut(req.ID, "/")
	if !found || database == "" || name == "" || strings.Contains(name, "/") {
		resp.Diagnostics.AddError("Invalid import id", fmt.Sprintf("A table's import id is database/name, such as meltano/state, got: %q.", req.ID))
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("database"), database)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("name"), name)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("create_database"), defaultCreateDatabase)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("deletion_protection"), defaultDeletionProtection)...)
}

func (m *tableResourceModel) id() string {
	return m.Database.ValueString() + "/" + m.Name.ValueString()
}

// identity names the table that the state knows.
func (m *tableResourceModel) identity() statestore.TableIdentity {
	return statestore.TableIdentity{Database: m.Database.ValueString(), Name: m.Name.ValueString(), UUID: m.UUID.ValueString(), Cluster: m.Cluster.ValueString()}
}

// take fills in what the server says, except for what the configuration may say. A table that was renamed has its
// new name then, and one without a lock table has no lock_layout.
func (m *tableResourceModel) take(table statestore.Table) {
	m.Database, m.Name = types.StringValue(table.Database), types.StringValue(table.Name)
	m.ID = types.StringValue(m.id())
	m.UUID = types.StringValue(table.UUID)
	m.Layout, m.LockLayout = types.StringValue(string(table.Layout)), types.StringNull()
	if table.LockLayout != "" {
		m.LockLayout = types.StringValue(string(table.LockLayout))
	}
	// What is still to be finished is planned again.
	if table.Upgrading {
		m.Layout = types.StringValue(string(statestore.LayoutMeltano))
	}
	if table.LockUpgrading {
		m.LockLayout = types.StringValue(string(statestore.LayoutMeltano))
	}
	if m.Engine.IsUnknown() || m.Engine.IsNull() || !table.Engine.Is(engineOf(m.Engine.ValueString())) {
		m.Engine = types.StringValue(table.Engine.Name)
	}
	m.LockTable = types.StringValue(table.LockTable)
	m.EngineFull = types.StringValue(table.EngineFull)
}

// tableChange compares two models. A setting that is not configured any more goes back to the server's default.
func tableChange(state, plan tableResourceModel, before, after map[string]string) statestore.TableChange {
	change := statestore.TableChange{
		Set:            map[string]string{},
		Database:       plan.Database.ValueString(),
		Name:           plan.Name.ValueString(),
		CreateDatabase: plan.CreateDatabase.ValueBool(),
	}
	// An upgrade that was interrupted after the exchange shows as the old layout in the state.
	if !plan.Layout.Equal(state.Layout) {
		change.Layout = statestore.Layout(plan.Layout.ValueString())
	}
	if !plan.LockLayout.Equal(state.LockLayout) {
		change.LockLayout = statestore.Layout(plan.LockLayout.ValueString())
	}
	if !plan.Comment.Equal(state.Comment) {
		change.Comment = plan.Comment.ValueStringPointer()
	}
	for name, value := range after {
		if had, found := before[name]; !found || had != value {
			change.Set[name] = value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, found := after[name]; !found {
			change.Reset = append(change.Reset, name)
		}
	}
	return change
}

// settingsOf returns a map of settings; nil is null.
func settingsOf(ctx context.Context, value types.Map, diags *diag.Diagnostics) map[string]string {
	if value.IsNull() {
		return nil
	}
	settings := map[string]string{}
	diags.Append(value.ElementsAs(ctx, &settings, false)...)
	return settings
}
