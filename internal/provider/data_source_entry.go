package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

var _ datasource.DataSourceWithConfigure = (*entryDataSource)(nil)

// NewEntryDataSource returns the data source clickhousestate_entry.
func NewEntryDataSource() datasource.DataSource { return &entryDataSource{} }

// entryDataSource reads one entry that must be there.
type entryDataSource struct {
	configured
}

type entryDataSourceModel struct {
	StateID  types.String `tfsdk:"state_id"`
	Database types.String `tfsdk:"database"`
	Table    types.String `tfsdk:"table"`
	storedModel
}

// storedModel is what data sources show of an entry.
type storedModel struct {
	CompletedState types.String `tfsdk:"completed_state"`
	PartialState   types.String `tfsdk:"partial_state"`
	MergedState    types.String `tfsdk:"merged_state"`
	Version        types.Number `tfsdk:"version"`
	UpdatedAt      types.String `tfsdk:"updated_at"`
}

// Metadata names the data source.
func (d *entryDataSource) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = typeName + "_entry"
}

// Schema describes an entry.
func (d *entryDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	attributes := storedAttributes()
	attributes["state_id"] = schema.StringAttribute{
		Required:            true,
		MarkdownDescription: "Meltano's state id.",
		Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
	}
	attributes["database"] = schema.StringAttribute{
		Optional:            true,
		Computed:            true,
		MarkdownDescription: databaseDescription,
		Validators:          []validator.String{nameValidator{}},
	}
	attributes["table"] = schema.StringAttribute{
		Optional:            true,
		Computed:            true,
		MarkdownDescription: tableDescription,
		Validators:          []validator.String{nameValidator{}},
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "One entry of a state table, as it is stored now: the bookmarks of one Meltano pipeline. It takes no lock and waits for none.\n\n" +
			"An entry that is not there, or was deleted, is an error. Where that may be, use [`clickhousestate_entries`](entries) with the state id as `pattern`, which is empty then.",
		Attributes: attributes,
	}
}

// storedAttributes describes what data sources show of an entry.
func storedAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"completed_state": schema.StringAttribute{
			Computed:            true,
			MarkdownDescription: "State of the last complete run, as JSON, in the spelling in which it is stored. Null if there is none. It can be given to `completed_state` of another entry as it is.",
		},
		"partial_state": schema.StringAttribute{
			Computed:            true,
			MarkdownDescription: "State of runs that did not complete, as JSON. Null if there is none.",
		},
		"merged_state": schema.StringAttribute{
			Computed:            true,
			MarkdownDescription: "What the next run will use, as JSON: `partial_state` merged onto `completed_state` as Meltano does it. `{}` if there is neither; null if what is stored is no JSON object.",
		},
		"version": schema.NumberAttribute{
			Computed:            true,
			MarkdownDescription: "Version of the stored row: microseconds of the server's clock.",
		},
		"updated_at": schema.StringAttribute{
			Computed:            true,
			MarkdownDescription: "When that version was written, by the server's clock: RFC 3339 in UTC, with milliseconds.",
		},
	}
}

// Configure takes over the configured provider.
func (d *entryDataSource) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	d.take(req.ProviderData, &resp.Diagnostics)
}

// Read reads the entry.
func (d *entryDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var model entryDataSourceModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	if resp.Diagnostics.HasError() {
		return
	}
	store := d.openAt(&model.Database, &model.Table, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	at := statestore.Address{Database: model.Database.ValueString(), Table: model.Table.ValueString(), StateID: model.StateID.ValueString()}
	entry, err := store.Read(ctx, at)
	if err != nil {
		addError(&resp.Diagnostics, onEntry("read", at, store), err)
		return
	}
	model.storedModel = storedModelOf(entry)
	warnUnreadable(&resp.Diagnostics, at.StateID, model.storedModel)
	resp.Diagnostics.Append(resp.State.Set(ctx, model)...)
}

func storedModelOf(entry statestore.Entry) storedModel {
	merged, _ := merge(payloadOf(entry.Completed), payloadOf(entry.Partial)) // null where the payloads are no state
	return storedModel{
		CompletedState: types.StringPointerValue(entry.Completed),
		PartialState:   types.StringPointerValue(entry.Partial),
		MergedState:    merged.StringValue,
		Version:        versionValue(entry.Version),
		UpdatedAt:      types.StringValue(entry.UpdatedAt.UTC().Format(timeFormat)),
	}
}
