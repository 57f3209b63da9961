package provider

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

var (
	_ validator.String = durationValidator{}
	_ validator.String = nameValidator{}
)

// durationValidator accepts a Go duration string between two bounds.
type durationValidator struct {
	min time.Duration
	max time.Duration // zero: no upper bound
}

func (v durationValidator) Description(context.Context) string {
	if v.max == 0 {
		return fmt.Sprintf(`value must be a duration such as "10s", at least %s`, v.min)
	}
	return fmt.Sprintf(`value must be a duration such as "10s", from %s to %s`, v.min, v.max)
}

func (v durationValidator) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (v durationValidator) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	d, err := time.ParseDuration(req.ConfigValue.ValueString())
	if err != nil || d < v.min || v.max > 0 && d > v.max {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid duration",
			fmt.Sprintf("%s, got: %q.", sentenceStart(v.Description(ctx)), req.ConfigValue.ValueString()))
	}
}

// durationAt reads a duration from a configuration; null, unknown or unreadable is def.
func durationAt(ctx context.Context, config tfsdk.Config, at path.Path, def time.Duration) time.Duration {
	var value types.String
	if config.GetAttribute(ctx, at, &value).HasError() {
		return def // an unknown parent
	}
	return durationOf(value, def)
}

// durationOf returns the duration that a validated string stands for; null, unknown or unreadable is def.
func durationOf(value types.String, def time.Duration) time.Duration {
	if d, err := time.ParseDuration(value.ValueString()); err == nil {
		return d
	}
	return def
}

// nameRule is what a name of a database or table must keep to.
const nameRule = "value must not be empty and not contain a slash, where import ids are split"

// nameValidator accepts the name of a database or table.
type nameValidator struct{}

func (nameValidator) Description(context.Context) string { return nameRule }

func (v nameValidator) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (v nameValidator) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if name := req.ConfigValue.ValueString(); name == "" || strings.Contains(name, "/") {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid name",
			fmt.Sprintf("%s, got: %q.", sentenceStart(nameRule), name))
	}
}
