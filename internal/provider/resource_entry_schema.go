package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

// Metadata names the resource. Its identity changes when its table is renamed.
func (r *entryResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = typeName + "_entry"
	resp.ResourceBehavior.MutableIdentity = true
}

// Schema describes an entry.
func (r *entryResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "One entry of a state table: the bookmarks of one Meltano pipeline.\n\n" +
			"By default, what is declared is the truth: a bookmark that a pipeline has moved since is shown by the next plan as a change, and **applying that sets the pipeline back**. " +
			"The plan warns of each value that would go back, and of a destroy that would make the next run a full refresh. To declare only where a pipeline starts, set `write_policy = \"seed\"`.\n\n" +
			"Every write is made under the pipeline's lock, and only if the stored version is still the one that was planned; else the apply fails and writes nothing. " +
			"A change that touches no row, such as one of options or of the spelling of the JSON, writes none.",
		Attributes: map[string]schema.Attribute{
			"state_id": schema.StringAttribute{
				Required: true,
				MarkdownDescription: "Meltano's state id, usually `<environment>:<extractor>-to-<loader>`, with an optional `:<suffix>`. Any text is legal. " +
					"Changing it destroys the entry and creates another.",
				PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
				Validators:    []validator.String{stringvalidator.LengthAtLeast(1)},
			},

			"database": schema.StringAttribute{
				Optional: true,
				Computed: true,
				MarkdownDescription: "Database of the state table. Default: the provider's at the time of creation; a later change there does not move the entry. " +
					"Changing it here only follows a row that was moved, and the apply fails unless the new address holds the same version. That is so where this configuration renames the table, in the same apply. " +
					"After a rename by hand, a refresh no longer finds the entry and forgets it: plan with `-refresh=false`, or import it from the new address.",
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
				Validators:    []validator.String{nameValidator{}},
			},
			"table": schema.StringAttribute{
				Optional:            true,
				Computed:            true,
				MarkdownDescription: "Name of the state table. Default and changes: as for `database`.",
				PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
				Validators:          []validator.String{nameValidator{}},
			},
			"completed_state": schema.StringAttribute{
				CustomType: payloadType{},
				Optional:   true,
				Computed:   true,
				MarkdownDescription: "State of the last complete run, as JSON: `jsonencode({ singer_state = { bookmarks = { ... } } })`. Compared by meaning: the order of keys and spelling do not matter, the order of arrays does, " +
					"and numbers compare exactly. Unset is the pipeline's own: a create stores none, an update keeps what is stored. `jsonencode({})` is empty, which is stored as NULL; an import shows NULL as null.",
				PlanModifiers: []planmodifier.String{payloadPlan{}},
				Validators:    []validator.String{payloadValidator{}},
			},
			"partial_state": schema.StringAttribute{
				CustomType: payloadType{},
				Optional:   true,
				Computed:   true,
				MarkdownDescription: "State of runs that did not complete, as JSON; the next run merges it onto `completed_state`. Unset is the pipeline's own: a create stores none, an update keeps what is stored. " +
					"`jsonencode({})` erases it.",
				PlanModifiers: []planmodifier.String{payloadPlan{}},
				Validators:    []validator.String{payloadValidator{}},
			},
			"write_policy": writePolicies.attribute("Who owns the bookmark once it is stored. Changing it writes no payload: to `seed`, the declaration becomes the seed, and what is stored stays; to `enforce`, the next plan shows the drift. " +
				"In a seed, `completed_state` and `partial_state` are the declaration, and `merged_state`, `version` and `updated_at` what is stored."),
			"on_rewind":       rewindPolicies.attribute("What a plan does that would set the bookmark back, or destroy it. Only values with an order count: dates, numbers and the like, but no tokens. A bookmark that takes another shape, such as a list in place of an object, counts as vanished."),
			"deletion_policy": deletionPolicies.attribute("What a destroy does. It has to be in the state before the destroy."),
			"timeouts":        timeoutsAttribute(ctx),

			"id": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "`database/table/state_id`, which is also the import id.",
			},
			"version": schema.NumberAttribute{
				Computed:            true,
				MarkdownDescription: "Version of the stored row: microseconds of the server's clock. Every write of a pipeline changes it, so an output of it makes plans non-empty.",
			},
			"updated_at": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "When that version was written, by the server's clock: RFC 3339 in UTC, with milliseconds.",
			},
			"merged_state": schema.StringAttribute{
				CustomType:          payloadType{},
				Computed:            true,
				MarkdownDescription: "What the next run will use, as JSON: `partial_state` merged onto `completed_state` as Meltano does it. `{}` if there is neither; null if what is stored is no JSON object.",
			},
		},
	}
}

// IdentitySchema describes what identifies an entry, for Terraform 1.12 and newer.
func (r *entryResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{
		Attributes: map[string]identityschema.Attribute{
			"database": identityschema.StringAttribute{
				OptionalForImport: true,
				Description:       "Database of the state table. Default: the provider's.",
			},
			"table": identityschema.StringAttribute{
				OptionalForImport: true,
				Description:       "Name of the state table. Default: the provider's.",
			},
			"state_id": identityschema.StringAttribute{
				RequiredForImport: true,
				Description:       "Meltano's state id.",
			},
		},
	}
}
