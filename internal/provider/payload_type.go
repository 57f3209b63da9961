package provider

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/bookmark"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

var (
	_ basetypes.StringTypable                    = payloadType{}
	_ basetypes.StringValuableWithSemanticEquals = payload{}
	_ planmodifier.String                        = payloadPlan{}
	_ validator.String                           = payloadValidator{}
)

// payloadType is the type of attributes that hold Meltano's state JSON. Two values that mean the same are the same
// to Terraform, however they are spelled.
type payloadType struct {
	basetypes.StringType
}

func (payloadType) String() string { return "provider.payloadType" }

func (payloadType) ValueType(context.Context) attr.Value { return payload{} }

func (t payloadType) Equal(o attr.Type) bool {
	other, ok := o.(payloadType)
	return ok && t.StringType.Equal(other.StringType)
}

func (payloadType) ValueFromString(_ context.Context, in basetypes.StringValue) (basetypes.StringValuable, diag.Diagnostics) {
	return payload{in}, nil
}

func (t payloadType) ValueFromTerraform(ctx context.Context, in tftypes.Value) (attr.Value, error) {
	value, err := t.StringType.ValueFromTerraform(ctx, in)
	if err != nil {
		return nil, err
	}
	text, ok := value.(basetypes.StringValue)
	if !ok {
		return nil, fmt.Errorf("expected a string value, got %T", value)
	}
	return payload{text}, nil
}

// payload is a value of [payloadType]. It does not validate itself: the framework would do so whenever it touches a
// state, and a row that somebody else wrote badly could not even be repaired. See [payloadValidator].
type payload struct {
	basetypes.StringValue
}

// payloadOf returns the value of a payload as it is stored: nil is null.
func payloadOf(text *string) payload { return payload{basetypes.NewStringPointerValue(text)} }

func (payload) Type(context.Context) attr.Type { return payloadType{} }

func (p payload) Equal(o attr.Value) bool {
	other, ok := o.(payload)
	return ok && p.StringValue.Equal(other.StringValue)
}

// StringSemanticEquals reports whether two payloads mean the same.
func (p payload) StringSemanticEquals(_ context.Context, o basetypes.StringValuable) (bool, diag.Diagnostics) {
	other, ok := o.(payload)
	return ok && p.means(other), nil
}

// means reports whether two known payloads are the same stored state. Null and {} are: both are stored as NULL.
func (p payload) means(o payload) bool {
	return !p.IsUnknown() && !o.IsUnknown() && bookmark.Equal(p.ValueString(), o.ValueString())
}

// unset reports whether a payload has no text: it is null or unknown.
func (p payload) unset() bool { return p.IsNull() || p.IsUnknown() }

// refreshed returns what state should hold for a stored payload, given what it holds: the same, if that means the
// same. So the user's spelling stays, {} stays {}, and null stays null.
func (p payload) refreshed(stored *string) payload {
	next := payloadOf(stored)
	switch {
	case p.means(next):
		return p
	case bookmark.IsEmpty(next.ValueString()): // a stored {} is the same as NULL
		return payloadOf(nil)
	default:
		return next
	}
}

// declared returns what a plan should hold of a payload in a state that is a declaration: null, where it names none.
func (p payload) declared(config payload) payload {
	if config.IsNull() {
		return config
	}
	return p
}

// undecided is declared, while it is not known yet whether the state is a declaration.
func (p payload) undecided(config payload) payload {
	if config.IsNull() {
		return payload{basetypes.NewStringUnknown()}
	}
	return p
}

// over returns what is stored once a payload has been written over the stored one: null keeps that.
func (p payload) over(stored *string) payload {
	if p.IsNull() {
		return payloadOf(stored)
	}
	return p
}

// value returns what a write does to a payload: null keeps what is stored.
func (p payload) value() statestore.Value {
	if p.IsNull() {
		return statestore.Keep()
	}
	return statestore.Set(p.ValueStringPointer())
}

// merge returns what the next run will use: the partial payload merged onto the completed one, {} if there is none.
// Unknown gives unknown; what cannot be merged gives null and the reason.
func merge(completed, partial payload) (payload, error) {
	if completed.IsUnknown() || partial.IsUnknown() {
		return payload{basetypes.NewStringUnknown()}, nil
	}
	merged, err := bookmark.Merge(completed.ValueString(), partial.ValueString())
	if err != nil {
		return payloadOf(nil), err
	}
	return payloadOf(&merged), nil
}

// payloadPlan plans an optional payload. Unset is what is stored, NULL at first. A value that means the same as the
// prior one is planned as that: semantic equality alone does not keep such a change out of the plan.
type payloadPlan struct{}

func (payloadPlan) Description(context.Context) string {
	return "Keeps the stored value while the configuration names none, or one that means the same."
}

func (m payloadPlan) MarkdownDescription(ctx context.Context) string { return m.Description(ctx) }

func (payloadPlan) PlanModifyString(_ context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	switch {
	case req.ConfigValue.IsUnknown():
	case req.ConfigValue.IsNull():
		resp.PlanValue = req.StateValue // null in a create
	case !req.StateValue.IsNull() && bookmark.Equal(req.ConfigValue.ValueString(), req.StateValue.ValueString()):
		resp.PlanValue = req.StateValue
	}
}

// payloadValidator refuses what Meltano could not read, without printing it.
type payloadValidator struct{}

func (payloadValidator) Description(context.Context) string {
	return "value must be a JSON object"
}

func (v payloadValidator) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (payloadValidator) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	_, err := bookmark.Parse(req.ConfigValue.ValueString())
	if err == nil {
		return
	}
	detail := "Meltano's state is a JSON object, as jsonencode({ singer_state = { ... } }) writes it."
	if errors.Is(err, bookmark.ErrDuplicateKey) {
		detail = "JSON objects with a repeated key are refused, since readers differ in which value they take."
	}
	resp.Diagnostics.AddAttributeError(req.Path, "Invalid pipeline state", detail+"\n\n"+sentence(err))
}
