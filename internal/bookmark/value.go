package bookmark

import (
	"cmp"
	"slices"
)

// value is one value of a document. The zero value is an absent one: it has no
// members, no items and no text, so that a path can be followed without checks.
type value struct {
	doc  *Document
	node uint32
}

type kind byte

const (
	kindAbsent  kind = 0
	kindObject  kind = '{'
	kindArray   kind = '['
	kindText    kind = '"'
	kindNumber  kind = '0'
	kindBoolean kind = 't'
	kindNull    kind = 'n'
)

func (v value) exists() bool { return v.doc != nil }

func (v value) kind() kind {
	if v.doc == nil {
		return kindAbsent
	}
	switch c := v.doc.text[v.doc.nodes[v.node].start]; c {
	case '{', '[', '"', 'n':
		return kind(c)
	case 't', 'f':
		return kindBoolean
	default:
		return kindNumber
	}
}

// raw returns the source text of a value that is no object and no array.
func (v value) raw() string { return v.doc.raw(v.node) }

// source returns the source text of any value. A container does not keep its
// end, so this takes time with its length.
func (v value) source() string {
	if v.kind() != kindObject && v.kind() != kindArray {
		return v.raw()
	}
	text := v.doc.text[v.doc.nodes[v.node].start:]
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return text[:i+1]
			}
		case '"':
			i = endOfString(text, i)
		}
	}
	return text
}

// string returns the unescaped text of a string.
func (v value) string() string { return v.doc.key(v.node) }

// member is a key of an object with its value.
type member struct {
	key   string
	value value
}

// members returns the members of an object, sorted by key.
func (v value) members() []member {
	all := make([]member, 0, v.size())
	for m := range v.eachMember {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b member) int { return cmp.Compare(a.key, b.key) })
	return all
}

// size returns how many members an object has.
func (v value) size() int {
	count := 0
	for range v.eachMember {
		count++
	}
	return count
}

// eachMember yields the members of an object in document order.
func (v value) eachMember(yield func(member) bool) {
	if v.kind() != kindObject {
		return
	}
	for i, end := v.node+1, v.doc.nodes[v.node].link; i < end; i = v.doc.after(i + 1) {
		if !yield(member{key: v.doc.key(i), value: value{doc: v.doc, node: i + 1}}) {
			return
		}
	}
}

// eachItem yields the items of an array.
func (v value) eachItem(yield func(value) bool) {
	if v.kind() != kindArray {
		return
	}
	for i, end := v.node+1, v.doc.nodes[v.node].link; i < end; i = v.doc.after(i) {
		if !yield(value{doc: v.doc, node: i}) {
			return
		}
	}
}

// get returns the value under key, absent if v is no object or has no such key.
func (v value) get(key string) value {
	for m := range v.eachMember {
		if m.key == key {
			return m.value
		}
	}
	return value{}
}

// index returns the members of an object by key.
func (v value) index() map[string]value {
	index := make(map[string]value, v.size())
	for m := range v.eachMember {
		index[m.key] = m.value
	}
	return index
}

// isEmpty reports whether v is an object or array without content.
func (v value) isEmpty() bool {
	return (v.kind() == kindObject || v.kind() == kindArray) && v.doc.nodes[v.node].link == v.node+1
}
