package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark"
	"github.com/tidemark/tidemark/internal/engine"
	"github.com/tidemark/tidemark/internal/verify/workload"
)

// Exit codes of a child.
const (
	exitOK             = 0
	exitFailed         = 3
	exitOffsetsChanged = 4
)

// child runs one instance until SIGTERM. Its log goes to standard error, one JSON object a line.
func child(arg string) int {
	s, err := parseSpec(arg)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitFailed
	}
	encoder := zap.NewProductionEncoderConfig()
	encoder.EncodeTime = zapcore.ISO8601TimeEncoder
	log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(encoder), zapcore.Lock(os.Stderr), zap.InfoLevel))
	cfg := s.config()
	cfg.Logger = log
	dialer := newEndTxnDialer(s, log)
	cfg.Testing.CrashPoint = s.crashPoint(dialer, log)
	if s.EndTxn != "" {
		cfg.Kafka.Opts = append(cfg.Kafka.Opts, kgo.Dialer(dialer.dial), kgo.RetryTimeout(2*time.Second))
	}
	if s.Bucket != "" {
		store, err := openBucket(context.Background(), s.Bucket)
		if err != nil {
			log.Error("bucket", zap.Error(err))
			return exitFailed
		}
		cfg.Snapshots = tidemark.Snapshots{Store: store, Interval: s.Snapshots, Restore: s.Restore}
		cfg.Testing.SnapshotGrace = s.Grace
	}
	app, err := tidemark.New(workload.Topology(s.App, s.topics()), cfg)
	if err != nil {
		log.Error("configuration", zap.Error(err))
		return exitFailed
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	switch err := app.Run(ctx); {
	case errors.Is(err, tidemark.ErrOffsetsChanged):
		return exitOffsetsChanged
	case err != nil:
		log.Error("the app has ended", zap.Error(err))
		return exitFailed
	}
	return exitOK
}

// crashPoint returns the hook that ends or stops the process at its point.
func (s *spec) crashPoint(d *endTxnDialer, log *zap.Logger) func(engine.Point) {
	var hits atomic.Int64
	return func(p engine.Point) {
		if string(p) != s.Point || s.EndTxn != "" && !d.disturbed() || hits.Add(1) != int64(s.Hit) {
			return
		}
		log.Info("crash point", zap.String("point", s.Point), zap.Int("hit", s.Hit), zap.String("action", s.Action))
		sig := syscall.SIGKILL
		if s.Action == actionStop {
			sig = syscall.SIGSTOP
		}
		if err := syscall.Kill(os.Getpid(), sig); err != nil {
			log.Error("kill", zap.Error(err))
		}
	}
}
