package bookmark

import (
	"math"
	"slices"
	"unicode/utf8"
)

// MaxDepth is how deep a payload may nest. Python's json module, with which
// Meltano reads and writes, gives up just below 1,000 levels.
const MaxDepth = 1000

// Parse reads a payload: one JSON object as RFC 8259 has it. It refuses with a
// [*ParseError] what is not one, and also
//   - a key repeated in an object, in whatever spelling: Meltano would silently
//     keep only the last one;
//   - nesting beyond [MaxDepth];
//   - bytes that are not UTF-8, and NaN and Infinity, which Python can write
//     but Terraform cannot read;
//   - an exponent of more than 18 digits. Other numbers may be of any size.
//
// It accepts an escaped surrogate that has lost its other half ("\ud83d"),
// which Python reads and writes: it is kept, and equal to itself only.
func Parse(text string) (Document, error) {
	if int64(len(text)) > math.MaxUint32 {
		return Document{}, newParseError(ErrTooLarge, text, 0)
	}
	if !utf8.ValidString(text) {
		return Document{}, newParseError(ErrEncoding, text, invalidUTF8(text))
	}
	p := parser{text: text, nodes: make([]node, 0, countNodes(text))}
	if !p.document() {
		return Document{}, p.err
	}
	return Document{text: text, nodes: p.nodes}, nil
}

// countNodes returns how many nodes a valid text has, so that they get exactly
// the memory that they need: there is one after each comma and each colon, one
// at the start of the text and one in each container that is not empty.
func countNodes(text string) int {
	nodes := 1
	var previous byte // the last one that is no space
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch c {
		case ' ', '\t', '\r', '\n':
			continue
		case ',', ':':
			nodes++
		case ']', '}':
			if previous != '[' && previous != '{' {
				nodes++
			}
		case '"':
			i = endOfString(text, i)
		}
		previous = c
	}
	return nodes
}

// endOfString returns where the string that starts at i has its closing quote.
func endOfString(text string, i int) int {
	for i++; i < len(text) && text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i
}

func invalidUTF8(text string) int {
	for i, r := range text {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 {
				return i
			}
		}
	}
	return len(text)
}

type parser struct {
	text  string
	pos   int
	depth int
	nodes []node
	err   error
}

func (p *parser) fail(err error) bool {
	p.err = newParseError(err, p.text, min(p.pos, len(p.text)))
	return false
}

// begin records the node that starts here and returns its number.
func (p *parser) begin() int {
	p.nodes = append(p.nodes, node{start: uint32(p.pos)})
	return len(p.nodes) - 1
}

// peek returns the byte at the current position, 0 at the end of the text.
func (p *parser) peek() byte {
	if p.pos < len(p.text) {
		return p.text[p.pos]
	}
	return 0
}

// skip passes over the byte c, if it is the next one.
func (p *parser) skip(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.pos++
	return true
}

func (p *parser) space() {
	for p.pos < len(p.text) {
		switch p.text[p.pos] {
		case ' ', '\t', '\r', '\n':
			p.pos++
		default:
			return
		}
	}
}

func (p *parser) document() bool {
	p.space()
	first := p.peek()
	if !p.value() {
		return false
	}
	p.space()
	if p.pos < len(p.text) {
		return p.fail(ErrSyntax)
	}
	if first != '{' {
		p.pos = 0
		return p.fail(ErrNotObject)
	}
	return true
}

func (p *parser) value() bool {
	switch c := p.peek(); c {
	case '{':
		return p.container('}')
	case '[':
		return p.container(']')
	default:
		return p.scalar(c)
	}
}

// container reads an object or an array up to its closing byte.
func (p *parser) container(closing byte) bool {
	if p.depth++; p.depth > MaxDepth {
		return p.fail(ErrTooDeep)
	}
	n := p.begin()
	p.pos++
	p.space()
	for more := p.peek() != closing; more; more = p.skip(',') {
		p.space()
		if closing == '}' && !p.key() || !p.value() {
			return false
		}
		p.space()
	}
	if !p.skip(closing) {
		return p.fail(ErrSyntax)
	}
	p.depth--
	p.nodes[n].link = uint32(len(p.nodes))
	return closing == ']' || p.unique(uint32(n))
}

// key reads a key and its colon, up to the value.
func (p *parser) key() bool {
	if p.peek() != '"' {
		return p.fail(ErrSyntax)
	}
	if !p.scalar('"') {
		return false
	}
	p.space()
	if !p.skip(':') {
		return p.fail(ErrSyntax)
	}
	p.space()
	return true
}

// scalar reads a value, other than an object or an array, that starts with c.
func (p *parser) scalar(c byte) bool {
	n := p.begin()
	var ok bool
	switch c {
	case '"':
		ok = p.string()
	case 't':
		ok = p.literal("true")
	case 'f':
		ok = p.literal("false")
	case 'n':
		ok = p.literal("null")
	default:
		ok = p.number()
	}
	p.nodes[n].link = uint32(p.pos)
	return ok
}

// unique checks that no key of the object at node n comes twice.
func (p *parser) unique(n uint32) bool {
	doc := Document{text: p.text, nodes: p.nodes}
	var few [8]string // most objects are small, and need no map
	seen := few[:0]
	i, end := n+1, p.nodes[n].link
	if i == end || doc.after(i+1) == end {
		return true
	}
	for ; i < end && len(seen) < len(few); i = doc.after(i + 1) {
		key := doc.key(i)
		if slices.Contains(seen, key) {
			return p.duplicate(i)
		}
		seen = append(seen, key)
	}
	if i == end {
		return true
	}
	members := len(seen)
	for j := i; j < end; j = doc.after(j + 1) {
		members++
	}
	many := make(map[string]struct{}, members)
	for _, key := range seen {
		many[key] = struct{}{}
	}
	for ; i < end; i = doc.after(i + 1) {
		known := len(many)
		many[doc.key(i)] = struct{}{}
		if len(many) == known {
			return p.duplicate(i)
		}
	}
	return true
}

func (p *parser) duplicate(key uint32) bool {
	p.pos = int(p.nodes[key].start)
	return p.fail(ErrDuplicateKey)
}

func (p *parser) literal(word string) bool {
	for i := range len(word) {
		if !p.skip(word[i]) {
			return p.fail(ErrSyntax)
		}
	}
	return true
}

func (p *parser) string() bool {
	p.pos++
	for p.pos < len(p.text) {
		switch c := p.text[p.pos]; {
		case c == '"':
			p.pos++
			return true
		case c == '\\':
			if !p.escape() {
				return false
			}
		case c < ' ':
			return p.fail(ErrSyntax)
		default:
			p.pos++
		}
	}
	return p.fail(ErrSyntax)
}

func (p *parser) escape() bool {
	p.pos++
	switch p.peek() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		p.pos++
		return true
	case 'u':
		p.pos++
		for range 4 {
			if !isHex(p.peek()) {
				return p.fail(ErrSyntax)
			}
			p.pos++
		}
		return true
	default:
		return p.fail(ErrSyntax)
	}
}

func (p *parser) number() bool {
	p.skip('-')
	if !p.skip('0') && p.digits() == 0 {
		return p.fail(ErrSyntax)
	}
	if p.skip('.') && p.digits() == 0 {
		return p.fail(ErrSyntax)
	}
	if !p.skip('e') && !p.skip('E') {
		return true
	}
	if !p.skip('+') {
		p.skip('-')
	}
	start := p.pos
	if p.digits() == 0 {
		return p.fail(ErrSyntax)
	}
	if len(trimZeros(p.text[start:p.pos])) > maxExponentDigits {
		p.pos = start
		return p.fail(ErrNumber)
	}
	return true
}

// digits passes over decimal digits and returns how many there were.
func (p *parser) digits() int {
	start := p.pos
	for c := p.peek(); '0' <= c && c <= '9'; c = p.peek() {
		p.pos++
	}
	return p.pos - start
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
