// Command s3 installs and runs the S3 server that tests use:
//
//	go run ./tools/s3 install           # into the cache; prints its path
//	go run ./tools/s3 up [-dir DIR]     # runs it with a bucket "tidemark" until it is interrupted
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/tidemark/tidemark/internal/s3test"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "s3:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, errs io.Writer) error {
	if len(args) == 0 {
		fmt.Fprintln(errs, "usage: s3 install|up [flags]")
		return flag.ErrHelp
	}
	flags := flag.NewFlagSet("s3 "+args[0], flag.ContinueOnError)
	flags.SetOutput(errs)
	switch args[0] {
	case "install":
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		name, err := s3test.Install(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, name)
		return nil
	case "up":
		dir := flags.String("dir", "s3-data", "directory of the buckets")
		port := flags.Int("port", 0, "port on loopback (default: a free one)")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return up(ctx, s3test.Options{Dir: *dir, Port: *port}, out)
	default:
		return fmt.Errorf("unknown command %q: want install or up", args[0])
	}
}

// up runs a server until the context ends.
func up(ctx context.Context, o s3test.Options, out io.Writer) error {
	if _, err := s3test.Install(ctx); err != nil {
		return err
	}
	s, err := s3test.Start(ctx, o)
	if err != nil {
		return err
	}
	err = s.CreateBucket("tidemark")
	if err == nil {
		fmt.Fprintf(out, "endpoint %s\nbucket tidemark\naccess key %s\nsecret key %s\n", s.Endpoint(), s3test.AccessKey, s3test.SecretKey)
		<-ctx.Done()
	}
	return errors.Join(err, s.Stop())
}
