package bookmark

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// reference does in Python what Meltano does there: read and write with json,
// and merge dictionaries. It reads and writes one JSON list a line.
const reference = `
import json, sys
from decimal import Decimal

def same(a, b):
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) == type(b) and a == b

def merge(onto, update):
    for key, value in update.items():
        if isinstance(value, dict):
            merge(onto.setdefault(key, {}), value)
        else:
            onto[key] = value
    return onto

exact = lambda text: json.loads(text, parse_int=Decimal, parse_float=Decimal)
for line in sys.stdin:
    a, b = json.loads(line)
    try:
        merged = json.dumps(merge(json.loads(a), json.loads(b)))
    except (AttributeError, TypeError):
        merged = ""
    print(json.dumps([same(exact(a), exact(b)), json.dumps(json.loads(a)), merged]))
`

func TestAgreesWithPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 to compare with")
	}
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("BOOKMARK_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("BOOKMARK_SEED=%d", seed)
	g := generator{rand.New(rand.NewPCG(seed, 0))}

	pairs := make([][2]string, 3000)
	var input strings.Builder
	for i := range pairs {
		doc := g.object(3)
		other := doc
		switch g.IntN(3) {
		case 0:
			other = g.object(3)
		case 1:
			other = g.mutateObject(doc)
		}
		pairs[i] = [2]string{g.spell(doc), g.spell(other)}
		line, err := json.Marshal(pairs[i])
		if err != nil {
			t.Fatal(err)
		}
		input.Write(append(line, '\n'))
	}
	cmd := exec.CommandContext(t.Context(), python, "-c", reference)
	cmd.Stdin = strings.NewReader(input.String())
	cmd.Stderr = os.Stderr
	output, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}

	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	if len(lines) != len(pairs) {
		t.Fatalf("%d answers, want %d", len(lines), len(pairs))
	}
	equal, mergeable := 0, 0
	for i, line := range lines {
		a, b := pairs[i][0], pairs[i][1]
		var same bool
		var rewritten, want string
		if err := json.Unmarshal([]byte(line), &[]any{&same, &rewritten, &want}); err != nil {
			t.Fatal(err)
		}
		if Equal(a, b) != same {
			t.Errorf("Equal(%s, %s) = %t, Python says %t", a, b, !same, same)
		}
		if !Equal(a, rewritten) {
			t.Errorf("%s differs from Python's %s", a, rewritten)
		}
		got, err := Merge(a, b)
		if err != nil || want != "" && !Equal(got, want) {
			t.Errorf("Merge(%s, %s) = %s, %v, Python says %s", a, b, got, err, want)
		}
		if same {
			equal++
		}
		if want != "" {
			mergeable++
		}
	}
	if equal < len(pairs)/5 || equal > len(pairs)*4/5 || mergeable < len(pairs)/2 {
		t.Errorf("of %d pairs %d are equal and %d can be merged: they test too little", len(pairs), equal, mergeable)
	}
}

// generator makes values and spells them at random. A string is an index into
// spellings, an object a map from such indexes.
type generator struct{ *rand.Rand }

type decimalNumber struct {
	digits   string // without leading and trailing zeros, "" for zero
	negative bool
	exponent int
}

// spellings has strings, each in several spellings.
var spellings = [][]string{
	{`""`},
	{`"a"`, `"\u0061"`},
	{`"bookmarks"`, `"book\u006Darks"`},
	{`"é"`, `"\u00e9"`, `"\u00E9"`},
	{`"e\u0301"`, "\"e\u0301\""},
	{`"\ud83d\ude00"`, `"😀"`, `"\uD83D\uDE00"`},
	{`"\ud83d"`, `"\uD83d"`},
	{`"\ude00\ud83d"`, `"\uDE00\uD83D"`},
	{`"\"\\/\b\f\n\r\t"`, `"\u0022\u005c\/\u0008\u000c\u000a\u000d\u0009"`},
	{`"\u0000"`},
	{`"<&>"`, `"\u003c\u0026\u003e"`},
	{`"1"`},
	{`"true"`, `"tru\u0065"`},
	{`"\uffff\ufffd"`, "\"\uffff\ufffd\""},
}

func (g generator) value(depth int) any {
	switch n := g.IntN(8); {
	case n < 2 && depth > 0:
		return g.object(depth - 1)
	case n == 2 && depth > 0:
		items := make([]any, g.IntN(4))
		for i := range items {
			items[i] = g.value(depth - 1)
		}
		return items
	case n == 3:
		return nil
	case n == 4:
		return g.IntN(2) == 0
	case n == 5:
		return g.IntN(len(spellings))
	default:
		return g.number()
	}
}

func (g generator) object(depth int) map[int]any {
	members := map[int]any{}
	for range g.IntN(6) {
		members[g.IntN(len(spellings))] = g.value(depth)
	}
	return members
}

func (g generator) number() decimalNumber {
	digits := strings.Trim(strconv.Itoa(g.IntN(100_000)), "0")
	if g.IntN(4) == 0 {
		return decimalNumber{strings.Trim(strconv.FormatUint(g.Uint64(), 10), "0"), true, 0} // an integer, exact in Python
	}
	if digits == "" {
		return decimalNumber{}
	}
	return decimalNumber{digits, g.IntN(2) == 0, g.IntN(9) - 6}
}

// mutate returns v with one change somewhere, or with none.
func (g generator) mutate(v any) any {
	switch v := v.(type) {
	case map[int]any:
		return g.mutateObject(v)
	case []any:
		if len(v) > 0 && g.IntN(2) == 0 {
			changed := slices.Clone(v)
			i := g.IntN(len(v))
			changed[i] = g.mutate(changed[i])
			return changed
		}
		return append(slices.Clone(v), g.value(1))
	default:
		return g.value(1)
	}
}

func (g generator) mutateObject(v map[int]any) map[int]any {
	changed := maps.Clone(v)
	keys := slices.Sorted(maps.Keys(v))
	switch i := g.IntN(len(keys) + 2); {
	case i == len(keys):
	case i > len(keys):
		changed[g.IntN(len(spellings))] = g.value(1)
	case g.IntN(4) == 0:
		delete(changed, keys[i])
	default:
		changed[keys[i]] = g.mutate(v[keys[i]])
	}
	return changed
}

func (g generator) spell(v any) string {
	switch v := v.(type) {
	case map[int]any:
		var members []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			members = append(members, g.space()+g.spell(key)+g.space()+":"+g.space()+g.spell(v[key])+g.space())
		}
		g.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		return "{" + g.space() + strings.Join(members, ",") + "}"
	case []any:
		var items []string
		for _, item := range v {
			items = append(items, g.space()+g.spell(item)+g.space())
		}
		return "[" + g.space() + strings.Join(items, ",") + "]"
	case int:
		return g.pick(spellings[v]...)
	case decimalNumber:
		return g.spellNumber(v)
	case bool:
		return strconv.FormatBool(v)
	default:
		return "null"
	}
}

func (g generator) space() string { return g.pick("", "", " ", "\n\t\r ") }

func (g generator) spellNumber(d decimalNumber) string {
	if d.digits == "" {
		return g.pick("0", "-0", "0.00", "-0e5", "0E-7")
	}
	sign := ""
	if d.negative {
		sign = "-"
	}
	switch plain := g.IntN(2) == 0; {
	case len(d.digits) > 8: // Python keeps integers exact, but no long fractions
		return sign + d.digits
	case plain && d.exponent >= 0:
		return sign + d.digits + strings.Repeat("0", d.exponent) + g.pick("", ".0")
	case plain:
		padded := strings.Repeat("0", max(0, 1-d.exponent-len(d.digits))) + d.digits
		point := len(padded) + d.exponent
		return sign + padded[:point] + "." + padded[point:] + g.pick("", "00")
	default:
		return fmt.Sprintf("%s%s%s%s%d", sign, d.digits, g.pick("", ".0", ".00"), g.pick("e", "E"), d.exponent)
	}
}

func (g generator) pick(from ...string) string { return from[g.IntN(len(from))] }
