package mutant_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark/tidemark/internal/verify/mutant"
)

// What a test needs stays: through functions, types with their methods, and variables. The rest goes, imports included.
func TestPrune(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a_test.go": "package a\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\n// TestA is.\nfunc TestA(t *testing.T) { helper(t) }\n\nfunc TestB(t *testing.T) { os.Exit(other) }\n",
		"b_test.go": "package a\n\nimport (\n\t\"fmt\"\n\t\"math/rand/v2\"\n\t\"testing\"\n)\n\nfunc helper(t *testing.T) { t.Log(thing{}) }\n\ntype thing struct{}\n\nfunc (thing) String() string { return fmt.Sprint(rand.Int(), one) }\n\nconst (\n\tone = iota\n\ttwo\n)\n",
		"c_test.go": "package a\n\nvar other = 7\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := mutant.Prune(dir, mutant.Test{Run: "^(TestA)$/^sub$"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"a_test.go": {"// TestA is.", "func TestA", `"testing"`},
		"b_test.go": {"func helper", "type thing", "func (thing) String", "two", `"fmt"`, `"math/rand/v2"`},
	} {
		for _, s := range want {
			if !strings.Contains(got[filepath.Join(dir, name)], s) {
				t.Errorf("%s lacks %s", name, s)
			}
		}
	}
	if s := got[filepath.Join(dir, "a_test.go")]; strings.Contains(s, "TestB") || strings.Contains(s, `"os"`) {
		t.Errorf("too much is left: %s", s)
	}
	if s, ok := got[filepath.Join(dir, "c_test.go")]; !ok || s != "" {
		t.Errorf("c_test.go: %q, %v", s, ok)
	}
}
