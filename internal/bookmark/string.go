package bookmark

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// unescape returns the characters of a valid JSON string, given without its
// quotes. A surrogate without its other half keeps its code point, in three
// bytes like any other: what Python calls "surrogatepass". No UTF-8 looks so,
// hence it stays distinct from every other string.
func unescape(raw string) string {
	first := strings.IndexByte(raw, '\\')
	if first < 0 {
		return raw
	}
	out := make([]byte, 0, len(raw))
	for i := first; i >= 0; i = strings.IndexByte(raw, '\\') {
		out = append(out, raw[:i]...)
		raw = raw[i+1:]
		switch c := raw[0]; c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r := codeUnit(raw[1:5])
			if strings.HasPrefix(raw[5:], `\u`) {
				if pair := utf16.DecodeRune(r, codeUnit(raw[7:11])); pair != utf8.RuneError {
					out = utf8.AppendRune(out, pair)
					raw = raw[11:]
					continue
				}
			}
			if utf16.IsSurrogate(r) {
				out = append(out, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0xBF, 0x80|byte(r)&0xBF)
			} else {
				out = utf8.AppendRune(out, r)
			}
			raw = raw[5:]
			continue
		default:
			out = append(out, c)
		}
		raw = raw[1:]
	}
	return string(append(out, raw...))
}

// codeUnit reads the four hexadecimal digits of an escape.
func codeUnit(hex string) rune {
	n, _ := strconv.ParseUint(hex, 16, 16) // the parser has seen that they are digits
	return rune(n)
}
