package main

import (
	"strings"
	"testing"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
)

func TestMain(m *testing.M) {
	maybeWork()
	acctest.Main(m)
}

// TestRace is the short form of `make race`: a strict lock table with all faults on, and plain Meltano, which has to lose.
func TestRace(t *testing.T) {
	server := acctest.Server(t)
	for _, c := range []struct {
		only       string
		increments int64
		limit      time.Duration
	}{
		{"strict, peers paused below stale", 150, 20 * time.Second},
		{"plain Meltano", 100, 90 * time.Second}, // it ends with the first loss
	} {
		t.Run(c.only, func(t *testing.T) {
			out := &strings.Builder{}
			o := options{increments: c.increments, limit: c.limit, seed: uint64(time.Now().UnixNano()), only: c.only, short: true}
			_, err := races(t.Context(), server, o, out)
			t.Log(out)
			if err != nil {
				t.Error(err)
			}
		})
	}
}
