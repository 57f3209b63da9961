package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

// protectedKey marks, in the private state that a plan hands on, an existing table that must not be dropped. Terraform
// plans a replacement as an update first and then as a create with no prior state, but with that private state: the
// mark is how the second plan knows that the first one's table would be dropped.
const protectedKey = "protected"

// ModifyPlan refuses what would drop a protected table and what cannot be changed, and plans what is computed. It opens
// no connection.
func (r *tableResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var config, plan, state tableResourceModel
	creates, destroys := req.State.Raw.IsNull(), req.Plan.Raw.IsNull()
	if !creates {
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	}
	if !destroys {
		resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
		resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	}
	mark, diags := req.Private.GetKey(ctx, protectedKey)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}

	protected := state.DeletionProtection.ValueBool()
	switch {
	case destroys && protected:
		resp.Diagnostics.Append(protectedError(state))
		return
	case destroys:
		return
	case creates && mark != nil:
		resp.Diagnostics.Append(protectedError(plan))
		return
	case creates:
		r.planCreate(config, &plan)
	default:
		planUpdate(&plan, state, &resp.Diagnostics)
		planUpgrade(&plan, state, &resp.Diagnostics)
		mark = nil
		if protected {
			mark = []byte("true")
		}
		resp.Diagnostics.Append(resp.Private.SetKey(ctx, protectedKey, mark)...)
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
}

// planCreate fills in what the configuration leaves open. Not as static defaults, which would move or change tables
// that exist when the provider's defaults change.
func (r *tableResource) planCreate(config tableResourceModel, plan *tableResourceModel) {
	plan.Database = orDefault(config.Database, r.database)
	plan.Name = orDefault(config.Name, r.table)
	plan.Layout = orDefault(config.Layout, types.StringValue(string(statestore.LayoutVersioned)))
	plan.Comment = orDefault(config.Comment, types.StringValue(""))
	plan.Engine = orDefault(config.Engine, types.StringValue("ReplacingMergeTree"))
	plan.planID()
}

// planUpdate says what changes with what is configured.
func planUpdate(plan *tableResourceModel, state tableResourceModel, diags *diag.Diagnostics) {
	plan.EngineFull = state.EngineFull
	if !plan.Settings.Equal(state.Settings) {
		plan.EngineFull = types.StringUnknown()
	}
	if state.LockLayout.IsNull() && plan.LockLayout.IsNull() {
		plan.LockLayout = types.StringUnknown() // The lock table is missing, and will be made.
	}
	if !plan.Engine.IsUnknown() && engineOf(plan.Engine.ValueString()).Name != engineOf(state.Engine.ValueString()).Name {
		diags.AddAttributeError(path.Root("engine"), fmt.Sprintf("Unable to change engine of state table %s", state.id()),
			fmt.Sprintf("ClickHouse cannot change it from %q to %q in place, and replacing the table would drop the bookmarks in it. Put it back. To move, make another table and copy the rows.",
				state.Engine.ValueString(), plan.Engine.ValueString()))
	}
	plan.planID()
	if plan.ID.Equal(state.ID) {
		return
	}
	plan.LockTable = types.StringUnknown()
	diags.AddWarning(fmt.Sprintf("State table %s will be renamed", state.id()),
		fmt.Sprintf("Both tables move to %s with all that is in them, and entries that refer to this resource follow. Change the setting of every Meltano project that uses them in the same moment: "+
			"one that still has the old name makes new, empty tables there, and its next run starts from scratch. While anybody holds a lock, the apply refuses to rename.",
			describeID(*plan)))
}

// describeID is the address of a table, as far as it is known.
func describeID(table tableResourceModel) string {
	if table.ID.IsUnknown() {
		return "a name that is known only after apply"
	}
	return table.ID.ValueString()
}

func (m *tableResourceModel) planID() {
	m.ID = types.StringUnknown()
	if !m.Database.IsUnknown() && !m.Name.IsUnknown() {
		m.ID = types.StringValue(m.id())
	}
}

// planUpgrade says what an upgrade of the layouts does, and refuses the way back.
func planUpgrade(plan *tableResourceModel, state tableResourceModel, diags *diag.Diagnostics) {
	for _, half := range []struct {
		attribute, what, effect string
		planned, have           types.String
	}{
		{
			"layout", "State", "A new table is filled while the old one is in use, compared with it row by row, and put into its place under the locks of all entries. A Meltano run that waits for such a lock for more than 30 s fails, " +
				"so choose a quiet time. Entries keep their versions. If the apply is interrupted, the old table or a complete new one is in use, and the next apply finishes.",
			plan.Layout, state.Layout,
		},
		{
			"lock_layout", "Lock", "A new lock table is put into its place, with the locks that are held. Pipelines go on meanwhile.",
			plan.LockLayout, state.LockLayout,
		},
	} {
		switch {
		case half.planned.IsUnknown(), half.have.IsNull(), half.planned.Equal(half.have):
		case half.planned.ValueString() == string(statestore.LayoutMeltano):
			diags.AddAttributeError(path.Root(half.attribute), fmt.Sprintf("Unable to change %s of state table %s", half.attribute, state.id()),
				fmt.Sprintf("There is no way back from %q to %q: what only the better layout keeps (tombstones, the order of writes within a millisecond, rival locks) would be lost. Meltano works on both. Put it back to %q.",
					half.have.ValueString(), half.planned.ValueString(), half.have.ValueString()))
		default:
			diags.AddWarning(fmt.Sprintf("%s table %s will be upgraded", half.what, state.id()), half.effect)
			if half.attribute == "layout" {
				plan.UUID, plan.EngineFull = types.StringUnknown(), types.StringUnknown()
			}
		}
	}
}

// protectedError says how to drop a table that is protected.
func protectedError(table tableResourceModel) diag.Diagnostic {
	return diag.NewErrorDiagnostic(fmt.Sprintf("State table %s is protected from deletion", table.id()),
		"Dropping it would drop every bookmark in it, and each pipeline would start from scratch. If that is what you want, set deletion_protection = false, apply that, and try again. "+
			"To keep the table and only forget it, use a removed block with lifecycle { destroy = false }, or terraform state rm. If it is gone already, run terraform apply -refresh-only.")
}
