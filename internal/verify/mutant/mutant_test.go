package mutant_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark/tidemark/internal/verify/mutant"
)

// A mutant whose text has gone from the code proves nothing any more.
func TestNoMutantIsStale(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	names, families := make(map[string]bool), make(map[string]int)
	for _, m := range mutant.List() {
		if names[m.Name] {
			t.Errorf("two mutants are called %s", m.Name)
		}
		names[m.Name] = true
		families[m.Family]++
		if _, err := m.Overlay(root, t.TempDir(), nil); err != nil {
			t.Error(err)
		}
	}
	if families["commit"] < 24 || families["event-time"] < 24 || families["snapshots"] < 50 || families["queries"] < 35 || len(families) != 4 {
		t.Errorf("mutants per family: %v", families)
	}
}

// A mutant that names a test or a history which is not there survives.
func TestNamedTestsExist(t *testing.T) {
	for _, m := range slices.Concat(mutant.EventTime(), mutant.Snapshots(), mutant.Reads(), mutant.Serving()) {
		for _, n := range m.Tests {
			name, sub, nested := strings.Cut(strings.Trim(n.Run, "^()$"), "$/^")
			files, err := filepath.Glob(filepath.Join("..", "..", "..", n.Package, "*_test.go"))
			if err != nil || len(files) == 0 {
				t.Fatalf("%s: no tests in %s: %v", m, n.Package, err)
			}
			found := false
			for _, f := range files {
				b, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				found = found || strings.Contains(string(b), "func "+name+"(t *testing.T)")
			}
			if !found {
				t.Errorf("%s: no test %s in %s", m, name, n.Package)
			}
			if nested {
				if _, err := os.Stat(filepath.Join("..", "..", "..", n.Package, "testdata", "histories", sub+".txt")); err != nil {
					t.Errorf("%s: %v", m, err)
				}
			}
		}
	}
}

func TestStale(t *testing.T) {
	m := mutant.Mutant{Name: "x", Edits: []mutant.Edit{{File: "mutant.go", Old: "no such\x00text"}}}
	if _, err := m.Overlay(".", t.TempDir(), nil); !errors.Is(err, mutant.ErrStale) {
		t.Errorf("got %v", err)
	}
}
