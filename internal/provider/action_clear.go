package provider

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

var (
	_ action.ActionWithConfigure  = (*clearAction)(nil)
	_ action.ActionWithModifyPlan = (*clearAction)(nil)
)

// NewClearAction returns the action clickhousestate_clear.
func NewClearAction() action.Action { return &clearAction{} }

// clearAction deletes the entries that match a pattern.
type clearAction struct {
	configured
}

type clearActionModel struct {
	Pattern  types.String `tfsdk:"pattern"`
	Database types.String `tfsdk:"database"`
	Table    types.String `tfsdk:"table"`
}

// Metadata names the action.
func (a *clearAction) Metadata(_ context.Context, _ action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = typeName + "_clear"
}

// Schema describes what to clear. The pattern is required, so that nobody clears everything by leaving something out.
func (a *clearAction) Schema(_ context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Deletes the entries whose state ids match a pattern: the next run of each pipeline reads everything from its beginning. " +
			"The plan warns, and lists what it would delete. Those are not held to the plan: what matches when it runs is deleted, whatever it holds then.\n\n" +
			"It takes the locks of up to 10,000 entries at a time, and deletes all of those or none (in a table that Meltano made 1,000, of which some may be deleted already when it fails). If the lock of one stays busy, it stops: the error names the state id, and tells how many are deleted already. The others are as they were, and it can be run again. " +
			"A pipeline that runs meanwhile stores its bookmark when it ends, as after `meltano state clear`.\n\n" +
			"Entries that Terraform manages are created again by the next apply.\n\n" +
			"Needs Terraform 1.14 or newer. It was tested by Terraform's protocol only.",
		Attributes: map[string]schema.Attribute{
			"pattern": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "Pattern of whole state ids: " + patternRule + " `*` alone is every entry.",
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
func (a *clearAction) Configure(_ context.Context, req action.ConfigureRequest, resp *action.ConfigureResponse) {
	a.take(req.ProviderData, &resp.Diagnostics)
}

// ModifyPlan lists what would be deleted. What is not known yet is not looked for.
func (a *clearAction) ModifyPlan(ctx context.Context, req action.ModifyPlanRequest, resp *action.ModifyPlanResponse) {
	var model clearActionModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	if resp.Diagnostics.HasError() || a.instance == nil || a.store == nil {
		return
	}
	model.Database, model.Table = orDefault(model.Database, a.database), orDefault(model.Table, a.table)
	if model.Pattern.IsUnknown() || model.Database.IsUnknown() || model.Table.IsUnknown() {
		return
	}
	ids, err := a.store.Match(ctx, model.Database.ValueString(), model.Table.ValueString(), model.Pattern.ValueString())
	if err != nil {
		addError(&resp.Diagnostics, model.attempt(a.store), err)
		return
	}
	if len(ids) == 0 {
		return
	}
	const shown = 20
	names := make([]string, 0, shown+1)
	for _, id := range ids[:min(shown, len(ids))] {
		names = append(names, fmt.Sprintf("  %q", id))
	}
	if more := len(ids) - shown; more > 0 {
		names = append(names, fmt.Sprintf("  and %d more", more))
	}
	resp.Diagnostics.AddWarning(fmt.Sprintf("Clearing %q deletes the bookmarks of %d pipelines", model.Pattern.ValueString(), len(ids)),
		fmt.Sprintf("The next run of each is a full refresh, which reads everything anew. In table %s match now:\n\n%s", model.name(), strings.Join(names, "\n")))
}

// Invoke clears, and says how many entries that were.
func (a *clearAction) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	var model clearActionModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	if resp.Diagnostics.HasError() {
		return
	}
	store := a.openAt(&model.Database, &model.Table, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	pattern := model.Pattern.ValueString()
	cleared, err := store.Clear(ctx, model.Database.ValueString(), model.Table.ValueString(), pattern)
	warnCleared(&resp.Diagnostics, pattern, cleared)
	if err != nil {
		addError(&resp.Diagnostics, model.attempt(store), err)
		return
	}
	resp.SendProgress(action.InvokeProgressEvent{
		Message: fmt.Sprintf("Deleted %d entries, all that matched %q in table %s.", len(cleared), pattern, model.name()),
	})
}

func (m clearActionModel) name() string {
	return m.Database.ValueString() + "/" + m.Table.ValueString()
}

func (m clearActionModel) attempt(store *statestore.Store) attempt {
	return onEntries("clear", m.Pattern.ValueString(), m.name(), store)
}

// warnCleared warns of what the user would not expect of a clear that happened. It names the entry that is ahead the most.
func warnCleared(diags *diag.Diagnostics, pattern string, cleared map[string]statestore.Written) {
	var (
		ahead      string
		unreleased *statestore.ReleaseError
	)
	for id, written := range cleared {
		if written.Ahead > cleared[ahead].Ahead {
			ahead = id
		}
		unreleased = cmp.Or(unreleased, written.Unreleased)
	}
	if ahead != "" {
		diags.AddWarning(fmt.Sprintf("State entry %q hides what Meltano writes until %s", ahead, cleared[ahead].Entry.UpdatedAt.UTC().Format(time.RFC3339)),
			"A version from the future was stored, so what deletes it had to be stamped ahead of the server's clock to be seen at all. "+
				"Until the clock has caught up, what a pipeline stores for this state_id stays hidden, and each run reads everything from its beginning. Others may be hidden, too, but for no longer.")
	}
	if unreleased != nil {
		diags.AddWarning(fmt.Sprintf("The locks of the state entries %q may not be released", pattern),
			fmt.Sprintf("They are deleted, but removing their locks was not confirmed, so pipelines may have to wait until they expire at %s.\n\n%s",
				unreleased.Expires.UTC().Format(time.RFC3339), sentence(unreleased)))
	}
}
