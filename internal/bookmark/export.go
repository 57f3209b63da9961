package bookmark

import (
	"errors"
	"maps"
	"slices"
	"strings"
)

// ErrEntry tells that an entry of an export has another key than completed and
// partial, for example because it is a bare payload.
var ErrEntry = errors.New("entry with another key than completed and partial")

// Entry is one state of an export: the texts of its two payloads, each empty if
// the export has none or null.
type Entry struct {
	Completed string
	Partial   string
}

// String writes the entry so that [ParseEntry] reads it, with the payloads that it
// has as they are spelled.
func (e Entry) String() string {
	var out strings.Builder
	e.write(&out)
	return out.String()
}

func (e Entry) write(out *strings.Builder) {
	out.WriteByte('{')
	i := 0
	for _, payload := range []struct{ key, text string }{{completedKey, e.Completed}, {partialKey, e.Partial}} {
		if payload.text != "" {
			writeKey(out, i, payload.key)
			out.WriteString(payload.text)
			i++
		}
	}
	out.WriteByte('}')
}

const (
	completedKey = "completed"
	partialKey   = "partial"
)

// FormatExport writes entries so that [ParseExport] reads them, sorted by state ID.
func FormatExport(entries map[string]Entry) string {
	var out strings.Builder
	out.WriteByte('{')
	for i, id := range slices.Sorted(maps.Keys(entries)) {
		writeKey(&out, i, id)
		entries[id].write(&out)
	}
	out.WriteByte('}')
	return out.String()
}

// ParseExport reads what `meltano state export` writes, entries by state ID:
//
//	{"<state_id>": {"completed": {...}, "partial": {...}}, ...}
//
// It refuses what [Parse] and [ParseEntry] refuse. The texts of the payloads
// are the source's, so that numbers stay exact.
func ParseExport(text string) (map[string]Entry, error) {
	doc, err := Parse(text)
	if err != nil {
		return nil, err
	}
	entries := map[string]Entry{}
	for m := range doc.root().eachMember {
		entries[m.key], err = m.value.entry()
		if err != nil {
			return nil, err
		}
	}
	return entries, nil
}

// ParseEntry reads one entry of an export, {"completed": {...}, "partial": {...}}.
// Both payloads may be absent or null; otherwise they must be objects.
func ParseEntry(text string) (Entry, error) {
	doc, err := Parse(text)
	if err != nil {
		return Entry{}, err
	}
	return doc.root().entry()
}

func (v value) entry() (Entry, error) {
	if v.kind() != kindObject {
		return Entry{}, v.refuse(ErrNotObject)
	}
	var e Entry
	for m := range v.eachMember {
		var payload *string
		switch m.key {
		case completedKey:
			payload = &e.Completed
		case partialKey:
			payload = &e.Partial
		default:
			return Entry{}, m.value.refuse(ErrEntry)
		}
		switch m.value.kind() {
		case kindObject:
			*payload = m.value.source()
		case kindNull:
		default:
			return Entry{}, m.value.refuse(ErrNotObject)
		}
	}
	return e, nil
}

func (v value) refuse(err error) error {
	return newParseError(err, v.doc.text, int(v.doc.nodes[v.node].start))
}
