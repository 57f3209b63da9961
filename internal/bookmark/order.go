package bookmark

import (
	"cmp"
	"math/big"
	"strings"
	"time"
)

// order says how two values of a bookmark lie to each other.
type order struct {
	known    bool   // false: nobody can tell which one is later
	compared int    // -1, 0, 1: the first is before, at, after the second
	distance string // how far the first is after the second, where that can be said shortly
}

// orderOf compares two values stored under key: two dates, two numbers (also
// as text), or two binary logs of one MySQL server.
func orderOf(key string, a, b value) order {
	if key == logFileKey {
		return orderOfLogFiles(a, b)
	}
	if x, ok := instant(a); ok {
		if y, ok := instant(b); ok {
			o := order{known: true, compared: x.Compare(y)}
			if o.compared > 0 {
				o.distance = elapsed(y, x)
			}
			return o
		}
	}
	if x, ok := numeric(a); ok {
		if y, ok := numeric(b); ok {
			return orderOfNumbers(x, y)
		}
	}
	return order{}
}

func orderOfNumbers(a, b decimal) order {
	o := order{known: true, compared: a.compare(b)}
	if o.compared > 0 {
		o.distance = difference(a, b)
	}
	return o
}

// orderOfLogFiles compares names like mysql-bin.000417.
func orderOfLogFiles(a, b value) order {
	base, i, ok := logFile(a)
	other, j, also := logFile(b)
	if !ok || !also || base != other {
		return order{}
	}
	o := orderOfNumbers(i, j)
	switch o.distance {
	case "":
	case "1":
		o.distance = "1 file"
	default:
		o.distance += " files"
	}
	return o
}

func logFile(v value) (base string, number decimal, ok bool) {
	if v.kind() != kindText {
		return "", decimal{}, false
	}
	name := v.string()
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 || !isDigits(name[dot+1:]) {
		return "", decimal{}, false
	}
	return name[:dot], parseDecimal(name[dot+1:]), true
}

func instant(v value) (time.Time, bool) {
	if v.kind() != kindText {
		return time.Time{}, false
	}
	return parseTime(v.string())
}

// numeric reads a number, or a text that is one without an exponent: with one,
// too many tokens would look like numbers.
func numeric(v value) (decimal, bool) {
	switch v.kind() {
	case kindNumber:
		return parseDecimal(v.raw()), true
	case kindText:
		s := v.string()
		whole, fraction, point := strings.Cut(strings.TrimPrefix(s, "-"), ".")
		if isDigits(whole) && (!point || isDigits(fraction)) {
			return parseDecimal(s), true
		}
	}
	return decimal{}, false
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// difference spells a - b, which is positive, with grouped digits; as "" what is
// too long to be read.
func difference(a, b decimal) string {
	const most = 40 // digits on either side of the point
	low := min(a.exponent-int64(len(a.digits)), b.exponent-int64(len(b.digits)), 0)
	if low < -most || max(a.exponent, b.exponent) > most {
		return ""
	}
	digits := new(big.Int).Sub(a.scaled(low), b.scaled(low)).String()
	fraction := int(-low)
	digits = strings.Repeat("0", max(0, fraction+1-len(digits))) + digits
	whole, rest := digits[:len(digits)-fraction], digits[len(digits)-fraction:]
	if rest = strings.TrimRight(rest, "0"); rest != "" {
		rest = "." + rest
	}
	return group(whole) + rest
}

// scaled returns d / 10^exponent, which must be whole.
func (d decimal) scaled(exponent int64) *big.Int {
	zeros := d.exponent - int64(len(d.digits)) - exponent
	n, _ := new(big.Int).SetString(cmp.Or(d.digits, "0")+strings.Repeat("0", int(zeros)), 10)
	if d.negative {
		n.Neg(n)
	}
	return n
}

// group separates thousands by commas.
func group(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
