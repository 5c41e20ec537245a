// Command kafka starts and stops a real Kafka broker on loopback, for tests and for trying things
// out by hand:
//
//	go run ./tools/kafka up      # starts it in the background and prints its address
//	go run ./tools/kafka down    # stops it
//
// It needs Java 17 and, for the first start, Maven. All data is below -dir.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/tidemark/tidemark/internal/kafkatest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "kafka:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, errs io.Writer) error {
	if len(args) == 0 {
		fmt.Fprintln(errs, "usage: kafka up|down [flags]")
		return flag.ErrHelp
	}
	cache, err := kafkatest.CacheDir()
	if err != nil {
		return err
	}
	flags := flag.NewFlagSet("kafka "+args[0], flag.ContinueOnError)
	flags.SetOutput(errs)
	dir := flags.String("dir", filepath.Join(cache, "broker"), "directory of the broker's data, log and pid")
	switch args[0] {
	case "up":
		port := flags.Int("port", 0, "client port (default: the port of the last start on this directory, else a free one)")
		profile := flags.String("profile", "kill", "kill, stop or bench: what will be done to the broker")
		version := flags.Int("transaction-version", 0, "1 or 2; for a new directory (default: the broker's)")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		p, ok := kafkatest.ParseProfile(*profile)
		if !ok {
			return fmt.Errorf("unknown profile %q", *profile)
		}
		b, err := kafkatest.Start(ctx, kafkatest.Options{
			Dir: *dir, Port: *port, Profile: p, TransactionVersion: *version, Detach: true,
		})
		if err != nil {
			return err
		}
		fmt.Fprintln(out, b.Addr())
		return nil
	case "down":
		clean := flags.Bool("clean", false, "remove the data too")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		was, err := kafkatest.StopDir(*dir)
		if err != nil {
			return err
		}
		if !was {
			fmt.Fprintln(errs, "kafka: no broker is running on", *dir)
		}
		if *clean {
			return cleanDir(*dir)
		}
		return nil
	default:
		return fmt.Errorf("unknown command %q: want up or down", args[0])
	}
}

// cleanDir removes what a broker wrote, and the directory if nothing else is in it.
func cleanDir(dir string) error {
	for _, name := range []string{"log", "broker.log", "server.properties", "log4j2.properties"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	_ = os.Remove(dir) // fails when the user keeps other files there
	return nil
}
