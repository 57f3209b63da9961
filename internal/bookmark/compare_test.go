package bookmark

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// parse reads a payload that a test relies on.
func parse(t *testing.T, text string) Document {
	t.Helper()
	doc, err := Parse(text)
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return doc
}

// bookmarks wraps streams the way Meltano stores them.
func bookmarks(streams string) string { return `{"singer_state":{"bookmarks":` + streams + `}}` }

// rkv is a stream s as Meltano's SDK writes it.
func rkv(value string) string {
	return `{"s":{"replication_key":"k","replication_key_value":` + value + `}}`
}

// partition is one of a list, with its context.
func partition(context, value string) string {
	return `{"context":` + context + `,"replication_key":"k","replication_key_value":` + value + `}`
}

// numbers are partitions without a context.
func numbers(values ...int) string {
	var all []string
	for _, v := range values {
		all = append(all, fmt.Sprintf(`{"replication_key_value":%d}`, v))
	}
	return strings.Join(all, ",")
}

func TestCompare(t *testing.T) {
	github := `"replication_key":"updated_at","replication_key_value"`
	web, api := partition(`{"org":"acme","repo":"web"}`, `"2026-11-19T23:59:59Z"`), partition(`{"repo":"api","org":"acme"}`, `"2026-11-18T04:00:00Z"`)
	for _, c := range []struct {
		stored, planned string
		want            string // one line a change
	}{
		// dates: the same instant in another notation is no change
		{rkv(`"2026-11-20T08:14:03Z"`), rkv(`"2026-11-20T08:14:03Z"`), ""},
		{rkv(`"2026-11-20T08:14:03Z"`), rkv(`"2026-11-20T08:14:03.000000+00:00"`), ""},
		{rkv(`"2026-11-20T08:14:03Z"`), rkv(`"2026-11-20T13:44:03+05:30"`), ""},
		{rkv(`"2026-11-20T08:14:03Z"`), rkv(`"2026-11-20T03:14:03-0500"`), ""},
		{rkv(`"2026-11-20T08:14:03Z"`), rkv(`"2026-11-20T03:14:03-05"`), ""},
		{rkv(`"2026-11-20T08:14:03Z"`), rkv(`"2026-11-20 08:14:03"`), ""},
		{rkv(`"2026-11-20T08:14:03Z"`), rkv(`"2026-11-20 08:14:03 UTC"`), ""},
		{rkv(`"2026-11-20T08:14:03Z"`), rkv(`"20261120T081403Z"`), ""},
		{rkv(`"2026-11-20T08:14:03Z"`), rkv(`"20261120081403.0Z"`), ""},
		{rkv(`"2026-11-20T00:00:00Z"`), rkv(`"2026-11-20"`), ""},
		{rkv(`"2026-11-20"`), rkv(`"20261120"`), ""},
		{rkv(`"2026-11-20T08:14:03.1Z"`), rkv(`"2026-11-20T08:14:03.100000000Z"`), ""},
		{rkv(`"2026-11-01"`), rkv(`"2026-11"`), ""},
		{rkv(`"2026-12-31T23:59:60Z"`), rkv(`"2027-01-01T00:00:00Z"`), ""},

		// dates: forward
		{rkv(`"2026-11-20T08:14:03Z"`), rkv(`"2026-11-20T08:14:03.000000001Z"`), ""},
		{rkv(`"2026-11-20T23:00:00-05:00"`), rkv(`"2026-11-21T04:00:01Z"`), ""},
		{rkv(`"2026-11-20"`), rkv(`"2026-11-20T00:00:01+00:00"`), ""},
		{rkv(`"9999-12-31"`), rkv(`"9999-12-31T00:00"`), ""},

		// dates: back
		{rkv(`"2026-11-20T08:14:03Z"`), rkv(`"2026-10-10T05:14:03Z"`), "s: replication_key_value goes from 2026-11-20T08:14:03Z to 2026-10-10T05:14:03Z (41 days 3:00:00 back)"},
		{rkv(`"2026-11-20T08:14:03Z"`), rkv(`"2026-11-19T08:14:02.75Z"`), "s: replication_key_value goes from 2026-11-20T08:14:03Z to 2026-11-19T08:14:02.75Z (1 day 0:00:00.25 back)"},
		{rkv(`"2026-11-20T08:14:03Z"`), rkv(`"2026-11-20"`), "s: replication_key_value goes from 2026-11-20T08:14:03Z to 2026-11-20 (8:14:03 back)"},
		{rkv(`"2026-11-20T08:00:00-05:00"`), rkv(`"2026-11-20T09:00:00Z"`), "s: replication_key_value goes from 2026-11-20T08:00:00-05:00 to 2026-11-20T09:00:00Z (4:00:00 back)"},
		{rkv(`"2026-11-20 08:14:03.000000002"`), rkv(`"2026-11-20 08:14:03.000000001"`), "s: replication_key_value goes from 2026-11-20 08:14:03.000000002 to 2026-11-20 08:14:03.000000001 (0:00:00.000000001 back)"},
		{rkv(`"20261120"`), rkv(`"20261031"`), "s: replication_key_value goes from 20261120 to 20261031 (20 days 0:00:00 back)"},
		{rkv(`"9999-12-31"`), rkv(`"0001-01-01"`), "s: replication_key_value goes from 9999-12-31 to 0001-01-01 (3,652,058 days 0:00:00 back)"},

		// numbers
		{rkv(`5`), rkv(`5.0`), ""},
		{rkv(`5`), rkv(`"5"`), ""},
		{rkv(`1000`), rkv(`1e3`), ""},
		{rkv(`"1763596800"`), rkv(`1763596801`), ""},
		{rkv(`-5`), rkv(`-4.5`), ""},
		{rkv(`10000`), rkv(`8796`), "s: replication_key_value goes from 10000 to 8796 (1,204 back)"},
		{rkv(`1234.5`), rkv(`1234.25`), "s: replication_key_value goes from 1234.5 to 1234.25 (0.25 back)"},
		{rkv(`0`), rkv(`-1e3`), "s: replication_key_value goes from 0 to -1e3 (1,000 back)"},
		{rkv(`"1763596800"`), rkv(`"1763596799"`), "s: replication_key_value goes from 1763596800 to 1763596799 (1 back)"},
		{rkv(`18446744073709551615`), rkv(`18446744073709551614`), "s: replication_key_value goes from 18446744073709551615 to 18446744073709551614 (1 back)"},
		{rkv(`9007199254740993`), rkv(`9007199254740992`), "s: replication_key_value goes from 9007199254740993 to 9007199254740992 (1 back)"},
		{rkv(`1e400`), rkv(`1e399`), "s: replication_key_value goes from 1e400 to 1e399"},
		{rkv(`1e1000000000`), rkv(`1`), "s: replication_key_value goes from 1e1000000000 to 1"},
		{rkv(`1` + strings.Repeat("0", 99)), rkv(`1`), "s: replication_key_value goes from 1" + strings.Repeat("0", 58) + "… to 1"},

		// no order
		{rkv(`"5f50c31e8a7d4b1e9c8b4567"`), rkv(`"5f50c31e8a7d4b1e9c8b4566"`), "s: replication_key_value changes from a text of 24 characters to a text of 24 characters"},
		{rkv(`"2026-11-20"`), rkv(`20261119`), "s: replication_key_value changes from 2026-11-20 to 20261119"},
		{rkv(`"2026-02-30"`), rkv(`"2026-02-28"`), "s: replication_key_value changes from a text of 10 characters to 2026-02-28"},
		{rkv(`"12e45"`), rkv(`"11e45"`), "s: replication_key_value changes from a text of 5 characters to a text of 5 characters"},
		{rkv(`[5]`), rkv(`[4]`), "s: replication_key_value changes from a list to a list"},

		{rkv(`"1234567"`), rkv(`"12345ab"`), "s: replication_key_value changes from 1234567 to a text of 7 characters"}, // a token, by chance of digits
		{rkv(`"20261120"`), rkv(`"2026112a"`), "s: replication_key_value changes from 20261120 to a text of 8 characters"},
		{rkv(`"abcdefg"`), rkv(`"2026-11-20"`), "s: replication_key_value changes from a text of 7 characters to 2026-11-20"},
		{rkv(`"abcdefg"`), rkv(`5`), "s: replication_key_value changes from a text of 7 characters to 5"},
		{`{"s":[5]}`, `{"s":{"v":5}}`, "s: bookmark changes from a list to an object"},
		{`{"s":true}`, `{"s":{"v":5}}`, "s: bookmark changes from true to an object"},
		{`{"s":{"done":true}}`, `{"s":5}`, "s: bookmark changes from an object to 5"},
		{`{"s":{"done":true}}`, `{"s":[5]}`, "s: bookmark changes from an object to a list"},

		// Unix time and dates
		{rkv(`1763596800`), rkv(`"2025-11-20T00:00:00Z"`), ""},
		{rkv(`"2025-11-20T00:00:00Z"`), rkv(`1763596800`), ""},
		{rkv(`"2025-11-20T00:00:00.123Z"`), rkv(`"1763596800123"`), ""},
		{rkv(`1763596800.123456`), rkv(`"2025-11-20T00:00:00.123456Z"`), ""},
		{rkv(`1763596800.1234567891`), rkv(`"2025-11-20T00:00:00.123456789Z"`), ""},
		{rkv(`1.7635968e9`), rkv(`"2025-11-20"`), ""},
		{rkv(`1763596800`), rkv(`"2026-11-20T08:14:03Z"`), ""},
		{rkv(`"2025-11-19"`), rkv(`1763596800000`), ""},
		{rkv(`1763596800`), rkv(`"2025-11-19"`), "s: replication_key_value goes from 1763596800 to 2025-11-19 (1 day 0:00:00 back)"},
		{rkv(`"2025-11-21"`), rkv(`1763596800000`), "s: replication_key_value goes from 2025-11-21 to 1763596800000 (1 day 0:00:00 back)"},
		{rkv(`9763596800`), rkv(`"2025-11-20"`), "s: replication_key_value changes from 9763596800 to 2025-11-20"},
		{rkv(`-1763596800`), rkv(`"2025-11-20"`), "s: replication_key_value changes from -1763596800 to 2025-11-20"},
		{rkv(`"2025-11-20"`), rkv(`5`), "s: replication_key_value changes from 2025-11-20 to 5"},

		// PostgreSQL's log
		{`{"o":{"lsn":"16/B374D848"}}`, `{"o":{"lsn":"16/B374D848"}}`, ""},
		{`{"o":{"lsn":"16/B374D848"}}`, `{"o":{"lsn":"16/B374D849"}}`, ""},
		{`{"o":{"lsn":"F/FFFFFFFF"}}`, `{"o":{"lsn":"10/00000000"}}`, ""},
		{`{"o":{"lsn":"16/B374D848"}}`, `{"o":{"lsn":97500059720}}`, ""},
		{`{"o":{"lsn":97500059720}}`, `{"o":{"lsn":"16/B374D848"}}`, ""},
		{`{"o":{"lsn":"16/B374D848"}}`, `{"o":{"lsn":"16/B374D800"}}`, "o: lsn goes from 16/B374D848 to 16/B374D800 (72 back)"},
		{`{"o":{"lsn":"16/B374D848"}}`, `{"o":{"lsn":"9/FFFFFFFF"}}`, "o: lsn goes from 16/B374D848 to 9/FFFFFFFF (54,550,386,761 back)"},
		{`{"o":{"lsn":"16/B374D848"}}`, `{"o":{"lsn":97500059719}}`, "o: lsn goes from 16/B374D848 to 97500059719 (1 back)"},
		{`{"o":{"file":"b/b374d848"}}`, `{"o":{"file":"a/b374d848"}}`, "o: file changes from a text of 10 characters to a text of 10 characters"},
		{`{"o":{"file":"12/31"}}`, `{"o":{"file":"11/30"}}`, "o: file changes from a text of 5 characters to a text of 5 characters"},
		{`{"o":{"file":"/B374D848"}}`, `{"o":{"file":"/B374D847"}}`, "o: file changes from a text of 9 characters to a text of 9 characters"},

		// another shape, in which nobody finds the bookmark
		{rkv(`5`), rkv(`true`), "s: replication_key_value vanishes (was 5, becomes true)"},
		{rkv(`5`), rkv(`[4]`), "s: replication_key_value vanishes (was 5, becomes a list)"},
		{rkv(`5`), rkv(`{"v":4}`), "s: replication_key_value vanishes (was 5, becomes an object)"},
		{rkv(`{"v":4}`), rkv(`5`), "s: replication_key_value vanishes (was 4, becomes 5)"},
		{rkv(`"abc"`), rkv(`{"v":4}`), "s: replication_key_value vanishes (was a text of 3 characters, becomes an object)"},
		{rkv(`"2026-11-20"`), rkv(`"yesterday"`), "s: replication_key_value vanishes (was 2026-11-20, becomes a text of 9 characters)"},
		{rkv(`5`), rkv(`"abc"`), "s: replication_key_value vanishes (was 5, becomes a text of 3 characters)"},
		{rkv(`"16/B374D848"`), rkv(`"abc"`), "s: replication_key_value vanishes (was 16/B374D848, becomes a text of 3 characters)"},
		{rkv(`"2026-01-01"`), `{"s":["2026-01-01"]}`, "s: bookmark vanishes (was 2026-01-01, becomes a list)"},
		{rkv(`"2026-01-01"`), `{"s":"2026-01-01"}`, "s: bookmark vanishes (was 2026-01-01, becomes 2026-01-01)"},
		{rkv(`"2026-01-01"`), `{"s":true}`, "s: bookmark vanishes (was 2026-01-01, becomes true)"},
		{`{"s":{"a":1,"b":2}}`, `{"s":5}`, "s: bookmark vanishes (becomes 5)"},
		{`{"s":"2026-01-01"}`, `{"s":["2026-01-01"]}`, "s: bookmark vanishes (was 2026-01-01, becomes a list)"},
		{`{"s":"2026-01-01"}`, `{"s":false}`, "s: bookmark vanishes (was 2026-01-01, becomes false)"},
		{`{"s":{"lsn":5,"note":"abc"}}`, `{"s":{"lsn":5,"note":["abc"]}}`, "s: note changes from a text of 3 characters to a list"},
		{`{"s":{"sub":{"lsn":5},"at":6}}`, `{"s":{"sub":7,"at":6}}`, "s: sub vanishes (was 5, becomes 7)"},

		// gone
		{rkv(`5`), rkv(`null`), "s: replication_key_value vanishes (was 5)"},
		{rkv(`5`), rkv(`""`), "s: replication_key_value vanishes (was 5)"},
		{rkv(`5`), `{"s":{}}`, "s: replication_key_value vanishes (was 5)"},
		{rkv(`"abc"`), rkv(`null`), "s: replication_key_value vanishes (was a text of 3 characters)"},
		{rkv(`5`), `{"s":null}`, "s: bookmark vanishes (was 5)"},
		{rkv(`5`), `{}`, "s: bookmark vanishes (was 5)"},
		{rkv(`null`), `{}`, ""},
		{rkv(`null`), rkv(`5`), ""},
		{`{"s":{}}`, `{}`, ""},
		{`{"a":{"x":1,"y":2}}`, `{"a":{"z":3}}`, "a: bookmark vanishes"},
		{`{"a":{"x":1,"y":2,"z":3}}`, `{"a":{"z":3}}`, "a: x vanishes (was 1)\na: y vanishes (was 2)"},
		{`{"b":1,"a":2}`, `{}`, "a: bookmark vanishes (was 2)\nb: bookmark vanishes (was 1)"},

		// another replication key
		{`{"s":{` + github + `:"2026-01-02"}}`, `{"s":{"replication_key":"id","replication_key_value":5}}`, "s: replication_key changes from updated_at to id\ns: replication_key_value changes from 2026-01-02 to 5"},
		{`{"s":{` + github + `:"2026-01-02"}}`, `{"s":{"replication_key_value":"2026-01-01"}}`, "s: replication_key changes from updated_at to nothing\ns: replication_key_value goes from 2026-01-02 to 2026-01-01 (1 day 0:00:00 back)"},

		// tap-github: issues, and partitions in any order
		{`{"issues":{` + github + `:"2026-11-20T08:14:03Z","starting_replication_value":"2026-11-19"}}`, `{"issues":{` + github + `:"2026-11-20T08:14:03Z","starting_replication_value":null}}`, ""},
		{`{"r":{"partitions":[` + web + `,` + api + `]}}`, `{"r":{"partitions":[` + api + `,` + web + `]}}`, ""},
		{`{"r":{"partitions":[` + web + `,` + api + `]}}`, `{"r":{"partitions":[` + api + `,` + partition(`{"repo": "web", "org": "acme"}`, `"2026-11-19"`) + `]}}`, "r [org=acme, repo=web]: replication_key_value goes from 2026-11-19T23:59:59Z to 2026-11-19 (23:59:59 back)"},
		{`{"r":{"partitions":[` + web + `,` + api + `]}}`, `{"r":{"partitions":[` + web + `]}}`, "r [org=acme, repo=api]: bookmark vanishes (was 2026-11-18T04:00:00Z)"},
		{`{"r":{"partitions":[` + web + `,` + api + `]}}`, `{"r":{"partitions":[]}}`, "r: bookmark vanishes"},
		{`{"r":{"partitions":[` + partition(`1`, `5`) + `,` + partition(`2`, `6`) + `]}}`, `{"r":{"partitions":[` + partition(`1`, `null`) + `,` + partition(`2`, `null`) + `]}}`, "r: bookmark vanishes"},
		{`{"r":{"partitions":[` + web + `,` + api + `]}}`, `{"r":{}}`, "r: bookmark vanishes"},
		{`{"r":{"partitions":[` + web + `]}}`, `{}`, "r: bookmark vanishes (was 2026-11-19T23:59:59Z)"},
		{`{"r":{"partitions":[` + web + `]}}`, `{"r":{"partitions":[` + api + `,` + web + `]}}`, ""},
		{`{"r":{"partitions":[` + partition(`{"shop":-1}`, `5`) + `]}}`, `{"r":{"partitions":[` + partition(`{"shop":-1.0}`, `5`) + `]}}`, ""},
		{`{"r":{"partitions":[` + partition(`{"shop":1}`, `5`) + `]}}`, `{"r":{"partitions":[` + partition(`{"shop":"1"}`, `5`) + `]}}`, "r [shop=1]: bookmark vanishes (was 5)"},
		{`{"r":{"partitions":[{"replication_key_value":5},{"replication_key_value":6}]}}`, `{"r":{"partitions":[{"replication_key_value":5},{"replication_key_value":5}]}}`, "r [#2]: replication_key_value goes from 6 to 5 (1 back)"},
		{`{"r":{"partitions":[` + numbers(5, 6) + `]}}`, `{"r":{"partitions":[` + numbers(6, 5) + `]}}`, ""},
		{`{"r":{"partitions":[` + numbers(6, 5) + `]}}`, `{"r":{"partitions":[` + numbers(5, 7) + `]}}`, ""},
		{`{"r":{"partitions":[` + numbers(6, 5) + `]}}`, `{"r":{"partitions":[` + numbers(4, 5) + `]}}`, "r [#1]: replication_key_value goes from 6 to 4 (2 back)"},
		{`{"r":{"partitions":[` + numbers(8, 5) + `]}}`, `{"r":{"partitions":[` + numbers(7, 9) + `]}}`, "r [#1]: replication_key_value changes from 8 to 7"},
		{`{"r":{"partitions":[` + numbers(5, 6) + `]}}`, `{"r":{"partitions":[` + numbers(6) + `]}}`, "r [#1]: bookmark vanishes (was 5)"},
		{`{"r":{"partitions":[` + numbers(5, 6) + `]}}`, `{"r":{"partitions":[]}}`, "r: bookmark vanishes"},
		{`{"r":{"partitions":[` + numbers(5, 6) + `]}}`, `{"r":{"partitions":[` + partition(`1`, `5`) + `]}}`, "r: bookmark vanishes"},
		{`{"r":{"partitions":[` + partition(`1`, `6`) + `,` + partition(`1`, `5`) + `,` + partition(`2`, `1`) + `]}}`, `{"r":{"partitions":[` + partition(`2`, `2`) + `,` + partition(`1`, `6`) + `,` + partition(`1`, `5`) + `]}}`, ""},
		{`{"r":{"partitions":[` + partition(`1`, `6`) + `,` + partition(`1`, `5`) + `]}}`, `{"r":{"partitions":[` + partition(`1`, `6`) + `]}}`, ""},
		{`{"r":{"partitions":[` + partition(`1`, `6`) + `,` + partition(`1`, `5`) + `]}}`, `{"r":{"partitions":[` + partition(`1`, `5`) + `]}}`, "r [1]: replication_key_value goes from 6 to 5 (1 back)"},
		{`{"r":{"partitions":[` + partition(`1`, `5`) + `]}}`, `{"r":{"partitions":[` + partition(`1`, `6`) + `,` + partition(`1`, `5`) + `]}}`, ""},
		{`{"r":{"partitions":[` + partition(`{"a":1}`, `{"partitions":[`+partition(`{"b":2}`, `5`)+`]}`) + `]}}`, `{"r":{"partitions":[` + partition(`{"a":1}`, `{"partitions":[`+partition(`{"b":2}`, `4`)+`]}`) + `]}}`, "r [a=1; b=2]: replication_key_value.replication_key_value goes from 5 to 4 (1 back)"},
		{`{"r":{"partitions":{"0":{"offset":5}}}}`, `{"r":{"partitions":{"0":{"offset":4}}}}`, "r: partitions.0.offset goes from 5 to 4 (1 back)"},
		{`{"r":{"partitions":[` + partition(`{"org":"acme","tags":["a",1.0]}`, `5`) + `]}}`, `{"r":{"partitions":[` + partition(`{"tags":["a",1],"org":"acme"}`, `4`) + `]}}`, "r [org=acme, tags=[\"a\",1.0]]: replication_key_value goes from 5 to 4 (1 back)"},
		{`{"stargazers":{}}`, `{}`, ""},

		// tap-postgres
		{`{"o":{"last_replication_method":"LOG_BASED","lsn":108240872113664,"version":1570922723635,"xmin":null}}`, `{"o":{"last_replication_method":"LOG_BASED","lsn":108240872113000,"version":1570922723634,"xmin":7}}`, "o: lsn goes from 108240872113664 to 108240872113000 (664 back)"},
		{`{"o":{"last_replication_method":"LOG_BASED","lsn":108240872113664,"version":1570922723635}}`, `{"o":{"last_replication_method":"FULL_TABLE","version":1570922723636}}`, "o: lsn vanishes (was 108240872113664)"},
		{`{"o":{"last_replication_method":"FULL_TABLE","version":1570922730456,"xmin":99}}`, `{"o":{"last_replication_method":"FULL_TABLE","version":1570922730455,"xmin":null}}`, ""},
		{`{"o":{"last_replication_method":"FULL_TABLE","version":1570922730456,"xmin":null}}`, `{}`, ""},
		{`{"c":{"last_replication_method":"INCREMENTAL","replication_key":"id","version":1570922723667,"replication_key_value":4079}}`, `{"c":{"last_replication_method":"INCREMENTAL","replication_key":"id","version":1570922723667,"replication_key_value":4000}}`, "c: replication_key_value goes from 4079 to 4000 (79 back)"},

		// tap-mysql: log_pos counts only within one file
		{`{"c":{"log_file":"mysql-bin.000417","log_pos":9120999}}`, `{"c":{"log_file":"mysql-bin.000418","log_pos":4}}`, ""},
		{`{"c":{"log_file":"mysql-bin.999999","log_pos":9120999}}`, `{"c":{"log_file":"mysql-bin.1000000","log_pos":4}}`, ""},
		{`{"c":{"log_file":"mysql-bin.000417","log_pos":9120999}}`, `{"c":{"log_file":"mysql-bin.000417","log_pos":9120334}}`, "c: log_pos goes from 9120999 to 9120334 (665 back)"},
		{`{"c":{"log_file":"mysql-bin.000417","log_pos":4}}`, `{"c":{"log_file":"mysql-bin.000416","log_pos":9120334}}`, "c: log_file goes from mysql-bin.000417 to mysql-bin.000416 (1 file back)"},
		{`{"c":{"log_file":"mysql-bin.000417","log_pos":4}}`, `{"c":{"log_file":"mysql-bin.000400","log_pos":4}}`, "c: log_file goes from mysql-bin.000417 to mysql-bin.000400 (17 files back)"},
		{`{"c":{"log_file":"mysql-bin.000417","log_pos":9}}`, `{"c":{"log_file":"replica-bin.000002","log_pos":4}}`, "c: log_file changes from mysql-bin.000417 to replica-bin.000002"},
		{`{"c":{"log_file":"binlog","log_pos":9}}`, `{"c":{"log_file":"binlog","log_pos":4}}`, "c: log_pos goes from 9 to 4 (5 back)"},
		{`{"c":{"log_file":"mysql-bin.000417","log_pos":9}}`, `{"c":{"log_file":"mysql-bin.000417"}}`, "c: log_pos vanishes (was 9)"},
		{`{"c":{"log_file":"mysql-bin.000417","log_pos":9,"gtid":"3e11fa47-71ca-11e1-9e33-c80aa9429562:1-91203"}}`, `{"c":{"log_pos":9}}`, "c: bookmark vanishes"},
		{`{"c":{"log_file":"mysql-bin.000417","log_pos":9,"gtid":"3e11fa47-71ca-11e1-9e33-c80aa9429562:1-91203"}}`, `{"c":{"log_file":"mysql-bin.000417","log_pos":9}}`, "c: gtid changes from a text of 44 characters to nothing"},
		{`{"c":{"log_file":"mysql-bin.000417","log_pos":9,"gtid":"3e11fa47-71ca-11e1-9e33-c80aa9429562:1-91203"}}`, `{"c":{"log_file":"mysql-bin.000417","log_pos":9,"gtid":"3e11fa47-71ca-11e1-9e33-c80aa9429562:1-91204"}}`, "c: gtid changes from a text of 44 characters to a text of 44 characters"},

		// tap-salesforce
		{`{"Account":{"JobID":"750x","SystemModstamp":"2026-11-20T00:00:00.000000Z","version":1731628800000}}`, `{"Account":{"JobID":null,"SystemModstamp":"2026-11-19T00:00:00.000000Z","version":1731628800000}}`, "Account: SystemModstamp goes from 2026-11-20T00:00:00.000000Z to 2026-11-19T00:00:00.000000Z (1 day 0:00:00 back)"},
		{`{"Account":{"JobID":"750x","SystemModstamp":"2026-11-20T00:00:00.000000Z"}}`, `{"Account":{"SystemModstamp":"2026-11-20T00:00:00Z"}}`, ""},

		// tap-fullstory: one value a stream
		{`{"events":"2026-09-27T22:34:39.000000Z","segments":"2026-09-28T18:23:53Z"}`, `{"events":"2026-09-27T22:34:39Z","segments":"2026-09-28T18:23:52Z"}`, "segments: bookmark goes from 2026-09-28T18:23:53Z to 2026-09-28T18:23:52Z (0:00:01 back)"},
		{`{"events":"2026-09-27T22:34:39.000000Z"}`, `{"events":{"replication_key_value":"2026-09-27T22:34:39.000000Z"}}`, "events: bookmark vanishes (was 2026-09-27T22:34:39.000000Z, becomes an object)"},
		{`{"events":{"replication_key_value":"2026-09-27"}}`, `{"events":"2026-09-27"}`, "events: bookmark vanishes (was 2026-09-27, becomes 2026-09-27)"},
		{`{"events":"2026-09-27T22:34:39.000000Z"}`, `{"events":null}`, "events: bookmark vanishes (was 2026-09-27T22:34:39.000000Z)"},

		// tap-bing-ads
		{`{"a":{"date":"2026-06-01T00:00:00+00:00","request_id":"9"}}`, `{"a":{"date":"2026-05-31T00:00:00+00:00","request_id":null}}`, "a: date goes from 2026-06-01T00:00:00+00:00 to 2026-05-31T00:00:00+00:00 (1 day 0:00:00 back)"},
		{`{"a":{"date":"2026-06-01T00:00:00+00:00","request_id":"9"}}`, `{"a":{"date":"2026-06-01T00:00:00+00:00","request_id":null}}`, ""},

		// tap-ldap
		{rkv(`"20260619103000.0Z"`), rkv(`"20260619103000Z"`), ""},
		{rkv(`"20260619103000.0Z"`), rkv(`"20260619123000.0+0200"`), ""},
		{rkv(`"20260619103000.0Z"`), rkv(`"20260619094500.0Z"`), "s: replication_key_value goes from 20260619103000.0Z to 20260619094500.0Z (0:45:00 back)"},

		// tap-shopify
		{`{"i":{` + github + `:"2026-11-20T09:00:00-05:00","location_ids":["1","2"]}}`, `{"i":{` + github + `:"2026-11-20T14:00:00Z","location_ids":["1","2"]}}`, ""},
		{`{"i":{` + github + `:"2026-11-20T09:00:00-05:00","location_ids":["1","2"]}}`, `{"i":{` + github + `:"2026-11-20T09:00:00Z"}}`, "i: location_ids changes from a list to nothing\ni: replication_key_value goes from 2026-11-20T09:00:00-05:00 to 2026-11-20T09:00:00Z (5:00:00 back)"},

		// tap-jquants, tap-google-analytics
		{rkv(`"2026-11-19"`), rkv(`"2026-11-18"`), "s: replication_key_value goes from 2026-11-19 to 2026-11-18 (1 day 0:00:00 back)"},
		{`{"w":{"partitions":[` + partition(`{"property":"GA-1","view":"all"}`, `"20261119"`) + `]}}`, `{"w":{"partitions":[` + partition(`{"view":"all","property":"GA-1"}`, `"20261101"`) + `]}}`, "w [property=GA-1, view=all]: replication_key_value goes from 20261119 to 20261101 (18 days 0:00:00 back)"},

		// tap-stripe: a stream inside of a stream
		{`{"i":{"created":1763596801,"sub_stream":{"cursor":"in_1Q=="}}}`, `{"i":{"created":1763596801,"sub_stream":{"cursor":"in_1P=="}}}`, "i: sub_stream.cursor changes from a text of 7 characters to a text of 7 characters"},
		{`{"i":{"created":1763596801,"sub_stream":{"cursor":"in_1Q=="}}}`, `{"i":{"created":1763596800,"sub_stream":{}}}`, "i: created goes from 1763596801 to 1763596800 (1 back)\ni: sub_stream.cursor vanishes (was a text of 7 characters)"},
		{`{"i":{"created":1763596801,"sub_stream":{"cursor":"in_1Q=="}}}`, `{"i":{"created":1763596801}}`, "i: sub_stream vanishes (was a text of 7 characters)"},
		{`{"i":{"created":1763596801,"sub_stream":{"cursor":"in_1Q=="}}}`, `{}`, "i: bookmark vanishes"},

		// tap-kafka: a timestamp counts only at one offset
		{`{"c":{"partition_0":{"partition":0,"offset":99188231,"timestamp":1763596800123}}}`, `{"c":{"partition_0":{"partition":0,"offset":99188232,"timestamp":1763596800000}}}`, ""},
		{`{"c":{"partition_0":{"partition":0,"offset":99188231,"timestamp":1763596800123}}}`, `{"c":{"partition_0":{"partition":0,"offset":99188231,"timestamp":1763596800000}}}`, "c: partition_0.timestamp goes from 1763596800123 to 1763596800000 (123 back)"},
		{`{"c":{"partition_0":{"partition":0,"offset":99188231,"timestamp":1763596800123},"partition_1":{"partition":1,"offset":5,"timestamp":1}}}`, `{"c":{"partition_0":{"partition":0,"offset":99187231,"timestamp":1763596800200}}}`, "c: partition_0.offset goes from 99188231 to 99187231 (1,000 back)\nc: partition_1 vanishes (was 5)"},

		{`{"c":{"offset":"x","timestamp":2}}`, `{"c":{"offset":"y","timestamp":1}}`, "c: offset changes from a text of 1 character to a text of 1 character\nc: timestamp goes from 2 to 1 (1 back)"},
		{`{"c":{"offset":{"p":1},"timestamp":2}}`, `{"c":{"offset":{"p":2},"timestamp":1}}`, "c: timestamp goes from 2 to 1 (1 back)"},
		{`{"c":{"offset":null,"timestamp":2}}`, `{"c":{"offset":7,"timestamp":1}}`, "c: timestamp goes from 2 to 1 (1 back)"},

		// tap-s3-csv
		{`{"exports/\u00e9t\u00e9 2026":{"modified_since":"2026-11-01T00:00:00+00:00"}}`, `{"exports/été 2026":{"modified_since":"2026-10-31T00:00:00+00:00"}}`, "exports/été 2026: modified_since goes from 2026-11-01T00:00:00+00:00 to 2026-10-31T00:00:00+00:00 (1 day 0:00:00 back)"},

		// tap-mongodb
		{`{"e":{"oplog_ts_time":1763596800,"oplog_ts_inc":7,"resume_token":"8266A1B2C3"}}`, `{"e":{"oplog_ts_time":1763596801,"oplog_ts_inc":1,"resume_token":"8266A1B2C3"}}`, ""},
		{`{"e":{"oplog_ts_time":1763596800,"oplog_ts_inc":7}}`, `{"e":{"oplog_ts_time":1763596800,"oplog_ts_inc":6}}`, "e: oplog_ts_inc goes from 7 to 6 (1 back)"},
		{`{"e":{"oplog_ts_time":1763596800,"oplog_ts_inc":7,"resume_token":"8266A1B2C3"}}`, `{"e":{"oplog_ts_time":1763590000,"oplog_ts_inc":9,"resume_token":"8266A1B2C2"}}`, "e: oplog_ts_time goes from 1763596800 to 1763590000 (6,800 back)\ne: resume_token changes from a text of 10 characters to a text of 10 characters"},

		// tap-zendesk, tap-weather
		{`{"tickets":{"replication_key":"generated_timestamp","replication_key_value":1763596800}}`, `{"tickets":{"replication_key":"generated_timestamp","replication_key_value":1763590000}}`, "tickets: replication_key_value goes from 1763596800 to 1763590000 (6,800 back)"},
		{`{"readings":{"replication_key":"seq","replication_key_value":1234.5,"note":"<50% & \"quoted\""}}`, `{"readings":{"replication_key":"seq","replication_key_value":1234.50}}`, "readings: note changes from a text of 15 characters to nothing"},

		// what a run leaves behind
		{`{"s":{"progress_markers":{"replication_key_value":9},"replication_key_signpost":9,"replication_key_value":5}}`, `{"s":{"replication_key_value":5}}`, ""},
		{`{"s":{"last_pk_fetched":{"id":9},"max_pk_values":{"id":99},"lsn":5}}`, `{"s":{"lsn":5}}`, ""},
		{`{"s":{"done":true,"lsn":5}}`, `{"s":{"done":false,"lsn":5}}`, "s: done changes from true to false"},

		// names and values that do not fit on a line
		{`{"a\nb\ud83d":5}`, `{"a\nb\ud83d":4}`, "a b\ufffd\ufffd\ufffd: bookmark goes from 5 to 4 (1 back)"},
		{`{"` + strings.Repeat("x", 300) + `":5}`, `{}`, strings.Repeat("x", 199) + "…: bookmark vanishes (was 5)"},
	} {
		var got []string
		for _, change := range Compare(parse(t, bookmarks(c.stored)), parse(t, bookmarks(c.planned))) {
			got = append(got, change.String())
		}
		if strings.Join(got, "\n") != c.want {
			t.Errorf("Compare(%s, %s)\n got %s\nwant %s", c.stored, c.planned, strings.Join(got, "\n     "), c.want)
		}
	}
}

func TestCompareAroundBookmarks(t *testing.T) {
	lost := []Change{{Kind: Vanished, Stream: "s", Old: "5"}}
	stored := `{"singer_state":{"bookmarks":{"s":5},"currently_syncing":"s"}}`
	for _, c := range []struct {
		stored, planned string
		want            []Change
	}{
		{stored, `{"singer_state":{"bookmarks":{"s":5},"currently_syncing":null}}`, nil},
		{stored, `{"singer_state":{"bookmarks":{"s":5}},"other":1}`, nil},
		{stored, `{}`, lost},
		{stored, `{"singer_state":{}}`, lost},
		{stored, `{"singer_state":null}`, lost},
		{stored, `{"singer_state":{"bookmarks":[]}}`, lost},
		{stored, `{"bookmarks":{"s":5}}`, lost}, // without singer_state, Meltano does not find it
		{`{"bookmarks":{"s":5}}`, `{}`, nil},
		{`{"singer_state":{"s":5}}`, `{"singer_state":{"s":4}}`, []Change{{Kind: Rewind, Stream: "s", Old: "5", New: "4", Distance: "1 back"}}},
	} {
		if got := Compare(parse(t, c.stored), parse(t, c.planned)); !slices.Equal(got, c.want) {
			t.Errorf("Compare(%s, %s) = %v, want %v", c.stored, c.planned, got, c.want)
		}
	}
}

func TestCompareFields(t *testing.T) {
	stored := bookmarks(`{"r":{"partitions":[` + partition(`{"org":"acme"}`, `"2026-11-19"`) + `]}}`)
	planned := bookmarks(`{"r":{"partitions":[` + partition(`{"org":"acme"}`, `"2026-11-18"`) + `]}}`)
	want := []Change{{
		Kind: Rewind, Stream: "r", Partition: "org=acme", Key: "replication_key_value",
		Old: "2026-11-19", New: "2026-11-18", Distance: "1 day 0:00:00 back",
	}}
	if got := Compare(parse(t, stored), parse(t, planned)); !slices.Equal(got, want) {
		t.Errorf("got %#v, want %#v", got, want)
	}
}

func TestFullRefresh(t *testing.T) {
	for _, c := range []struct {
		stored, planned string
		want            bool
	}{
		{bookmarks(`{"s":5}`), `{}`, true},
		{bookmarks(`{"s":5}`), `{"singer_state":{}}`, true},
		{bookmarks(`{"s":5}`), bookmarks(`{"s":null}`), true},
		{bookmarks(`{"s":5}`), bookmarks(`{"s":{"version":1,"xmin":null}}`), true},
		{bookmarks(`{"s":5}`), `{"bookmarks":{"s":5}}`, true},
		{bookmarks(`{"s":{"v":5}}`), bookmarks(`{"s":["2026-01-01"]}`), true},
		{bookmarks(`{"s":5}`), bookmarks(`{"s":4}`), false},
		{bookmarks(`{"s":5}`), bookmarks(`{"t":1}`), false},
		{bookmarks(`{"s":5}`), bookmarks(`{"s":{"partitions":[{"context":{"a":1},"cursor":"x"}]}}`), false},
		{bookmarks(`{"s":{}}`), `{}`, false},
		{`{}`, `{}`, false},
		{`{}`, bookmarks(`{"s":5}`), false},
	} {
		if got := FullRefresh(parse(t, c.stored), parse(t, c.planned)); got != c.want {
			t.Errorf("FullRefresh(%s, %s) = %t", c.stored, c.planned, got)
		}
	}
}
