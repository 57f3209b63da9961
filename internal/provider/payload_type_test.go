package provider

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
)

var null = payloadOf(nil)

func of(text string) payload { return payloadOf(&text) }

func TestPayload_refreshed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		state, stored, want payload
	}{
		"unset stays null":               {null, null, null},
		"null, though {} is stored":      {null, of("{}"), null},
		"{} stays {}":                    {of("{}"), null, of("{}")},
		"{} stays as it is spelled":      {of("{ }"), of("{}"), of("{ }")},
		"spelling stays":                 {of(`{"a":1}`), of(`{"a": 1.0}`), of(`{"a":1}`)},
		"a change shows as it is stored": {of(`{"a":1}`), of(`{"a": 2}`), of(`{"a": 2}`)},
		"gone":                           {of(`{"a":1}`), null, null},
		"emptied":                        {of(`{"a":1}`), of("{}"), null},
		"new":                            {null, of(`{"a": 1}`), of(`{"a": 1}`)},
		"no JSON":                        {of(`{"a":1}`), of(`oops`), of(`oops`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tc.state.refreshed(tc.stored.ValueStringPointer()); !got.Equal(tc.want) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestPayload_plan(t *testing.T) {
	t.Parallel()
	unknown := payload{basetypes.NewStringUnknown()}
	for name, tc := range map[string]struct {
		config, state, proposed, want payload
	}{
		"create, unset":          {null, null, unknown, null},
		"create":                 {of(`{"a":1}`), null, of(`{"a":1}`), of(`{"a":1}`)},
		"unset keeps":            {null, of(`{"a": 1}`), unknown, of(`{"a": 1}`)},
		"equal keeps":            {of(`{"a":1}`), of(`{"a": 1.0}`), of(`{"a":1}`), of(`{"a": 1.0}`)},
		"changed":                {of(`{"a":2}`), of(`{"a":1}`), of(`{"a":2}`), of(`{"a":2}`)},
		"unknown":                {unknown, of(`{"a":1}`), unknown, unknown},
		"{} over null is stated": {of("{}"), null, of("{}"), of("{}")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := planmodifier.StringResponse{PlanValue: tc.proposed.StringValue}
			payloadPlan{}.PlanModifyString(t.Context(), planmodifier.StringRequest{
				ConfigValue: tc.config.StringValue, StateValue: tc.state.StringValue, PlanValue: tc.proposed.StringValue,
			}, &resp)
			if !resp.PlanValue.Equal(tc.want.StringValue) {
				t.Errorf("got %s, want %s", resp.PlanValue, tc.want)
			}
		})
	}
}

func TestPayload_validate(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		`{}`:                           "",
		`{"singer_state":{}}`:          "",
		`{"bookmarks":{}}`:             "", // a warning of the resource
		``:                             "not valid JSON",
		`{oops-hunter2`:                "not valid JSON",
		`[]`:                           "not a JSON object",
		`null`:                         "not a JSON object",
		`"hunter2"`:                    "not a JSON object",
		`{"hunter2":1,"hunter2":2}`:    "repeated key",
		`{"a":{"b":1,"\u0062":2}}`:     "repeated key",
		strings.Repeat(`{"a":`, 1e6):   "nested",
		`{"a":1e99999999999999999999}`: "exponent",
	} {
		resp := validator.StringResponse{}
		payloadValidator{}.ValidateString(t.Context(), validator.StringRequest{Path: path.Root("completed_state"), ConfigValue: types.StringValue(config)}, &resp)
		got := ""
		for _, d := range resp.Diagnostics {
			got += said(d)
		}
		config = config[:min(len(config), 40)]
		switch {
		case want == "" && got != "":
			t.Errorf("%s: got %q, want no error", config, got)
		case want != "" && (!strings.Contains(got, want) || !strings.HasPrefix(got, "completed_state: ")):
			t.Errorf("%s: got %q, want %q at completed_state", config, got, want)
		case strings.Contains(got, "hunter2"):
			t.Errorf("%s: the payload is in %q", config, got)
		}
	}
	for _, config := range []types.String{types.StringNull(), types.StringUnknown()} {
		resp := validator.StringResponse{}
		payloadValidator{}.ValidateString(t.Context(), validator.StringRequest{ConfigValue: config}, &resp)
		if len(resp.Diagnostics) != 0 {
			t.Errorf("%s: got %v", config, resp.Diagnostics)
		}
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	unknown := payload{basetypes.NewStringUnknown()}
	for name, tc := range map[string]struct {
		completed, partial, want payload
	}{
		"neither":   {null, null, of("{}")},
		"completed": {of(`{"a": 1}`), null, of(`{"a":1}`)},
		"both":      {of(`{"a":{"b":1}}`), of(`{"a":{"c":2}}`), of(`{"a":{"b":1,"c":2}}`)},
		"unknown":   {of(`{"a":1}`), unknown, unknown},
		"no JSON":   {of(`oops`), null, null},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, _ := merge(tc.completed, tc.partial); !got.Equal(tc.want) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
