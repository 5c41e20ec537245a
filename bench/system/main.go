// Command system is Tidemark as a system under measurement: it runs one workload until SIGTERM and prints "progress N"
// four times a second, N being the records of the input topic it has processed.
//
//	go run ./bench/system -bootstrap 127.0.0.1:9092 -group bench -state DIR -w W2 -p P3 -cache 0
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/tidemark/tidemark/bench/internal/system"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := system.Main(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "system:", err)
		os.Exit(1)
	}
}
