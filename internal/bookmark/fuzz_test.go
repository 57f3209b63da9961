package bookmark

import (
	"encoding/json"
	"errors"
	"math/big"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// lonely matches escapes that encoding/json may replace by U+FFFD, and wide
// matches exponents that big.Rat would expand.
var (
	lonely = regexp.MustCompile(`\\u[dD][89a-fA-F]`)
	wide   = regexp.MustCompile(`[0-9][eE][-+]?0*[0-9]{4}`)
)

// oracle reads a payload slowly: with encoding/json, and numbers as fractions.
func oracle(t *testing.T, text string) any {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("%q was parsed, but encoding/json says: %v", text, err)
	}
	return exact(t, v)
}

func exact(t *testing.T, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			v[key] = exact(t, v[key])
		}
	case []any:
		for i := range v {
			v[i] = exact(t, v[i])
		}
	case json.Number:
		fraction, ok := new(big.Rat).SetString(v.String())
		if !ok {
			t.Fatalf("no number: %q", v)
		}
		return fraction.RatString() + " as a number"
	case string:
		return strconv.Quote(v)
	}
	return v
}

func FuzzEqual(f *testing.F) {
	for _, pair := range [][2]string{
		{`{}`, ``},
		{`{"a":1.0,"b":[null,true]}`, `{"b":[null,true],"a":1}`},
		{`{"a":1e3,"\u00e9":"\/"}`, `{"é":"/","a":1000}`},
		{`{"a":18446744073709551615}`, `{"a":18446744073709551614}`},
		{`{"a":{"b":{"c":-0.0}}}`, `{"a":{"b":{"c":0e9}}}`},
		{`{"a":"\ud83d\ude00"}`, `{"a":"😀"}`},
		{`{"a":"\ud83d"}`, `{"a":"\ud83e"}`},
		{`{"a":1e1000000000}`, `{"a":1e-1000000000}`},
		{`{"a":1,"a":2}`, `[`},
	} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		equal := Equal(a, b)
		if Equal(b, a) != equal {
			t.Fatalf("Equal(%q, %q) is %t, but not the other way round", a, b, equal)
		}
		x, err := Parse(a)
		switch {
		case err == nil:
			if !x.Equal(x) || !equal && a == b {
				t.Fatalf("%q is not equal to itself", a)
			}
			again, err := Parse(x.String())
			if err != nil || !again.Equal(x) || again.String() != x.String() {
				t.Fatalf("canonical spelling of %q: %q, %v", a, x.String(), err)
			}
		case errors.Is(err, ErrSyntax) || errors.Is(err, ErrNotObject):
			if trimmed := trimSpace(a); utf8.ValidString(a) && json.Valid([]byte(a)) && trimmed[0] == '{' {
				t.Fatalf("Parse(%q): %v, but encoding/json takes it", a, err)
			}
		}
		y, errY := Parse(b)
		if err != nil || errY != nil || lonely.MatchString(a+b) || wide.MatchString(a+b) {
			return
		}
		if want := reflect.DeepEqual(oracle(t, a), oracle(t, b)); want != equal || x.Equal(y) != want {
			t.Fatalf("Equal(%q, %q) = %t, want %t", a, b, equal, want)
		}
	})
}

func FuzzMerge(f *testing.F) {
	for _, pair := range [][2]string{
		{`{}`, ``},
		{`{"a":1}`, `{"a":{}}`},
		{`{"a":null}`, `{"a":{"b":{}}}`},
		{`{"a":{"b":1,"c":[1]}}`, `{"a":{"c":[2],"d":null}}`},
		{`{"\u0061":{"x":1}}`, `{"a":{"\ud83d":2}}`},
		{`{"singer_state":{"bookmarks":{"s":{"log_file":"b.1","log_pos":4}}}}`, `{"singer_state":{"bookmarks":{"s":{"log_pos":9},"t":"2026-01-01"}}}`},
	} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, completed, partial string) {
		merged, err := Merge(completed, partial)
		if err != nil {
			return
		}
		if again, err := Merge(merged, partial); err != nil || again != merged && !Equal(again, merged) {
			t.Fatalf("Merge(%q, %q) = %q; merged again: %q, %v", completed, partial, merged, again, err)
		}
		if same, err := Merge(completed, "{}"); err != nil || !Equal(same, completed) {
			t.Fatalf("Merge(%q, {}) = %q, %v", completed, same, err)
		}
		if same, err := Merge("", partial); err != nil || !Equal(same, partial) {
			t.Fatalf("Merge({}, %q) = %q, %v", partial, same, err)
		}
		c, err := parsePayload(completed)
		if err != nil {
			t.Fatal(err)
		}
		m, err := Parse(merged)
		if err != nil || m.String() != merged {
			t.Fatalf("Merge(%q, %q) = %q, not canonical: %v", completed, partial, merged, err)
		}
		for _, change := range append(Compare(c, m), Compare(m, c)...) {
			if line := change.String(); !utf8.ValidString(line) || strings.ContainsRune(line, '\n') {
				t.Fatalf("change %q", line)
			}
		}
		if changes := Compare(m, m); changes != nil {
			t.Fatalf("%q compared with itself: %v", merged, changes)
		}
		if FullRefresh(m, m) {
			t.Fatalf("%q: a full refresh, compared with itself", merged)
		}
		for stream, value := range ReplicationValues(m) {
			if !utf8.ValidString(stream) || !utf8.ValidString(value) || value == "" {
				t.Fatalf("replication value %q: %q", stream, value)
			}
		}
	})
}

func FuzzParseStateID(f *testing.F) {
	for _, text := range []string{
		"prod:tap-github-to-target-clickhouse", "dev:a-to-b-to-c:d:e", "dev:-to--to-:", ":", "x:a-to-to-target-b:c", "dev:a-to-target-",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, err := ParseStateID(text)
		if err != nil {
			if !errors.Is(err, ErrStateID) || id != (StateID{}) {
				t.Fatalf("ParseStateID(%q) = %#v, %v", text, id, err)
			}
			return
		}
		if id.String() != text {
			t.Fatalf("ParseStateID(%q) = %#v, spelled %q", text, id, id.String())
		}
		if err := id.Validate(); err != nil {
			t.Fatal(err)
		}
		if id.Environment == "" || id.Extractor == "" || id.Loader == "" {
			t.Fatalf("ParseStateID(%q) = %#v", text, id)
		}
	})
}
