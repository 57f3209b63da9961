package chconn_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
)

// hostile are strings that one layer or another on the way to the server gives a meaning of its own.
var hostile = []string{
	"",
	"plain",
	"it's",
	`a\b`,
	`\`,
	`\\`,
	`\'`,
	`'); DROP TABLE t; --`,
	"tab\tx",
	"two\nlines",
	"carriage\rreturn\r\n",
	"nul\x00byte",
	"\x00",
	"\b\f\v\a\x1b",
	"what?",
	`\?`,
	"@p",
	"$1",
	"$$x$$",
	"{x:String}",
	"{",
	"`backtick`",
	`"double"`,
	"-- comment",
	"/* comment",
	"# comment",
	"dev:héé/ü%_",
	"trailing space ",
	" leading",
	"emoji 🦆",
	"invalid \xff\xfe utf-8 \xc3",
	"\ufeffbom",
	"--boundary\r\nContent-Disposition: form-data",
	"NULL",
	`\N`,
	`{"singer_state": {"q": "it's \"?\" \\ {x:String} \u00e9"}}`,
	strings.Repeat("long ", 200),
	strings.Repeat(`\`, 1001),
}

func hexOf(values []string) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = strings.ToUpper(hex.EncodeToString([]byte(v)))
	}
	return out
}

func TestHostileArguments(t *testing.T) {
	onBoth(t, func(t *testing.T, c *chconn.Client) {
		for _, value := range hostile {
			got := one(t, c, "SELECT hex(?) FROM (SELECT 'b?' AS `x{y:z}?`) WHERE ? = ? AND 'a?' != `x{y:z}?`", value, value, value)
			if want := hexOf([]string{value})[0]; got != want {
				t.Errorf("%.40q arrived as %s, want %s", value, got, want)
			}
		}
		// A list, whole: its items do not run into each other.
		got := column(t, c, chconn.Statement{Text: "SELECT hex(arrayJoin(?))", Args: []any{hostile}})
		if want := hexOf(hostile); !slices.Equal(got, want) {
			t.Errorf("the list arrived as %q, want %q", got, want)
		}
	})
}

func TestArgumentTypes(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.FixedZone("", 3600))
	for _, tc := range []struct {
		value any
		want  string
	}{
		{true, "true"},
		{uint8(255), "255"},
		{uint32(4294967295), "4294967295"},
		{uint64(18446744073709551615), "18446744073709551615"},
		{int(-5), "-5"},
		{int32(-2147483648), "-2147483648"},
		{int64(-9223372036854775808), "-9223372036854775808"},
		{at, "2026-01-02 02:04:05.678901"},
		{nil, "null"},
		{(*string)(nil), "null"},
		{new("set"), "set"},
	} {
		onBoth(t, func(t *testing.T, c *chconn.Client) {
			if got := one(t, c, "SELECT ifNull(toString(?), 'null')", tc.value); got != tc.want {
				t.Errorf("%T %v arrived as %s, want %s", tc.value, tc.value, got, tc.want)
			}
		})
	}
}

func TestBindMistakes(t *testing.T) {
	c := newClient(t, chconn.Config{Host: "127.0.0.1", Port: 1}) // nothing is sent
	for _, tc := range []struct {
		text string
		args []any
		want string
	}{
		{"SELECT ?, ?", []any{1}, "the text has more placeholders than the 1 arguments"},
		{"SELECT ?", []any{1, 2}, "the text has 1 placeholders for 2 arguments"},
		{"SELECT '?'", []any{1}, "the text has 0 placeholders for 1 arguments"},
		{"SELECT ?", []any{[]string{}}, "argument 1: an empty list"},
		{"SELECT ?", []any{1.5}, "argument 1: a float64 cannot be bound"},
	} {
		_, err := c.Exec(context.Background(), chconn.Statement{Operation: "test", Text: tc.text, Args: tc.args})
		if err == nil || err.Error() != "test: bind: "+tc.want {
			t.Errorf("%s: %v, want %s", tc.text, err, tc.want)
		}
	}
}

func TestHostileExternalTables(t *testing.T) {
	onBoth(t, func(t *testing.T, c *chconn.Client) {
		incoming := chconn.Table{
			Name: "incoming",
			Columns: []chconn.Column{
				{Name: "n", Type: "UInt64"},
				{Name: "value", Type: "String"},
				{Name: "nullable", Type: "Nullable(String)"},
				{Name: "flag", Type: "UInt8"},
				{Name: "at", Type: "DateTime64(3)"},
			},
		}
		at := time.UnixMilli(1767323045678)
		for i, value := range hostile {
			nullable := &value
			if i%2 == 1 {
				nullable = nil
			}
			incoming.Rows = append(incoming.Rows, []any{uint64(i), value, nullable, uint8(i % 2), at})
		}
		s := chconn.Statement{
			Text:     "SELECT concat(hex(value), '|', hex(nullable), '|', toString(flag), '|', toString(toUnixTimestamp64Milli(at))) FROM incoming WHERE nullable IS NOT NULL ORDER BY n",
			External: []chconn.Table{incoming},
		}
		var want []string
		for i, h := range hexOf(hostile) {
			if i%2 == 0 {
				want = append(want, h+"|"+h+"|0|1767323045678")
			}
		}
		if got := column(t, c, s); !slices.Equal(got, want) {
			t.Errorf("the rows arrived as %q, want %q", got, want)
		}
	})
}

// An argument and a table travel together, and the text is not searched for anything but its placeholders.
func TestArgumentsBesideExternalTables(t *testing.T) {
	onBoth(t, func(t *testing.T, c *chconn.Client) {
		for _, value := range hostile {
			s := chconn.Statement{
				Text:     "SELECT hex(concat(?, id)) FROM ids WHERE id = ?",
				Args:     []any{value, value},
				External: []chconn.Table{{Name: "ids", Columns: []chconn.Column{{Name: "id", Type: "String"}}, Rows: [][]any{{value}, {"other " + value}}}},
			}
			if got, want := column(t, c, s), hexOf([]string{value + value}); !slices.Equal(got, want) {
				t.Errorf("%.40q arrived as %s, want %s", value, got, want)
			}
		}
	})
}

func TestEmptyExternalTable(t *testing.T) {
	onBoth(t, func(t *testing.T, c *chconn.Client) {
		s := chconn.Statement{
			Text:     "SELECT toString(count()) FROM ids",
			External: []chconn.Table{{Name: "ids", Columns: []chconn.Column{{Name: "id", Type: "String"}}}},
		}
		if got := column(t, c, s); !slices.Equal(got, []string{"0"}) {
			t.Errorf("count() = %q, want 0", got)
		}
	})
}

func TestExternalTableMistakes(t *testing.T) {
	c := newClient(t, configOf(acctest.Server(t), chconn.Native))
	id := []chconn.Column{{Name: "id", Type: "String"}}
	for _, tc := range []struct {
		table chconn.Table
		want  string
	}{
		{chconn.Table{Name: "a b", Columns: id}, `external table "a b": the name must be a plain identifier`},
		{chconn.Table{Name: "t", Columns: []chconn.Column{{Name: "a, b", Type: "String"}}}, `external table t: column "a, b": the name must be a plain identifier`},
		{chconn.Table{Name: "t", Columns: id, Rows: [][]any{{"a"}, {"b", "c"}}}, "external table t: row 2: "},
	} {
		_, err := c.Exec(context.Background(), chconn.Statement{Operation: "test", Text: "SELECT 1", External: []chconn.Table{tc.table}})
		if err == nil || !strings.HasPrefix(err.Error(), "test: "+tc.want) {
			t.Errorf("%v, want %s", err, tc.want)
		}
	}
}

// A payload of 16 MB, of every byte, there and back.
func TestLargePayload(t *testing.T) {
	database := acctest.Database(t)
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	payload := strings.Repeat(string(every), 16<<20/256)
	onBoth(t, func(t *testing.T, c *chconn.Client) {
		table := fmt.Sprintf("`%s`.`large`", database)
		exec(t, c, "CREATE OR REPLACE TABLE "+table+" (id String, payload Nullable(String)) ENGINE = MergeTree ORDER BY id")
		result, err := c.Exec(context.Background(), chconn.Statement{
			Operation: "test.large",
			Text:      "INSERT INTO " + table + " SELECT id, payload FROM incoming WHERE id != ?",
			Args:      []any{"it's"},
			External: []chconn.Table{{
				Name:    "incoming",
				Columns: []chconn.Column{{Name: "id", Type: "String"}, {Name: "payload", Type: "Nullable(String)"}},
				Rows:    [][]any{{"a", &payload}, {"b", (*string)(nil)}},
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if result.WrittenRows != 2 {
			t.Errorf("%d rows written, want 2", result.WrittenRows)
		}
		var got *string
		err = c.Query(context.Background(), chconn.Statement{Operation: "test.read", Text: "SELECT payload FROM " + table + " WHERE id = 'a'"},
			func(row chconn.Row) error { return row.Scan(&got) })
		if err != nil {
			t.Fatal(err)
		}
		if got == nil || *got != payload {
			t.Error("the payload came back changed")
		}
	})
}
