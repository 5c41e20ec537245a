package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tidemark/tidemark/internal/kafkatest"
)

// A crashCase is one line of the crash matrix.
type crashCase struct {
	name string
	what string
	tv1  bool // on a broker with transaction.version 1
	snap bool // with snapshots in a bucket
	run  func(ctx context.Context, s *scene) error
}

// crashLimit bounds one case: nothing may hang silently.
const crashLimit = 3 * time.Minute

func runCrash(ctx context.Context, keep, only string) error {
	dir := keep
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "verify-crash-"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	var cases []crashCase
	for _, c := range crashCases() {
		if strings.Contains(c.name, only) {
			cases = append(cases, c)
		}
	}
	passed := 0
	for _, tv1 := range []bool{false, true} {
		n, err := crashOn(ctx, dir, tv1, cases)
		passed += n
		if err != nil {
			return err
		}
	}
	fmt.Printf("crash matrix: %d/%d\n", passed, len(cases))
	if passed < len(cases) {
		return fmt.Errorf("%d cases failed, logs are under %s", len(cases)-passed, dir)
	}
	return nil
}

// crashOn runs the cases for one kind of broker.
func crashOn(ctx context.Context, dir string, tv1 bool, cases []crashCase) (passed int, err error) {
	var broker *kafkatest.Broker
	bucket := &bucketServer{dir: filepath.Join(dir, "s3")}
	defer func() { err = errors.Join(err, bucket.stop()) }()
	for n, c := range cases {
		if c.tv1 != tv1 {
			continue
		}
		if broker == nil {
			o := kafkatest.Options{Dir: filepath.Join(dir, "broker"), Profile: kafkatest.Kill}
			if tv1 {
				o.Dir, o.TransactionVersion = filepath.Join(dir, "broker-tv1"), 1
			}
			if broker, err = kafkatest.Start(ctx, o); err != nil {
				return passed, err
			}
			defer broker.Stop()
		}
		start := time.Now()
		s, err := crashOne(ctx, broker, bucket, dir, n, c)
		if err == nil && s.report.OK() {
			passed++
		}
		line := "not run"
		if s != nil {
			line = fmt.Sprintf("%s  (%d inputs, %d databases, %d snapshots, %.1f s)", s.verdict(), s.load.Acked(), s.stores, s.snapshots, time.Since(start).Seconds())
		}
		fmt.Printf("%-12s %-62s %s\n", c.name, c.what, line)
		if err != nil {
			fmt.Printf("    FAILED: %v\n", err)
		}
		if s != nil && !s.report.OK() {
			fmt.Printf("    %s\n", strings.ReplaceAll(s.report.Explain(), "\n", "\n    "))
		}
		if ctx.Err() != nil {
			return passed, ctx.Err()
		}
	}
	return passed, nil
}

func crashOne(ctx context.Context, b *kafkatest.Broker, bucket *bucketServer, dir string, n int, c crashCase) (*scene, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, crashLimit, errors.New("the case takes too long"))
	defer cancel()
	s, err := newScene(ctx, b.Addr(), fmt.Sprintf("case%02d", n), dir, load{setBoth, 4, 2 * time.Minute, uint64(n) + 1})
	if err != nil {
		return nil, err
	}
	defer s.close()
	if c.snap {
		if s.bucket, err = bucket.endpoint(ctx); err != nil {
			return s, err
		}
	}
	if err := c.run(ctx, s); err != nil {
		return s, err
	}
	return s, s.finish(ctx)
}
