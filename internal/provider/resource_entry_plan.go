package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/bookmark"
)

// ValidateConfig warns of state that Meltano reads without finding a bookmark in it.
func (r *entryResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config entryResourceModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
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
		if state.value.IsNull() || state.value.IsUnknown() {
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

// ModifyPlan plans what is computed. It opens no connection.
func (r *entryResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() { // a destroy
		return
	}
	var config, plan, state entryResourceModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	creates := req.State.Raw.IsNull()
	if !creates {
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}

	if creates {
		// Not as static defaults, which would move existing entries when the provider's change.
		plan.Database = orDefault(config.Database, r.database)
		plan.Table = orDefault(config.Table, r.table)
	}
	if !creates && plan.sameRow(state) {
		plan.keepRow(state)
	} else {
		plan.Version, plan.UpdatedAt = types.NumberUnknown(), types.StringUnknown()
		merged, err := merge(plan.CompletedState, plan.PartialState)
		if err != nil { // a stored payload is kept that is no state
			merged = payloadOf(nil)
		}
		plan.MergedState = merged
	}
	plan.ID = types.StringUnknown()
	if !plan.Database.IsUnknown() && !plan.Table.IsUnknown() && !plan.StateID.IsUnknown() {
		plan.ID = types.StringValue(plan.address().String())
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
}
