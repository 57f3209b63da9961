package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

var _ action.ActionWithConfigure = (*optimizeAction)(nil)

// NewOptimizeAction returns the action clickhousestate_optimize.
func NewOptimizeAction() action.Action { return &optimizeAction{} }

// optimizeAction merges the parts of a state table, and cleans up if it is told to.
type optimizeAction struct {
	configured
}

type optimizeActionModel struct {
	Database types.String `tfsdk:"database"`
	Name     types.String `tfsdk:"name"`
	Cleanup  types.Bool   `tfsdk:"cleanup"`
}

// Metadata names the action.
func (a *optimizeAction) Metadata(_ context.Context, _ action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = typeName + "_optimize"
}

// resurrection is what a clean-up risks.
const resurrection = "it removes the tombstones of deleted entries for good. Nothing hides an older version any more that comes in later, from a client that had stalled, " +
	"from a replica that lagged behind or out of a backup: then a deleted bookmark is alive again, and its pipeline goes on from where it was long ago."

// Schema describes what to merge.
func (a *optimizeAction) Schema(_ context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Merges the parts of a state table now, so that only the newest version of each entry is stored. The server does the same by itself, at some time that it chooses; " +
			"readers, pipelines and applies do not notice either. The guide [How the table works](../guides/table) shows the numbers.\n\n" +
			"Needs Terraform 1.14 or newer. With older ones, run `OPTIMIZE TABLE ... FINAL` by hand. The provider never does it on its own.",
		Attributes: map[string]schema.Attribute{
			"database": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: databaseDescription,
				Validators:          []validator.String{nameValidator{}},
			},
			"name": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "Name of the state table. Default: the provider's `table`.",
				Validators:          []validator.String{nameValidator{}},
			},
			"cleanup": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "Whether to clean up as well (`FINAL CLEANUP`). Default: `false`. **Careful:** " + resurrection +
					" It needs the table's setting `allow_experimental_replacing_merge_with_cleanup = 1`, and is refused while anybody holds a lock. Run it when no pipeline has run for longer than the slowest one takes.",
			},
		},
	}
}

// Configure takes over the configured provider.
func (a *optimizeAction) Configure(_ context.Context, req action.ConfigureRequest, resp *action.ConfigureResponse) {
	a.take(req.ProviderData, &resp.Diagnostics)
}

// Invoke merges, and says what that changed.
func (a *optimizeAction) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	var model optimizeActionModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	if resp.Diagnostics.HasError() {
		return
	}
	store := a.openAt(&model.Database, &model.Name, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	id := statestore.TableIdentity{Database: model.Database.ValueString(), Name: model.Name.ValueString()}
	name, cleanup := id.Database+"/"+id.Name, model.Cleanup.ValueBool()
	if cleanup {
		resp.SendProgress(action.InvokeProgressEvent{Message: fmt.Sprintf("Cleaning up table %s: %s", name, resurrection)})
	}
	before, after, err := store.Optimize(ctx, id, cleanup)
	if err != nil {
		addError(&resp.Diagnostics, onTable("optimize", name, store), err)
		return
	}
	resp.SendProgress(action.InvokeProgressEvent{Message: fmt.Sprintf("Merged table %s: %s are now %s.", name, describeHealth(before), describeHealth(after))})
}

// describeHealth says how much is stored, on one line.
func describeHealth(h statestore.Health) string {
	return fmt.Sprintf("%d rows in %d parts (%d live, %d tombstones, %d old versions)", h.RawRows, h.ActiveParts, h.LiveEntries, h.Tombstones, h.UnmergedVersions)
}
