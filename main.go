// Command terraform-provider-clickhousestate is a Terraform provider for Meltano pipeline state kept in ClickHouse.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	ours "github.com/clickhousestate/terraform-provider-clickhousestate/internal/provider"
)

// address is where the registry publishes the provider.
const address = "registry.terraform.io/clickhousestate/clickhousestate"

// version is stamped by the release: -ldflags "-X main.version=1.2.3".
var version = "dev"

// closeTimeout bounds the release of what is still held when Terraform is done with us. Terraform kills a
// plugin 2 s after it asked it to end.
const closeTimeout = 1500 * time.Millisecond

// parentInterval is how often it is looked whether Terraform still lives.
const parentInterval = time.Second

func main() {
	showVersion := flag.Bool("version", false, "print the version and exit")
	debug := flag.Bool("debug", false, "serve for a debugger, and print how Terraform can reattach")
	flag.Parse()

	if *showVersion {
		fmt.Println(version)
		return
	}
	if err := serve(context.Background(), *debug); err != nil {
		log.Fatal(err)
	}
}

func serve(ctx context.Context, debug bool) error {
	quietSDK(os.Environ(), os.Setenv)

	p := ours.New(version)
	// A lock that is still held at the end was not released in time, or never asked to be.
	end := sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(ctx, closeTimeout)
		defer cancel()
		p.Close(ctx)
	})
	if !debug {
		// A SIGTERM that is sent to all processes of a job is left to Terraform, as a Ctrl-C is: it asks us to
		// stop. A log line that nobody reads any more must not end us before the locks are released.
		signal.Ignore(syscall.SIGTERM, syscall.SIGPIPE)
		go endWithParent(os.Getppid(), end)
	}
	err := providerserver.Serve(ctx, func() provider.Provider { return p }, providerserver.ServeOpts{
		Address:         address,
		Debug:           debug,
		ProtocolVersion: 6,
	})
	end()
	return err
}

// endWithParent ends this process if Terraform dies without having ended it, as after kill -9: nobody else would, and
// it would renew its locks for ever. Where the system keeps no parent, such as Windows, this does nothing.
func endWithParent(parent int, end func()) {
	for range time.Tick(parentInterval) {
		if os.Getppid() != parent {
			end()
			os.Exit(1)
		}
	}
}

// quietSDK turns the logs of the plugin SDK off unless the environment asks for some log. The SDK writes them at
// TRACE even when nobody listens, and that takes more than half of the time of a large plan.
func quietSDK(environ []string, setenv func(key, value string) error) {
	for _, entry := range environ {
		key, value, _ := strings.Cut(entry, "=")
		switch {
		case value == "" || !strings.HasPrefix(key, "TF_LOG"):
		case key == "TF_LOG_PATH" || key == "TF_LOG_CORE": // where to, and Terraform's own: no log of ours
		default:
			return
		}
	}
	if err := setenv("TF_LOG_SDK", "OFF"); err != nil {
		log.Printf("[WARN] cannot turn the SDK's logs off: %v", err)
	}
}
