package provider

import (
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// planAction validates and plans an action as Terraform 1.14 does, and returns what the provider says.
func (s served) planAction(t *testing.T, name string, config attrs) []*tfprotov6.Diagnostic {
	t.Helper()
	server, ok := s.ProviderServer.(tfprotov6.ActionServer)
	if !ok {
		t.Fatal("the provider serves no actions")
	}
	raw := wired(t, s.schemas.ActionSchemas[name].Schema, config)
	validated, err := server.ValidateActionConfig(t.Context(), &tfprotov6.ValidateActionConfigRequest{ActionType: name, Config: raw})
	if err != nil {
		t.Fatal(err)
	}
	if len(validated.Diagnostics) > 0 {
		return validated.Diagnostics
	}
	planned, err := server.PlanAction(t.Context(), &tfprotov6.PlanActionRequest{ActionType: name, Config: raw})
	if err != nil {
		t.Fatal(err)
	}
	return planned.Diagnostics
}

// invoke plans and invokes an action, and returns its progress messages and what it says at its end. What its plan warns
// of is left out.
func (s served) invoke(t *testing.T, name string, config attrs) (progress []string, diagnostics []*tfprotov6.Diagnostic) {
	t.Helper()
	planned := s.planAction(t, name, config)
	if slices.ContainsFunc(planned, func(d *tfprotov6.Diagnostic) bool { return d.Severity == tfprotov6.DiagnosticSeverityError }) {
		return nil, planned
	}
	server, ok := s.ProviderServer.(tfprotov6.ActionServer)
	if !ok {
		t.Fatal("the provider serves no actions")
	}
	raw := wired(t, s.schemas.ActionSchemas[name].Schema, config)
	invoked, err := server.InvokeAction(t.Context(), &tfprotov6.InvokeActionRequest{ActionType: name, Config: raw})
	if err != nil {
		t.Fatal(err)
	}
	completed := 0
	for event := range invoked.Events {
		switch event := event.Type.(type) {
		case tfprotov6.ProgressInvokeActionEventType:
			progress = append(progress, event.Message)
		case tfprotov6.CompletedInvokeActionEventType:
			completed++
			diagnostics = event.Diagnostics
		}
	}
	if completed != 1 {
		t.Errorf("completed %d times", completed)
	}
	return progress, diagnostics
}

// Terraform knows actions since 1.14, and the tests have to run with older ones: so this speaks Terraform's protocol to the
// provider's server. What the action does on the server is the same.
func TestBreakLock(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(t *testing.T, s scenario) {
		s.newTable(t)
		server := s.serve(t, impatient)
		s.foreign(t, "dev:a", foreignLockID, 7)
		s.foreign(t, "dev:b", foreignLockID, 0)

		for name, tc := range map[string]struct {
			config attrs
			want   []string
		}{
			"another lock_id": {
				attrs{"state_id": "dev:a", "lock_id": "00000000-0000-4000-8000-000000000002"},
				[]string{"Unable to break lock", "Nothing was removed", "lock_id " + foreignLockID + ", held by a Meltano client", " ago)"},
			},
			"not locked":  {attrs{"state_id": "dev:c", "lock_id": foreignLockID}, []string{"Nothing was removed: nobody holds"}},
			"no lock_id":  {attrs{"state_id": "dev:a", "lock_id": ""}, []string{"string length must be at least 1"}},
			"other table": {attrs{"state_id": "dev:a", "lock_id": foreignLockID, "table": "other"}, []string{"table " + s.database + "/other does not exist"}},
		} {
			progress, diagnostics := server.invoke(t, "clickhousestate_break_lock", tc.config)
			expect(t, name, diagnostics, tc.want[0], tc.want[1:]...)
			if len(progress) != 0 {
				t.Errorf("%s: it says %q", name, progress)
			}
		}
		if claims := s.claims(t); len(claims) != 2 {
			t.Fatalf("claims are %v, want both", claims)
		}

		progress, diagnostics := server.invoke(t, "clickhousestate_break_lock", attrs{"state_id": "dev:a", "lock_id": foreignLockID})
		expect(t, "break", diagnostics, "")
		if len(progress) != 1 || !refused(`Removed the lock of "dev:a" in table `+s.database+`/state: lock_id `+foreignLockID).MatchString(progress[0]) {
			t.Errorf("it says %q", progress)
		}
		if claims := s.claims(t); len(claims) != 1 || claims["dev:b"] != foreignLockID {
			t.Errorf("claims are %v, want that on dev:b", claims)
		}
	})
}
