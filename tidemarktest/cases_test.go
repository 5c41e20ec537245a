package tidemarktest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// The histories that docs/cases.md names exist.
func TestCasesNameHistories(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "cases.md"))
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile("`([a-z]+/[A-Z][A-Z0-9-]+)`").FindAllStringSubmatch(string(text), -1)
	for _, m := range names {
		if _, err := os.Stat(filepath.Join("testdata", "histories", m[1]+".txt")); err != nil {
			t.Errorf("docs/cases.md names history %s: %v", m[1], err)
		}
	}
	if len(names) < 50 {
		t.Errorf("docs/cases.md names only %d histories", len(names))
	}
}
