package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/tidemark/tidemark/internal/verify/mutant"
)

const (
	simPackage  = "./internal/verify/sim"
	mutantSeeds = 100
	mutantLimit = 90 * time.Second
	mutantJobs  = 3 // built and run at a time
)

// runMutants builds the simulations, or the tests a mutant names, with every mutant and wants them to fail.
func runMutants(ctx context.Context, only string) error {
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	var todo []mutant.Mutant
	for _, m := range mutant.List() {
		if strings.Contains(m.String(), only) {
			todo = append(todo, m)
		}
	}
	if err := passUnedited(ctx, root, todo); err != nil {
		return err
	}
	next := make(chan mutant.Mutant)
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		caught int
		errs   []error
	)
	for range mutantJobs {
		wg.Go(func() {
			for m := range next {
				start := time.Now()
				by, err := tryMutant(ctx, root, m)
				mu.Lock()
				switch {
				case err != nil:
					errs = append(errs, err)
					by = "ERROR: " + err.Error()
				case by == "":
					errs = append(errs, fmt.Errorf("mutant %s survives", m))
					by = "SURVIVES"
				default:
					caught++
				}
				fmt.Printf("%-36s %-84s %s  (%.0f s)\n", m, m.What, by, time.Since(start).Seconds())
				mu.Unlock()
			}
		})
	}
	for _, m := range todo {
		select {
		case next <- m:
		case <-ctx.Done():
		}
	}
	close(next)
	wg.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	fmt.Printf("mutants: %d/%d caught\n", caught, len(todo))
	return errors.Join(errs...)
}

func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("go list -m: %w: run it in the repository", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// tryMutant returns what caught the mutant, or nothing.
func tryMutant(ctx context.Context, root string, m mutant.Mutant) (string, error) {
	dir, err := os.MkdirTemp("", "verify-mutant-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	if len(m.Tests) > 0 {
		return failAll(ctx, root, dir, m)
	}
	overlay, err := m.Overlay(root, dir, nil)
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "sim.test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", bin, simPackage)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("mutant %s does not build: %w\n%s", m.Name, err, out)
	}
	run := []string{"-test.run", "^TestSeeds$", "-seeds", fmt.Sprint(mutantSeeds)}
	if m.Scene != "" {
		run = []string{"-test.run", "^TestScenes$/^" + m.Scene + "$"}
	}
	ctx, cancel := context.WithTimeout(ctx, mutantLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, append(run, "-test.failfast", "-test.timeout", "80s")...)
	cmd.Dir = filepath.Join(root, "internal", "verify", "sim")
	out, err := cmd.CombinedOutput()
	if err == nil {
		return "", nil
	}
	return finding(out), nil
}

var findings = regexp.MustCompile(`(?m)^\s*(lost \d+: |duplicated: |wrong: )(.{0,100})`)

// finding picks what the checkers have said.
func finding(out []byte) string {
	if m := findings.FindSubmatch(out); m != nil {
		return "caught: " + string(m[1]) + string(m[2])
	}
	if bytes.Contains(out, []byte("test timed out")) {
		return "caught: comes to no end"
	}
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	return "caught: " + string(lines[0])
}
