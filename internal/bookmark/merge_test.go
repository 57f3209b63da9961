package bookmark

import (
	"errors"
	"testing"
)

func TestMerge(t *testing.T) {
	for _, c := range []struct{ completed, partial, want string }{
		// absent states
		{``, ``, `{}`},
		{`{}`, ``, `{}`},
		{``, `{"b": 1, "a": 2}`, `{"a":2,"b":1}`},
		{`{"b": 1, "a": 2}`, `{}`, `{"a":2,"b":1}`},

		// objects merge, anything else is replaced
		{`{"a":{"x":1,"y":2}}`, `{"a":{"y":3,"z":4},"b":5}`, `{"a":{"x":1,"y":3,"z":4},"b":5}`},
		{`{"a":[1,2,3]}`, `{"a":[4]}`, `{"a":[4]}`},
		{`{"a":[{"x":1}]}`, `{"a":[{"y":1}]}`, `{"a":[{"y":1}]}`},
		{`{"a":1}`, `{"a":null}`, `{"a":null}`},
		{`{"a":{"x":1}}`, `{"a":null}`, `{"a":null}`},
		{`{"a":{"x":1}}`, `{"a":2}`, `{"a":2}`},
		{`{"a":{"x":1}}`, `{"a":{}}`, `{"a":{"x":1}}`},
		{`{"a":{"x":{"y":{"z":1}}}}`, `{"a":{"x":{"y":{"z":2,"w":3}}}}`, `{"a":{"x":{"y":{"w":3,"z":2}}}}`},
		{`{"\u0061":1}`, `{"a":2}`, `{"a":2}`},
		{`{"":1}`, `{"":2,"a":{}}`, `{"":2,"a":{}}`},

		// an object onto something else
		{`{"a":1}`, `{"a":{}}`, `{"a":1}`},
		{`{"a":null}`, `{"a":{}}`, `{"a":null}`},
		{`{"a":null}`, `{"a":{"x":1}}`, `{"a":{"x":1}}`},
		{`{"a":[1]}`, `{"a":{"x":{}}}`, `{"a":{"x":{}}}`},

		// spelling: numbers keep theirs
		{`{"n":[1.0,1e3,-0,18446744073709551615,1e1000000000]}`, ``, `{"n":[1.0,1e3,-0,18446744073709551615,1e1000000000]}`},
		{`{"\u00e9":"\u003c\/\u0022\\\u0001\n\r\t\u007f"}`, ``, "{\"é\":\"</\\\"\\\\\\u0001\\n\\r\\t\u007f\"}"},
		{`{"a":"\uD83D\uDE00 \uD83D \uDe00\uDBFF\uDFFF"}`, ``, `{"a":"😀 \ud83d \ude00` + "\U0010ffff" + `"}`},

		// shop-customer of a real export
		{
			`{"singer_state": {"bookmarks": {"shop-customer": {"log_file": "mysql-bin.000417", "log_pos": 9120334}}}}`,
			`{"singer_state": {"bookmarks": {"shop-customer": {"log_pos": 9120999}}}}`,
			`{"singer_state":{"bookmarks":{"shop-customer":{"log_file":"mysql-bin.000417","log_pos":9120999}}}}`,
		},
	} {
		got, err := Merge(c.completed, c.partial)
		if err != nil || got != c.want {
			t.Errorf("Merge(%s, %s) = %s, %v, want %s", c.completed, c.partial, got, err, c.want)
		}
	}
}

func TestMergeRefuses(t *testing.T) {
	for _, c := range []struct {
		completed, partial string
		err                error
		message            string
	}{
		{`[]`, ``, ErrNotObject, "merge completed state: parse state: not a JSON object at line 1, column 1"},
		{`{}`, `null`, ErrNotObject, "merge partial state: parse state: not a JSON object at line 1, column 1"},
		{`{}`, `{"a":1,"a":2}`, ErrDuplicateKey, "merge partial state: parse state: repeated key in a JSON object at line 1, column 8"},
	} {
		got, err := Merge(c.completed, c.partial)
		if got != "" || !errors.Is(err, c.err) || err.Error() != c.message {
			t.Errorf("Merge(%s, %s) = %q, %v, want %s", c.completed, c.partial, got, err, c.message)
		}
	}
}

func TestDocumentString(t *testing.T) {
	if got := (Document{}).String(); got != "{}" {
		t.Errorf("zero document: %s", got)
	}
	doc, err := Parse(`{"b": {"d": [ ], "c": { }}, "a": [1, "x"]}`)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := doc.String(), `{"a":[1,"x"],"b":{"c":{},"d":[]}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
