// Command fetch-engine fetches the ClickHouse engine that the tests and the demo run on, unless there is one already.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/clickhousestate/terraform-provider-clickhousestate/internal/embedded"
)

func main() {
	if host := os.Getenv("CLICKHOUSE_HOST"); host != "" {
		fmt.Printf("CLICKHOUSE_HOST names the server %s: no engine needed\n", host)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	engine, err := embedded.FetchEngine(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("ClickHouse engine:", engine.Path)
}
