package bookmark

import (
	"cmp"
	"strings"
)

// maxExponentDigits keeps every exponent, and the sums made with it, in an int64.
const maxExponentDigits = 18

// decimal is the exact value of a JSON number: 0.digits × 10^exponent. It is
// never expanded, so that 1e1000000000 costs nothing. Equal numbers are equal
// with ==, since digits start and end with no zero; those of zero are empty.
type decimal struct {
	negative bool
	digits   string
	exponent int64
}

// parseDecimal reads the text of a valid JSON number.
func parseDecimal(text string) decimal {
	var d decimal
	text, d.negative = strings.CutPrefix(text, "-")
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		d.exponent = parseExponent(text[i+1:])
		text = text[:i]
	}
	whole, fraction, _ := strings.Cut(text, ".")
	whole = trimZeros(whole)
	fraction = strings.TrimRight(fraction, "0")
	d.exponent += int64(len(whole))
	if whole == "" {
		significant := trimZeros(fraction)
		d.exponent -= int64(len(fraction) - len(significant))
		fraction = significant
	}
	switch {
	case fraction == "":
		d.digits = strings.TrimRight(whole, "0")
	case whole == "":
		d.digits = fraction
	default:
		d.digits = whole + fraction
	}
	if d.digits == "" {
		return decimal{}
	}
	return d
}

func parseExponent(text string) int64 {
	text = strings.TrimPrefix(text, "+")
	text, negative := strings.CutPrefix(text, "-")
	var n int64
	for _, c := range []byte(trimZeros(text)) {
		n = 10*n + int64(c-'0')
	}
	if negative {
		return -n
	}
	return n
}

func trimZeros(digits string) string { return strings.TrimLeft(digits, "0") }

func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	default:
		return 1
	}
}

// compare returns -1, 0 or 1 as d is less than, equal to or greater than e.
func (d decimal) compare(e decimal) int {
	if d.sign() != e.sign() {
		return cmp.Compare(d.sign(), e.sign())
	}
	// Without leading zeros, digits after the point compare like text.
	return d.sign() * cmp.Or(cmp.Compare(d.exponent, e.exponent), cmp.Compare(d.digits, e.digits))
}
