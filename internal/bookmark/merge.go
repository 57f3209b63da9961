package bookmark

import (
	"cmp"
	"fmt"
	"strings"
)

// Merge returns the state that Meltano's next run uses: the partial payload
// deep-merged onto the completed one. Objects merge; anything else in partial,
// null included, replaces what completed has. The result is spelled as
// [Document.String] does. Empty text is {}.
//
// Where partial has an object and completed something else, Meltano keeps the
// latter if the object is empty, as does Merge, and breaks off otherwise, where
// Merge lets the object replace it.
func Merge(completed, partial string) (string, error) {
	c, err := parsePayload(completed)
	if err != nil {
		return "", fmt.Errorf("merge completed state: %w", err)
	}
	p, err := parsePayload(partial)
	if err != nil {
		return "", fmt.Errorf("merge partial state: %w", err)
	}
	if p.IsEmpty() {
		return c.String(), nil
	}
	if c.IsEmpty() {
		return p.String(), nil
	}
	var out strings.Builder
	out.Grow(len(completed) + len(partial)) // no value is longer in canonical spelling
	writeMerged(&out, c.root(), p.root())
	return out.String(), nil
}

func parsePayload(text string) (Document, error) {
	if IsEmpty(text) {
		return Document{}, nil
	}
	return Parse(text)
}

func writeMerged(out *strings.Builder, c, p value) {
	switch {
	case c.kind() == kindObject && p.kind() == kindObject:
		writeMergedObjects(out, c, p)
	case !p.exists(), c.exists() && p.kind() == kindObject && p.isEmpty():
		canonical.write(out, c)
	default:
		canonical.write(out, p)
	}
}

func writeMergedObjects(out *strings.Builder, c, p value) {
	out.WriteByte('{')
	completed, partial := c.members(), p.members()
	for i := 0; len(completed) > 0 || len(partial) > 0; i++ {
		var fromC, fromP member
		order := compareFirst(completed, partial)
		if order <= 0 {
			fromC, completed = completed[0], completed[1:]
		}
		if order >= 0 {
			fromP, partial = partial[0], partial[1:]
		}
		writeKey(out, i, cmp.Or(fromC.key, fromP.key))
		writeMerged(out, fromC.value, fromP.value)
	}
	out.WriteByte('}')
}

// compareFirst compares the first keys of two sorted objects, of which one may
// have no members left.
func compareFirst(a, b []member) int {
	switch {
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	default:
		return cmp.Compare(a[0].key, b[0].key)
	}
}
