package mutant_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/tidemark/tidemark/internal/verify/mutant"
)

// A mutant whose text has gone from the code proves nothing any more.
func TestNoMutantIsStale(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for _, m := range mutant.List() {
		if names[m.Name] {
			t.Errorf("two mutants are called %s", m.Name)
		}
		names[m.Name] = true
		if _, err := m.Overlay(root, t.TempDir()); err != nil {
			t.Error(err)
		}
	}
	if len(names) < 24 {
		t.Errorf("%d mutants", len(names))
	}
}

func TestStale(t *testing.T) {
	m := mutant.Mutant{Name: "x", Edits: []mutant.Edit{{File: "mutant.go", Old: "no such\x00text"}}}
	if _, err := m.Overlay(".", t.TempDir()); !errors.Is(err, mutant.ErrStale) {
		t.Errorf("got %v", err)
	}
}
