package bookmark

import (
	"fmt"
	"strings"
	"time"
)

// parseTime reads the dates that taps keep in bookmarks, as text:
//   - ISO 8601 and RFC 3339: a date, or a date and a time after "T" or a space,
//     with or without dashes and colons, seconds and a fraction of them;
//   - a month, 2026-11;
//   - LDAP's generalized time, 20260619103000.0Z.
//
// What is left out counts as its beginning, and no zone means UTC. Digits alone
// are a date only if there are 8 or 14 of them. Beyond nanoseconds, a fraction is cut off.
func parseTime(s string) (time.Time, bool) {
	t := timeScanner{rest: s}
	year := t.digits(4)
	extended := t.skip("-")
	month := t.digits(2)
	if extended && t.rest == "" {
		return t.date(year, month, 1, 0, 0, 0)
	}
	if extended && !t.skip("-") {
		return time.Time{}, false
	}
	day := t.digits(2)
	if t.rest == "" {
		return t.date(year, month, day, 0, 0, 0)
	}
	separated := t.skip("Tt ")
	if extended && !separated {
		return time.Time{}, false
	}
	hour := t.digits(2)
	var minute, second int
	var seconds bool
	if colon := t.skip(":"); colon || t.digit() {
		minute = t.digits(2)
		if seconds = colon && t.skip(":") || !colon && t.digit(); seconds {
			second = t.digits(2)
			t.fraction()
		}
	}
	if zoned := t.zone(); !zoned && !separated && !seconds {
		return time.Time{}, false
	}
	return t.date(year, month, day, hour, minute, second)
}

type timeScanner struct {
	rest   string
	bad    bool
	nanos  int
	offset int // seconds east of UTC
}

func (t *timeScanner) digit() bool {
	return t.rest != "" && '0' <= t.rest[0] && t.rest[0] <= '9'
}

// digits reads exactly n digits.
func (t *timeScanner) digits(n int) int {
	number := 0
	for range n {
		if !t.digit() {
			t.bad = true
			return 0
		}
		number = 10*number + int(t.rest[0]-'0')
		t.rest = t.rest[1:]
	}
	return number
}

// skip passes over the next byte if it is one of those given.
func (t *timeScanner) skip(set string) bool {
	if t.rest == "" || strings.IndexByte(set, t.rest[0]) < 0 {
		return false
	}
	t.rest = t.rest[1:]
	return true
}

func (t *timeScanner) fraction() {
	if !t.skip(".,") {
		return
	}
	t.bad = t.bad || !t.digit()
	for unit := 100_000_000; t.digit(); unit /= 10 {
		t.nanos += unit * t.digits(1)
	}
}

// zone reads Z, UTC, GMT or an offset, if there is one.
func (t *timeScanner) zone() bool {
	if t.rest == "" {
		return false
	}
	t.skip(" ")
	switch strings.ToUpper(t.rest) {
	case "Z", "UTC", "GMT":
		t.rest = ""
		return true
	}
	sign := 1
	if t.skip("-") {
		sign = -1
	} else if !t.skip("+") {
		t.bad = true
		return false
	}
	hours, minutes := t.digits(2), 0
	if t.skip(":") || t.rest != "" {
		minutes = t.digits(2)
	}
	t.bad = t.bad || hours > 23 || minutes > 59
	t.offset = sign * (hours*3600 + minutes*60)
	return true
}

// date puts the parts together, if all of them could be read and are in range.
// A leap second is the same instant as the second after it.
func (t *timeScanner) date(year, month, day, hour, minute, second int) (time.Time, bool) {
	if t.bad || t.rest != "" || hour > 23 || minute > 59 || second > 60 {
		return time.Time{}, false
	}
	date := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if date.Month() != time.Month(month) || date.Day() != day {
		return time.Time{}, false
	}
	return time.Date(year, time.Month(month), day, hour, minute, second-t.offset, t.nanos, time.UTC), true
}

// elapsed spells the time from one instant to a later one: "41 days 3:00:00".
func elapsed(from, to time.Time) string {
	seconds, nanos := to.Unix()-from.Unix(), to.Nanosecond()-from.Nanosecond()
	if nanos < 0 {
		seconds, nanos = seconds-1, nanos+1_000_000_000
	}
	const day = 24 * 60 * 60
	var out string
	switch days := seconds / day; days {
	case 0:
	case 1:
		out = "1 day "
	default:
		out = group(fmt.Sprint(days)) + " days "
	}
	out += fmt.Sprintf("%d:%02d:%02d", seconds%day/3600, seconds%3600/60, seconds%60)
	if nanos > 0 {
		out += strings.TrimRight(fmt.Sprintf(".%09d", nanos), "0")
	}
	return out
}
