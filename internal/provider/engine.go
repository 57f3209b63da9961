package provider

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

// engineText is an engine as the configuration spells it: with or without the path and the name of the replica.
var engineText = regexp.MustCompile(`^(ReplacingMergeTree|ReplicatedReplacingMergeTree)(?:\('([^'\\]+)', *'([^'\\]+)'\))?$`)

// engineOf reads an engine. One that the server chose by itself is only a name.
func engineOf(text string) statestore.EngineSpec {
	parts := engineText.FindStringSubmatch(text)
	if parts == nil {
		return statestore.EngineSpec{Name: text}
	}
	return statestore.EngineSpec{Name: parts[1], Path: parts[2], Replica: parts[3]}
}

// engineValidator accepts the engines that tables can be made with.
type engineValidator struct{}

var _ validator.String = engineValidator{}

func (engineValidator) Description(context.Context) string {
	return "value must be ReplacingMergeTree or ReplicatedReplacingMergeTree, the latter with or without ('path', 'replica')"
}

func (v engineValidator) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (v engineValidator) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	text := req.ConfigValue.ValueString()
	engine := engineOf(text)
	switch {
	case !engineText.MatchString(text), engine.Path != "" && engine.Name == "ReplacingMergeTree":
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid engine", fmt.Sprintf("%s, got: %q.", sentenceStart(v.Description(ctx)), text))
	case engine.Path != "" && !strings.Contains(engine.Path, "{table}") && !strings.Contains(engine.Path, "{uuid}"):
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid engine",
			fmt.Sprintf("The state table and its lock table are two, so their path has to name {table} or {uuid}, got: %q.", engine.Path))
	}
}
