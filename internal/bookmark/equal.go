package bookmark

// Equal reports whether the texts of two payloads mean the same: neither the
// order of keys nor spelling matters, the order of arrays does, null differs
// from absent, and numbers compare by their exact decimal value (1.0 is 1, but
// 9007199254740993 is not 9007199254740992). Empty text is {}. A text that is
// no payload equals only itself.
func Equal(a, b string) bool {
	if a == b || IsEmpty(a) && IsEmpty(b) {
		return true
	}
	if IsEmpty(a) || IsEmpty(b) {
		return false
	}
	x, err := Parse(a)
	if err != nil {
		return false
	}
	y, err := Parse(b)
	return err == nil && x.Equal(y)
}

// Equal reports whether d and e mean the same, as the function [Equal] does.
func (d Document) Equal(e Document) bool {
	if d.IsEmpty() || e.IsEmpty() {
		return d.IsEmpty() && e.IsEmpty()
	}
	return d.text == e.text || equal(d.root(), e.root())
}

func equal(a, b value) bool {
	if a.kind() != b.kind() {
		return false
	}
	switch a.kind() {
	case kindObject:
		return equalObjects(a, b)
	case kindArray:
		return equalArrays(a, b)
	case kindText:
		return equalStrings(a, b)
	case kindNumber:
		return a.raw() == b.raw() || parseDecimal(a.raw()) == parseDecimal(b.raw())
	case kindBoolean:
		return a.raw() == b.raw()
	default:
		return true
	}
}

func equalStrings(a, b value) bool {
	return a.raw() == b.raw() || a.string() == b.string()
}

func equalArrays(a, b value) bool {
	i, endA := a.node+1, a.doc.nodes[a.node].link
	j, endB := b.node+1, b.doc.nodes[b.node].link
	for i < endA && j < endB {
		if !equal(value{a.doc, i}, value{b.doc, j}) {
			return false
		}
		i, j = a.doc.after(i), b.doc.after(j)
	}
	return i == endA && j == endB
}

// equalObjects goes through both in step while their keys come in the same
// order, as they mostly do, and looks up the remaining ones.
func equalObjects(a, b value) bool {
	i, endA := a.node+1, a.doc.nodes[a.node].link
	j, endB := b.node+1, b.doc.nodes[b.node].link
	for i < endA && j < endB && equalStrings(value{a.doc, i}, value{b.doc, j}) {
		if !equal(value{a.doc, i + 1}, value{b.doc, j + 1}) {
			return false
		}
		i, j = a.doc.after(i+1), b.doc.after(j+1)
	}
	if i == endA || j == endB {
		return i == endA && j == endB
	}
	left := 0
	for k := i; k < endA; k = a.doc.after(k + 1) {
		left++
	}
	rest := make(map[string]uint32, left)
	for ; i < endA; i = a.doc.after(i + 1) {
		rest[a.doc.key(i)] = i + 1
	}
	for ; j < endB; j = b.doc.after(j + 1) {
		i, ok := rest[b.doc.key(j)]
		if !ok || !equal(value{a.doc, i}, value{b.doc, j + 1}) {
			return false
		}
		left--
	}
	return left == 0
}
