package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/bookmark"
)

var _ function.Function = (*bookmarksFunction)(nil)

// NewBookmarksFunction returns the function bookmarks.
func NewBookmarksFunction() function.Function { return &bookmarksFunction{} }

// bookmarksFunction tells how far each stream has been read.
type bookmarksFunction struct{}

// Metadata names the function.
func (*bookmarksFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "bookmarks"
}

// Definition describes the values.
func (*bookmarksFunction) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "How far each stream has been read",
		MarkdownDescription: "Returns how far each stream of a state has been read, by the name of the stream, as text.\n\n" +
			"The value is the bookmark's `replication_key_value`; else the one under the key that `replication_key` names; else `<log_file>:<log_pos>`; else its only value, " +
			"or all of its values, as in `created=1763596800, cursor=abc`. A partition is a stream of its own, named `<stream>[org=acme, repo=web]`, and an object inside of a bookmark one named `<stream>.<key>`. " +
			"A stream without a value is left out." + pureFunction,
		Parameters: []function.Parameter{
			function.StringParameter{
				Name:                "state",
				AllowNullValue:      true,
				MarkdownDescription: "Pipeline state, as JSON: `merged_state`, for example. Null is empty.",
			},
		},
		Return: function.MapReturn{ElementType: types.StringType},
	}
}

// Run reads the bookmarks. Its errors tell where, but never what was there.
func (*bookmarksFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var state types.String
	resp.Error = req.Arguments.Get(ctx, &state)
	if resp.Error != nil {
		return
	}
	var document bookmark.Document // the empty one
	if !bookmark.IsEmpty(state.ValueString()) {
		var err error
		if document, err = bookmark.Parse(state.ValueString()); err != nil {
			resp.Error = function.NewArgumentFuncError(0, err.Error())
			return
		}
	}
	resp.Error = resp.Result.Set(ctx, bookmark.ReplicationValues(document))
}
