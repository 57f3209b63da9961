package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/bookmark"
)

var _ function.Function = (*parseStateIDFunction)(nil)

// NewParseStateIDFunction returns the function parse_state_id.
func NewParseStateIDFunction() function.Function { return &parseStateIDFunction{} }

// parseStateIDFunction takes a state id apart.
type parseStateIDFunction struct{}

type stateIDModel struct {
	Environment string  `tfsdk:"environment"`
	Extractor   string  `tfsdk:"extractor"`
	Loader      string  `tfsdk:"loader"`
	Suffix      *string `tfsdk:"suffix"`
}

// Metadata names the function.
func (*parseStateIDFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "parse_state_id"
}

// Definition describes what comes out.
func (*parseStateIDFunction) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "Parts of a state id",
		MarkdownDescription: "Returns the `environment`, the `extractor`, the `loader` and the `suffix` of a state id; `suffix` is null if there is none. " +
			"It is the inverse of [`state_id`](state_id).\n\n" +
			"The environment reaches to the first colon, and the suffix starts after the second one. Where `-to-` occurs more than once, the loader starts after the last one " +
			"that makes it start with `target-`; if none does, after the last one. A state id of another form is legal for Meltano, but an error here: `try(...)` tells." + pureFunction,
		Parameters: []function.Parameter{
			function.StringParameter{Name: "id", MarkdownDescription: "The state id."},
		},
		Return: function.ObjectReturn{AttributeTypes: map[string]attr.Type{
			"environment": types.StringType,
			"extractor":   types.StringType,
			"loader":      types.StringType,
			"suffix":      types.StringType,
		}},
	}
}

// Run takes the state id apart.
func (*parseStateIDFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var text string
	resp.Error = req.Arguments.Get(ctx, &text)
	if resp.Error != nil {
		return
	}
	id, err := bookmark.ParseStateID(text)
	if err != nil {
		resp.Error = function.NewArgumentFuncError(0, err.Error())
		return
	}
	parts := stateIDModel{Environment: id.Environment, Extractor: id.Extractor, Loader: id.Loader}
	if id.Suffix != "" {
		parts.Suffix = &id.Suffix
	}
	resp.Error = resp.Result.Set(ctx, parts)
}
