// Command tidemark looks after Tidemark apps from outside.
//
//	tidemark reset --app ID --brokers HOST:PORT [--state DIR] [--yes]
//
// It holds no logic of its own: each command is a thin shell around a package.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := root().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "tidemark:", err)
		os.Exit(1)
	}
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "tidemark",
		Short:         "Look after Tidemark apps",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.AddCommand(resetCommand())
	return cmd
}
