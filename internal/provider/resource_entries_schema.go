package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-validators/resourcevalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

// Metadata names the resource.
func (r *entriesResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = typeName + "_entries"
}

// Schema describes many entries of one table. The collections are flat on purpose: the time that Terraform takes for nested
// ones grows with the square of their size.
func (r *entriesResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Many entries of one state table, written and read together: the bookmarks of all pipelines of a Meltano project. " +
			"What holds for a [`clickhousestate_entry`](entry) holds for each entry here: what is declared is the truth unless `write_policy` says otherwise, plans warn of what would go back, " +
			"and an entry is written under its pipeline's lock, and only if its stored version is the one that was planned.\n\n" +
			fmt.Sprintf("What an apply changes is written under one lock and as one INSERT, all or nothing, as long as it has no more than %d entries and %d MiB of payload; beyond that, in several such batches, one after the other. ",
				statestore.MaxBatchRows, statestore.MaxBatchBytes>>20) +
			"A single entry that is locked, moved or there already keeps its whole batch from being written, and the error names it. After an error between batches, an update's state holds what is written; " +
			"a create leaves no state, and the next one takes over what is there as declared.\n\n" +
			"Up to some thousand entries, `entries` and `export` are alike. Beyond, use `export`: Terraform's time for a map grows with the square of its size.",
		Attributes: map[string]schema.Attribute{
			"entries": schema.MapAttribute{
				ElementType: types.StringType,
				Optional:    true,
				Computed:    true, // see entriesResourceModel.take
				MarkdownDescription: "The entries by state id: each a JSON object `{\"completed\": {...}, \"partial\": {...}}`, such as `jsonencode({ completed = { singer_state = { ... } } })`. " +
					"Both are compared by meaning. One that is left out or null is the pipeline's own: a create stores none, an update keeps what is stored; an empty object erases it. " +
					"Exactly one of `entries` and `export` has to be set.",
			},
			"export": schema.StringAttribute{
				Optional:            true,
				Computed:            true,
				MarkdownDescription: "The same entries as one JSON object, which is what `meltano state export` writes: `file(\"state-export.json\")`.",
			},

			"database": schema.StringAttribute{
				Optional: true,
				Computed: true,
				MarkdownDescription: "Database of the state table. Default: the provider's at the time of creation; a later change there does not move the entries. " +
					"Changing it here only follows rows that were moved, and the apply fails unless the new address holds the same versions. That is so where this configuration renames the table, in the same apply. " +
					"After a rename by hand, a refresh no longer finds the entries and forgets them: plan with `-refresh=false`, or import them from the new address.",
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
			"exclusive": schema.BoolAttribute{
				Optional: true,
				Computed: true,
				Default:  booldefault.StaticBool(false),
				MarkdownDescription: "Whether no other entries may be in the table. If so, a refresh brings those that are not declared into the state, so that the plan shows their removal, and applying it deletes them. " +
					"Nothing is deleted that no plan has shown: the apply that sets this deletes nothing yet, but the next plan shows what will be. A destroy deletes what the state shows. Default: false.",
			},
			"write_policy":    writePolicies.attribute("Who owns the bookmarks once they are stored. Changing it writes no payload: to `seed`, the declaration becomes the seed, and what is stored stays; to `enforce`, the next plan shows the drift."),
			"on_rewind":       rewindPolicies.attribute("What a plan does that would set bookmarks back, or delete them. Only values with an order count: dates, numbers and the like, but no tokens. A bookmark that takes another shape, such as a list in place of an object, counts as vanished."),
			"deletion_policy": deletionPolicies.attribute("What happens to entries that are no longer declared, and to all of them in a destroy. For a destroy it has to be in the state before. `exclusive` deletes what is not declared whatever this says."),
			"timeouts":        timeoutsAttribute(ctx),

			"id": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "`database/table`.",
			},
			"entry_count": schema.Int64Attribute{
				Computed:            true,
				MarkdownDescription: "How many entries there are.",
			},
		},
	}
}

// ConfigValidators checks that the entries are declared in one of the two ways.
func (r *entriesResource) ConfigValidators(context.Context) []resource.ConfigValidator {
	return []resource.ConfigValidator{resourcevalidator.ExactlyOneOf(path.MatchRoot("entries"), path.MatchRoot("export"))}
}
