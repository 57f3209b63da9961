package bookmark

import (
	"strconv"
	"strings"
)

// spelling is a way to write values: keys sorted by their bytes, no space, no
// escape that JSON does not require.
type spelling int

const (
	canonical spelling = iota // numbers as they are in the source
	normal                    // equal numbers alike, so that equal values have one spelling; not JSON
)

func (s spelling) of(v value) string {
	var out strings.Builder
	s.write(&out, v)
	return out.String()
}

func (s spelling) write(out *strings.Builder, v value) {
	switch kind := v.kind(); {
	case kind == kindAbsent:
	case kind == kindObject:
		out.WriteByte('{')
		for i, m := range v.members() {
			writeKey(out, i, m.key)
			s.write(out, m.value)
		}
		out.WriteByte('}')
	case kind == kindArray:
		out.WriteByte('[')
		separator := ""
		for item := range v.eachItem {
			out.WriteString(separator)
			s.write(out, item)
			separator = ","
		}
		out.WriteByte(']')
	case kind == kindText:
		writeQuoted(out, v.string())
	case kind == kindNumber && s == normal:
		writeNormal(out, parseDecimal(v.raw()))
	default:
		out.WriteString(v.raw())
	}
}

// writeKey writes the key of the i-th member of an object.
func writeKey(out *strings.Builder, i int, key string) {
	if i > 0 {
		out.WriteByte(',')
	}
	writeQuoted(out, key)
	out.WriteByte(':')
}

// writeQuoted writes an unescaped string as JSON, escaping only what must be.
func writeQuoted(out *strings.Builder, s string) {
	const hex = "0123456789abcdef"
	out.WriteByte('"')
	plain := 0 // where the text starts that is still to be written as it is
	for i := 0; i < len(s); i++ {
		var escaped string
		length := 1
		switch c := s[i]; {
		case c == '"' || c == '\\':
			escaped = string([]byte{'\\', c})
		case c == '\n':
			escaped = `\n`
		case c == '\r':
			escaped = `\r`
		case c == '\t':
			escaped = `\t`
		case c < ' ':
			escaped = string([]byte{'\\', 'u', '0', '0', hex[c>>4], hex[c&0xF]})
		case c == 0xED && s[i+1] >= 0xA0: // a lone surrogate, see unescape
			b, d := s[i+1], s[i+2]
			escaped = string([]byte{'\\', 'u', 'd', hex[b>>2&0xF], hex[b<<2&0xC|d>>4&0x3], hex[d&0xF]})
			length = 3
		default:
			continue
		}
		out.WriteString(s[plain:i])
		out.WriteString(escaped)
		i += length - 1
		plain = i + 1
	}
	out.WriteString(s[plain:])
	out.WriteByte('"')
}

func writeNormal(out *strings.Builder, d decimal) {
	if d.negative {
		out.WriteByte('-')
	}
	out.WriteByte('.')
	out.WriteString(d.digits)
	out.WriteByte('e')
	out.WriteString(strconv.FormatInt(d.exponent, 10))
}
