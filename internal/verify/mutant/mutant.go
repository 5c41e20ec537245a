package mutant

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Mutant is one broken rule.
type Mutant struct {
	// Family is what the rule is about: "commit", "event-time", "snapshots" or "queries".
	Family string
	Name   string
	What   string
	// Scene is the directed simulation that catches it; empty: random seeds do, or Tests.
	Scene string
	Edits []Edit
	// Tests are ordinary tests that all catch it, without a simulation.
	Tests []Test
}

// Test names tests of one package: its directory from the root, and what go test -run takes.
type Test struct{ Package, Run string }

// of gives mutants their family.
func of(family string, list []Mutant) []Mutant {
	for i := range list {
		list[i].Family = family
	}
	return list
}

// String is the family and the name.
func (m Mutant) String() string { return m.Family + "/" + m.Name }

// Edit replaces the first occurrence of Old, which must be there.
type Edit struct{ File, Old, New string }

// ErrStale says that the code has changed and the mutant must follow.
var ErrStale = errors.New("mutant is stale")

// Overlay writes the edited files and the overlay that names them into dir, and returns the overlay's path. Further
// files by path get the text given there; those without any text are left out.
func (m Mutant) Overlay(root, dir string, further map[string]string) (string, error) {
	replace := make(map[string]string)
	text := make(map[string]string)
	for path, s := range further {
		if replace[path] = ""; s != "" {
			text[path] = s
		}
	}
	for _, e := range m.Edits {
		path := filepath.Join(root, e.File)
		if _, ok := text[path]; !ok {
			b, err := os.ReadFile(path)
			if err != nil {
				return "", fmt.Errorf("mutant %s: %w: %w", m.Name, ErrStale, err)
			}
			text[path] = string(b)
		}
		if !strings.Contains(text[path], e.Old) {
			return "", fmt.Errorf("mutant %s: %w: %s no longer has %q", m.Name, ErrStale, e.File, e.Old)
		}
		text[path] = strings.Replace(text[path], e.Old, e.New, 1)
	}
	n := 0
	for path, s := range text {
		n++
		f := filepath.Join(dir, fmt.Sprintf("%d.go", n))
		if err := os.WriteFile(f, []byte(s), 0o644); err != nil {
			return "", err
		}
		replace[path] = f
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	out := filepath.Join(dir, "overlay.json")
	return out, os.WriteFile(out, b, 0o644)
}
