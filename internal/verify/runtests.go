package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tidemark/tidemark/internal/verify/mutant"
)

// Mutants that ordinary tests catch. A test that fails without any edit would catch everything, so the tests run
// without one first.

const testLimit = time.Minute // of the tests of one package, with an edit

// passUnedited runs the tests that the mutants name on the code as it is and wants them to pass.
func passUnedited(ctx context.Context, root string, list []mutant.Mutant) error {
	runs := make(map[string][]string)
	for _, m := range list {
		for _, t := range m.Tests {
			if !slices.Contains(runs[t.Package], t.Run) {
				runs[t.Package] = append(runs[t.Package], t.Run)
			}
		}
	}
	dir, err := os.MkdirTemp("", "verify-mutant-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, pkg := range slices.Sorted(maps.Keys(runs)) {
		all := mutant.Test{Package: pkg, Run: strings.Join(runs[pkg], "|")}
		needed, err := mutant.Prune(filepath.Join(root, pkg), all)
		if err != nil {
			return err
		}
		overlay, err := mutant.Mutant{}.Overlay(root, dir, needed)
		if err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-vet=off", "-overlay", overlay, "-timeout", "5m", "-run", all.Run, pkg)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("the tests of %s fail without any edit: %w\n%s", pkg, err, out)
		}
	}
	return nil
}

// failAll returns what caught the mutant: the first test that failed of each run. It returns nothing if a run passes.
func failAll(ctx context.Context, root, dir string, m mutant.Mutant) (string, error) {
	var by []string
	for i, t := range m.Tests {
		bin := filepath.Join(dir, fmt.Sprint(i, ".test"))
		needed, err := mutant.Prune(filepath.Join(root, t.Package), t)
		if err != nil {
			return "", err
		}
		overlay, err := m.Overlay(root, dir, needed)
		if err != nil {
			return "", err
		}
		build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", bin, t.Package)
		build.Dir = root
		if out, err := build.CombinedOutput(); err != nil {
			return "", fmt.Errorf("mutant %s does not build: %w\n%s", m, err, out)
		}
		limited, cancel := context.WithTimeout(ctx, testLimit+10*time.Second)
		cmd := exec.CommandContext(limited, bin, "-test.run", t.Run, "-test.failfast", "-test.timeout", testLimit.String())
		cmd.Dir = filepath.Join(root, t.Package)
		out, err := cmd.CombinedOutput()
		cancel()
		var exit *exec.ExitError
		switch {
		case err == nil:
			return "", nil
		case !errors.As(err, &exit):
			return "", fmt.Errorf("mutant %s: %w", m, err)
		}
		what := failure(out)
		if what == "" {
			return "", fmt.Errorf("mutant %s: no test has failed: %w\n%s", m, err, out)
		}
		by = append(by, t.Package[2:]+" "+what)
	}
	return "caught by " + strings.Join(by, ", "), nil
}

var failures = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// failure returns the name of the innermost test that failed first.
func failure(out []byte) string {
	name := ""
	for _, f := range failures.FindAllSubmatch(out, -1) {
		if name != "" && !strings.HasPrefix(string(f[1]), name+"/") {
			break
		}
		name = string(f[1])
	}
	switch s := string(out); {
	case name != "":
		return name
	case strings.Contains(s, "test timed out"):
		return "a test that comes to no end"
	case strings.Contains(s, "panic: "):
		return "a panic"
	}
	return ""
}
