package meltano

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// Dumps writes a JSON value as Python's json.dumps does: a space after ":" and ",", everything but printable ASCII as
// \uXXXX, floats in Python's spelling. Object keys are sorted, since a Go map has no order. It panics on what is no JSON.
func Dumps(value any) string {
	var b strings.Builder
	dump(&b, value)
	return b.String()
}

func dump(b *strings.Builder, value any) {
	switch v := value.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case string:
		dumpString(b, v)
	case json.Number:
		b.WriteString(number(v))
	case float64:
		b.WriteString(float(v))
	case int:
		b.WriteString(strconv.Itoa(v))
	case map[string]any:
		dumpList(b, '{', '}', slices.Sorted(maps.Keys(v)), func(key string) {
			dumpString(b, key)
			b.WriteString(": ")
			dump(b, v[key])
		})
	case []any:
		dumpList(b, '[', ']', v, func(item any) { dump(b, item) })
	default:
		dump(b, plain(v))
	}
}

func dumpList[T any](b *strings.Builder, open, end byte, items []T, item func(T)) {
	b.WriteByte(open)
	for i, it := range items {
		if i > 0 {
			b.WriteString(", ")
		}
		item(it)
	}
	b.WriteByte(end)
}

// plain makes of a struct or a typed map what JSON makes of it.
func plain(value any) any {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("meltano.Dumps: %v", err))
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	var decoded any
	if err := decoder.Decode(&decoded); err != nil {
		panic(fmt.Sprintf("meltano.Dumps: %v", err))
	}
	return decoded
}

func dumpString(b *strings.Builder, s string) {
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case strings.ContainsRune("\n\r\t\b\f", r):
			b.WriteByte('\\')
			b.WriteByte("nrtbf"[strings.IndexRune("\n\r\t\b\f", r)])
		case r >= ' ' && r <= '~':
			b.WriteRune(r)
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(b, `\u%04x`, unit)
			}
		}
	}
	b.WriteByte('"')
}

// number is what Python writes of a number that it has read: integers keep every digit, all else is a float.
func number(n json.Number) string {
	if !strings.ContainsAny(string(n), ".eE") {
		return string(n)
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil && !math.IsInf(f, 0) {
		panic(fmt.Sprintf("meltano.Dumps: %v", err))
	}
	return float(f)
}

// float is Python's repr: the shortest digits that read back, with an exponent below 1e-4 and from 1e16 on.
func float(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case math.IsNaN(f):
		return "NaN"
	}
	if abs := math.Abs(f); f != 0 && (abs < 1e-4 || abs >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}
