package provider

import (
	"math/big"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

type entryResourceModel struct {
	StateID        types.String   `tfsdk:"state_id"`
	Database       types.String   `tfsdk:"database"`
	Table          types.String   `tfsdk:"table"`
	CompletedState payload        `tfsdk:"completed_state"`
	PartialState   payload        `tfsdk:"partial_state"`
	WritePolicy    types.String   `tfsdk:"write_policy"`
	OnRewind       types.String   `tfsdk:"on_rewind"`
	DeletionPolicy types.String   `tfsdk:"deletion_policy"`
	Timeouts       timeouts.Value `tfsdk:"timeouts"`
	ID             types.String   `tfsdk:"id"`
	Version        types.Number   `tfsdk:"version"`
	UpdatedAt      types.String   `tfsdk:"updated_at"`
	MergedState    payload        `tfsdk:"merged_state"`
}

type entryIdentityModel struct {
	Database types.String `tfsdk:"database"`
	Table    types.String `tfsdk:"table"`
	StateID  types.String `tfsdk:"state_id"`
}

func (m *entryResourceModel) address() statestore.Address {
	return statestore.Address{Database: m.Database.ValueString(), Table: m.Table.ValueString(), StateID: m.StateID.ValueString()}
}

func (m *entryResourceModel) identity() entryIdentityModel {
	return entryIdentityModel{Database: m.Database, Table: m.Table, StateID: m.StateID}
}

// placed reports whether the address is known.
func (m *entryResourceModel) placed() bool {
	return !m.Database.IsUnknown() && !m.Table.IsUnknown() && !m.StateID.IsUnknown()
}

func (m *entryResourceModel) writePolicy() writePolicy { return writePolicies.of(m.WritePolicy) }

// refresh takes over what is stored. The payloads of a seed stay what was declared. After an import the options are
// null: they become the defaults, so that a configuration that names none plans no change.
func (m *entryResourceModel) refresh(entry statestore.Entry) {
	if m.writePolicy() == policyEnforce {
		m.CompletedState = m.CompletedState.refreshed(entry.Completed)
		m.PartialState = m.PartialState.refreshed(entry.Partial)
	}
	m.WritePolicy = writePolicies.known(m.WritePolicy)
	m.OnRewind = rewindPolicies.known(m.OnRewind)
	m.DeletionPolicy = deletionPolicies.known(m.DeletionPolicy)
	m.take(entry)
}

// take fills in what the server says about the row. The payloads are the caller's: their spelling is the user's.
func (m *entryResourceModel) take(entry statestore.Entry) {
	m.ID = types.StringValue(m.address().String())
	m.Version = versionValue(entry.Version)
	m.UpdatedAt = types.StringValue(entry.UpdatedAt.UTC().Format(timeFormat))
	m.MergedState, _ = merge(payloadOf(entry.Completed), payloadOf(entry.Partial)) // null where they are no state
}

// holdsRow reports whether the payloads in a state are those of the row. They are not in a seed, nor after a switch from
// seed to enforce until the next refresh.
func (m *entryResourceModel) holdsRow() bool {
	merged, _ := merge(m.CompletedState, m.PartialState)
	return m.writePolicy() == policyEnforce && merged.means(m.MergedState)
}

// writes returns what an update writes over each payload: null where it keeps what is stored. A switch of the write
// policy writes nothing.
func (m *entryResourceModel) writes(state entryResourceModel) (completed, partial payload) {
	if m.writePolicy() != state.writePolicy() {
		return payloadOf(nil), payloadOf(nil)
	}
	seed := m.writePolicy() == policySeed
	changed := func(plan, state payload) payload {
		// In a seed, null is not declared, and {} is declared to be empty. Else null and {} are the same stored state.
		if plan.means(state) && !(seed && state.IsNull()) {
			return payloadOf(nil)
		}
		return plan
	}
	return changed(m.CompletedState, state.CompletedState), changed(m.PartialState, state.PartialState)
}

// unknownRow leaves open what the server will say about the row.
func (m *entryResourceModel) unknownRow() {
	m.Version, m.UpdatedAt, m.MergedState = types.NumberUnknown(), types.StringUnknown(), payload{types.StringUnknown()}
}

// keepRow takes over what the server said about the row, where a plan does not know it yet.
func (m *entryResourceModel) keepRow(state entryResourceModel) {
	m.Version, m.UpdatedAt, m.MergedState = state.Version, state.UpdatedAt, state.MergedState
	m.ID = types.StringValue(m.address().String())
}

// timeFormat is RFC 3339 with the milliseconds that the server keeps.
const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// versionValue returns a version as a number, exactly: it has 64 bits.
func versionValue(version uint64) types.Number {
	return types.NumberValue(new(big.Float).SetUint64(version))
}

func versionOf(value types.Number) uint64 {
	if value.IsNull() || value.IsUnknown() {
		return 0
	}
	version, _ := value.ValueBigFloat().Uint64()
	return version
}
