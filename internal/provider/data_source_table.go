package provider

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

var _ datasource.DataSourceWithConfigure = (*tableDataSource)(nil)

// NewTableDataSource returns the data source clickhousestate_table.
func NewTableDataSource() datasource.DataSource { return &tableDataSource{} }

// tableDataSource shows how a state table is.
type tableDataSource struct {
	configured
}

type tableDataSourceModel struct {
	Database              types.String `tfsdk:"database"`
	Name                  types.String `tfsdk:"name"`
	Layout                types.String `tfsdk:"layout"`
	LockLayout            types.String `tfsdk:"lock_layout"`
	Engine                types.String `tfsdk:"engine"`
	UUID                  types.String `tfsdk:"uuid"`
	LiveEntries           types.Int64  `tfsdk:"live_entries"`
	Tombstones            types.Int64  `tfsdk:"tombstones"`
	RawRows               types.Int64  `tfsdk:"raw_rows"`
	UnmergedVersions      types.Int64  `tfsdk:"unmerged_versions"`
	OldestUnmergedSeconds types.Int64  `tfsdk:"oldest_unmerged_seconds"`
	AheadSeconds          types.Int64  `tfsdk:"ahead_seconds"`
	ActiveParts           types.Int64  `tfsdk:"active_parts"`
	BytesOnDisk           types.Int64  `tfsdk:"bytes_on_disk"`
	Converged             types.Bool   `tfsdk:"converged"`
}

// Metadata names the data source.
func (d *tableDataSource) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = typeName + "_table"
}

// Schema describes the numbers.
func (d *tableDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	number := func(description string) schema.Attribute {
		return schema.Int64Attribute{Computed: true, MarkdownDescription: description}
	}
	text := func(description string) schema.Attribute {
		return schema.StringAttribute{Computed: true, MarkdownDescription: description}
	}
	name := func(description string) schema.Attribute {
		return schema.StringAttribute{Optional: true, Computed: true, MarkdownDescription: description, Validators: []validator.String{nameValidator{}}}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "A state table in numbers: its layout, what is live in it, what merges and clean-ups would still remove, and what it takes on disk. It only looks.\n\n" +
			"The guide [How the table works](../guides/table) tells what the numbers mean, and how they change.",
		Attributes: map[string]schema.Attribute{
			"database": name("Database of the state table. Default: the provider's."),
			"name":     name("Name of the state table. Default: the provider's `table`."),

			"layout":                  text("Shape of the state table: `versioned` or `meltano`."),
			"lock_layout":             text("Shape of the lock table: `strict` or `meltano`; null if there is none."),
			"engine":                  text("Engine of the state table, such as `ReplacingMergeTree` or `SharedReplacingMergeTree`."),
			"uuid":                    text("Identifies the table itself, whatever its name."),
			"live_entries":            number("Entries that readers see."),
			"tombstones":              number("Entries that are deleted and still have a row, which keeps older versions hidden. Always 0 with the layout `meltano`."),
			"raw_rows":                number("All rows that are stored: live ones, tombstones and unmerged versions."),
			"unmerged_versions":       number("Rows that a merge would drop, because a newer version of the same entry is there. Readers do not see them."),
			"oldest_unmerged_seconds": number("Seconds since the one of them that has waited longest was replaced; 0 if there is none. It goes on growing where merges do not keep up."),
			"ahead_seconds": number("Whole seconds by which the newest version lies ahead of the server's clock, 0 if none does. " +
				"Until they have passed, what Meltano writes for that entry stays hidden."),
			"active_parts":  number("Parts on disk of the state table, on the server that answered."),
			"bytes_on_disk": number("Bytes on disk of the state table, on the server that answered."),
			"converged":     schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether there is nothing to merge: `unmerged_versions` is 0."},
		},
	}
}

// Configure takes over the configured provider.
func (d *tableDataSource) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	d.take(req.ProviderData, &resp.Diagnostics)
}

// Read counts.
func (d *tableDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var model tableDataSourceModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	if resp.Diagnostics.HasError() {
		return
	}
	store := d.openAt(&model.Database, &model.Name, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	id := statestore.TableIdentity{Database: model.Database.ValueString(), Name: model.Name.ValueString()}
	health, err := store.Health(ctx, id)
	if err != nil {
		addError(&resp.Diagnostics, onTable("read", id.Database+"/"+id.Name, store), err)
		return
	}
	model.take(health)
	resp.Diagnostics.Append(resp.State.Set(ctx, model)...)
}

func (m *tableDataSourceModel) take(h statestore.Health) {
	number := func(n uint64) types.Int64 { return types.Int64Value(int64(n)) }
	m.Layout = types.StringValue(string(h.Table.Layout))
	m.LockLayout = types.StringNull()
	if h.Table.LockLayout != "" {
		m.LockLayout = types.StringValue(string(h.Table.LockLayout))
	}
	m.Engine = types.StringValue(h.Table.Engine.Name)
	m.UUID = types.StringValue(h.Table.UUID)
	m.LiveEntries, m.Tombstones = number(h.LiveEntries), number(h.Tombstones)
	m.RawRows, m.UnmergedVersions = number(h.RawRows), number(h.UnmergedVersions)
	m.OldestUnmergedSeconds = types.Int64Value(int64(h.OldestUnmerged / time.Second))
	m.AheadSeconds = types.Int64Value(int64(h.Ahead / time.Second))
	m.ActiveParts, m.BytesOnDisk = number(h.ActiveParts), number(h.BytesOnDisk)
	m.Converged = types.BoolValue(h.Converged())
}
