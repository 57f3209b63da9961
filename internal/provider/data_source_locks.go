package provider

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

var _ datasource.DataSourceWithConfigure = (*locksDataSource)(nil)

// NewLocksDataSource returns the data source clickhousestate_locks.
func NewLocksDataSource() datasource.DataSource { return &locksDataSource{} }

// locksDataSource shows who holds which locks of a state table.
type locksDataSource struct {
	configured
}

type locksDataSourceModel struct {
	StateID  types.String `tfsdk:"state_id"`
	Database types.String `tfsdk:"database"`
	Table    types.String `tfsdk:"table"`
	Locks    []claimModel `tfsdk:"locks"`
}

type claimModel struct {
	StateID    types.String `tfsdk:"state_id"`
	LockID     types.String `tfsdk:"lock_id"`
	Holder     types.String `tfsdk:"holder"`
	LockedAt   types.String `tfsdk:"locked_at"`
	AgeSeconds types.Int64  `tfsdk:"age_seconds"`
	Stale      types.Bool   `tfsdk:"stale"`
}

// Metadata names the data source.
func (d *locksDataSource) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = typeName + "_locks"
}

// Schema describes the locks of a table.
func (d *locksDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Who holds the locks of a state table, since when, and whether they are stale. It only looks: it takes no lock and waits for none.\n\n" +
			"See the guide [Locking](../guides/locking) for what to do about a lock that is in the way.",
		Attributes: map[string]schema.Attribute{
			"state_id": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "Show the locks of this state id only. Default: all.",
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"database": schema.StringAttribute{
				Optional:            true,
				Computed:            true,
				MarkdownDescription: databaseDescription,
				Validators:          []validator.String{nameValidator{}},
			},
			"table": schema.StringAttribute{
				Optional:            true,
				Computed:            true,
				MarkdownDescription: tableDescription,
				Validators:          []validator.String{nameValidator{}},
			},

			"locks": schema.ListNestedAttribute{
				Computed: true,
				MarkdownDescription: "The locks, in the order of `state_id` and `lock_id`; empty if nothing is locked. " +
					"Two on one `state_id` are two that want it at the same moment, or a stale one beside its successor.",
				NestedObject: schema.NestedAttributeObject{
					Attributes: map[string]schema.Attribute{
						"state_id": schema.StringAttribute{
							Computed:            true,
							MarkdownDescription: "What is locked.",
						},
						"lock_id": schema.StringAttribute{
							Computed:            true,
							MarkdownDescription: "Identifies the lock; needed to break it.",
						},
						"holder": schema.StringAttribute{
							Computed: true,
							MarkdownDescription: "Who holds it: user, host, process and program. Empty for Meltano, which leaves no name, " +
								"and for everybody on a lock table that Meltano made.",
						},
						"locked_at": schema.StringAttribute{
							Computed:            true,
							MarkdownDescription: "When it was taken or last renewed, by the server's clock: RFC 3339 in UTC.",
						},
						"age_seconds": schema.Int64Attribute{
							Computed:            true,
							MarkdownDescription: "Whole seconds since then, by the server's clock.",
						},
						"stale": schema.BoolAttribute{
							Computed:            true,
							MarkdownDescription: "Whether it is older than 300 s: then everybody takes its holder for dead, and it is in nobody's way.",
						},
					},
				},
			},
		},
	}
}

// Configure takes over the configured provider.
func (d *locksDataSource) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	d.take(req.ProviderData, &resp.Diagnostics)
}

// Read lists the locks. It takes none.
func (d *locksDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var model locksDataSourceModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	if resp.Diagnostics.HasError() {
		return
	}
	store := d.openAt(&model.Database, &model.Table, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	database, table := model.Database.ValueString(), model.Table.ValueString()
	claims, err := store.Locks(ctx, database, table, model.StateID.ValueStringPointer())
	if err != nil {
		what := attempt{verb: "read", kind: "locks", object: "the locks of table " + database + "/" + table, server: store.String()}
		addError(&resp.Diagnostics, what, err)
		return
	}
	model.Locks = claimModels(claims)
	resp.Diagnostics.Append(resp.State.Set(ctx, model)...)
}

// claimModels is never nil: no lock is an empty list.
func claimModels(claims []statestore.Claim) []claimModel {
	models := make([]claimModel, len(claims))
	for i, claim := range claims {
		models[i] = claimModel{
			StateID:    types.StringValue(claim.StateID),
			LockID:     types.StringValue(claim.LockID),
			Holder:     types.StringValue(claim.Holder),
			LockedAt:   types.StringValue(claim.LockedAt.UTC().Format(time.RFC3339)),
			AgeSeconds: types.Int64Value(int64(claim.Age / time.Second)),
			Stale:      types.BoolValue(claim.Stale),
		}
	}
	return models
}
