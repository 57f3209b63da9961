package bookmark

import (
	"maps"
	"testing"
)

// The shapes of real taps are in TestExport.
func TestReplicationValues(t *testing.T) {
	for _, c := range []struct {
		state string
		want  map[string]string
	}{
		{`{}`, map[string]string{}},
		{`{"bookmarks":{"s":5}}`, map[string]string{}}, // no singer_state
		{`{"singer_state":{"s":5,"currently_syncing":"s"}}`, map[string]string{"s": "5"}},
		{bookmarks(`{"s":1.50,"t":null,"u":"","v":{},"w":[1],"x":true}`), map[string]string{"s": "1.50"}},
		{bookmarks(`{"s":{"replication_key":"id","replication_key_value":null,"id":7,"page":2}}`), map[string]string{"s": "7"}},
		{bookmarks(`{"s":{"replication_key":"id","page":2,"version":3}}`), map[string]string{"s": "2"}},
		{bookmarks(`{"s":{"page":2,"cursor":"x"}}`), map[string]string{"s": "cursor=x, page=2"}},
		{bookmarks(`{"s":{"log_file":"b.1","gtid":"g"}}`), map[string]string{"s": "gtid=g, log_file=b.1"}},
		{bookmarks(`{"s":{"oplog_ts_time":5,"oplog_ts_inc":1}}`), map[string]string{"s": "5"}},
		{bookmarks(`{"s":{"partitions":[{"at":1},{"context":{"a":"x","b":[1, 2]},"at":2},3]}}`), map[string]string{"s[#1]": "1", "s[a=x, b=[1,2]]": "2", "s[#3]": "3"}},
		{bookmarks(`{"s":{"progress_markers":{"at":1},"a":{"b":{"at":2}}}}`), map[string]string{"s.a.b": "2"}},
		{bookmarks(`{"\ud83d":"\ud83d"}`), map[string]string{"\ufffd": "\ufffd"}},
	} {
		if got := ReplicationValues(parse(t, c.state)); !maps.Equal(got, c.want) {
			t.Errorf("ReplicationValues(%s) = %v, want %v", c.state, got, c.want)
		}
	}
}
