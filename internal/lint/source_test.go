package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/tidemark/tidemark"

// source is one parsed Go file of the repository.
type source struct {
	name string // path below the root, with slashes
	dir  string // directory below the root; "" for the root itself
	test bool   // *_test.go
	text string
	set  *token.FileSet
	ast  *ast.File
}

func (s *source) generated() bool { return ast.IsGenerated(s.ast) }

func (s *source) command() bool { return s.ast.Name.Name == "main" }

// at returns the position of a node as file:line.
func (s *source) at(n ast.Node) string {
	return s.set.Position(n.Pos()).String()
}

// imports returns the file's import paths; those of this repository are relative to its root, with
// "." for the root package.
func (s *source) imports() []string {
	var paths []string
	for _, spec := range s.ast.Imports {
		p := strings.Trim(spec.Path.Value, `"`)
		if p == module {
			p = "."
		}
		paths = append(paths, strings.TrimPrefix(p, module+"/"))
	}
	return paths
}

// parseText parses one file; name is its path below the root.
func parseText(name, text string) (*source, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	dir := path.Dir(name)
	if dir == "." {
		dir = ""
	}
	return &source{name: name, dir: dir, test: strings.HasSuffix(name, "_test.go"), text: text, set: set, ast: file}, nil
}

var repository = sync.OnceValues(func() ([]*source, error) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return nil, err
	}
	var all []*source
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			// Directories that the go command ignores too.
			if p != root && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || isModule(p)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		s, err := parseText(filepath.ToSlash(rel), string(text))
		if err != nil {
			return err
		}
		all = append(all, s)
		return nil
	})
	return all, err
})

func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// sources returns every Go file of the repository.
func sources(t *testing.T) []*source {
	t.Helper()
	all, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("no source found")
	}
	return all
}

// report fails the test with every finding of a rule over the repository.
func report(t *testing.T, rule func(*source) []string) {
	t.Helper()
	for _, s := range sources(t) {
		for _, finding := range rule(s) {
			t.Error(finding)
		}
	}
}

// sample is a piece of source and whether the rule must object to it.
type sample struct {
	name, text string
	bad        bool
}

// try checks that a rule objects to what it must and to nothing else.
func try(t *testing.T, rule func(*source) []string, samples []sample) {
	t.Helper()
	for _, c := range samples {
		s, err := parseText(c.name, c.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := rule(s); (len(got) > 0) != c.bad {
			t.Errorf("%s:\n%s\nfindings: %q", c.name, c.text, got)
		}
	}
}
