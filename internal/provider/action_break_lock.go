package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

var _ action.ActionWithConfigure = (*breakLockAction)(nil)

// NewBreakLockAction returns the action clickhousestate_break_lock.
func NewBreakLockAction() action.Action { return &breakLockAction{} }

// breakLockAction removes one lock of somebody else.
type breakLockAction struct {
	configured
}

type breakLockActionModel struct {
	StateID  types.String `tfsdk:"state_id"`
	LockID   types.String `tfsdk:"lock_id"`
	Database types.String `tfsdk:"database"`
	Table    types.String `tfsdk:"table"`
}

// Metadata names the action.
func (a *breakLockAction) Metadata(_ context.Context, _ action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = typeName + "_break_lock"
}

// Schema describes what to break. The lock_id is required, so that a lock that was taken meanwhile is safe.
func (a *breakLockAction) Schema(_ context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Breaks the lock that a dead process left behind, before it is stale. It removes exactly the lock that is named, and refuses if another one is held.\n\n" +
			"~> **Make sure that the holder is dead.** A run of Meltano that is still alive does not notice, and writes its state at its end beside whoever locked next. A Terraform apply notices, writes nothing more and fails.\n\n" +
			"Needs Terraform 1.14 or newer. With older ones, run the statement that the error of the waiting apply shows. See the guide [Locking](../guides/locking).",
		Attributes: map[string]schema.Attribute{
			"state_id": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "State id whose lock to break.",
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"lock_id": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "The lock, as the error of the waiting apply and the data source `clickhousestate_locks` show it.",
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

// Configure takes over the configured provider.
func (a *breakLockAction) Configure(_ context.Context, req action.ConfigureRequest, resp *action.ConfigureResponse) {
	a.take(req.ProviderData, &resp.Diagnostics)
}

// Invoke breaks the lock and says what it was.
func (a *breakLockAction) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	var model breakLockActionModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	if resp.Diagnostics.HasError() {
		return
	}
	store := a.openAt(&model.Database, &model.Table, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	at := statestore.Address{Database: model.Database.ValueString(), Table: model.Table.ValueString(), StateID: model.StateID.ValueString()}
	what := onLock("break", []string{at.StateID}, at.Database+"/"+at.Table, store)
	broken, err := store.BreakLock(ctx, at, model.LockID.ValueString())
	if err != nil {
		addError(&resp.Diagnostics, what, err)
		return
	}
	resp.SendProgress(action.InvokeProgressEvent{Message: fmt.Sprintf("Removed %s: %s.", what.object, describeClaim(broken))})
}
