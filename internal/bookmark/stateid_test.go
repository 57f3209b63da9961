package bookmark

import (
	"errors"
	"testing"
)

func TestParseStateID(t *testing.T) {
	for _, c := range []struct {
		text string
		want StateID
	}{
		{"prod:tap-github-to-target-clickhouse", StateID{"prod", "tap-github", "target-clickhouse", ""}},
		{"prod:tap-postgres-to-target-clickhouse:orders", StateID{"prod", "tap-postgres", "target-clickhouse", "orders"}},
		{"dev:tap-smoke-test-to-target-jsonl:pr-42", StateID{"dev", "tap-smoke-test", "target-jsonl", "pr-42"}},
		{"prod:tap-a-to-target-b:x:y::z", StateID{"prod", "tap-a", "target-b", "x:y::z"}},
		{"prod:tap-a-to-target-b::", StateID{"prod", "tap-a", "target-b", ":"}},
		{"prod:tap-a-to-target-b:c-to-target-d", StateID{"prod", "tap-a", "target-b", "c-to-target-d"}},
		{"a-to-b:tap-a-to-target-b", StateID{"a-to-b", "tap-a", "target-b", ""}},
		{"dév 1:tap-ü-to-target-%_", StateID{"dév 1", "tap-ü", "target-%_", ""}},

		// -to- more than once
		{"dev:tap-csv-to-json-to-target-jsonl", StateID{"dev", "tap-csv-to-json", "target-jsonl", ""}},
		{"dev:tap-csv-to-target-a-to-b", StateID{"dev", "tap-csv", "target-a-to-b", ""}},
		{"dev:tap-a-to-target-b-to-target-c", StateID{"dev", "tap-a-to-target-b", "target-c", ""}},
		{"dev:csv-to-json-to-postgres", StateID{"dev", "csv-to-json", "postgres", ""}},
		{"dev:-to-target-a-to-b", StateID{"dev", "-to-target-a", "b", ""}},
		{"dev:a-to-to-b", StateID{"dev", "a-to", "b", ""}},
	} {
		got, err := ParseStateID(c.text)
		if err != nil || got != c.want {
			t.Errorf("ParseStateID(%q) = %#v, %v, want %#v", c.text, got, err, c.want)
			continue
		}
		if got.String() != c.text {
			t.Errorf("%#v.String() = %q, want %q", got, got.String(), c.text)
		}
		if err := got.Validate(); err != nil {
			t.Errorf("%#v.Validate(): %v", got, err)
		}
	}
}

func TestParseStateIDRefuses(t *testing.T) {
	for _, text := range []string{
		"", ":", "custom", "tap-a-to-target-b", ":tap-a-to-target-b", "dev:", "dev:tap-a", "dev:tap-a:b-to-c",
		"dev:tap-a-to-target-b:", "dev:-to-", "dev:-to-target-b", "dev:tap-a-to-", "dev::tap-a-to-target-b",
	} {
		if id, err := ParseStateID(text); !errors.Is(err, ErrStateID) || id != (StateID{}) {
			t.Errorf("ParseStateID(%q) = %#v, %v, want an ErrStateID", text, id, err)
		}
	}
}

func TestStateIDValidate(t *testing.T) {
	for _, id := range []StateID{
		{},
		{"dev", "tap-a", "", ""},
		{"dev", "", "target-b", ""},
		{"", "tap-a", "target-b", ""},
		{"dev:x", "tap-a", "target-b", ""},
		{"dev", "tap:a", "target-b", ""},
		{"dev", "tap-a", "target:b", "c"},
		{"dev", "tap-a", "b-to-c", ""},
		{"dev", "tap-a", "target-b-to-target-c", ""},
	} {
		if err := id.Validate(); !errors.Is(err, ErrStateID) {
			t.Errorf("%#v.Validate() = %v, want an ErrStateID", id, err)
		}
	}
}
