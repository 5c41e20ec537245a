// Command tidemark looks after Tidemark apps from outside.
//
//	tidemark check --app ID --brokers HOST:PORT --shape FILE [--allow-non-restored OPERATOR,…]
//	tidemark reset --app ID --brokers HOST:PORT [--state DIR] [--yes]
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
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := root().ExecuteContext(ctx)
	if errors.Is(err, errIncompatible) {
		os.Exit(incompatibleStatus)
	}
	if err != nil {
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
	cmd.AddCommand(checkCommand(), resetCommand())
	return cmd
}
