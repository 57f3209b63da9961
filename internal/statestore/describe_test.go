package statestore

import (
	"reflect"
	"testing"
)

// TestParseEngine reads engine clauses as servers print them. The replicated and the shared ones are from their
// documentation: the engine of the tests can make none.
func TestParseEngine(t *testing.T) {
	for _, tt := range []struct {
		name, full string
		want       Engine
	}{
		{"ReplacingMergeTree", "ReplacingMergeTree ORDER BY state_id SETTINGS index_granularity = 8192", Engine{Name: "ReplacingMergeTree", Family: "ReplacingMergeTree"}},
		{
			"ReplacingMergeTree", "ReplacingMergeTree(version, is_deleted) ORDER BY state_id",
			Engine{Name: "ReplacingMergeTree", Family: "ReplacingMergeTree", Columns: []string{"version", "is_deleted"}},
		},
		{
			"ReplicatedReplacingMergeTree", `ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/it\'s, (a) path', '{replica}', updated_at) ORDER BY state_id`,
			Engine{Name: "ReplicatedReplacingMergeTree", Family: "ReplacingMergeTree", Path: "/clickhouse/tables/{shard}/it's, (a) path", Replica: "{replica}", Columns: []string{"updated_at"}},
		},
		{
			"SharedReplacingMergeTree", "SharedReplacingMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}', version, is_deleted) ORDER BY state_id",
			Engine{Name: "SharedReplacingMergeTree", Family: "ReplacingMergeTree", Path: "/clickhouse/tables/{uuid}/{shard}", Replica: "{replica}", Columns: []string{"version", "is_deleted"}},
		},
		{"ReplicatedMergeTree", "ReplicatedMergeTree ORDER BY x", Engine{Name: "ReplicatedMergeTree", Family: "MergeTree"}},
		{"Memory", "Memory", Engine{Name: "Memory", Family: "Memory"}},
	} {
		got := parseEngine(tt.name, tt.full)
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s:\n%+v, want\n%+v", tt.full, got, tt.want)
		}
		if want := tt.name != tt.want.Family; got.Replicated() != want {
			t.Errorf("%s: replicated %t", tt.full, !want)
		}
	}
}

func TestParseSettings(t *testing.T) {
	got := parseSettings(`ReplacingMergeTree ORDER BY state_id SETTINGS index_granularity = 8192, a = 'it\'s, (b', c = 0.5`)
	if want := map[string]string{"index_granularity": "8192", "a": "it's, (b", "c": "0.5"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
