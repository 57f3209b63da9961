package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/bookmark"
)

var _ function.Function = (*mergeStateFunction)(nil)

// NewMergeStateFunction returns the function merge_state.
func NewMergeStateFunction() function.Function { return &mergeStateFunction{} }

// mergeStateFunction tells what Meltano's next run will use.
type mergeStateFunction struct{}

// Metadata names the function.
func (*mergeStateFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "merge_state"
}

// Definition describes the two payloads.
func (*mergeStateFunction) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "State that the next run will use",
		MarkdownDescription: "Returns the state that Meltano's next run will use, as JSON: the partial state merged onto the completed one. " +
			"Objects merge; arrays and anything else, null included, replace what was there. Numbers keep their digits, keys are sorted.\n\n" +
			"The attribute `merged_state` of entries is this. Use the function for state from elsewhere, such as the output of `meltano state export`." + pureFunction,
		Parameters: []function.Parameter{
			function.StringParameter{
				Name:                "completed",
				AllowNullValue:      true,
				MarkdownDescription: "Completed state, as JSON. Null is empty, as in Meltano's table.",
			},
			function.StringParameter{
				Name:                "partial",
				AllowNullValue:      true,
				MarkdownDescription: "Partial state, as JSON. Null is empty.",
			},
		},
		Return: function.StringReturn{},
	}
}

// Run merges. Its errors tell where, but never what was there.
func (*mergeStateFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var completed, partial types.String
	resp.Error = req.Arguments.Get(ctx, &completed, &partial)
	if resp.Error != nil {
		return
	}
	merged, err := bookmark.Merge(completed.ValueString(), partial.ValueString())
	if err != nil {
		resp.Error = function.NewFuncError(err.Error())
		return
	}
	resp.Error = resp.Result.Set(ctx, merged)
}
