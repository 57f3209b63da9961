package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// told writes increments, in the order in which they were stored, as "writer parent>token outcome", with a writer that is called ours... or peer...
func told(t *testing.T, lines ...string) []*increment {
	t.Helper()
	var increments []*increment
	for n, line := range lines {
		words := strings.Fields(line)
		parent, token, ok := strings.Cut(words[1], ">")
		if !ok {
			t.Fatalf("%q is no increment", line)
		}
		k := kindOurs
		if strings.HasPrefix(words[0], "peer") {
			k = kindPeer
		}
		increments = append(increments, &increment{
			kind: k, label: words[0], counter: "c", token: token, parent: parent, outcome: outcome(words[2]), at: time.UnixMicro(int64(n)),
		})
	}
	return increments
}

func TestHistory(t *testing.T) {
	for _, c := range []struct {
		name       string
		increments []string
		final      tally
		// lost are "token by token", denied are tokens.
		lost, denied []string
		broken       string
	}{
		{name: "nothing", final: tally{Last: "seed"}},
		{
			name:       "all there",
			increments: []string{"ours1 seed>a acknowledged", "peer1 a>b acknowledged", "ours1 b>c acknowledged", "ours1 b>x unwritten"},
			final:      tally{Last: "c", Counts: map[string]int{"ours1": 2, "peer1": 1}},
		},
		{
			name:       "replaced",
			increments: []string{"ours1 seed>a acknowledged", "peer1 seed>b acknowledged"},
			final:      tally{Last: "b", Counts: map[string]int{"peer1": 1}},
			lost:       []string{"a by b"},
		},
		{
			name:       "a whole branch replaced",
			increments: []string{"ours1 seed>a acknowledged", "ours1 a>b acknowledged", "ours2 b>c acknowledged", "peer1 a>d acknowledged", "ours1 d>e acknowledged"},
			final:      tally{Last: "e", Counts: map[string]int{"ours1": 2, "peer1": 1}},
			lost:       []string{"b by d", "c by d"},
		},
		{
			name: "replaced by a branch that began earlier",
			increments: []string{
				"peer1 seed>a acknowledged", "ours1 a>b acknowledged", "peer2 a>c acknowledged", "peer1 b>d acknowledged",
			},
			final: tally{Last: "d", Counts: map[string]int{"ours1": 1, "peer1": 2}},
			lost:  []string{"c by d"},
		},
		{
			name:       "never to be seen",
			increments: []string{"ours1 seed>a acknowledged", "ours1 a>b acknowledged"},
			final:      tally{Last: "a", Counts: map[string]int{"ours1": 1}},
			lost:       []string{"b by nobody"},
		},
		{
			name:       "unknown ones do not count, whether they are there or not",
			increments: []string{"ours1 seed>a unknown", "ours1 a>b unknown", "ours2 a>c acknowledged"},
			final:      tally{Last: "c", Counts: map[string]int{"ours1": 1, "ours2": 1}},
		},
		{
			name:       "reported as not written",
			increments: []string{"ours1 seed>a unwritten"},
			final:      tally{Last: "a", Counts: map[string]int{"ours1": 1}},
			denied:     []string{"a"},
		},
		{
			name:   "written by nobody",
			final:  tally{Last: "z"},
			broken: "nobody wrote",
		},
		{
			name:       "counted wrongly",
			increments: []string{"ours1 seed>a acknowledged"},
			final:      tally{Last: "a", Counts: map[string]int{"ours1": 2}},
			broken:     "counted 2 times",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, err := newHistory(told(t, c.increments...), c.final)
			if c.broken != "" {
				if err == nil || !strings.Contains(err.Error(), c.broken) {
					t.Fatalf("error %v, want one about %q", err, c.broken)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var lost, denied []string
			for _, l := range h.losses() {
				by := "nobody"
				if l.by != nil {
					by = l.by.token
				}
				lost = append(lost, l.token+" by "+by)
			}
			for _, i := range h.denied() {
				denied = append(denied, i.token)
			}
			if !slices.Equal(lost, c.lost) || !slices.Equal(denied, c.denied) {
				t.Errorf("lost %q, denied %q, want %q, %q", lost, denied, c.lost, c.denied)
			}
		})
	}
}

// told statements: "label operation start finish result", times in milliseconds.
func statements(t *testing.T, lines ...string) []statement {
	t.Helper()
	var trace []statement
	for _, line := range lines {
		words := strings.Fields(line)
		comment := "x/" + words[0] + "/c " + words[1]
		if strings.HasPrefix(words[0], "peer") {
			comment = peerComment + "/" + words[0] + "/c " + words[1] + " " + words[0]
		}
		var s statement
		if !s.describe(comment) {
			t.Fatalf("%q is no statement", line)
		}
		s.start, s.finish = at(t, words[2]), at(t, words[3])
		switch words[4] {
		case "refused":
			s.failed, s.fenced = true, true
		case "1":
			s.written = 1
		}
		trace = append(trace, s.split("")...)
	}
	return trace
}

func at(t *testing.T, millis string) time.Time {
	t.Helper()
	d, err := time.ParseDuration(millis + "ms")
	if err != nil {
		t.Fatal(err)
	}
	return time.UnixMilli(1_000_000).Add(d)
}

// oursRound is a round of ours without a rival, from its claim at 0.
func oursRound(label string) []string {
	return []string{
		label + " entry.read 0 1 0", label + " lock.claim 2 4 1", label + " lock.read 5 6 0", label + " entry.update.newest 10 11 0",
		label + " entry.update.live 12 13 0", label + " entry.update.write 20 25 1", label + " entry.update.verify 26 27 0", label + " lock.release 30 31 0",
	}
}

func TestOverlaps(t *testing.T) {
	s := scenario{Strict: true, Promise: nothingLost, Timing: timing{Stale: time.Second}}
	onePeer := scenario{Promise: nothingLost, Timing: timing{Stale: time.Second}}
	meltano := scenario{Promise: nothingOverwritten, Timing: timing{Stale: time.Second}}
	for _, c := range []struct {
		name     string
		scenario scenario
		more     []string
		// want are overlaps, late ones, hidden ones, those among peers.
		want [4]int
	}{
		{"alone", s, nil, [4]int{}},
		{"one of ours afterwards", s, []string{"ours2 lock.claim 31 32 1", "ours2 lock.read 33 34 0", "ours2 entry.update.newest 35 36 0", "ours2 entry.update.write 37 38 1"}, [4]int{}},
		{"one of ours inside", s, []string{"ours2 lock.claim 7 8 1", "ours2 lock.read 8 9 0", "ours2 entry.update.newest 10 11 0", "ours2 entry.update.write 12 13 1", "ours2 lock.release 14 15 0"}, [4]int{1}},
		{"a refused write inside", s, []string{"ours2 lock.claim 7 8 1", "ours2 lock.read 8 9 0", "ours2 entry.update.newest 10 11 0", "ours2 entry.update.write 12 13 refused", "ours2 lock.release 14 15 0"}, [4]int{}},
		{"a peer around", s, []string{"peer claim 1 2 1", "peer decide 3 4 0", "peer get 5 6 0", "peer set 28 29 1", "peer release 40 41 0"}, [4]int{2}},
		{"a peer that never left", s, []string{"peer claim 1 2 1", "peer decide 3 4 0", "peer get 5 6 0"}, [4]int{1}},
		{"a peer whose claim was stale by then", s, []string{"peer claim -995 -994 1", "peer decide -900 -899 0", "peer get 3 4 0"}, [4]int{}},
		{"a late peer's write", s, []string{"peer claim -995 -994 1", "peer decide -900 -899 0", "peer get 3 4 0", "peer set 12 13 1"}, [4]int{0, 1}},
		{"a peer that a merge hid", meltano, []string{"peer claim 1 2 1", "peer decide 3 4 0", "peer get 5 6 0"}, [4]int{0, 0, 1}},
		{"one of ours inside, where merges hide peers", meltano, []string{"ours2 lock.claim 7 8 1", "ours2 lock.read 8 9 0", "ours2 entry.update.newest 10 11 0", "ours2 entry.update.write 12 13 1", "ours2 lock.release 14 15 0"}, [4]int{0, 0, 1}},
		{"one of ours inside, where merges hide ours only", onePeer, []string{"ours2 lock.claim 7 8 1", "ours2 lock.read 8 9 0", "ours2 entry.update.newest 10 11 0", "ours2 entry.update.write 12 13 1", "ours2 lock.release 14 15 0"}, [4]int{0, 0, 1}},
		{"in the only peer's hold", onePeer, []string{"peer claim 1 2 1", "peer decide 3 4 0", "peer get 5 6 0"}, [4]int{1}},
		{"two peers", s, []string{
			"peer1 claim 101 102 1", "peer1 decide 103 104 0", "peer1 get 105 106 0", "peer1 release 120 121 0",
			"peer2 claim 101 102 1", "peer2 decide 103 104 0", "peer2 get 105 106 0", "peer2 set 110 111 1", "peer2 release 115 116 0",
		}, [4]int{0, 0, 0, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := &verdict{Scenario: c.scenario}
			v.judgeOverlaps(follow(statements(t, append(oursRound("ours1"), c.more...)...)))
			if got := [4]int{v.Overlaps, v.OverlapsLate, v.OverlapsHidden, v.OverlapsOfPeers}; got != c.want {
				t.Errorf("got %v, want %v: %q", got, c.want, v.Violations)
			}
			if len(v.Violations) != c.want[0] {
				t.Errorf("%d violations, want %d", len(v.Violations), c.want[0])
			}
		})
	}
}

func TestLosses(t *testing.T) {
	increments := []string{"ours1 seed>ours#1 acknowledged", "peer1 seed>peer1 acknowledged"}
	final := map[string]tally{"c": {Last: "peer1", Counts: map[string]int{"peer1": 1}}}
	for _, c := range []struct {
		name     string
		scenario scenario
		set      string
		// want are lost, replaced by late peers, replaced by hidden peers.
		want [3]int
	}{
		{"in time", scenario{Strict: true, Promise: nothingLost}, "peer1 set 900 901 1", [3]int{1}},
		{"late", scenario{Strict: true, Promise: nothingLost}, "peer1 set 1100 1101 1", [3]int{0, 1}},
		{"hidden", scenario{Promise: nothingOverwritten}, "peer1 set 900 901 1", [3]int{0, 0, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.scenario.Timing.Stale = time.Second
			_, landings := follow(statements(t, "peer1 claim 0 1 1", "peer1 decide 2 3 0", "peer1 get 4 5 0", c.set))
			v := &verdict{Scenario: c.scenario}
			v.judgeHistory(map[string][]*increment{"c": told(t, increments...)}, final, landings)
			if got := [3]int{v.Lost, v.LostToLate, v.LostToHidden}; got != c.want || len(v.Violations) != c.want[0] {
				t.Errorf("got %v, want %v: %q", got, c.want, v.Violations)
			}
		})
	}
}

func TestAcquiring(t *testing.T) {
	waited := []string{
		"ours2 entry.read 0 1 0", "ours2 lock.claim 40 41 0", "ours2 lock.read 42 43 0", "ours2 lock.claim 50 51 1", "ours2 lock.read 52 53 0",
		"ours2 entry.update.newest 54 55 0", "ours2 entry.update.write 56 57 refused", "ours2 entry.update.write 58 59 1", "ours2 lock.release 60 61 0",
	}
	trace := statements(t, append(oursRound("ours1"), waited...)...)
	holds, landings := follow(trace)
	v := &verdict{}
	v.judgeAcquiring(holds, trace)
	if want := (durations{4 * time.Millisecond}); !slices.Equal(v.Uncontended, want) {
		t.Errorf("uncontended %v, want %v", v.Uncontended, want)
	}
	if want := (durations{13 * time.Millisecond}); !slices.Equal(v.Contended, want) {
		t.Errorf("contended %v, want %v", v.Contended, want)
	}
	if v.Refused != 1 || len(landings) != 2 {
		t.Errorf("%d writes refused and %d stored, want 1 and 2", v.Refused, len(landings))
	}
}

func TestPercentile(t *testing.T) {
	var d durations
	if got := d.percentile(50); got != 0 {
		t.Errorf("of none: %s", got)
	}
	for n := range 100 {
		d = append(d, time.Duration(100-n))
	}
	for p, want := range map[int]time.Duration{0: 1, 50: 51, 99: 100, 100: 100} {
		if got := d.percentile(p); got != want {
			t.Errorf("percentile %d is %d, want %d", p, got, want)
		}
	}
}

func TestReadJournal(t *testing.T) {
	for _, c := range []struct {
		name, text string
		events     int
		fails      bool
	}{
		{"whole", `{"kind":"began"}` + "\n" + `{"kind":"ended"}` + "\n", 2, false},
		{"cut off by a kill", `{"kind":"began"}` + "\n" + `{"kind":"en`, 1, false},
		{"damaged", `{"kind":"be` + "\n" + `{"kind":"ended"}` + "\n", 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := 0
			err := readJournal(strings.NewReader(c.text), func(event) { n++ })
			if n != c.events || (err != nil) != c.fails {
				t.Errorf("%d events, %v", n, err)
			}
		})
	}
}

func TestPlainMeltanoMustLose(t *testing.T) {
	v := &verdict{Scenario: scenario{Peers: 1, Promise: mustLose}, IncrementsPeers: 10}
	v.conclude()
	if len(v.Violations) != 1 {
		t.Errorf("violations %q", v.Violations)
	}
}
