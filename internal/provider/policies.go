package provider

import (
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// writePolicy says who owns a bookmark once it is stored.
type writePolicy string

const (
	policyEnforce writePolicy = "enforce"
	policySeed    writePolicy = "seed"
)

// deletionPolicy says what a destroy does to what is stored.
type deletionPolicy string

const (
	deletionDelete deletionPolicy = "delete"
	deletionRetain deletionPolicy = "retain"
)

// rewindPolicy says what a plan does that would set a bookmark back.
type rewindPolicy string

const (
	rewindWarn  rewindPolicy = "warn"
	rewindError rewindPolicy = "error"
	rewindAllow rewindPolicy = "allow"

	// rewindReplace is what warn becomes where Terraform shows errors, but no warnings. Nobody sets it.
	rewindReplace rewindPolicy = "replace"
)

// replacing returns what a policy means in the second of the two plans of a replacement, whose warnings Terraform drops.
func (p rewindPolicy) replacing() rewindPolicy {
	if p == rewindAllow {
		return p
	}
	return rewindReplace
}

// fails reports whether a plan that sets a bookmark back is an error.
func (p rewindPolicy) fails() bool { return p == rewindError || p == rewindReplace }

// A choice is an option with a closed vocabulary. The first term is the default.
type choice[T ~string] []term[T]

type term[T ~string] struct {
	value   T
	meaning string
}

var (
	writePolicies = choice[writePolicy]{
		{policyEnforce, "what is declared is the truth. A stored value that differs is drift, which a plan shows and an apply puts back; a create fails if a live entry is there"},
		{policySeed, "what is declared is where the pipeline starts. A create leaves a live entry as it is, and what the pipeline stores later is no change; " +
			"only a changed declaration is written"},
	}
	deletionPolicies = choice[deletionPolicy]{
		{deletionDelete, "the entry is deleted, unless it moved since the plan"},
		{deletionRetain, "the entry is left as it is, and Terraform only forgets it"},
	}
	rewindPolicies = choice[rewindPolicy]{
		{rewindWarn, "the plan warns, with a line for each value that would go back and each bookmark that would vanish. One that replaces the entry, for `-replace` or `replace_triggered_by`, " +
			"fails, since Terraform drops such warnings: change the entry in place, or `allow` it"},
		{rewindError, "the plan fails, with the same lines. With `enforce`, that is every plan after the pipeline has moved on"},
		{rewindAllow, "nothing is said"},
	}
)

// attribute describes the option: what it is about, and then each term.
func (c choice[T]) attribute(about string) schema.StringAttribute {
	terms, values := make([]string, len(c)), make([]string, len(c))
	for i, t := range c {
		values[i] = string(t.value)
		terms[i] = fmt.Sprintf("`%s`: %s.", t.value, t.meaning)
	}
	terms[0] = strings.Replace(terms[0], ":", " (default):", 1)
	return schema.StringAttribute{
		Optional:            true,
		Computed:            true,
		Default:             stringdefault.StaticString(values[0]),
		MarkdownDescription: about + " " + strings.Join(terms, " "),
		Validators:          []validator.String{stringvalidator.OneOf(values...)},
	}
}

// of returns what an option is set to. Null, as after an import, is the default; unknown is "".
func (c choice[T]) of(value types.String) T {
	if value.IsNull() {
		return c[0].value
	}
	return T(value.ValueString())
}

// known returns the option as it should be in a state.
func (c choice[T]) known(value types.String) types.String {
	return types.StringValue(string(c.of(value)))
}
