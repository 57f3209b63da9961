package chconn

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"golang.org/x/sync/singleflight"
)

// A Server is what is known of the server, and of the user there.
type Server struct {
	// Version is the whole of it, such as "26.7.2.1"; Major and Minor are its first two numbers.
	Version      string
	Major, Minor int
	// User is who the server takes us for.
	User string

	settings map[string]setting
}

type setting struct {
	value string
	fixed bool // the user may not change it
	bound bool // the user may not give it any value
}

// Setting returns the value of a setting when the client first connected, and whether the server knows it.
func (s Server) Setting(name string) (value string, known bool) {
	found, known := s.settings[name]
	return found.value, known
}

// AtLeast tells whether the server's version is this one or newer.
func (s Server) AtLeast(major, minor int) bool {
	return s.Major > major || s.Major == major && s.Minor >= minor
}

// wholeOrError are settings that every statement relies on: a result or a write is whole, or an error. They are pinned
// where the user may change them.
var wholeOrError = map[string]string{
	"timeout_overflow_mode": "throw",
	"read_overflow_mode":    "throw",
	"result_overflow_mode":  "throw",
	// With progress in the headers, HTTP's status is sent before the statement has ended.
	"send_progress_in_http_headers": "0",
}

// quorum is what goes with every statement of a client with Config.Quorum.
var quorum = map[string]string{
	"insert_quorum":                 "auto",
	"insert_quorum_parallel":        "0",
	"select_sequential_consistency": "1",
}

// preferences are settings that make a statement cheaper, no more: it goes without them where the user may not set them as
// one likes.
var preferences = map[string]bool{"local_filesystem_read_method": true, "max_threads": true, "optimize_move_to_prewhere": true}

// settingsFor returns the settings to send with a statement. What has the wanted value already is not sent, since a user with
// readonly = 1 may not even repeat it on old servers; what the server does not know, it would refuse.
func (s Server) settingsFor(wanted map[string]string, comment string) clickhouse.Settings {
	settings := clickhouse.Settings{}
	for name, value := range wholeOrError {
		if current, known := s.settings[name]; known && current.value != value && !current.fixed {
			settings[name] = value
		}
	}
	if current, known := s.settings["log_comment"]; known && !current.fixed {
		settings["log_comment"] = comment
	}
	// What the statement relies on goes out even if the user may not change it: the server's error names the setting.
	for name, value := range wanted {
		current, known := s.settings[name]
		if known && current.value != value && !(preferences[name] && (current.fixed || current.bound)) {
			settings[name] = value
		} else {
			delete(settings, name)
		}
	}
	return settings
}

// failureStands is how long a failure to reach the server answers later statements too: a run over a thousand entries
// must not wait a thousand times for a host that does not answer.
const failureStands = 10 * time.Second

// An acquaintance is the server as it was met, once for all statements.
type acquaintance struct {
	server  atomic.Pointer[Server]
	failure atomic.Pointer[failure]
	flight  singleflight.Group
}

type failure struct {
	err   error
	until time.Time
}

// Server returns what the server says of itself, of the user and of the settings. It is asked once; a failure to connect
// stands for some seconds, and then the next call tries again.
func (c *Client) Server(ctx context.Context) (Server, error) {
	if known := c.met.server.Load(); known != nil {
		return *known, nil
	}
	if failed := c.met.failure.Load(); failed != nil && time.Now().Before(failed.until) {
		return Server{}, failed.err
	}
	// Detached: others wait for this answer too, and it is bounded by the timeouts.
	detached := context.WithoutCancel(ctx)
	answer := c.met.flight.DoChan("", func() (any, error) { return c.meet(detached) })
	select {
	case <-ctx.Done():
		return Server{}, fmt.Errorf("wait for the %s: %w", c, cause(ctx))
	case result := <-answer:
		if result.Err != nil {
			return Server{}, result.Err
		}
		met, _ := result.Val.(*Server)
		return *met, nil
	}
}

// meet asks the server, and remembers what came of it.
func (c *Client) meet(ctx context.Context) (*Server, error) {
	met := &Server{settings: map[string]setting{}}
	// In one row, so that no limit of the user's profile cuts the list short.
	ask := request{
		Statement: Statement{Operation: "server.settings"},
		text: "SELECT version(), currentUser(), " +
			"groupArray([name, value, toString(readonly), toString(min IS NOT NULL OR max IS NOT NULL)]) FROM system.settings",
	}
	ctx, cancel := c.limit(ctx, ask.Statement)
	defer cancel()
	var list [][]string
	err := c.query(ctx, ask, func(row Row) error { return row.Scan(&met.Version, &met.User, &list) })
	for _, item := range list {
		met.settings[item[0]] = setting{value: item[1], fixed: item[2] != "0", bound: item[3] != "0"}
	}
	if err == nil {
		met.Major, met.Minor, err = parseVersion(met.Version)
	}
	var connect *ConnectError
	if errors.As(err, &connect) {
		err = connect // the statement at hand failed to connect: what it is for says more than what we were about to ask
		c.met.failure.Store(&failure{err, time.Now().Add(failureStands)})
	}
	if err != nil {
		return nil, err
	}
	c.met.server.Store(met)
	return met, nil
}

func parseVersion(version string) (major, minor int, err error) {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return 0, 0, fmt.Errorf("server version %q has no two numbers", version)
	}
	if major, err = strconv.Atoi(parts[0]); err == nil {
		minor, err = strconv.Atoi(parts[1])
	}
	if err != nil {
		return 0, 0, fmt.Errorf("server version %q: %w", version, err)
	}
	return major, minor, nil
}
