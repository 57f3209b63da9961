package bookmark

import (
	"errors"
	"maps"
	"os"
	"slices"
	"testing"
)

// export reads a real export: one state of each kind of tap that we know.
func export(t *testing.T) map[string]Entry {
	t.Helper()
	text, err := os.ReadFile("testdata/state-export.json")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := ParseExport(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func merged(t *testing.T, e Entry) Document {
	t.Helper()
	text, err := Merge(e.Completed, e.Partial)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, text)
}

func TestParseExport(t *testing.T) {
	got, err := ParseExport(`{"a\u003ab": {"completed": {"n": 1.0, "s": "}\"{"} , "partial": null}, "c": {}, "d": {"partial": {}}}`)
	want := map[string]Entry{"a:b": {Completed: `{"n": 1.0, "s": "}\"{"}`}, "c": {}, "d": {Partial: `{}`}}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for _, c := range []struct {
		text   string
		err    error
		offset int
	}{
		{`[]`, ErrNotObject, 0},
		{`{"a":[]}`, ErrNotObject, 5},
		{`{"a":{"completed":"{}"}}`, ErrNotObject, 18},
		{`{"a":{"partial":[]}}`, ErrNotObject, 16},
		{`{"a":{"completed":{},"singer_state":{}}}`, ErrEntry, 36},
		{`{"a":{},"\u0061":{}}`, ErrDuplicateKey, 8},
		{`{"a":{"completed":{"x":1,"x":2}}}`, ErrDuplicateKey, 25},
	} {
		_, err := ParseExport(c.text)
		var at *ParseError
		if !errors.Is(err, c.err) || !errors.As(err, &at) || at.Offset != c.offset {
			t.Errorf("ParseExport(%s): %v, want %v at offset %d", c.text, err, c.err, c.offset)
		}
	}
}

func TestFormatExport(t *testing.T) {
	want := export(t)
	want["q\"\\\n\u00e9"], want["none"], want["empty"] = Entry{Completed: `{"a": 1.0}`}, Entry{}, Entry{Partial: `{}`}
	got, err := ParseExport(FormatExport(want))
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("read back %v, %v, want %v", got, err, want)
	}
	if text := FormatExport(map[string]Entry{"b": {}, "a": {Completed: `{ }`, Partial: `{"p":1}`}}); text != `{"a":{"completed":{ },"partial":{"p":1}},"b":{}}` {
		t.Errorf("wrote %s", text)
	}
	if text := FormatExport(nil); text != "{}" {
		t.Errorf("wrote %s for nothing", text)
	}
}

func TestParseEntry(t *testing.T) {
	got, err := ParseEntry(` {"partial":{"a":[]},"completed":null}`)
	if want := (Entry{Partial: `{"a":[]}`}); err != nil || got != want {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if _, err := ParseEntry(`{"singer_state":{}}`); !errors.Is(err, ErrEntry) {
		t.Errorf("bare payload: %v, want %v", err, ErrEntry)
	}
	if _, err := ParseEntry(`null`); !errors.Is(err, ErrNotObject) {
		t.Errorf("null: %v, want %v", err, ErrNotObject)
	}
}

// What every state of the export gives: its values, and what emptying it loses.
func TestExport(t *testing.T) {
	type values = map[string]string
	expected := map[string]struct {
		values values
		lost   []string
	}{
		"prod:tap-github-to-target-clickhouse": {
			values{
				"issues":                           "2026-11-20T08:14:03Z",
				"repositories[org=acme, repo=web]": "2026-11-19T23:59:59Z",
				"repositories[org=acme, repo=api]": "2026-11-18T04:00:00Z",
			},
			[]string{"issues: bookmark vanishes (was 2026-11-20T08:14:03Z)", "repositories: bookmark vanishes"},
		},
		"prod:tap-postgres-to-target-clickhouse:orders": {
			values{"public-orders": "108240872113664", "public-city": "4079"},
			[]string{"public-city: bookmark vanishes (was 4079)", "public-orders: bookmark vanishes (was 108240872113664)"},
		},
		"prod:tap-postgres-to-target-clickhouse:ledger": {
			values{"ledger-entry": "18446744073709551615"},
			[]string{"ledger-entry: bookmark vanishes (was 18446744073709551615)"},
		},
		"prod:tap-mysql-to-target-clickhouse": {
			values{"shop-customer": "mysql-bin.000417:9120999"},
			[]string{"shop-customer: bookmark vanishes"},
		},
		"prod:tap-salesforce-to-target-clickhouse": {
			values{"Account": "2026-11-20T00:00:00.000000Z", "Opportunity": "2026-11-19T21:30:11.000000Z"},
			[]string{"Account: bookmark vanishes (was 2026-11-20T00:00:00.000000Z)", "Opportunity: bookmark vanishes (was 2026-11-19T21:30:11.000000Z)"},
		},
		"prod:tap-fullstory-to-target-clickhouse": {
			values{"events": "2026-09-27T22:34:39.000000Z", "segments": "2026-09-28T18:23:53Z"},
			[]string{"events: bookmark vanishes (was 2026-09-27T22:34:39.000000Z)", "segments: bookmark vanishes (was 2026-09-28T18:23:53Z)"},
		},
		"prod:tap-bing-ads-to-target-clickhouse": {
			values{"163000000_ad_group_performance_report": "2026-06-01T00:00:00+00:00", "163000000_ad_performance_report": "2026-06-01T00:00:00+00:00"},
			[]string{"163000000_ad_group_performance_report: bookmark vanishes (was 2026-06-01T00:00:00+00:00)", "163000000_ad_performance_report: bookmark vanishes (was 2026-06-01T00:00:00+00:00)"},
		},
		"prod:tap-ldap-to-target-clickhouse": {
			values{"users": "20260619103000.0Z", "groups": "20260619094500.0Z"},
			[]string{"groups: bookmark vanishes (was 20260619094500.0Z)", "users: bookmark vanishes (was 20260619103000.0Z)"},
		},
		"prod:tap-shopify-to-target-clickhouse": {
			values{"inventory_levels": "2026-11-20T09:00:00-05:00", "orders": "2026-11-20T09:00:00-05:00"},
			[]string{"inventory_levels: bookmark vanishes (was 2026-11-20T09:00:00-05:00)", "orders: bookmark vanishes (was 2026-11-20T09:00:00-05:00)"},
		},
		"prod:tap-jquants-to-target-clickhouse": {
			values{"daily_quotes": "2026-11-19"},
			[]string{"daily_quotes: bookmark vanishes (was 2026-11-19)"},
		},
		"prod:tap-stripe-to-target-clickhouse": {
			values{"charges": "1763596800", "invoices": "1763596801", "invoices.sub_stream": "in_1Q=="},
			[]string{"charges: bookmark vanishes (was 1763596800)", "invoices: bookmark vanishes"},
		},
		"prod:tap-google-analytics-to-target-clickhouse": {
			values{"website_overview[property=GA-1, view=all]": "20261119"},
			[]string{"website_overview: bookmark vanishes (was 20261119)"},
		},
		"prod:tap-kafka-to-target-clickhouse": {
			values{"clicks.partition_0": "99188231", "clicks.partition_1": "99188100"},
			[]string{"clicks: bookmark vanishes"},
		},
		"prod:tap-s3-csv-to-target-clickhouse": {
			values{"exports/été 2026": "2026-11-01T00:00:00+00:00"},
			[]string{"exports/été 2026: bookmark vanishes (was 2026-11-01T00:00:00+00:00)"},
		},
		"prod:tap-mongodb-to-target-clickhouse": {
			values{"shop_events": "5f50c31e8a7d4b1e9c8b4567"},
			[]string{"shop_events: bookmark vanishes (was a text of 24 characters)"},
		},
		"prod:tap-zendesk-to-target-clickhouse": {
			values{"tickets": "1763596800"},
			[]string{"tickets: bookmark vanishes (was 1763596800)"},
		},
		"staging:tap-github-to-target-clickhouse": {
			values{"issues": "2026-01-01T00:00:00Z"},
			[]string{"issues: bookmark vanishes (was 2026-01-01T00:00:00Z)"},
		},
		"staging:tap-weather-to-target-clickhouse": {
			values{"readings": "1234.5"},
			[]string{"readings: bookmark vanishes (was 1234.5)"},
		},
		"dev:tap-github-to-target-clickhouse": {values{}, nil},
		"dev:tap-smoke-test-to-target-jsonl:pr-42": {
			values{"animals": "5", "page_views": "2026-11-20T10:00:00.123456+00:00"},
			[]string{"animals: bookmark vanishes (was 5)", "page_views: bookmark vanishes (was 2026-11-20T10:00:00.123456+00:00)"},
		},
	}
	entries := export(t)
	if got, want := slices.Sorted(maps.Keys(entries)), slices.Sorted(maps.Keys(expected)); !slices.Equal(got, want) {
		t.Fatalf("state IDs %v, want %v", got, want)
	}
	for id, want := range expected {
		doc := merged(t, entries[id])
		if got := ReplicationValues(doc); !maps.Equal(got, want.values) {
			t.Errorf("%s: values %v, want %v", id, got, want.values)
		}
		if got := Compare(doc, parse(t, doc.String())); got != nil {
			t.Errorf("%s: compared with itself: %v", id, got)
		}
		var lost []string
		for _, change := range Compare(doc, Document{}) {
			lost = append(lost, change.String())
		}
		if !slices.Equal(lost, want.lost) {
			t.Errorf("%s: emptied: %q, want %q", id, lost, want.lost)
		}
		if got := FullRefresh(doc, Document{}); got != (want.lost != nil) {
			t.Errorf("%s: emptied: full refresh is %t", id, got)
		}
		if !doc.HasSingerState() {
			t.Errorf("%s: no singer_state", id)
		}
		parsed, err := ParseStateID(id)
		if err != nil || parsed.String() != id {
			t.Errorf("state ID %q: %v, %v", id, parsed, err)
		}
	}
}
