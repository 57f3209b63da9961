// Command demo shows the provider at work: real Terraform, a real ClickHouse, and the bookmarks of examples/complete.
//
// It builds the provider, starts an embedded ClickHouse (or uses the one that CLICKHOUSE_HOST names, in a database of its
// own), and checks each step: it ends with 0 only if everything went as it says. It leaves nothing behind, also when it
// fails or is interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/embedded"
)

func main() {
	embedded.MaybeRunChild()
	// A second Ctrl-C changes nothing: what follows the first one is the cleaning up, and that is bounded.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Stdout)
	switch {
	case err == nil:
	case errors.Is(ctx.Err(), context.Canceled):
		fmt.Fprintln(os.Stderr, "\ndemo: interrupted, and cleaned up")
		os.Exit(130)
	default:
		fmt.Fprintln(os.Stderr, "\ndemo:", err)
		os.Exit(1)
	}
}
