package provider

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
)

// A foreign lock on one of many entries: plans and refreshes do not mind, the data source shows it, an apply that wants to
// write gives up and leaves it.
func TestLocks(t *testing.T) {
	t.Parallel()
	s := newScenario(t, protocolHTTP)
	s.newTable(t)
	// Else the server removes a stale claim when it merges.
	s.exec(t, "ALTER TABLE "+s.database+".state_lock REMOVE TTL")
	const staleLockID = "00000000-0000-4000-8000-000000000002"
	config := func(value string) string {
		return s.config(fmt.Sprintf(`
resource "clickhousestate_entry" "e" {
  count           = 10
  state_id        = "dev:${count.index}"
  completed_state = jsonencode({ singer_state = { value = %q } })
}

data "clickhousestate_locks" "all" {
  depends_on = [clickhousestate_entry.e]
}

data "clickhousestate_locks" "one" {
  state_id   = "dev:7"
  database   = %q
  table      = "state"
  depends_on = [clickhousestate_entry.e]
}
`, value, s.database), `  lock = { timeout = "2s", settle = "200ms", retry_interval = "200ms" }`)
	}
	locks := func(name string, want knownvalue.Check) statecheck.StateCheck {
		return statecheck.ExpectKnownValue("data.clickhousestate_locks."+name, tfjsonpath.New("locks"), want)
	}
	lock := func(stateID, lockID string, age *regexp.Regexp, stale bool) knownvalue.Check {
		return knownvalue.ObjectExact(map[string]knownvalue.Check{
			"state_id":    knownvalue.StringExact(stateID),
			"lock_id":     knownvalue.StringExact(lockID),
			"holder":      knownvalue.StringExact(""),
			"locked_at":   knownvalue.StringRegexp(regexp.MustCompile(`^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$`)),
			"age_seconds": seconds{age},
			"stale":       knownvalue.Bool(stale),
		})
	}
	fresh := lock("dev:7", foreignLockID, regexp.MustCompile(`^\d\d?$`), false)
	var locked uint64
	s.run(t,
		resource.TestStep{
			Config: config("T0"),
			ConfigStateChecks: []statecheck.StateCheck{
				locks("all", knownvalue.ListExact(nil)),
				locks("one", knownvalue.ListExact(nil)),
				statecheck.ExpectKnownValue("data.clickhousestate_locks.all", tfjsonpath.New("table"), knownvalue.StringExact("state")),
			},
		},
		resource.TestStep{
			PreConfig: func() {
				s.foreign(t, "dev:7", foreignLockID, 0)
				s.foreign(t, "dev:9", staleLockID, 400)
				locked = s.statements(t, "lock.claim")
			},
			Config: config("T0"),
			ConfigStateChecks: []statecheck.StateCheck{
				locks("all", knownvalue.ListExact([]knownvalue.Check{fresh, lock("dev:9", staleLockID, regexp.MustCompile(`^4\d\d$`), true)})),
				locks("one", knownvalue.ListExact([]knownvalue.Check{fresh})),
			},
			PostApplyFunc: func() {
				if n := s.statements(t, "lock.claim"); n != locked {
					t.Errorf("locked %d times to change nothing", n-locked)
				}
			},
		},
		resource.TestStep{
			Config:      config("T1"),
			ExpectError: refused(`state_id "dev:7" holder a Meltano client, which leaves no name lock_id ` + foreignLockID),
		},
		resource.TestStep{
			PreConfig: func() {
				if claims := s.claims(t); claims["dev:7"] != foreignLockID {
					t.Errorf("claims are %v, want the foreign one on dev:7", claims)
				}
				s.unlock(t)
			},
			Config: config("T1"),
		},
	)
}

// seconds checks a number by its digits.
type seconds struct{ *regexp.Regexp }

func (s seconds) CheckValue(value any) error {
	if text := fmt.Sprint(value); !s.MatchString(text) {
		return fmt.Errorf("%s does not match %s", text, s)
	}
	return nil
}
