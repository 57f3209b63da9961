// Package bookmark knows Meltano's state JSON, the bookmarks of its pipelines:
// when two payloads mean the same, what a run will use, and which bookmarks a
// change would set back. It is pure: no database, no Terraform.
//
// A payload is a JSON object. Absent, NULL and {} are one stored state, and the
// empty string stands for it wherever a function takes the text of a payload;
// only [Parse] refuses it, since it is no JSON.
package bookmark

import "strings"

// Document is a parsed payload. The zero Document is the empty object.
//
// It keeps the text and, in document order, one node for each value and key, so
// that it takes 8 bytes a node beside its text, whatever the shape: payloads
// may have 16 MB, and an item of an array may have 2 bytes.
type Document struct {
	text  string
	nodes []node
}

// node is a key or a value. An object is followed by its keys, each followed by
// its value; an array by its items.
type node struct {
	start uint32 // where its text starts
	link  uint32 // object, array: the node after its last descendant; else: where its text ends
}

// IsEmpty reports whether d is {}, which is stored as NULL.
func (d Document) IsEmpty() bool { return len(d.nodes) <= 1 }

// HasSingerState reports whether d has the key singer_state at its top, without
// which Meltano finds no bookmark in it and the next run starts from scratch.
func (d Document) HasSingerState() bool { return d.root().get(singerStateKey).exists() }

// String returns d in canonical spelling: keys sorted by their bytes, no space,
// no escape that JSON does not require. Only numbers keep their spelling.
func (d Document) String() string {
	if d.IsEmpty() {
		return "{}"
	}
	var out strings.Builder
	out.Grow(len(d.text))
	canonical.write(&out, d.root())
	return out.String()
}

// IsEmpty reports whether the text of a payload is empty or some spelling of {}.
func IsEmpty(text string) bool {
	inner, ok := strings.CutPrefix(trimSpace(text), "{")
	return text == "" || ok && trimSpace(inner) == "}"
}

func trimSpace(text string) string { return strings.Trim(text, " \t\r\n") }

func (d *Document) root() value {
	if len(d.nodes) == 0 {
		return value{}
	}
	return value{doc: d}
}

// after returns the node that follows node i and its descendants.
func (d *Document) after(i uint32) uint32 {
	if c := d.text[d.nodes[i].start]; c == '{' || c == '[' {
		return d.nodes[i].link
	}
	return i + 1
}

// raw returns the text of node i, which is no object and no array.
func (d *Document) raw(i uint32) string {
	return d.text[d.nodes[i].start:d.nodes[i].link]
}

// key returns the key at node i, unescaped.
func (d *Document) key(i uint32) string {
	raw := d.raw(i)
	return unescape(raw[1 : len(raw)-1])
}
