package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// A statement is one of a contender's, as the server's query log has it: on one clock, whatever became of the client, and
// however late it learned of its answer.
type statement struct {
	label, counter string
	kind           kind
	role           role
	operation      string
	// token is the increment that a peer's statement belongs to.
	token         string
	start, finish time.Time
	// written are the rows written, of the rows that belong together.
	written, rows uint64
	// failed is an exception, fenced one by which a guard refused to write.
	failed, fenced bool
}

// A role is what a statement is to the protocol, whoever's it is.
type role int

const (
	other   role = iota
	opening      // the first of a round
	claim        // puts a claim
	renewal      // puts it again
	reading      // reads the claims; the last one decides
	inside       // reads or checks under the lock
	write        // writes the counter
	release      // removes the claim
)

// roles by the names that the statements carry in log_comment.
var roles = map[string]role{
	"entry.read": opening, "lock.claim": claim, "lock.renew": renewal, "lock.read": reading, "entry.update.newest": inside,
	"entry.update.live": inside, "entry.update.write": write, "entry.update.verify": inside, "lock.release": release,

	"claim": claim, "decide": reading, "get": inside, "set": write, "release": release, "withdraw": release,
}

// readTrace reads the statements of one race, by label, counter and time.
func readTrace(ctx context.Context, conn driver.Conn, run string) ([]statement, error) {
	if err := conn.Exec(ctx, "SYSTEM FLUSH LOGS query_log"); err != nil {
		return nil, fmt.Errorf("flush the query log: %w", err)
	}
	rows, err := conn.Query(ctx, `SELECT log_comment, query_start_time_microseconds, event_time_microseconds, written_rows,
    exception_code != 0, exception_code = 395 AND position(exception, 'clickhousestate:') > 0, query
FROM system.query_log
WHERE type != 'QueryStart' AND position(log_comment, ?) > 0
ORDER BY query_start_time_microseconds`, run+"-")
	if err != nil {
		return nil, fmt.Errorf("read the query log: %w", err)
	}
	defer func() { _ = rows.Close() }() // rows.Err has the failure
	var trace []statement
	for rows.Next() {
		var (
			comment, text string
			s             statement
		)
		if err := rows.Scan(&comment, &s.start, &s.finish, &s.written, &s.failed, &s.fenced, &text); err != nil {
			return nil, fmt.Errorf("read the query log: %w", err)
		}
		if s.describe(comment) {
			trace = append(trace, s.split(text)...)
		}
	}
	return trace, rows.Err()
}

// describe reads a comment: "<client>/<label>/<counter> <operation>", and of a peer its token.
func (s *statement) describe(comment string) bool {
	words := strings.Fields(comment)
	if len(words) < 2 {
		return false
	}
	path := strings.Split(words[0], "/")
	if len(path) != 3 {
		return false
	}
	s.label, s.counter, s.operation = path[1], path[2], words[1]
	s.kind, s.role = kindOurs, roles[s.operation]
	if path[0] == peerComment {
		s.kind = kindPeer
		if len(words) > 2 {
			s.token = words[2]
		}
	}
	return true
}

// counterPrefix begins the state_ids of the counters.
const counterPrefix = "dev:counter-"

// anyCounter stands for the counter in a comment where the text of the statement has it.
const anyCounter = "*"

// counterInText finds a counter in a statement. Ours name them all, since they are few.
var counterInText = regexp.MustCompile(`'` + counterPrefix + `\d+'`)

// split makes of a statement about several counters one for each of them.
func (s statement) split(text string) []statement {
	counters := []string{s.counter}
	if s.counter == anyCounter {
		counters = slices.Compact(slices.Sorted(slices.Values(counterInText.FindAllString(text, -1))))
	}
	s.rows = uint64(len(counters))
	parts := make([]statement, len(counters))
	for i, counter := range counters {
		parts[i] = s
		parts[i].counter = strings.Trim(counter, "'")
	}
	return parts
}

// A hold is the time for which a contender took a lock for held, as wide as the server saw it.
type hold struct {
	label, counter string
	kind           kind
	// opened is when it first claimed in this round, claimed when it last did: from then on a claim counts.
	opened, claimed time.Time
	// entered is when the decision was read, left when the claim was about to be removed. Who was killed never left.
	entered, left time.Time
	// contended says that more than one look was needed.
	contended bool
}

// until is the end of the hold as others have to respect it: when it was left, or its claim was stale.
func (h hold) until(lease time.Duration) time.Time {
	stale := h.claimed.Add(lease)
	if h.left.IsZero() || stale.Before(h.left) {
		return stale
	}
	return h.left
}

// A landing is a write that was stored, and the time within which that happened.
type landing struct {
	statement
	hold *hold
}

// follow puts the statements of the contenders together: their holds, and the writes under them.
func follow(trace []statement) (holds []*hold, landings []landing) {
	byContender := map[[2]string][]statement{}
	for _, s := range trace {
		key := [2]string{s.label, s.counter}
		byContender[key] = append(byContender[key], s)
	}
	for _, of := range byContender {
		h, l := followOne(of)
		holds, landings = append(holds, h...), append(landings, l...)
	}
	slices.SortFunc(holds, func(a, b *hold) int { return a.entered.Compare(b.entered) })
	slices.SortFunc(landings, func(a, b landing) int { return a.start.Compare(b.start) })
	return holds, landings
}

// followOne follows one contender on one counter. It has one round at a time.
func followOne(trace []statement) (holds []*hold, landings []landing) {
	var (
		current *hold
		decided time.Time
		looks   int
		opened  time.Time
	)
	for _, s := range trace {
		switch s.role {
		case opening:
			current, looks, opened = nil, 0, time.Time{}
		case claim:
			looks++
			if opened.IsZero() {
				opened = s.start
			}
			if s.stored() {
				current = &hold{label: s.label, counter: s.counter, kind: s.kind, opened: opened, claimed: s.start}
			}
		case renewal:
			if current != nil && s.stored() {
				current.claimed = s.start
			}
		case reading:
			decided = s.finish
			if current != nil && current.entered.IsZero() {
				looks++
			}
		case inside, write:
			if current != nil && current.entered.IsZero() {
				current.entered = decided
				current.contended = looks > 2 // a claim and a look
				holds = append(holds, current)
			}
			if s.role == write && s.stored() {
				landings = append(landings, landing{s, current})
			}
		case release:
			if current != nil && current.left.IsZero() {
				current.left = s.start
			}
			if s.kind == kindPeer {
				current, looks, opened = nil, 0, time.Time{}
			}
		}
	}
	return holds, landings
}

// stored tells that an INSERT wrote something.
func (s statement) stored() bool { return !s.failed && s.written > 0 }
