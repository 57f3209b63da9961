package bookmark

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kind says what a [Change] does to a bookmark.
type Kind string

const (
	// Rewind is a value that goes back: the next run reads again what it has read.
	Rewind Kind = "rewind"
	// Vanished is a bookmark that is gone: the next run starts from its beginning.
	Vanished Kind = "vanished"
	// Changed is a value that differs where nobody can tell which one is later, such
	// as a token. It may be a step in either direction: it is no reason for an alarm.
	Changed Kind = "changed"
)

// Change is one value of a bookmark that is not what it was, or one bookmark
// that is gone. Its texts are for people: short, on one line, valid UTF-8. They
// hold dates, numbers and names, but not what may be a token.
type Change struct {
	Kind      Kind
	Stream    string
	Partition string // the context, as "org=acme, repo=web"; empty outside partitions
	Key       string // such as "replication_key_value" or "sub_stream.cursor"; empty for the whole bookmark
	Old       string // of a whole bookmark: its main value, empty if it has several
	New       string // of what has vanished: what is in its place, empty for nothing
	Distance  string // of a rewind: "41 days 3:00:00 back", "1,204 back"; empty if too long
}

// String returns a line such as
//
//	orders [shop=1]: replication_key_value goes from 2026-11-20 to 2026-11-19 (1 day 0:00:00 back)
func (c Change) String() string {
	var s strings.Builder
	s.WriteString(c.Stream)
	if c.Partition != "" {
		s.WriteString(" [" + c.Partition + "]")
	}
	s.WriteString(": " + cmp.Or(c.Key, "bookmark"))
	switch {
	case c.Kind == Vanished && c.Old == "" && c.New == "":
		s.WriteString(" vanishes")
	case c.Kind == Vanished && c.New == "":
		s.WriteString(" vanishes (was " + c.Old + ")")
	case c.Kind == Vanished && c.Old == "":
		s.WriteString(" vanishes (becomes " + c.New + ")")
	case c.Kind == Vanished:
		s.WriteString(" vanishes (was " + c.Old + ", becomes " + c.New + ")")
	case c.Kind == Changed:
		fmt.Fprintf(&s, " changes from %s to %s", c.Old, cmp.Or(c.New, "nothing"))
	default:
		fmt.Fprintf(&s, " goes from %s to %s", c.Old, c.New)
	}
	if c.Distance != "" {
		s.WriteString(" (" + c.Distance + ")")
	}
	return s.String()
}

func sortChanges(changes []Change) {
	slices.SortStableFunc(changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Key, b.Key))
	})
}

const (
	maxValueLength = 60  // of a spelled value, in characters
	maxNameLength  = 200 // of a stream, a partition or a key
)

// spell returns a value of a bookmark as people may read it. A text that is no
// date, number or name may be a token: only its length is told.
func spell(key string, v value) string {
	switch v.kind() {
	case kindObject:
		return "an object"
	case kindArray:
		return "a list"
	case kindNumber, kindBoolean, kindNull:
		return shorten(v.raw(), maxValueLength)
	case kindText:
		s := v.string()
		if _, isTime := parseTime(s); isTime || names[key] {
			return shorten(s, maxValueLength)
		}
		if _, isNumber := numeric(v); isNumber {
			return shorten(s, maxValueLength)
		}
		if length := utf8.RuneCountInString(s); length != 1 {
			return fmt.Sprintf("a text of %d characters", length)
		}
		return "a text of 1 character"
	default:
		return ""
	}
}

// shorten returns s on one line, as valid UTF-8, cut to length characters.
func shorten(s string, length int) string {
	var out []rune
	for _, r := range s {
		if len(out) == length {
			out[length-1] = '…'
			break
		}
		if !unicode.IsPrint(r) {
			r = ' '
		}
		out = append(out, r)
	}
	return string(out)
}

// valid replaces lone surrogates, which neither Terraform nor a terminal takes.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// contextText spells the context of a partition: "org=acme, repo=web".
func contextText(context value) string {
	if context.kind() != kindObject {
		return canonical.of(context)
	}
	var parts []string
	for _, m := range context.members() {
		parts = append(parts, m.key+"="+plain(m.value))
	}
	return strings.Join(parts, ", ")
}

// plain returns a text without its quotes, anything else as JSON.
func plain(v value) string {
	if v.kind() == kindText {
		return v.string()
	}
	return canonical.of(v)
}
