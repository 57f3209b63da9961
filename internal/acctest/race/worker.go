package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
)

// workerEnv marks a process as a worker and tells it what to do.
const workerEnv = "CLICKHOUSESTATE_RACE_WORKER"

// A kind of worker.
type kind string

const (
	// kindOurs works through package statestore, as the provider does.
	kindOurs kind = "ours"
	// kindPeer is a Meltano client.
	kindPeer kind = "peer"
)

// A workerSpec is what a worker has to know.
type workerSpec struct {
	Kind kind
	// Crowd is how many increments one of ours has in flight, on counters that differ. Zero is one.
	Crowd int
	// Label names the process in the query log and in the counters. It is never used twice.
	Label    string
	Seed     uint64
	Server   acctest.Endpoint
	HTTP     bool
	Database string
	// Strict is the layout of the lock table.
	Strict   bool
	Counters []string
	Timing   timing
	// Work is the longest time that a contender works under the lock, between its reading and its writing.
	Work   time.Duration
	Faults faults
}

// timing are the constants of the protocol, scaled down.
type timing struct {
	// Stale and Backdate are whole seconds: the lock table has no finer clock.
	Stale, Backdate        time.Duration
	Settle, Retry, Timeout time.Duration
}

// A contender makes one increment, or journals why not. An error ends the process.
type contender interface {
	increment(ctx context.Context, counter, token string) error
}

// maybeWork turns this process into a worker if the arena started it for that, and then never returns.
func maybeWork() {
	text := os.Getenv(workerEnv)
	if text == "" {
		return
	}
	var spec workerSpec
	err := json.Unmarshal([]byte(text), &spec)
	if err == nil {
		err = spec.work()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", spec.Label, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// work makes increments until standard input ends, which is also when the arena is gone.
func (s workerSpec) work() error {
	signal.Ignore(syscall.SIGINT) // a Ctrl-C is for the arena, which then ends its workers in good order
	stop := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // an error is an end, too
		close(stop)
	}()
	log := &journal{out: os.Stdout}
	random := rand.New(rand.NewPCG(s.Seed, 1))
	inject := &injector{faults: s.Faults, journal: log, work: s.Work, random: rand.New(rand.NewPCG(s.Seed, 2))}
	worker, err := s.contender(log, inject)
	if err != nil {
		return err
	}
	for n := 1; ; n++ {
		select {
		case <-stop:
			return nil
		default:
		}
		counter := pick(random, s.Counters)
		log.write(event{Kind: began, Counter: counter})
		if err := worker.increment(context.Background(), counter, fmt.Sprintf("%s#%d", s.Label, n)); err != nil {
			return err
		}
	}
}

func (s workerSpec) contender(log *journal, inject *injector) (contender, error) {
	if s.Kind == kindPeer {
		return newPeer(s, log, inject)
	}
	return newOurs(s, log, inject)
}

// pick takes a hot counter now and then, so that some are fought over and others are at rest.
func pick(random *rand.Rand, counters []string) string {
	if len(counters) > hot && random.IntN(4) > 0 {
		counters = counters[hot:]
	} else {
		counters = counters[:min(hot, len(counters))]
	}
	return counters[random.IntN(len(counters))]
}
