package bookmark

import (
	"fmt"
	"strings"
	"testing"
)

func TestEqual(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		// empty states
		{``, `{}`, true},
		{``, " {\n}", true},
		{`{}`, `{"singer_state":{}}`, false},
		{``, `{"a":null}`, false},
		{``, `null`, false},

		// spelling
		{`{"b":"<x>&é","a":1}`, `{"a": 1, "b": "\u003cx\u003e\u0026\u00e9"}`, true},
		{`{"a":"\/\"\\\b\f\n\r\t"}`, `{"\u0061":"\u002f\u0022\u005C\u0008\u000c\u000A\u000d\u0009"}`, true},
		{`{"a":"😀"}`, `{"a":"\ud83d\ude00"}`, true},
		{`{"a":"😀"}`, `{"a":"\uD83D\uDE00"}`, true},
		{`{"a":"x"}`, `{"a":"X"}`, false},
		{`{"a":"é"}`, `{"a":"e\u0301"}`, false}, // no normalisation: Python has none

		// surrogates without their other half
		{`{"a":"\ud83d"}`, `{"a":"\uD83D"}`, true},
		{`{"a":"\ud83d"}`, `{"a":"\ud83c"}`, false},
		{`{"a":"\ud83d"}`, `{"a":"\ufffd"}`, false},
		{`{"a":"\ud83dx"}`, `{"a":"\ud83d\u0078"}`, true},
		{`{"a":"\ude00\ud83d"}`, `{"a":"😀"}`, false},
		{`{"a":"\ud83d\ud83d\ude00"}`, `{"a":"\ud83d😀"}`, true},

		// objects
		{`{"a":1,"b":2,"c":3}`, `{"c":3,"a":1,"b":2}`, true},
		{`{"a":1,"b":2,"c":3}`, `{"c":3,"a":1,"b":1}`, false},
		{`{"a":1,"b":2}`, `{"b":2}`, false},
		{`{"b":2}`, `{"a":1,"b":2}`, false},
		{`{"a":1,"b":2}`, `{"a":1}`, false},
		{`{"a":1,"b":2}`, `{"a":1,"c":2}`, false},
		{`{"a":{"x":1,"y":[{"p":1,"q":2}]}}`, `{"a":{"y":[{"q":2,"p":1}],"x":1}}`, true},
		{`{"a":{},"b":1}`, `{"a":[],"b":1}`, false},
		{`{"a":{"b":{}}}`, `{"a":{}}`, false}, // only at the top are empty and absent the same

		// arrays
		{`{"a":[1,2]}`, `{"a":[1, 2]}`, true},
		{`{"a":[1,2]}`, `{"a":[2,1]}`, false},
		{`{"a":[1]}`, `{"a":[1,1]}`, false},
		{`{"a":[]}`, `{"a":[null]}`, false},

		// null, booleans and types
		{`{"a":null}`, `{"a": null}`, true},
		{`{"a":null,"b":1}`, `{"b":1}`, false},
		{`{"a":true}`, `{"a": true}`, true},
		{`{"a":true}`, `{"a":false}`, false},
		{`{"a":1}`, `{"a":"1"}`, false},
		{`{"a":1}`, `{"a":true}`, false},
		{`{"a":""}`, `{"a":null}`, false},

		// numbers
		{`{"a":1.0}`, `{"a":1}`, true},
		{`{"a":0.10}`, `{"a":0.1}`, true},
		{`{"a":1e3}`, `{"a":1000}`, true},
		{`{"a":1.5e+01}`, `{"a":15}`, true},
		{`{"a":120E-1}`, `{"a":12}`, true},
		{`{"a":0.00120}`, `{"a":1.2e-3}`, true},
		{`{"a":-0}`, `{"a":0}`, true},
		{`{"a":-0.0e7}`, `{"a":0}`, true},
		{`{"a":-1}`, `{"a":1}`, false},
		{`{"a":100}`, `{"a":10}`, false},
		{`{"a":1.01}`, `{"a":1.1}`, false},
		{`{"a":18446744073709551615}`, `{"a":18446744073709551615.0}`, true},
		{`{"a":18446744073709551615}`, `{"a":18446744073709551614}`, false},
		{`{"a":9007199254740993}`, `{"a":9007199254740992}`, false},
		{`{"a":9007199254740991}`, `{"a":9007199254740992}`, false},
		{`{"a":-9223372036854775808}`, `{"a":-9223372036854775807}`, false},
		{`{"a":0.1}`, `{"a":0.1000000000000000055511151231257827}`, false},
		{`{"a":1e400}`, `{"a":10e399}`, true},
		{`{"a":1e400}`, `{"a":1e401}`, false},
		{`{"a":1e-400}`, `{"a":0}`, false},
		{`{"a":1e1000000000}`, `{"a":10e999999999}`, true},
		{`{"a":1e1000000000}`, `{"a":1e1000000001}`, false},
		{`{"a":1e999999999999999999}`, `{"a":0.1e+0999999999999999999}`, false},
		{`{"a":10e999999999999999998}`, `{"a":1e999999999999999999}`, true},

		// no payload: equal only to the same text
		{`[1]`, `[1]`, true},
		{`[1]`, `[1 ]`, false},
		{`{"a":1,"a":1}`, `{"a":1,"a":1}`, true},
		{`{"a":1,"a":1}`, `{"a":1}`, false},
		{`{"a":NaN}`, `{"a":NaN}`, true},
		{`{"a":1}`, `{"a":`, false},
	} {
		if got := Equal(c.a, c.b); got != c.want {
			t.Errorf("Equal(%s, %s) = %t", c.a, c.b, got)
		}
		if got := Equal(c.b, c.a); got != c.want {
			t.Errorf("Equal(%s, %s) = %t", c.b, c.a, got)
		}
	}
}

func TestDocumentEqual(t *testing.T) {
	parse := func(text string) Document {
		doc, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return doc
	}
	if !(Document{}).Equal(parse(" { } ")) || !parse("{}").Equal(Document{}) {
		t.Error("the zero document is not {}")
	}
	if (Document{}).Equal(parse(`{"a":1}`)) {
		t.Error("the zero document equals another")
	}
}

func TestEqualManyKeysInAnotherOrder(t *testing.T) {
	const keys = 100_000
	forth, back := make([]string, keys), make([]string, keys)
	for i := range keys {
		member := fmt.Sprintf(`"stream_%d":%d`, i, i)
		forth[i], back[keys-1-i] = member, member
	}
	a, b := "{"+strings.Join(forth, ",")+"}", "{"+strings.Join(back, ",")+"}"
	if !Equal(a, b) {
		t.Error("the same members in another order differ")
	}
	if Equal(a, strings.Replace(b, `"stream_7":7`, `"stream_7":8`, 1)) {
		t.Error("a changed value is not seen")
	}
}
