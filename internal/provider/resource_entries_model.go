package provider

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/bookmark"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

type entriesResourceModel struct {
	Entries        types.Map      `tfsdk:"entries"`
	Export         types.String   `tfsdk:"export"`
	Database       types.String   `tfsdk:"database"`
	Table          types.String   `tfsdk:"table"`
	Exclusive      types.Bool     `tfsdk:"exclusive"`
	WritePolicy    types.String   `tfsdk:"write_policy"`
	OnRewind       types.String   `tfsdk:"on_rewind"`
	DeletionPolicy types.String   `tfsdk:"deletion_policy"`
	Timeouts       timeouts.Value `tfsdk:"timeouts"`
	ID             types.String   `tfsdk:"id"`
	EntryCount     types.Int64    `tfsdk:"entry_count"`
}

// declarations are entries by state_id. A payload without text is not declared, and the pipeline's own.
type declarations map[string]bookmark.Entry

func (m *entriesResourceModel) address(stateID string) statestore.Address {
	return statestore.Address{Database: m.Database.ValueString(), Table: m.Table.ValueString(), StateID: stateID}
}

// place is the table, as people write it.
func (m *entriesResourceModel) place() string {
	return m.Database.ValueString() + "/" + m.Table.ValueString()
}

// placed reports whether the table is known.
func (m *entriesResourceModel) placed() bool { return !m.Database.IsUnknown() && !m.Table.IsUnknown() }

func (m *entriesResourceModel) writePolicy() writePolicy { return writePolicies.of(m.WritePolicy) }

// known reports whether all entries are.
func (m *entriesResourceModel) known() bool {
	if m.Entries.IsUnknown() || m.Export.IsUnknown() {
		return false
	}
	for _, value := range m.Entries.Elements() {
		if value.IsUnknown() {
			return false
		}
	}
	return true
}

// declared reads the entries, which must be known. Where both forms are set, they hold the same.
func (m *entriesResourceModel) declared() (declarations, error) {
	if !m.Export.IsNull() {
		return bookmark.ParseExport(m.Export.ValueString())
	}
	all := make(declarations, len(m.Entries.Elements()))
	for id, value := range m.Entries.Elements() {
		entry, err := bookmark.ParseEntry(textOf(value))
		if err != nil {
			return nil, err
		}
		all[id] = entry
	}
	return all, nil
}

// textOf is the text of a value of a map of strings.
func textOf(value attr.Value) string {
	text, _ := value.(types.String) // the schema says so
	return text.ValueString()
}

// summarize fills in what is computed.
func (m *entriesResourceModel) summarize(all declarations) {
	m.ID = types.StringValue(m.place())
	m.EntryCount = types.Int64Value(int64(len(all)))
}

// take fills in the entries and how many they are, in the form or the forms that are set. What is not among the changed
// ones keeps its spelling. After an import no form is set: both are filled in, so that a configuration in either form
// plans no change, unless the map would take Terraform minutes.
func (m *entriesResourceModel) take(all declarations, changed map[string]bool) diag.Diagnostics {
	var diags diag.Diagnostics
	imported := m.Entries.IsNull() && m.Export.IsNull()
	m.summarize(all)
	if !m.Entries.IsNull() || imported && len(all) <= importedMap {
		before, elements := m.Entries.Elements(), make(map[string]attr.Value, len(all))
		for id, entry := range all {
			if value, ok := before[id]; ok && !changed[id] {
				elements[id] = value
			} else {
				elements[id] = types.StringValue(entry.String())
			}
		}
		m.Entries, diags = types.MapValue(types.StringType, elements)
	}
	if !m.Export.IsNull() || imported {
		m.Export = types.StringValue(bookmark.FormatExport(all))
	}
	return diags
}

// importedMap is how many entries an import puts into a map at most.
const importedMap = 10_000

// declares reports whether entries that a configuration declares are those of a state: the same ids, and each payload that
// is declared means the same there.
func (d declarations) declares(state declarations) bool {
	if len(d) != len(state) {
		return false
	}
	for id, entry := range d {
		prior, ok := state[id]
		if !ok || changedPayload(entry.Completed, prior.Completed) || changedPayload(entry.Partial, prior.Partial) {
			return false
		}
	}
	return true
}

// changedPayload reports whether a payload is declared, and not as it is in the state.
func changedPayload(plan, state string) bool {
	return plan != "" && (state == "" || !bookmark.Equal(plan, state))
}

// valueOf returns what a write does to a payload: one that is not declared, or did not change, is kept.
func valueOf(plan string, changed bool) statestore.Value {
	if !changed {
		return statestore.Keep()
	}
	return statestore.Set(&plan)
}

// storedEntry is what an entry would declare as it is stored: both payloads, but for one that is no state.
func storedEntry(entry statestore.Entry) bookmark.Entry {
	return bookmark.Entry{Completed: storedPayload(entry.Completed), Partial: storedPayload(entry.Partial)}
}

// storedPayload is the text of a stored payload; "" if it is none that Meltano could read.
func storedPayload(stored *string) string {
	if stored == nil || bookmark.IsEmpty(*stored) {
		return "{}"
	}
	if _, err := bookmark.Parse(*stored); err != nil {
		return ""
	}
	return *stored
}

// rows is what the private state keeps: what the entries in the state are about.
type rows struct {
	// Versions are those of the entries, which a write expects to be stored still.
	Versions map[string]uint64 `json:"versions"`
	// Declared says that the payloads in the state are a declaration, and not what is stored: those of a seed, and those
	// that were one until the last refresh.
	Declared bool `json:"declared,omitempty"`
}

// rowsKey is the key of rows in the private state; importKey that of the pattern of an import, until the first refresh.
const (
	rowsKey   = "rows"
	importKey = "import"
)

// privateState is the provider's part of a resource's private state.
type privateState interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

func loadRows(ctx context.Context, private privateState, diags *diag.Diagnostics) rows {
	var r rows
	load(ctx, private, rowsKey, &r, diags)
	if r.Versions == nil {
		r.Versions = map[string]uint64{}
	}
	return r
}

func (r rows) save(ctx context.Context, private privateState, diags *diag.Diagnostics) {
	save(ctx, private, rowsKey, r, diags)
}

// load leaves what is not there as it is.
func load(ctx context.Context, private privateState, key string, into any, diags *diag.Diagnostics) {
	text, problems := private.GetKey(ctx, key)
	diags.Append(problems...)
	if len(text) == 0 {
		return
	}
	if err := json.Unmarshal(text, into); err != nil {
		diags.AddError("Unable to read private state", sentence(err))
	}
}

func save(ctx context.Context, private privateState, key string, value any, diags *diag.Diagnostics) {
	text, err := json.Marshal(value)
	if err != nil {
		diags.AddError("Unable to keep private state", sentence(err))
		return
	}
	diags.Append(private.SetKey(ctx, key, text)...)
}

// sortedIDs are the state_ids in order.
func sortedIDs[V any](entries map[string]V) []string { return slices.Sorted(maps.Keys(entries)) }
