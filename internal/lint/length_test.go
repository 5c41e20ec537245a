package lint

import (
	"slices"
	"strings"
	"testing"
)

const (
	maxLines    = 600
	medianLines = 150
)

// longFiles may be longer than maxLines, each for the reason given.
var longFiles = map[string]string{}

func TestFileLengths(t *testing.T) {
	var lengths []int
	seen := map[string]bool{}
	for _, s := range sources(t) {
		if s.generated() {
			continue
		}
		n := strings.Count(s.text, "\n")
		if n > maxLines {
			seen[s.name] = true
			if longFiles[s.name] == "" {
				t.Errorf("%s has %d lines, more than %d: split it by mechanism, or list it with a reason", s.name, n, maxLines)
			}
		}
		if !s.test {
			lengths = append(lengths, n)
		}
	}
	for name := range longFiles {
		if !seen[name] {
			t.Errorf("%s is listed as long but is not", name)
		}
	}
	slices.Sort(lengths)
	median := lengths[len(lengths)/2]
	t.Logf("%d files, median %d lines, longest %d", len(lengths), median, lengths[len(lengths)-1])
	if median > medianLines {
		t.Errorf("the median file has %d lines, more than %d", median, medianLines)
	}
}
