package provider

import (
	"math/big"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// What is read and written again is the same, whatever it is, and no attribute of the schema is left out.
func TestEntry_raw(t *testing.T) {
	t.Parallel()
	var schema resource.SchemaResponse
	NewEntryResource().Schema(t.Context(), resource.SchemaRequest{}, &schema)
	of := schema.Schema.Type().TerraformType(t.Context()).(tftypes.Object)
	limits := of.AttributeTypes["timeouts"].(tftypes.Object)
	known := map[string]tftypes.Value{}
	for name := range limits.AttributeTypes {
		known[name] = tftypes.NewValue(tftypes.String, name)
	}
	for kind, value := range map[string]func(name string, of tftypes.Type) any{
		"null":    func(string, tftypes.Type) any { return nil },
		"unknown": func(string, tftypes.Type) any { return tftypes.UnknownValue },
		"known": func(name string, of tftypes.Type) any {
			switch {
			case of.Is(limits):
				return known
			case of.Is(tftypes.Number):
				return new(big.Float).SetUint64(18446744073709551615)
			}
			return name
		},
	} {
		values := map[string]tftypes.Value{}
		for name, attribute := range of.AttributeTypes {
			values[name] = tftypes.NewValue(attribute, value(name, attribute))
		}
		want, got := tftypes.NewValue(of, values), tftypes.NewValue(of, nil)
		var m entryResourceModel
		if diags := append(m.fromRaw(t.Context(), want), m.toRaw(t.Context(), &got)...); diags.HasError() {
			t.Fatalf("%s: %v", kind, diags)
		}
		if !got.Equal(want) {
			t.Errorf("%s: %s came back as %s", kind, want, got)
		}
	}
}
