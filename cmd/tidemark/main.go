// Command tidemark looks after Tidemark apps from outside, and asks them about their state.
//
//	tidemark check --app ID --brokers HOST:PORT --shape FILE [--allow-non-restored OPERATOR,…]
//	tidemark reset --app ID --brokers HOST:PORT [--state DIR] [--yes]
//	tidemark stores --endpoint HOST:PORT
//	tidemark get STORE KEY... --endpoint HOST:PORT
//	tidemark scan STORE --endpoint HOST:PORT [--prefix P] [--filter EXPRESSION]
//	tidemark windows STORE [KEY] --endpoint HOST:PORT [--from T] [--to T]
//	tidemark watch STORE [KEY] --endpoint HOST:PORT
//	tidemark snapshot list|verify|dump --app ID --dir DIR|--s3 BUCKET/PREFIX
//
// It holds no logic of its own: each command is a thin shell around a package.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tidemark/tidemark/internal/clock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := root().ExecuteContext(ctx)
	if errors.Is(err, errIncompatible) {
		os.Exit(incompatibleStatus)
	}
	if errors.Is(err, errFlawed) {
		os.Exit(1)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tidemark:", err)
		os.Exit(1)
	}
}

func root() *cobra.Command { return rootAt(clock.Real()) }

// rootAt is root with a clock.
func rootAt(clk clock.Clock) *cobra.Command {
	cmd := &cobra.Command{
		Use:           "tidemark",
		Short:         "Look after Tidemark apps, and ask them about their state",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.AddCommand(checkCommand(), resetCommand(), storesCommand(), getCommand(), scanCommand(), windowsCommand(), watchCommand(), snapshotCommand(clk))
	return cmd
}
