package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

var _ list.ListResourceWithConfigure = (*entryListResource)(nil)

// NewEntryListResource returns the list resource clickhousestate_entry.
func NewEntryListResource() list.ListResource { return &entryListResource{} }

// entryListResource finds the entries of a table, to be imported.
type entryListResource struct {
	configured
}

type entryListResourceModel struct {
	Pattern  types.String `tfsdk:"pattern"`
	Database types.String `tfsdk:"database"`
	Table    types.String `tfsdk:"table"`
}

// Metadata names the resource that is listed.
func (l *entryListResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = typeName + "_entry"
}

// ListResourceConfigSchema describes what to look for.
func (l *entryListResource) ListResourceConfigSchema(_ context.Context, _ list.ListResourceSchemaRequest, resp *list.ListResourceSchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Finds the entries of a state table, in the order of their state ids, so that Terraform can import what Meltano already wrote. It takes no lock.\n\n" +
			"Needs Terraform 1.14 or newer, whose command is `terraform query`. It was tested by Terraform's protocol only. With older ones, see the guide [Adopt what Meltano wrote](../guides/adopt).",
		Attributes: map[string]schema.Attribute{
			"pattern": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "Pattern of whole state ids: " + patternRule + " Default: all.",
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"database": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: databaseDescription,
				Validators:          []validator.String{nameValidator{}},
			},
			"table": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: tableDescription,
				Validators:          []validator.String{nameValidator{}},
			},
		},
	}
}

// List finds the entries. What fails is pushed into the stream, which has no other place for it.
func (l *entryListResource) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var (
		model entryListResourceModel
		diags diag.Diagnostics
	)
	entries := func() []statestore.Entry {
		diags.Append(req.Config.Get(ctx, &model)...)
		if diags.HasError() {
			return nil
		}
		store := l.openAt(&model.Database, &model.Table, &diags)
		if diags.HasError() {
			return nil
		}
		database, table := model.Database.ValueString(), model.Table.ValueString()
		filter := statestore.Filter{Pattern: patternOf(model.Pattern), Limit: int(req.Limit)}
		found, err := store.List(ctx, database, table, filter)
		if err != nil {
			addError(&diags, onEntries("list", filter.Pattern, database+"/"+table, store), err)
		}
		return found
	}()
	if diags.HasError() {
		stream.Results = list.ListResultsStreamDiagnostics(diags)
		return
	}
	stream.Results = func(push func(list.ListResult) bool) {
		for _, entry := range entries {
			if !push(model.result(ctx, req, entry)) {
				return
			}
		}
	}
}

// result is an entry as an import of it would find it.
func (m entryListResourceModel) result(ctx context.Context, req list.ListRequest, entry statestore.Entry) list.ListResult {
	result := req.NewListResult(ctx)
	result.DisplayName = entry.StateID
	identity := entryIdentityModel{Database: m.Database, Table: m.Table, StateID: types.StringValue(entry.StateID)}
	result.Diagnostics.Append(result.Identity.Set(ctx, identity)...)
	if !req.IncludeResource {
		return result
	}
	for name, value := range map[string]types.String{"database": identity.Database, "table": identity.Table, "state_id": identity.StateID} {
		result.Diagnostics.Append(result.Resource.SetAttribute(ctx, path.Root(name), value)...)
	}
	var resource entryResourceModel
	result.Diagnostics.Append(result.Resource.Get(ctx, &resource)...)
	if result.Diagnostics.HasError() {
		return result
	}
	resource.refresh(entry)
	result.Diagnostics.Append(result.Resource.Set(ctx, resource)...)
	return result
}
