package provider

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/function"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/bookmark"
)

var _ function.Function = (*stateIDFunction)(nil)

// pureFunction ends the description of each function.
const pureFunction = "\n\nNeeds Terraform 1.8 or newer. It is computed by the provider alone: no server is asked."

// NewStateIDFunction returns the function state_id.
func NewStateIDFunction() function.Function { return &stateIDFunction{} }

// stateIDFunction spells a state id as Meltano does.
type stateIDFunction struct{}

// Metadata names the function.
func (*stateIDFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "state_id"
}

// Definition describes the parts of a state id.
func (*stateIDFunction) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "State id of a pipeline",
		MarkdownDescription: "Returns the state id that Meltano gives to a pipeline: `<environment>:<extractor>-to-<loader>`, with `:<suffix>` behind it if there is one. " +
			"Parts that would be read as other ones, such as an environment with a colon in it, are an error; so are empty ones." + pureFunction,
		Parameters: []function.Parameter{
			function.StringParameter{Name: "environment", MarkdownDescription: "Meltano's environment, such as `prod`."},
			function.StringParameter{Name: "extractor", MarkdownDescription: "Name of the extractor, such as `tap-github`."},
			function.StringParameter{Name: "loader", MarkdownDescription: "Name of the loader, such as `target-clickhouse`."},
		},
		VariadicParameter: function.StringParameter{
			Name:                "suffix",
			AllowNullValue:      true,
			MarkdownDescription: "What Meltano was given as `--state-id-suffix`, if anything. Null and empty ones are left out, several are joined by colons.",
		},
		Return: function.StringReturn{},
	}
}

// Run joins the parts.
func (*stateIDFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var (
		id       bookmark.StateID
		suffixes []*string
	)
	resp.Error = req.Arguments.Get(ctx, &id.Environment, &id.Extractor, &id.Loader, &suffixes)
	if resp.Error != nil {
		return
	}
	var given []string
	for _, suffix := range suffixes {
		if suffix != nil && *suffix != "" {
			given = append(given, *suffix)
		}
	}
	id.Suffix = strings.Join(given, ":")
	if err := id.Validate(); err != nil {
		resp.Error = function.NewFuncError(err.Error())
		return
	}
	resp.Error = resp.Result.Set(ctx, id.String())
}
