package lint

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// packageName returns the name under which the file knows an imported package, or "".
func (s *source) packageName(path string) string {
	for _, spec := range s.ast.Imports {
		if strings.Trim(spec.Path.Value, `"`) != path {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path[strings.LastIndexByte(path, '/')+1:]
	}
	return ""
}

// uses lists where the file selects one of the names from the identifier.
func (s *source) uses(ident string, names ...string) []string {
	if ident == "" {
		return nil
	}
	var findings []string
	ast.Inspect(s.ast, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && x.Name == ident && slices.Contains(names, sel.Sel.Name) {
			findings = append(findings, s.at(sel)+": "+ident+"."+sel.Sel.Name)
		}
		return true
	})
	return findings
}

// checkClock finds code that asks the system for the time: it belongs behind clock.Clock.
func checkClock(s *source) []string {
	r := rowOf(s.dir)
	if s.test || s.dir == "internal/clock" || s.command() || r != nil && r.level == top {
		return nil
	}
	return s.uses(s.packageName("time"), "Now", "Since", "Until")
}

// checkGoroutines finds goroutines in packages that have none.
func checkGoroutines(s *source) []string {
	r := rowOf(s.dir)
	if s.test || r == nil || !r.pure {
		return nil
	}
	var findings []string
	ast.Inspect(s.ast, func(n ast.Node) bool {
		if g, ok := n.(*ast.GoStmt); ok {
			findings = append(findings, s.at(g)+": goroutine in a package without goroutines")
		}
		return true
	})
	return findings
}

// checkInit finds init functions: state that nobody asked for.
func checkInit(s *source) []string {
	var findings []string
	for _, d := range s.ast.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" && !s.generated() {
			findings = append(findings, s.at(f)+": init function")
		}
	}
	return findings
}

// checkSkips finds tests that skip themselves. Only kafkatest and s3test may, when told by hand.
func checkSkips(s *source) []string {
	if s.dir == "internal/kafkatest" || s.dir == "internal/s3test" || s.packageName("testing") == "" {
		return nil
	}
	var findings []string
	for _, ident := range []string{"t", "tb", "b", "f"} {
		findings = append(findings, s.uses(ident, "Skip", "Skipf", "SkipNow")...)
	}
	return findings
}

// checkSleeps finds tests that wait for real time to pass; in a synctest bubble it costs nothing.
func checkSleeps(s *source) []string {
	if !s.test || s.packageName("testing/synctest") != "" {
		return nil
	}
	return s.uses(s.packageName("time"), "Sleep")
}

func TestClock(t *testing.T)      { report(t, checkClock) }
func TestGoroutines(t *testing.T) { report(t, checkGoroutines) }
func TestInit(t *testing.T)       { report(t, checkInit) }
func TestSkips(t *testing.T)      { report(t, checkSkips) }
func TestSleeps(t *testing.T)     { report(t, checkSleeps) }

func TestCallRules(t *testing.T) {
	const now = "package p\nimport \"time\"\nvar x = time.Now()"
	const alias = "package p\nimport clock \"time\"\nfunc f() { clock.Since(y) }"
	try(t, checkClock, []sample{
		{"internal/engine/a.go", now, true},
		{"a.go", alias, true},
		{"internal/kafkatest/a.go", now, true},
		{"internal/clock/a.go", now, false},
		{"store/a_test.go", now, false},
		{"examples/x/a.go", now, false},
		{"store/a.go", "package p\nimport \"time\"\nvar x = time.Second", false},
	})
	const spawn = "package p\nfunc f() { go f() }"
	try(t, checkGoroutines, []sample{
		{"processor/a.go", spawn, true},
		{"processor/a_test.go", spawn, false},
		{"internal/engine/a.go", spawn, false},
	})
	try(t, checkInit, []sample{
		{"codec/a.go", "package p\nfunc init() {}", true},
		{"codec/a.go", "package p\ntype t int\nfunc (t) init() {}", false},
	})
	const skip = "package p\nimport \"testing\"\nfunc f(t *testing.T) { t.Skipf(\"\") }"
	try(t, checkSkips, []sample{
		{"codec/a_test.go", skip, true},
		{"internal/kafkatest/a.go", skip, false},
		{"internal/s3test/a.go", skip, false},
		{"codec/a_test.go", "package p\nfunc f(t tree) { t.Skip() }", false},
	})
	const sleep = "package p\nimport \"time\"\nfunc f() { time.Sleep(1) }"
	try(t, checkSleeps, []sample{
		{"codec/a_test.go", sleep, true},
		{"codec/a.go", sleep, false},
		{"codec/a_test.go", strings.Replace(sleep, "import", "import \"testing/synctest\"\nimport", 1), false},
	})
}
