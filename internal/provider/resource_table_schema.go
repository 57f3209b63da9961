package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

const (
	defaultCreateDatabase     = false
	defaultDeletionProtection = true
)

// Metadata names the resource.
func (r *tableResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = typeName + "_table"
}

// Schema describes a table.
func (r *tableResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A table that Meltano pipelines keep their state in, and its lock table, named like it with `_lock` behind. Meltano's ClickHouse state backend works on both unchanged.\n\n" +
			"A table that is not there creates; one that is there already is an error that says how to import it, unless it is empty and just as declared. A table of another shape is refused with the reasons, never replaced.",
		Attributes: map[string]schema.Attribute{
			"database": schema.StringAttribute{
				Optional:            true,
				Computed:            true,
				MarkdownDescription: "Database. Default: the provider's at the time of creation. A change renames both tables in place, as for `name`.",
				PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
				Validators:          []validator.String{nameValidator{}},
			},
			"name": schema.StringAttribute{
				Optional: true,
				Computed: true,
				MarkdownDescription: "Name of the state table. Default: the provider's `table` at the time of creation. A change renames both tables in place, while nobody holds a lock; " +
					"entries that refer to this resource follow. Change the setting of Meltano in the same moment: with the old name it would make new, empty tables.",
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
				Validators:    []validator.String{nameValidator{}},
			},
			"layout": schema.StringAttribute{
				Optional: true,
				Computed: true,
				MarkdownDescription: "Shape of the state table. Default: `versioned`, a `ReplacingMergeTree(version, is_deleted)` ordered by `state_id`, in which a delete is a tombstone and " +
					"versions are microseconds of the server's clock. The other is `meltano`, the table that Meltano makes by itself: `updated_at` orders the versions, and a delete removes rows. " +
					"A change from `meltano` to `versioned` upgrades the table in place, see the guide [How the table works](../guides/table); there is no way back.",
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
				Validators:    []validator.String{oneOfLayouts(statestore.TableLayouts())},
			},
			"lock_layout": schema.StringAttribute{
				Optional: true,
				Computed: true,
				MarkdownDescription: "Shape of the lock table. Default: `strict`, ordered by `(state_id, lock_id)`, so that a merge cannot swallow a claim. " +
					"A lock table that Meltano made, ordered by `state_id` alone, is used as it is, and shows as `meltano`. A change from `meltano` to `strict` rebuilds it in place, with the locks that are held; there is no way back. A lock table that is missing is made.",
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
				Validators:    []validator.String{oneOfLayouts(statestore.LockLayouts())},
			},
			"comment": schema.StringAttribute{
				Optional:            true,
				Computed:            true,
				MarkdownDescription: "Comment of the state table. Default: empty at creation; unset later, it stays as it is. Changes in place.",
				PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"settings": schema.MapAttribute{
				ElementType: types.StringType,
				Optional:    true,
				MarkdownDescription: "MergeTree settings of the state table by name, values as text as the server shows them. Only the ones named here are compared; " +
					"one that is removed here goes back to the server's default. Changes in place, as far as the server can change them. The useful ones:\n" +
					"  - `min_age_to_force_merge_seconds`: merge parts that are older, so that old versions go by themselves.\n" +
					"  - `allow_experimental_replacing_merge_with_cleanup`: let `OPTIMIZE ... FINAL CLEANUP` remove tombstones. Off by default, and with a reason: see the guide [How the table works](../guides/table).\n" +
					"  - `non_replicated_deduplication_window`: leave it at 0; equal inserts are no duplicates here.",
			},
			"cluster": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Cluster on whose hosts both tables are made, changed and dropped (`ON CLUSTER`). An apply waits for all hosts, and names those that are not done within the server's `distributed_ddl_task_timeout`. " +
					"A macro such as `{cluster}` is the server's to expand. Default: the server alone. Not verified on a cluster.",
				Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"engine": schema.StringAttribute{
				Optional: true,
				Computed: true,
				MarkdownDescription: "Engine of both tables: `ReplacingMergeTree` (default) or `ReplicatedReplacingMergeTree`, with or without where replicas find each other: " +
					"`ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}')`. The path has to name `{table}` or `{uuid}`, since there are two tables. " +
					"What ClickHouse Cloud makes of it (`SharedReplacingMergeTree`) is no diff. It cannot be changed. Replicated engines are not verified on a cluster.",
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
				Validators:    []validator.String{engineValidator{}},
			},
			"create_database": schema.BoolAttribute{
				Optional:            true,
				Computed:            true,
				Default:             booldefault.StaticBool(defaultCreateDatabase),
				MarkdownDescription: "Whether the creation makes the database first, if it is not there. Default: `false`. A destroy leaves the database alone.",
			},
			"deletion_protection": schema.BoolAttribute{
				Optional: true,
				Computed: true,
				Default:  booldefault.StaticBool(defaultDeletionProtection),
				MarkdownDescription: "Whether a plan that would destroy or replace the table is refused, even if the table is empty. Default: `true`. " +
					"To destroy it, apply `false` first; the destroy then drops both tables and **every bookmark in them**.",
			},
			"timeouts": timeoutsAttribute(ctx),

			"id": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "`database/name`, which is also the import id.",
			},
			"lock_table": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "Name of the lock table, in the same database.",
				PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"uuid": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "Identifies the table itself, whatever its name. A destroy drops this one or none; a table that was renamed by hand is found by it.",
				PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"engine_full": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "Engine clause of the state table as the server shows it, settings included.",
			},
		},
	}
}

// oneOfLayouts accepts the layouts of a list.
func oneOfLayouts(layouts []statestore.Layout) validator.String {
	names := make([]string, len(layouts))
	for i, layout := range layouts {
		names[i] = string(layout)
	}
	return stringvalidator.OneOf(names...)
}
