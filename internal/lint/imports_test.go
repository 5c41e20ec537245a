package lint

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// row is one line of the import table. A package belongs to the row with the longest path that is a
// prefix of its own, and may import packages of lower levels and of its own row.
type row struct {
	path   string
	level  int
	forbid []string // import paths, or prefixes of them, that this row may not import
	pure   bool     // no goroutines
	clock  bool     // may import internal/clock
}

const (
	kafka      = "github.com/twmb/franz-go"
	pebble     = "github.com/cockroachdb/pebble"
	zap        = "go.uber.org/zap"
	prometheus = "github.com/prometheus"
	aws        = "github.com/aws"

	// s3 is the one package that links the S3 client. Who needs a bucket imports it, nobody else pays for it.
	s3 = "changelog/s3"

	// top is the level of programs; their packages may import each other.
	top = 6
)

var (
	inputOutput = []string{"os", "net", "io/fs", "syscall"}
	watchers    = []string{zap, prometheus}
)

func join(lists ...[]string) []string { return slices.Concat(lists...) }

// table is the layout of the repository: an arrow only ever points down.
var table = []row{
	{path: "codec", level: 0, forbid: join(watchers, inputOutput, []string{kafka, pebble}), pure: true},
	{path: "window", level: 0, forbid: join(watchers, inputOutput, []string{kafka, pebble}), pure: true},
	{path: "watermark", level: 0, forbid: join(watchers, inputOutput, []string{kafka, pebble}), pure: true},
	{path: "store", level: 1, forbid: []string{kafka, pebble}, pure: true},
	{path: "store/storetest", level: 2, forbid: []string{kafka, pebble}},
	{path: "store/pebblestore", level: 2, forbid: []string{kafka}, clock: true},
	{path: "processor", level: 2, forbid: join(watchers, inputOutput, []string{kafka, pebble}), pure: true},
	{path: "topology", level: 3, forbid: join(watchers, inputOutput, []string{kafka, pebble}), pure: true},
	{path: "changelog", level: 3, forbid: []string{pebble}, clock: true},
	{path: "changelog/objects", level: 2, forbid: []string{kafka, pebble}, clock: true},
	{path: s3, level: 3, forbid: join(watchers, []string{kafka, pebble}), clock: true},
	{path: "changelog/snapshot", level: 3, forbid: join(watchers, []string{kafka, pebble})},
	{path: "query", level: 2, forbid: join(watchers, inputOutput, []string{kafka, pebble}), pure: true},
	{path: "rebalance", level: 3, forbid: []string{pebble}, clock: true},
	{path: "internal/engine", level: 4, forbid: []string{pebble}, clock: true},
	{path: "internal/reset", level: 4, forbid: []string{pebble}},
	{path: "internal/taskstore", level: 4, forbid: []string{kafka, pebble}, pure: true, clock: true},
	{path: ".", level: 5, forbid: []string{pebble}, clock: true},
	{path: "serve", level: 5, forbid: []string{kafka, pebble, "internal/engine"}, clock: true},
	{path: "cmd", level: top, clock: true},
	{path: "tidemarktest", level: top, clock: true},
	{path: "examples", level: top, clock: true},
	{path: "bench", level: top, clock: true},
	{path: "internal/verify", level: top, clock: true},
	{path: "tools", level: top, clock: true},
	{path: "internal/lint", level: top},
}

// helpers stand beside the table. They import nothing of the repository but each other.
var helpers = []string{"internal/childproc", "internal/clock", "internal/invariants", "internal/rate", "internal/wire", "internal/embedded", "internal/kafkatest", "internal/s3test"}

func rowOf(dir string) *row {
	var best *row
	for i := range table {
		r := &table[i]
		switch {
		case r.path == "." && dir == "":
			return r
		case within(dir, r.path) && (best == nil || len(r.path) > len(best.path)):
			best = r
		}
	}
	return best
}

func within(path, prefix string) bool { return path == prefix || strings.HasPrefix(path, prefix+"/") }

func isHelper(path string) bool { return slices.Contains(helpers, path) }

// checkImports holds the files of a build against the table. Test files may import what they like,
// except that the packages under test would then not build in a cycle anyway.
func checkImports(s *source) []string {
	if s.test {
		return nil
	}
	r := rowOf(s.dir)
	if r == nil && !isHelper(s.dir) {
		return []string{fmt.Sprintf("%s: package %q stands in no row of the import table", s.name, s.dir)}
	}
	var findings []string
	for _, imported := range s.imports() {
		if reason := judge(s.dir, r, imported); reason != "" {
			findings = append(findings, fmt.Sprintf("%s: imports %s: %s", s.name, imported, reason))
		}
	}
	return findings
}

func judge(dir string, r *row, imported string) string {
	target := rowOf(strings.TrimPrefix(imported, "."))
	helper := isHelper(imported)
	if r == nil { // a helper
		if target != nil {
			return "a helper imports helpers only"
		}
		return ""
	}
	if within(imported, aws) && dir != s3 {
		return "the S3 client stays in " + s3
	}
	for _, f := range r.forbid {
		if within(imported, f) {
			return "forbidden here"
		}
	}
	switch {
	case imported == "internal/invariants", imported == "internal/wire":
	case imported == "internal/clock", imported == "internal/rate":
		if !r.clock {
			return "time is an argument here"
		}
	case helper && r.level < top:
		return "for tests and programs only"
	case imported == s3 && r.level < top:
		return "links the S3 client into every service"
	case target == nil || target == r:
	case target.level >= r.level && r.level < top:
		return fmt.Sprintf("level %d imports level %d", r.level, target.level)
	}
	return ""
}

func TestImports(t *testing.T) { report(t, checkImports) }

func TestImportRule(t *testing.T) {
	file := func(name, imported string) sample {
		return sample{name: name, text: "package p\nimport _ \"" + imported + "\""}
	}
	bad := func(name, imported string) sample {
		s := file(name, imported)
		s.bad = true
		return s
	}
	try(t, checkImports, []sample{
		file("codec/a.go", "time"),
		file("store/storetest/a.go", module+"/store"),
		file("store/pebblestore/a.go", pebble+"/v2"),
		file("topology/a.go", module+"/processor"),
		file("a.go", module+"/internal/engine"),
		file("a.go", kafka+"/pkg/kgo"),
		file("cmd/tidemark/a.go", module),
		file("examples/campaign/a.go", module+"/internal/embedded"),
		file("bench/system/a.go", module+"/bench/load"),
		file("internal/engine/a.go", module+"/internal/clock"),
		file("processor/a_test.go", module+"/topology"),
		file("store/a.go", module+"/internal/invariants"),
		file("changelog/s3/a.go", aws+"/aws-sdk-go-v2/service/s3"),
		file("changelog/s3/a.go", module+"/changelog/objects"),
		file("changelog/snapshot/a.go", module+"/changelog/objects"),
		file("changelog/snapshot/a_test.go", module+"/changelog/s3"),
		file("cmd/tidemark/a.go", module+"/changelog/s3"),
		bad("cmd/tidemark/a.go", aws+"/aws-sdk-go-v2/aws"),
		bad("changelog/a.go", aws+"/smithy-go"),
		bad("a.go", module+"/changelog/s3"),
		bad("internal/engine/a.go", module+"/changelog/s3"),
		bad("changelog/snapshot/a.go", module+"/changelog"),
		bad("changelog/snapshot/a.go", module+"/internal/clock"),
		bad("changelog/objects/a.go", module+"/changelog/snapshot"),
		bad("codec/a.go", module+"/store"),
		bad("store/a.go", module+"/store/pebblestore"),
		bad("store/a.go", pebble+"/v2/vfs"),
		bad("store/storetest/a.go", kafka+"/pkg/kgo"),
		bad("processor/a.go", module+"/topology"),
		bad("processor/a.go", module+"/internal/clock"),
		bad("topology/a.go", kafka+"/pkg/kgo"),
		bad("topology/a.go", "os"),
		bad("changelog/a.go", module+"/rebalance"),
		bad("internal/engine/a.go", module),
		bad("a.go", module+"/internal/embedded"),
		bad("serve/a.go", module+"/internal/engine"),
		bad("serve/a.go", module),
		file("store/pebblestore/a.go", module+"/internal/rate"),
		file("internal/rate/a.go", module+"/internal/clock"),
		bad("store/a.go", module+"/internal/rate"),
		bad("internal/clock/a.go", module+"/codec"),
		bad("surprise/a.go", "time"),
	})
}
