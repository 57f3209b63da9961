package provider

import (
	"context"
	"math/big"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// What follows is what Get and Set of the framework would do for an entry. Theirs compile a regular expression for each
// field of the struct whenever they see one: of the time that the provider takes to plan 1,000 entries, that and the rest of
// the reflection was a third.

// timeoutsType is the type of the attribute timeouts.
var timeoutsType = timeoutsAttribute(context.Background()).GetType()

// fromRaw reads an entry from a configuration, a plan or a state.
func (m *entryResourceModel) fromRaw(ctx context.Context, raw tftypes.Value) (diags diag.Diagnostics) {
	var values map[string]tftypes.Value
	if err := raw.As(&values); err != nil {
		diags.AddError("Unable to read state entry", sentence(err))
		return diags
	}
	for name, field := range map[string]*types.String{
		"state_id": &m.StateID, "database": &m.Database, "table": &m.Table, "write_policy": &m.WritePolicy, "on_rewind": &m.OnRewind,
		"deletion_policy": &m.DeletionPolicy, "id": &m.ID, "updated_at": &m.UpdatedAt,
		"completed_state": &m.CompletedState.StringValue, "partial_state": &m.PartialState.StringValue, "merged_state": &m.MergedState.StringValue,
	} {
		*field = stringOf(values[name])
	}
	m.Version = numberOf(values["version"])
	limits, err := timeoutsType.ValueFromTerraform(ctx, values["timeouts"])
	if err != nil {
		diags.AddError("Unable to read state entry", sentence(err))
		return diags
	}
	m.Timeouts, _ = limits.(timeouts.Value) // what the type makes
	return diags
}

func stringOf(value tftypes.Value) types.String {
	if !value.IsKnown() {
		return types.StringUnknown()
	}
	var text *string
	_ = value.As(&text) // the schema says that it is a string
	return types.StringPointerValue(text)
}

func numberOf(value tftypes.Value) types.Number {
	if !value.IsKnown() {
		return types.NumberUnknown()
	}
	var number *big.Float
	_ = value.As(&number) // the schema says that it is a number
	if number == nil {
		return types.NumberNull()
	}
	return types.NumberValue(number)
}

// toRaw writes an entry into a plan or a state, which has its type already.
func (m *entryResourceModel) toRaw(ctx context.Context, raw *tftypes.Value) (diags diag.Diagnostics) {
	values := make(map[string]tftypes.Value, 13)
	for name, field := range map[string]attr.Value{
		"state_id": m.StateID, "database": m.Database, "table": m.Table, "completed_state": m.CompletedState, "partial_state": m.PartialState,
		"write_policy": m.WritePolicy, "on_rewind": m.OnRewind, "deletion_policy": m.DeletionPolicy, "timeouts": m.Timeouts,
		"id": m.ID, "version": m.Version, "updated_at": m.UpdatedAt, "merged_state": m.MergedState,
	} {
		value, err := field.ToTerraformValue(ctx)
		if err != nil {
			diags.AddError("Unable to keep state entry", sentence(err))
			return diags
		}
		values[name] = value
	}
	*raw = tftypes.NewValue(raw.Type(), values)
	return diags
}
