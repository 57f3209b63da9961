package bookmark

import (
	"errors"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	nested := func(depth int) string {
		return strings.Repeat(`{"a":`, depth-1) + "{}" + strings.Repeat("}", depth-1)
	}
	for _, c := range []struct {
		text   string
		err    error
		offset int
	}{
		{`{}`, nil, 0},
		{" \t\r\n{ } \n", nil, 0},
		{`{"a":[1,-0,0.5,1e3,1E+3,1e-3,true,false,null,"",[],{}]}`, nil, 0},
		{`{"a":1e000000000000000000000000001}`, nil, 0},
		{`{"a":1e999999999999999999}`, nil, 0},
		{`{"a":"\ud83d"}`, nil, 0}, // as Python writes half a pair
		{`{"\ud83d":1,"\ude00":2,"😀":3}`, nil, 0},
		{`{"a":{"b":1},"b":1}`, nil, 0},
		{nested(MaxDepth), nil, 0},
		{`{"a":[` + strings.Repeat("[],{},", MaxDepth) + `0]}`, nil, 0},

		// no JSON
		{``, ErrSyntax, 0},
		{` `, ErrSyntax, 1},
		{`{oops`, ErrSyntax, 1},
		{`{"a"}`, ErrSyntax, 4},
		{`{"a":}`, ErrSyntax, 5},
		{`{"a":1,}`, ErrSyntax, 7},
		{`{"a":[1,]}`, ErrSyntax, 8},
		{`{"a":[1 2]}`, ErrSyntax, 8},
		{`{"a":1`, ErrSyntax, 6},
		{`{"a":[1}`, ErrSyntax, 7},
		{`{a:1}`, ErrSyntax, 1},
		{`{'a':1}`, ErrSyntax, 1},
		{`{"a":01}`, ErrSyntax, 6},
		{`{"a":+1}`, ErrSyntax, 5},
		{`{"a":.5}`, ErrSyntax, 5},
		{`{"a":1.}`, ErrSyntax, 7},
		{`{"a":1e}`, ErrSyntax, 7},
		{`{"a":-}`, ErrSyntax, 6},
		{`{"a":0x1}`, ErrSyntax, 6},
		{`{"a":NaN}`, ErrSyntax, 5},
		{`{"a":Infinity}`, ErrSyntax, 5},
		{`{"a":-Infinity}`, ErrSyntax, 6},
		{`{"a":nul}`, ErrSyntax, 8},
		{`{"a":True}`, ErrSyntax, 5},
		{"{\"a\":\"\t\"}", ErrSyntax, 6},
		{`{"a":"\x"}`, ErrSyntax, 7},
		{`{"a":"\u12g4"}`, ErrSyntax, 10},
		{`{"a":"`, ErrSyntax, 6},
		{`{"a":"\`, ErrSyntax, 7},
		{`{"a":1} x`, ErrSyntax, 8},
		{`{}{}`, ErrSyntax, 2},
		{"{}\x00", ErrSyntax, 2},
		{"\ufeff{}", ErrSyntax, 0},

		// no object
		{`[]`, ErrNotObject, 0},
		{` null`, ErrNotObject, 0},
		{`"x"`, ErrNotObject, 0},
		{`1`, ErrNotObject, 0},

		// repeated keys
		{`{"a":1,"a":1}`, ErrDuplicateKey, 7},
		{`{"a":1,"\u0061":2}`, ErrDuplicateKey, 7},
		{`{"x":[{"a":1,"b":2,"a":3}]}`, ErrDuplicateKey, 19},
		{`{"\ud83d\ude00":1,"😀":2}`, ErrDuplicateKey, 18},
		{`{"":1,"1":1,"2":1,"3":1,"4":1,"5":1,"6":1,"7":1,"8":1,"9":1,"8":2}`, ErrDuplicateKey, 60},
		{`{"":1,"1":1,"2":1,"3":1,"4":1,"5":1,"6":1,"7":1,"8":1,"9":1,"":2}`, ErrDuplicateKey, 60},

		// too deep
		{nested(MaxDepth + 1), ErrTooDeep, 5 * MaxDepth},
		{strings.Repeat("[", 1_000_000), ErrTooDeep, MaxDepth},

		// other limits
		{"{\"a\":\"\xff\"}", ErrEncoding, 6},
		{"{\"a\":\"\ufffd\xed\xa0\x80\"}", ErrEncoding, 9},
		{`{"a":1e1000000000000000000}`, ErrNumber, 7},
	} {
		_, err := Parse(c.text)
		if !errors.Is(err, c.err) {
			t.Errorf("Parse(%.60q): %v, want %v", c.text, err, c.err)
			continue
		}
		var at *ParseError
		if errors.As(err, &at) && at.Offset != c.offset {
			t.Errorf("Parse(%.60q): %v: offset %d, want %d", c.text, err, at.Offset, c.offset)
		}
	}
}

func TestParseErrorNamesPositionOnly(t *testing.T) {
	_, err := Parse("{\"a\": \"é\",\n \"é\": \"secret\", x}")
	if err == nil {
		t.Fatal("no error")
	}
	if got, want := err.Error(), "parse state: not valid JSON at line 2, column 17"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCountNodes(t *testing.T) {
	for _, text := range []string{
		`{}`, ` { } `, `{"a":[ ]}`, `{"a":[[],{},[{}]],"b":{"c":1}}`, `{",:[]{}\"\\":"]},:"}`, `{"a":[1 , 2,"",null]}`,
	} {
		doc, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if len(doc.nodes) != countNodes(text) {
			t.Errorf("countNodes(%q) = %d, want %d", text, countNodes(text), len(doc.nodes))
		}
	}
}

func TestIsEmpty(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "{}": true, " {\n} ": true,
		" ": false, "null": false, "[]": false, "{": false, "{}}": false, `{"a":null}`: false, `{"":{}}`: false,
	} {
		if IsEmpty(text) != want {
			t.Errorf("IsEmpty(%q) = %t", text, !want)
		}
	}
}

func TestHasSingerState(t *testing.T) {
	for text, want := range map[string]bool{
		`{"singer_state":{}}`:               true,
		`{"a":1,"singer\u005fstate":null}`:  true,
		`{}`:                                false,
		`{"bookmarks":{"singer_state":{}}}`: false,
	} {
		doc, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if doc.HasSingerState() != want {
			t.Errorf("HasSingerState(%q) = %t", text, !want)
		}
	}
	if (Document{}).HasSingerState() {
		t.Error("the empty document has a singer_state")
	}
}
