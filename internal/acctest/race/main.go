// Command race proves the lock by contention: processes of ours and Meltano clients increment shared counters under the
// lock, while they are stalled, stopped, killed and cut off, and while merges are forced on the lock table. Afterwards it
// reads the server's query log and the processes' journals, and says whether an acknowledged increment is missing, whether
// a write came within another's hold, and what else was promised.
//
// It ends with status 1 if a promise is broken, and also if plain Meltano clients among themselves lose nothing: then the
// race would not notice a loss of ours either.
//
//	go run ./internal/acctest/race -increments 10000 -markdown table.md
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/acctest"
	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/embedded"
)

func main() {
	maybeWork()
	embedded.MaybeRunChild()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "race: %v\n", err)
		os.Exit(1)
	}
}

// options of the command.
type options struct {
	increments int64
	limit      time.Duration
	seed       uint64
	only       string
	markdown   string
	evidence   string
	short      bool
	bench      bool
	server     string
}

func parse(args []string, errors io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("race", flag.ContinueOnError)
	flags.SetOutput(errors)
	flags.Int64Var(&o.increments, "increments", 10000, "increments to make on strict lock tables; the other scenarios make a part of that")
	flags.DurationVar(&o.limit, "limit", 30*time.Minute, "the longest that one scenario may take")
	flags.Uint64Var(&o.seed, "seed", 0, "seed of all random choices; 0 picks one")
	flags.StringVar(&o.only, "only", "", "run the scenarios whose name contains this")
	flags.StringVar(&o.markdown, "markdown", "", "file to write the table to, as Markdown")
	flags.StringVar(&o.evidence, "evidence", "", "folder to keep the statements and the journals of broken promises in")
	flags.BoolVar(&o.short, "short", false, "shorter times and more faults, for few increments")
	flags.BoolVar(&o.bench, "bench", false, "measure one cycle of the lock beside Meltano's instead")
	flags.StringVar(&o.server, "server", "", "host:native port:HTTP port of a server with a query log, for the user default without a password; default: an embedded one")
	err = flags.Parse(args)
	if o.seed == 0 {
		o.seed = rand.Uint64()
	}
	return o, err
}

func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args, out)
	if err != nil {
		return err
	}
	server, stop, err := findServer(ctx, o.server)
	if err != nil {
		return err
	}
	defer stop()
	if o.bench {
		return bench(ctx, server, out)
	}
	verdicts, err := races(ctx, server, o, out)
	if o.markdown != "" && len(verdicts) > 0 {
		err = errors.Join(err, writeFile(o.markdown, verdicts))
	}
	return err
}

// races runs the scenarios one after the other, and says of each what it showed.
func races(ctx context.Context, server acctest.Endpoint, o options, out io.Writer) (verdicts []*verdict, err error) {
	p := long
	if o.short {
		p = short
	}
	fmt.Fprintf(out, "seed %d\n\n", o.seed)
	broken := 0
	for _, s := range scenarios(p) {
		if !strings.Contains(s.Name, o.only) {
			continue
		}
		v, err := race(ctx, server, s, o)
		if err != nil {
			return verdicts, err
		}
		writeText(out, []*verdict{v})
		verdicts = append(verdicts, v)
		broken += len(v.Violations)
	}
	switch {
	case len(verdicts) == 0:
		return nil, fmt.Errorf("no scenario is called %q", o.only)
	case broken > 0:
		return verdicts, fmt.Errorf("%d violations (seed %d)", broken, o.seed)
	}
	return verdicts, nil
}

func writeFile(name string, verdicts []*verdict) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	writeMarkdown(file, verdicts)
	return file.Close()
}

// findServer is the server that was named, or an embedded one.
func findServer(ctx context.Context, named string) (_ acctest.Endpoint, stop func(), err error) {
	if named == "" {
		s, err := embedded.Start(ctx, embedded.Options{QueryLog: true})
		if err != nil {
			return acctest.Endpoint{}, nil, err
		}
		return acctest.EndpointOf(s), s.Stop, nil
	}
	parts := strings.Split(named, ":")
	if len(parts) != 3 {
		return acctest.Endpoint{}, nil, fmt.Errorf("-server %q: want host:native port:HTTP port", named)
	}
	nativePort, err := strconv.Atoi(parts[1])
	if err != nil {
		return acctest.Endpoint{}, nil, fmt.Errorf("-server: native port: %w", err)
	}
	httpPort, err := strconv.Atoi(parts[2])
	if err != nil {
		return acctest.Endpoint{}, nil, fmt.Errorf("-server: HTTP port: %w", err)
	}
	return acctest.Endpoint{Host: parts[0], NativePort: nativePort, HTTPPort: httpPort, Username: "default"}, func() {}, nil
}
