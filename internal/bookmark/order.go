package bookmark

import (
	"cmp"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// order says how two values of a bookmark lie to each other.
type order struct {
	known    bool   // false: nobody can tell which one is later
	compared int    // -1, 0, 1: the first is before, at, after the second
	distance string // how far the first is after the second, where that can be said shortly
}

// orderOf compares two values stored under key: two dates, a date and a number
// that can be Unix time, two numbers (also as text) or LSNs, or two binary logs of
// one MySQL server.
func orderOf(key string, a, b value) order {
	if key == logFileKey {
		return orderOfLogFiles(a, b)
	}
	x, isTime := instant(a)
	y, alsoTime := instant(b)
	switch {
	case isTime && !alsoTime:
		y, alsoTime = unixTime(b)
	case !isTime && alsoTime:
		x, isTime = unixTime(a)
	}
	if isTime && alsoTime {
		o := order{known: true, compared: x.Compare(y)}
		if o.compared > 0 {
			o.distance = elapsed(y, x)
		}
		return o
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

// unixTime reads a number of seconds or milliseconds between 2001 and 2100. It is
// asked only where the other value is a date: a number alone may be anything.
func unixTime(v value) (time.Time, bool) {
	d, ok := numeric(v)
	if !ok || d.negative {
		return time.Time{}, false
	}
	unit := int64(-9) // a nanosecond
	switch d.exponent {
	case 10:
	case 13:
		unit = -6
	default:
		return time.Time{}, false
	}
	if keep := int(d.exponent - unit); len(d.digits) > keep {
		d.digits = d.digits[:keep]
	}
	nanos := d.scaled(unit)
	if !nanos.IsInt64() {
		return time.Time{}, false
	}
	t := time.Unix(0, nanos.Int64()).UTC()
	return t, t.Year() < 2100
}

// logSequence reads an LSN as PostgreSQL writes it: two hexadecimal halves. Its
// second half is mostly long, and what is shorter may be something else.
func logSequence(s string) (decimal, bool) {
	const hex = "0123456789ABCDEF"
	high, low, slash := strings.Cut(s, "/")
	if !slash || len(high) > 8 || len(low) < 6 || len(low) > 8 || strings.Trim(high+low, hex) != "" {
		return decimal{}, false
	}
	h, err := strconv.ParseUint(high, 16, 32)
	if err != nil {
		return decimal{}, false
	}
	l, err := strconv.ParseUint(low, 16, 32)
	return parseDecimal(strconv.FormatUint(h<<32|l, 10)), err == nil
}

// numeric reads a number, an LSN, or a text that is a number without an exponent:
// with one, too many tokens would look like numbers.
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
		return logSequence(s)
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
