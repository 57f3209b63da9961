package provider

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// query lists entries as Terraform 1.14 does, at most limit.
func (s served) query(t *testing.T, config attrs, limit int64, include bool) (results []tfprotov6.ListResourceResult, diagnostics []*tfprotov6.Diagnostic) {
	t.Helper()
	const name = "clickhousestate_entry"
	server, ok := s.ProviderServer.(tfprotov6.ListResourceServer)
	if !ok {
		t.Fatal("the provider serves no list resources")
	}
	raw := wired(t, s.schemas.ListResourceSchemas[name], config)
	validated, err := server.ValidateListResourceConfig(t.Context(), &tfprotov6.ValidateListResourceConfigRequest{TypeName: name, Config: raw})
	if err != nil {
		t.Fatal(err)
	}
	if len(validated.Diagnostics) > 0 {
		return nil, validated.Diagnostics
	}
	stream, err := server.ListResource(t.Context(), &tfprotov6.ListResourceRequest{TypeName: name, Config: raw, Limit: limit, IncludeResource: include})
	if err != nil {
		t.Fatal(err)
	}
	for result := range stream.Results {
		diagnostics = append(diagnostics, result.Diagnostics...)
		if result.Identity != nil {
			results = append(results, result)
		}
	}
	return results, diagnostics
}

// Terraform can list since 1.14, and the tests have to run with older ones: so this speaks Terraform's protocol to the
// provider's server.
func TestEntryList(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(t *testing.T, s scenario) {
		s.newTable(t)
		s.exec(t, "CREATE TABLE "+s.database+".other AS "+s.database+".state")
		server := s.serve(t, nil)
		identities, err := server.GetResourceIdentitySchemas(t.Context(), &tfprotov6.GetResourceIdentitySchemasRequest{})
		if err != nil {
			t.Fatal(err)
		}
		identityType := identities.IdentitySchemas["clickhousestate_entry"].ValueType()
		stateType := server.schemas.ResourceSchemas["clickhousestate_entry"].ValueType()

		results, diagnostics := server.query(t, nil, 100, true)
		expect(t, "nothing is stored", diagnostics, "")
		if len(results) != 0 {
			t.Errorf("got %d results, want none", len(results))
		}

		want := slices.Sorted(maps.Values(hostile))
		for _, id := range want {
			s.meltano(t, id, fmt.Sprintf(`{"singer_state": %s}`, quoteJSON(t, id)), `{"singer_state": {"p": 1}}`)
		}
		s.meltano(t, "gone", `{}`, nil)
		s.insert(t, "(state_id, is_deleted)", "gone", uint8(1))

		results, diagnostics = server.query(t, nil, 100, true)
		expect(t, "all", diagnostics, "")
		var got []string
		for _, result := range results {
			id := result.DisplayName
			got = append(got, id)
			identity := stringsOf(t, result.Identity.IdentityData, identityType)
			if !maps.Equal(identity, map[string]string{"database": s.database, "table": "state", "state_id": id}) {
				t.Errorf("%q: identity is %v", id, identity)
			}
			// It is what an import finds, so that nothing is planned after it.
			if imported := server.imported(t, identity, identityType); !imported.Equal(unmarshalled(t, result.Resource, stateType)) {
				t.Errorf("%q: listed %s, but imported %s", id, unmarshalled(t, result.Resource, stateType), imported)
			}
			state := stringsOf(t, result.Resource, stateType)
			if want := fmt.Sprintf(`{"singer_state": %s}`, quoteJSON(t, id)); state["completed_state"] != want || state["id"] != s.database+"/state/"+id {
				t.Errorf("%q: listed %v", id, state)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}

		results, diagnostics = server.query(t, attrs{"pattern": "dev:*%_", "database": s.database, "table": "state"}, 100, false)
		expect(t, "pattern", diagnostics, "")
		if len(results) != 1 || results[0].DisplayName != hostile["wildcards"] {
			t.Errorf("got %v, want %q", results, hostile["wildcards"])
		}
		results, diagnostics = server.query(t, attrs{"table": "other"}, 100, false)
		expect(t, "other table", diagnostics, "")
		if len(results) != 0 {
			t.Errorf("got %v, want none", results)
		}
		results, diagnostics = server.query(t, nil, 2, false)
		expect(t, "limit", diagnostics, "")
		if len(results) != 2 {
			t.Errorf("got %d results, want the limit of 2", len(results))
		}

		// Failures come out of the stream.
		_, diagnostics = server.query(t, attrs{"table": "nowhere"}, 100, true)
		expect(t, "no table", diagnostics, "Unable to list state entries", fmt.Sprintf(`Tried to list the entries "*" in table %s/nowhere on `, s.database), "does not exist")
		_, diagnostics = server.query(t, attrs{"pattern": ""}, 100, true)
		expect(t, "empty pattern", diagnostics, "string length must be at least 1")
		unreachable := s
		unreachable.NativePort, unreachable.HTTPPort = 1, 1
		_, diagnostics = unreachable.serve(t, nil).query(t, nil, 100, true)
		expect(t, "no server", diagnostics, "Unable to list state entries", "127.0.0.1:1")
	})
}

// A reader that has seen enough is not pushed more.
func TestEntryList_stopped(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolNative)
	s.newTable(t)
	for id := range strings.SplitSeq("a b c", " ") {
		s.meltano(t, id, `{}`, nil)
	}
	server := s.serve(t, nil)
	raw := wired(t, server.schemas.ListResourceSchemas["clickhousestate_entry"], nil)
	stream, err := server.ProviderServer.(tfprotov6.ListResourceServer).ListResource(t.Context(),
		&tfprotov6.ListResourceRequest{TypeName: "clickhousestate_entry", Config: raw, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for range stream.Results {
		if seen++; seen == 2 {
			break
		}
	}
	if seen != 2 {
		t.Errorf("saw %d results, want 2", seen)
	}
}

// imported is the state of an entry after an import by its identity.
func (s served) imported(t *testing.T, identity map[string]string, identityType tftypes.Type) tftypes.Value {
	t.Helper()
	from := attrs{}
	for name, value := range identity {
		from[name] = value
	}
	const name = "clickhousestate_entry"
	imported, err := s.ImportResourceState(t.Context(), &tfprotov6.ImportResourceStateRequest{
		TypeName: name,
		Identity: &tfprotov6.ResourceIdentityData{IdentityData: encoded(t, object(t, identityType, from))},
	})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "import", imported.Diagnostics, "")
	read, err := s.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{
		TypeName: name, CurrentState: imported.ImportedResources[0].State, CurrentIdentity: imported.ImportedResources[0].Identity,
	})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "read", read.Diagnostics, "")
	return unmarshalled(t, read.NewState, s.schemas.ResourceSchemas[name].ValueType())
}

func unmarshalled(t *testing.T, value *tfprotov6.DynamicValue, of tftypes.Type) tftypes.Value {
	t.Helper()
	whole, err := value.Unmarshal(of)
	if err != nil {
		t.Fatal(err)
	}
	return whole
}
