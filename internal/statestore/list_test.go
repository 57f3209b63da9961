package statestore_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/chconn"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/statestore"
)

// ids are those of a list, in its order.
func ids(t *testing.T, s *statestore.Store, at statestore.Address, filter statestore.Filter) []string {
	t.Helper()
	entries, err := s.List(t.Context(), at.Database, at.Table, filter)
	if err != nil {
		t.Fatalf("%+v: %v", filter, err)
	}
	found := make([]string, len(entries))
	for i, entry := range entries {
		found[i] = entry.StateID
	}
	return found
}

// bothLayouts runs a test on both layouts of the state table, over both protocols.
func bothLayouts(t *testing.T, test func(t *testing.T, w where)) {
	for _, layout := range statestore.TableLayouts() {
		for _, protocol := range chconn.Protocols() {
			t.Run(fmt.Sprintf("%s, layout %s", protocol, layout), func(t *testing.T) {
				t.Parallel()
				test(t, where{protocol, layout, statestore.LayoutStrict})
			})
		}
	}
}

func TestListPattern(t *testing.T) {
	bothLayouts(t, func(t *testing.T, w where) {
		s, conn := w.open(t), acctest.Conn(t)
		at := w.table(t, s)
		insert := func(id string) {
			exec(t, conn, "INSERT INTO "+quoted(at)+" (state_id, completed_state) VALUES (?, '{}')", id)
		}
		for _, id := range []string{
			"dev:tap_a-to-t", "dev:tapXa-to-t", "dev:100%-to-t", "dev:100x-to-t", `back\slash`, "two\nlines", "é", "🦆", "it's", "what?", "star*", "[a]", "{a}", "deleted",
		} {
			insert(id)
			insert(id) // an older version is not listed
		}
		gone := at
		gone.StateID = "deleted"
		entry, err := s.Read(t.Context(), gone)
		if err == nil {
			_, err = s.Delete(t.Context(), gone, entry.Version)
		}
		if err != nil {
			t.Fatal(err)
		}

		for _, tt := range []struct {
			pattern string
			want    []string
		}{
			// cases.md 15
			{"dev:tap_a*", []string{"dev:tap_a-to-t"}},
			{"dev:100%*", []string{"dev:100%-to-t"}},
			{"dev:tap?a*", []string{"dev:tapXa-to-t", "dev:tap_a-to-t"}},
			{"dev:*", []string{"dev:100%-to-t", "dev:100x-to-t", "dev:tapXa-to-t", "dev:tap_a-to-t"}},
			{`*\*`, []string{`back\slash`}},
			{`back\slash`, []string{`back\slash`}},
			{`back\\slash`, nil},

			{"two*lines", []string{"two\nlines"}},
			{"two?lines", []string{"two\nlines"}},
			{"?", []string{"é", "🦆"}}, // characters, not bytes
			{"it's", []string{"it's"}},
			{"what?", []string{"what?"}},
			{"star*", []string{"star*"}},
			{"[a]", []string{"[a]"}},
			{"{a}", []string{"{a}"}},
			{"%", nil},
			{"_", nil},
			{"", nil},
			{"deleted", nil},
			{"DEV:*", nil},
			{"tap_a", nil},
		} {
			if got := ids(t, s, at, statestore.Filter{Pattern: tt.pattern}); !slices.Equal(got, tt.want) {
				t.Errorf("%q: got %q, want %q", tt.pattern, got, tt.want)
			}
		}
		if got := ids(t, s, at, statestore.Filter{Pattern: "*"}); len(got) != 13 || !slices.IsSorted(got) {
			t.Errorf("*: got %q, want all that are live, sorted", got)
		}
	})
}

// glob is what a pattern means, written down once more.
func glob(pattern, id []rune) bool {
	if len(pattern) == 0 {
		return len(id) == 0
	}
	if pattern[0] == '*' {
		return glob(pattern[1:], id) || len(id) > 0 && glob(pattern, id[1:])
	}
	return len(id) > 0 && (pattern[0] == '?' || pattern[0] == id[0]) && glob(pattern[1:], id[1:])
}

// TestListPatternRandom compares with the meaning, on an alphabet of what is special to somebody.
func TestListPatternRandom(t *testing.T) {
	t.Parallel()
	s, conn := open(t, chconn.Native), acctest.Conn(t)
	at := table(t, s)
	const seed = 15
	random := rand.New(rand.NewPCG(seed, seed))
	text := func() string {
		letters := []rune("a_%\\*?[]^$.(é\n'")
		var out strings.Builder
		for range random.IntN(5) {
			out.WriteRune(letters[random.IntN(len(letters))])
		}
		return out.String()
	}
	all := map[string]bool{}
	for range 300 {
		all[text()] = true
	}
	for id := range all {
		exec(t, conn, "INSERT INTO "+quoted(at)+" (state_id, completed_state) VALUES (?, '{}')", id)
	}
	matches := 0
	for range 300 {
		pattern := text()
		var want []string
		for id := range all {
			if glob([]rune(pattern), []rune(id)) {
				want = append(want, id)
			}
		}
		slices.Sort(want)
		matches += len(want)
		if got := ids(t, s, at, statestore.Filter{Pattern: pattern}); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", pattern, got, want)
		}
	}
	if matches < 300 {
		t.Errorf("only %d matches: the test tests nothing", matches)
	}
}

func TestListUpdated(t *testing.T) {
	bothLayouts(t, func(t *testing.T, w where) {
		s, conn := w.open(t), acctest.Conn(t)
		at := w.table(t, s)
		noon := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
		insert := func(id string, updated time.Time, version uint64) {
			columns, values := "state_id, completed_state, updated_at", fmt.Sprintf("?, '{}', fromUnixTimestamp64Milli(%d)", updated.UnixMilli())
			if w.layout == statestore.LayoutVersioned {
				columns, values = columns+", version", fmt.Sprintf("%s, %d", values, version)
			}
			exec(t, conn, "INSERT INTO "+quoted(at)+" ("+columns+") VALUES ("+values+")", id)
		}
		insert("early", noon.Add(-time.Millisecond), 1)
		insert("noon", noon, 1)
		insert("late", noon.Add(time.Millisecond), 1)
		// Its older version lies before noon: that one does not count.
		insert("moved", noon.Add(-time.Hour), 1)
		insert("moved", noon.Add(time.Hour), 2)

		for _, tt := range []struct {
			name          string
			after, before time.Time
			want          string
		}{
			{"all", time.Time{}, time.Time{}, "early late moved noon"},
			{"before noon", time.Time{}, noon, "early"},
			{"before noon, elsewhere", time.Time{}, noon.In(time.FixedZone("", 5*3600+1800)), "early"},
			{"before a moment past noon", time.Time{}, noon.Add(time.Nanosecond), "early noon"},
			{"after noon", noon, time.Time{}, "late moved"},
			{"after a moment to noon", noon.Add(-time.Nanosecond), time.Time{}, "late moved noon"},
			{"between", noon.Add(-time.Millisecond), noon.Add(time.Millisecond), "noon"},
			{"nothing", noon, noon, ""},
			{"long ago", time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), "early late moved noon"},
		} {
			filter := statestore.Filter{Pattern: "*", UpdatedAfter: tt.after, UpdatedBefore: tt.before}
			if got := strings.Join(ids(t, s, at, filter), " "); got != tt.want {
				t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
			}
		}
		for limit, want := range map[int]string{0: "early late moved noon", 1: "early", 3: "early late moved", 4: "early late moved noon", 9: "early late moved noon"} {
			if got := strings.Join(ids(t, s, at, statestore.Filter{Pattern: "*", Limit: limit}), " "); got != want {
				t.Errorf("limit %d: got %q, want %q", limit, got, want)
			}
		}
		entries, err := s.List(t.Context(), at.Database, at.Table, statestore.Filter{Pattern: "noon"})
		version := map[statestore.Layout]uint64{statestore.LayoutVersioned: 1, statestore.LayoutMeltano: uint64(noon.UnixMilli())}[w.layout]
		if err != nil || len(entries) != 1 || !entries[0].UpdatedAt.Equal(noon) || entries[0].Version != version || *entries[0].Completed != "{}" {
			t.Errorf("got %+v, %v", entries, err)
		}
		var missing *statestore.NoTableError
		if _, err := s.List(t.Context(), at.Database, "other", statestore.Filter{Pattern: "*"}); !errors.As(err, &missing) {
			t.Errorf("a list of no table: %v", err)
		}
	})
}

// TestListStatements: listing is one statement, however many entries there are.
func TestListStatements(t *testing.T) {
	c := newCrowd(t, acctest.Server(t), acctest.Database(t), chconn.Native, statestore.LockOptions{})
	c.log.stop("none")
	found, err := c.store.List(t.Context(), c.at.Database, c.at.Table, statestore.Filter{Pattern: "dev:*"})
	if sent := c.log.since(); err != nil || len(found) != crowdSize || len(sent) != 1 {
		t.Errorf("%d entries, %v, by %v", len(found), err, sent)
	}
}
