// Package program is the main function of services that differ in their topology alone: what an upgrade replaces by one
// another. It is for the programs in testdata, must never decide anything that the library should, and runs everything on its
// caller's goroutine but a line that says that the app is ready.
package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tidemark/tidemark"
	"github.com/tidemark/tidemark/topology"
)

// Exit codes.
const (
	Failed       = 1
	Incompatible = 3
)

// Main runs the app until SIGTERM and returns the exit code. With -check it only says what keeps the topology from taking
// over. Differences are printed as a table, a JSON log goes to standard error.
func Main(top *topology.Topology) int {
	brokers := flag.String("brokers", "", "addresses, with commas")
	dir := flag.String("state", "", "state directory")
	check := flag.Bool("check", false, "compare the topology with what runs, and end")
	flag.Parse()
	encoder := zap.NewProductionEncoderConfig()
	log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(encoder), zapcore.Lock(os.Stderr), zap.InfoLevel))
	cfg := tidemark.Config{
		App: "clicks", Brokers: strings.Split(*brokers, ","), StateDir: *dir, Workers: 1, CommitInterval: 20 * time.Millisecond,
		SessionTimeout: 3 * time.Second, HeartbeatInterval: 100 * time.Millisecond, Logger: log,
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if *check {
		list, err := tidemark.CheckUpgrade(ctx, top, cfg)
		return end(list, err)
	}
	app, err := tidemark.New(top, cfg)
	if err != nil {
		return end(nil, err)
	}
	ended := make(chan struct{})
	said := make(chan struct{})
	go func() {
		defer close(said)
		select {
		case <-app.Ready():
			fmt.Println("ready")
		case <-ended:
		}
	}()
	err = app.Run(ctx)
	close(ended)
	<-said
	if ue, ok := errors.AsType[*tidemark.UpgradeError](err); ok {
		return end(ue.Differences, nil)
	}
	return end(nil, err)
}

func end(list []topology.Difference, err error) int {
	if err == nil && len(list) > 0 {
		fmt.Println("refused")
		if err = topology.WriteDifferences(os.Stdout, list); err == nil {
			return Incompatible
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return Failed
	}
	return 0
}
