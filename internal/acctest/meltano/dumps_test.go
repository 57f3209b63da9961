package meltano

import (
	"encoding/json"
	"math"
	"testing"
)

// The wanted texts are what Python 3 prints.
func TestDumps(t *testing.T) {
	for _, c := range []struct {
		value any
		want  string
	}{
		{map[string]any{"b": []any{1, "x", nil, true}, "a": map[string]any{}}, `{"a": {}, "b": [1, "x", null, true]}`},
		{[]any{}, `[]`},
		// Text.
		{"é/<>&", `"\u00e9/<>&"`},
		{"\u2028\U0001F600\x7f\x00", `"\u2028\ud83d\ude00\u007f\u0000"`},
		{"\"\\\n\b\f\r\t", `"\"\\\n\b\f\r\t"`},
		// Numbers.
		{json.Number("18446744073709551615"), `18446744073709551615`},
		{json.Number("1.0"), `1.0`},
		{json.Number("1e3"), `1000.0`},
		{json.Number("0.10"), `0.1`},
		{json.Number("1e400"), `Infinity`},
		{1e16, `1e+16`},
		{123456789012345678.0, `1.2345678901234568e+17`},
		{1.5e-7, `1.5e-07`},
		{0.0001, `0.0001`},
		{math.Copysign(0, -1), `-0.0`},
		// What is not plain already.
		{struct {
			N uint64 `json:"n"`
		}{1 << 63}, `{"n": 9223372036854775808}`},
		{map[string]int{"k": 7}, `{"k": 7}`},
	} {
		if got := Dumps(c.value); got != c.want {
			t.Errorf("Dumps(%#v) = %s, want %s", c.value, got, c.want)
		}
	}
}
