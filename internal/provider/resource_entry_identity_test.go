package provider

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// encoded writes a value as the protocol does.
func encoded(t *testing.T, value tftypes.Value) *tfprotov6.DynamicValue {
	t.Helper()
	raw, err := tfprotov6.NewDynamicValue(value.Type(), value)
	if err != nil {
		t.Fatal(err)
	}
	return &raw
}

// Import by identity, which Terraform can do from 1.12 on.
func TestEntry_identity(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	s.newTable(t)
	s.meltano(t, "a/b", `{"singer_state": {}}`, nil)
	server := s.serve(t, nil)
	stateType := server.schemas.ResourceSchemas["clickhousestate_entry"].ValueType()
	identities, err := server.GetResourceIdentitySchemas(t.Context(), &tfprotov6.GetResourceIdentitySchemasRequest{})
	if err != nil {
		t.Fatal(err)
	}
	identityType := identities.IdentitySchemas["clickhousestate_entry"].ValueType()

	for name, identity := range map[string]attrs{
		"whole":                 {"database": s.database, "table": "state", "state_id": "a/b"},
		"provider's own places": {"state_id": "a/b"},
	} {
		t.Run(name, func(t *testing.T) {
			imported, err := server.ImportResourceState(t.Context(), &tfprotov6.ImportResourceStateRequest{
				TypeName: "clickhousestate_entry",
				Identity: &tfprotov6.ResourceIdentityData{IdentityData: encoded(t, object(t, identityType, identity))},
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(imported.Diagnostics) > 0 || len(imported.ImportedResources) != 1 {
				t.Fatalf("got %v and %d resources", imported.Diagnostics, len(imported.ImportedResources))
			}
			read, err := server.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{
				TypeName:        "clickhousestate_entry",
				CurrentState:    imported.ImportedResources[0].State,
				CurrentIdentity: imported.ImportedResources[0].Identity,
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range read.Diagnostics {
				t.Fatalf("%s: %s", d.Summary, d.Detail)
			}
			state := stringsOf(t, read.NewState, stateType)
			if got, want := state["id"], s.database+"/state/a/b"; got != want {
				t.Errorf("id is %q, want %q", got, want)
			}
			if got, want := state["completed_state"], `{"singer_state": {}}`; got != want {
				t.Errorf("completed_state is %q, want %q", got, want)
			}
			if state["write_policy"] != "enforce" || state["on_rewind"] != "warn" || state["deletion_policy"] != "delete" {
				t.Errorf("options are not the defaults: %v", state)
			}
			got := stringsOf(t, read.NewIdentity.IdentityData, identityType)
			if got["database"] != s.database || got["table"] != "state" || got["state_id"] != "a/b" {
				t.Errorf("identity is %v", got)
			}
		})
	}
}

// stringsOf returns the string attributes of an object that are not null.
func stringsOf(t *testing.T, value *tfprotov6.DynamicValue, of tftypes.Type) map[string]string {
	t.Helper()
	whole, err := value.Unmarshal(of)
	if err != nil {
		t.Fatal(err)
	}
	members := map[string]tftypes.Value{}
	if err := whole.As(&members); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for name, member := range members {
		if !member.Type().Is(tftypes.String) || member.IsNull() {
			continue
		}
		var text string
		if err := member.As(&text); err != nil {
			t.Fatal(err)
		}
		all[name] = text
	}
	return all
}
