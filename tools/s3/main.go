// Command s3 installs the S3 server that tests start into the cache, and prints its path:
//
//	go run ./tools/s3 install
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/tidemark/tidemark/internal/s3test"
)

func main() {
	if !slices.Equal(os.Args[1:], []string{"install"}) {
		fmt.Fprintln(os.Stderr, "usage: s3 install")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	path, err := s3test.Install(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "s3:", err)
		os.Exit(1)
	}
	fmt.Println(path)
}
