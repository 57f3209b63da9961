package bookmark

// What the keys of a bookmark mean, over all taps that we know.

const (
	singerStateKey      = "singer_state"
	bookmarksKey        = "bookmarks"
	replicationKey      = "replication_key"
	replicationKeyValue = "replication_key_value"
	logFileKey          = "log_file"
	logPosKey           = "log_pos"
	contextKey          = "context"
	partitionsKey       = "partitions"
)

// noStream has the keys of a singer_state that name no stream.
var noStream = map[string]bool{bookmarksKey: true, "currently_syncing": true, "version": true}

// noPosition has the keys whose values do not say how far a stream has been
// read. They may come, go and fall without a rewind.
var noPosition = map[string]bool{
	// what the position is about
	replicationKey:            true, // compared on its own
	"replication_key_type":    true,
	"replication_method":      true,
	"last_replication_method": true,
	contextKey:                true,
	"partition":               true, // the number of a Kafka partition
	"version":                 true, // of the target table, a time at which it was created

	// where a run was, which an interrupted one leaves behind
	"starting_replication_value": true,
	"replication_key_signpost":   true,
	"progress_markers":           true,
	"last_pk_fetched":            true,
	"max_pk_value":               true,
	"max_pk_values":              true,
	"xmin":                       true, // of an unfinished full load; it wraps around

	// jobs at the source
	"request_id":             true,
	"JobID":                  true,
	"BatchIDs":               true,
	"JobHighestBookmarkSeen": true,
	"JobLastID":              true,
}

// names has the keys whose values are names, safe and useful to show.
var names = map[string]bool{replicationKey: true, logFileKey: true}

// pairs has keys that make one position: the second one counts only where the
// first ones are equal.
var pairs = [][2]string{
	{logFileKey, logPosKey},           // MySQL's binary log
	{"oplog_ts_time", "oplog_ts_inc"}, // MongoDB's oplog
	{"offset", "timestamp"},           // Kafka: timestamps need not rise
}
