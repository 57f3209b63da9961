package main

import (
	"encoding/json"
	"fmt"
	"maps"
)

// seedToken is the token of the value that a counter begins with.
const seedToken = "seed"

// A tally is the value of a shared counter, stored as a bookmark. It is made so that a lost increment cannot hide: Last
// is the token of the increment that made this value, and each increment records which token it built on. So the increments
// form a tree, and those on the way from the final value to the seed are the ones that count.
type tally struct {
	// Last is the token of the newest increment.
	Last string `json:"last"`
	// Counts are the increments of each process, by label.
	Counts map[string]int `json:"counts"`
}

type payload struct {
	SingerState tally `json:"singer_state"`
}

// next is the value after one more increment of a process.
func (t tally) next(label, token string) tally {
	counts := maps.Clone(t.Counts)
	if counts == nil {
		counts = map[string]int{}
	}
	counts[label]++
	return tally{Last: token, Counts: counts}
}

// JSON is the payload that holds the value.
func (t tally) JSON() string {
	text, err := json.Marshal(payload{t})
	if err != nil {
		panic(err) // strings and integers alone
	}
	return string(text)
}

func parseTally(text string) (tally, error) {
	var p payload
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return tally{}, fmt.Errorf("read a counter: %w", err)
	}
	if p.SingerState.Last == "" {
		return tally{}, fmt.Errorf("read a counter: no token in it")
	}
	return p.SingerState, nil
}
