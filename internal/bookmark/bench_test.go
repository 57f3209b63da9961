package bookmark

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
)

const megabyte = 1 << 20

// shapes are payloads of a size in bytes, each hard for another part of the code.
func shapes(size int) map[string]string {
	fill := func(opening, closing string, item func(i int) string) string {
		var b strings.Builder
		b.WriteString(`{"singer_state":` + opening)
		for i := 0; b.Len() < size-40; i++ {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(item(i))
		}
		b.WriteString(closing + "}")
		return b.String()
	}
	random := rand.New(rand.NewPCG(1, 2))
	return map[string]string{
		"numbers":    fill("[", "]", func(int) string { return "0" }),
		"decimals":   fill("[", "]", func(int) string { return "1.50" }),
		"arrays":     fill("[", "]", func(int) string { return "[]" }),
		"objects":    fill("[", "]", func(int) string { return "{}" }),
		"keys":       fill("{", "}", func(i int) string { return fmt.Sprintf(`"%x":0`, i) }),
		"randomkeys": fill("{", "}", func(i int) string { return fmt.Sprintf(`"%x%x":0`, random.Uint32(), i) }),
		"deep": fill("[", "]", func(int) string {
			return strings.Repeat(`{"a":[`, 490) + strings.Repeat("]}", 490)
		}),
		"string":  fill("[", "]", func(int) string { return `"` + strings.Repeat("x", 1_000_000) + `"` }),
		"escapes": fill("[", "]", func(int) string { return `"\u00e9\ud83d\ude00\n"` }),
		"streams": fill("{", "}", func(i int) string {
			return fmt.Sprintf(`"stream_%d":{"replication_key":"updated_at","replication_key_value":"2026-01-01T00:00:00Z","b":%d,"c":1.0,"d":null}`, i, i)
		}),
	}
}

// respelled returns another spelling of one of the shapes.
func respelled(text string) string {
	return strings.NewReplacer(`"a"`, `"\u0061"`, "1.50", "1.5", `\u00e9`, `é`, `"b"`, `"b" `).Replace(text) + " "
}

func BenchmarkShapes(b *testing.B) {
	for name, text := range shapes(16 * megabyte) {
		other := respelled(text)
		b.Run("parse/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(text); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("equal/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !Equal(text, other) {
					b.Fatal("differ")
				}
			}
		})
		b.Run("compare/"+name, func(b *testing.B) {
			doc, err := Parse(text)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if changes := Compare(doc, doc); changes != nil {
					b.Fatal(changes[0])
				}
			}
		})
		b.Run("merge/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Merge(text, other); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Payloads come from outside, so none may cost more memory than ten times its size.
func TestMemory(t *testing.T) {
	const size = 2 * megabyte
	for name, text := range shapes(size) {
		other := respelled(text)
		for _, c := range []struct {
			function string
			given    int
			call     func() error
		}{
			{"Parse", len(text), func() error { _, err := Parse(text); return err }},
			{"Equal", len(text) + len(other), func() error {
				if !Equal(text, other) {
					return errors.New("differ")
				}
				return nil
			}},
			{"Merge", len(text) + len(other), func() error { _, err := Merge(text, other); return err }},
		} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := c.call()
			runtime.ReadMemStats(&after)
			if err != nil {
				t.Errorf("%s of %s: %v", c.function, name, err)
			}
			// Everything ever allocated, so the peak is lower.
			if used := after.TotalAlloc - before.TotalAlloc; used > uint64(10*c.given) {
				t.Errorf("%s of %s takes %d MB for %d MB", c.function, name, used/megabyte, c.given/megabyte)
			}
		}
	}
	// What is refused must not cost more than what is accepted.
	for _, text := range []string{strings.Repeat("[", size), strings.Repeat(",", size), strings.Repeat(`{"":`, size/4)} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Parse(text)
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%.10q is accepted", text)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > uint64(10*len(text)) {
			t.Errorf("refusing %.10q takes %d MB", text, used/megabyte)
		}
	}
}
