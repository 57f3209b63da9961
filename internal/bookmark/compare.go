package bookmark

import "strings"

// Compare returns what the planned state would do to the bookmarks of the
// stored one: each value that goes back, each bookmark that vanishes, and each
// value that differs in a way without order. Forward steps, new bookmarks and
// the same instant or number in another notation are none. The result is
// sorted by stream, partition and key, and has a line for every value
// concerned: for thousands of partitions, show only the first ones.
//
// Both documents should be what the next run would use: see [Merge].
//
// A bookmark is a value under singer_state.bookmarks (in old states also right
// under singer_state), named by its stream: a single value, or an object with
// values at any depth. Partitions are matched by their context, in any order, and
// those with equal contexts in theirs; without a context, by what they hold.
// Dates (see below), numbers and numbers as text have an order, also if one is
// spelled in another way than the other; any other text has none. A value that
// becomes null or "" has vanished, and so has one that becomes a thing in which
// nobody finds it: an object that is no object any more, a single value that is
// an object, a list or a boolean, a date or a number that is a text without
// order. If everything in an object vanishes, one Change tells it for the whole
// object.
//
// Dates are RFC 3339 and other forms of ISO 8601 with or without dashes, time,
// fraction and zone (none is UTC), and LDAP's generalized time. Numbers that can
// be seconds or milliseconds of Unix time compare with dates, and PostgreSQL's
// LSNs (16/B374D848) with numbers.
func Compare(stored, planned Document) []Change {
	c := comparison{}
	c.state(stored, planned)
	sortChanges(c.changes)
	return c.changes
}

// FullRefresh reports whether the next run would read everything anew with the
// planned state: it has no bookmark at all, while the stored one has some.
func FullRefresh(stored, planned Document) bool {
	return positions(stored) > 0 && positions(planned) == 0
}

func positions(d Document) int {
	c := comparison{}
	return c.state(d, Document{}).positions
}

type comparison struct{ changes []Change }

// tally counts the values that say how far something has been read.
type tally struct{ positions, gone int }

func (t *tally) add(u tally) {
	t.positions += u.positions
	t.gone += u.gone
}

func (c *comparison) state(stored, planned Document) tally {
	s, p := stored.root().get(singerStateKey), planned.root().get(singerStateKey)
	total := c.streams(s.get(bookmarksKey), p.get(bookmarksKey), nil)
	total.add(c.streams(s, p, noStream))
	return total
}

// streams compares the members of two objects, each the bookmark of a stream.
func (c *comparison) streams(s, p value, except map[string]bool) (total tally) {
	planned := p.index()
	for m := range s.eachMember {
		// Equal ones, mostly nearly all, give no change, and nobody counts them.
		if !except[m.key] && !equal(m.value, planned[m.key]) {
			total.add(c.value(Change{Stream: shorten(m.key, maxNameLength)}, m.key, m.value, planned[m.key]))
		}
	}
	return total
}

// value compares what is stored at a place, under key, with what is planned.
func (c *comparison) value(at Change, key string, s, p value) tally {
	switch {
	case isNothing(s):
		return tally{}
	case s.kind() == kindObject && (p.kind() == kindObject || isNothing(p)):
		return c.object(at, s, p)
	case isSingle(s):
		return c.scalar(at, key, s, p)
	}
	if s.kind() == kindObject {
		var was comparison
		if positions := was.object(at, s, value{}).positions; positions > 0 {
			c.report(at, Vanished, was.changes[0].Old, spell(key, p)) // all that vanishes is one change
			return tally{positions: positions, gone: positions}
		}
	}
	// No position.
	if !p.exists() || !equal(s, p) {
		c.report(at, Changed, spell(key, s), spell(key, p))
	}
	return tally{}
}

// scalar compares two single values.
func (c *comparison) scalar(at Change, key string, s, p value) tally {
	if isNothing(p) {
		c.report(at, Vanished, spell(key, s), "")
		return tally{positions: 1, gone: 1}
	}
	switch o := orderOf(key, s, p); {
	case o.known && o.compared > 0:
		if o.distance != "" {
			at.Distance = o.distance + " back"
		}
		c.report(at, Rewind, spell(key, s), spell(key, p))
	case !o.known && !isSingle(p), !o.known && isOrdered(s) && !orderOf(key, p, p).known:
		c.report(at, Vanished, spell(key, s), spell(key, p))
		return tally{positions: 1, gone: 1}
	case !o.known && !equal(s, p):
		c.report(at, Changed, spell(key, s), spell(key, p))
	}
	return tally{positions: 1}
}

// object compares two bookmarks, or two objects inside of bookmarks.
func (c *comparison) object(at Change, s, p value) (total tally) {
	first := len(c.changes)
	planned := p.index()
	c.replicationKey(at, s, p)
	decided := decidedByFirst(s, planned)
	var kept int        // own values that stay
	var unordered []int // changes: own values without order that vanish
	for m := range s.eachMember {
		if noPosition[m.key] || decided[m.key] {
			continue
		}
		if m.key == partitionsKey && m.value.kind() == kindArray {
			total.add(c.partitions(at, m.value, planned[m.key]))
			continue
		}
		t := c.value(at.under(m.key), m.key, m.value, planned[m.key])
		total.add(t)
		switch single := isSingle(m.value); {
		case single && t.gone == 0:
			kept++
		case single && !orderOf(m.key, m.value, m.value).known:
			unordered = append(unordered, len(c.changes)-1)
		}
	}
	if kept > 0 { // they tell where to go on: a note or a second token may go
		for _, i := range unordered {
			c.changes[i].Kind = Changed
		}
	}
	if total.gone > 0 && total.gone == total.positions && (total.gone > 1 || p.kind() != kindObject) {
		old := c.headline(first, at)
		c.changes = c.changes[:first]
		c.report(at, Vanished, old, "")
	}
	return total
}

// headline returns the value to name for an object at a place that vanishes with
// all the changes from the first one on: its only value or its main one.
func (c *comparison) headline(first int, at Change) (old string) {
	main := at.under(replicationKeyValue)
	count := 0
	for _, lost := range c.changes[first:] {
		if lost.Kind != Vanished {
			continue
		}
		if lost.Key == main.Key && lost.Partition == main.Partition {
			return lost.Old
		}
		old = lost.Old
		count++
	}
	if count > 1 {
		return ""
	}
	return old
}

// replicationKey compares what the positions in two objects are about: with
// another column, a tap may ignore the value or misread it.
func (c *comparison) replicationKey(at Change, s, p value) {
	was, is := s.get(replicationKey), p.get(replicationKey)
	if was.kind() == kindText && !isNothing(p.get(replicationKeyValue)) && !(is.exists() && equal(was, is)) {
		c.report(at.under(replicationKey), Changed, spell(replicationKey, was), spell(replicationKey, is))
	}
}

// decidedByFirst returns the second keys of pairs that say nothing, since the
// first value is another one or gone.
func decidedByFirst(s value, planned map[string]value) map[string]bool {
	decided := map[string]bool{}
	for _, pair := range pairs {
		was, is := s.get(pair[0]), planned[pair[0]]
		if !isSingle(was) {
			continue
		}
		o := orderOf(pair[0], was, is)
		another := o.known && o.compared != 0 || !o.known && pair[0] == logFileKey && !equal(was, is)
		decided[pair[1]] = another || isNothing(is)
	}
	return decided
}

// isNothing reports whether v says nothing about how far something was read.
func isNothing(v value) bool {
	switch v.kind() {
	case kindAbsent, kindNull:
		return true
	case kindText:
		return v.string() == ""
	default:
		return v.isEmpty()
	}
}

// isSingle reports whether v is a text or a number that says how far something
// was read.
func isSingle(v value) bool {
	return (v.kind() == kindText || v.kind() == kindNumber) && !isNothing(v)
}

// isOrdered reports whether v is surely a date, a number or an LSN. Digits as text
// may be a token by chance.
func isOrdered(v value) bool {
	return v.kind() == kindNumber || !isDigits(v.string()) && orderOf("", v, v).known
}

func (c *comparison) report(at Change, kind Kind, old, planned string) {
	at.Kind, at.Old, at.New = kind, old, planned
	c.changes = append(c.changes, at)
}

// under returns the place of a key below the one of c.
func (c Change) under(key string) Change {
	c.Key = shorten(strings.TrimPrefix(c.Key+"."+key, "."), maxNameLength)
	return c
}
