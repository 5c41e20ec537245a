package lint

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// named is a test as docs/cases.md writes it: directory and function.
var named = regexp.MustCompile("`([a-z][a-z/0-9]*)\\.([Tt]est[A-Za-z0-9_]+)`")

// missingTests returns the tests a text names that the repository does not have, and how many it names.
func missingTests(text string, all []*source) (missing []string, n int) {
	have := make(map[string]bool)
	for _, s := range all {
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				have[s.dir+"."+f.Name.Name] = true
			}
		}
	}
	for _, m := range named.FindAllStringSubmatch(text, -1) {
		n++
		if name := m[1] + "." + m[2]; !have[name] {
			missing = append(missing, name)
		}
	}
	return missing, n
}

// The tests that docs/cases.md names exist.
func TestCases(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "cases.md"))
	if err != nil {
		t.Fatal(err)
	}
	missing, n := missingTests(string(text), sources(t))
	for _, name := range missing {
		t.Errorf("docs/cases.md names %s, which does not exist", name)
	}
	if n < 80 {
		t.Errorf("docs/cases.md names only %d tests: has its form changed?", n)
	}
}

func TestCasesRule(t *testing.T) {
	s, err := parseText("a/b_test.go", "package b\nfunc TestThere() {}")
	if err != nil {
		t.Fatal(err)
	}
	missing, n := missingTests("| x | `a.TestThere`, `a.TestGone`, `other.TestThere` |", []*source{s})
	if n != 3 || len(missing) != 2 {
		t.Errorf("%d named, missing %q", n, missing)
	}
}
