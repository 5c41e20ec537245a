package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/tidemark/tidemark/internal/verify/sim"
)

// simBatch is the number of seeds one process runs.
const simBatch = 50

// runSim runs simulations in processes of their own, two at a time, and prints what failed. With plans it prints the plan of
// every seed first.
func runSim(ctx context.Context, first uint64, n int, plans bool) error {
	copies := 0
	for i := range n {
		s := sim.Draw(first + uint64(i))
		if s.Copies.On() {
			copies++
		}
		if plans {
			fmt.Println(s)
		}
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	hash, err := codeHash(root)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "verify-sim-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, "sim.test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", bin, simPackage)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	start := time.Now()
	batches := make(chan uint64)
	var mu sync.Mutex
	failed := 0
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for at := range batches {
				size := min(simBatch, int(first)+n-int(at))
				cmd := exec.CommandContext(ctx, bin, "-test.run", "^TestSeeds$", "-test.parallel", "1", "-test.timeout", "5m",
					"-first", fmt.Sprint(at), "-seeds", fmt.Sprint(size))
				cmd.Dir = filepath.Join(root, "internal", "verify", "sim")
				out, err := cmd.CombinedOutput()
				if err == nil || ctx.Err() != nil {
					continue
				}
				f := max(1, len(failedSeed.FindAll(out, -1)))
				log := filepath.Join(os.TempDir(), fmt.Sprintf("verify-sim-%d.log", at))
				mu.Lock()
				failed += f
				fmt.Printf("seeds %d to %d: %d failed, log in %s: %s\n", at, at+uint64(size)-1, f, log, finding(out))
				mu.Unlock()
				if err := os.WriteFile(log, out, 0o644); err != nil {
					fmt.Println(err)
				}
			}
		})
	}
	for at := first; at < first+uint64(n); at += simBatch {
		select {
		case batches <- at:
		case <-ctx.Done():
		}
	}
	close(batches)
	wg.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	fmt.Printf("simulations: %d seeds from %d, %d of them with snapshots, %d failed, %.0f s, code %s\n", n, first, copies, failed, time.Since(start).Seconds(), hash)
	if failed > 0 {
		return errors.New("simulations failed")
	}
	return nil
}

var failedSeed = regexp.MustCompile(`(?m)^\s+--- FAIL: TestSeeds/`)

// codeHash names the code: the Go files of the repository, tests left out.
func codeHash(root string) (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		fmt.Fprintln(h, filepath.ToSlash(rel))
		_, err = io.Copy(h, f)
		return err
	})
	return fmt.Sprintf("%x", h.Sum(nil)[:8]), err
}
