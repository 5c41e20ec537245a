package mutant

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// pruner reduces the test files of one package to what some tests need. A package's other tests may take ten times as long
// to compile, and that for every mutant.
type pruner struct {
	set   *token.FileSet
	text  map[string]string
	files map[string]*ast.File
	named map[string][]ast.Decl      // by what they declare
	on    map[string][]*ast.FuncDecl // methods, by the type they are of
	kept  map[ast.Decl]bool
}

// Prune returns the text of the test files in a directory as far as the tests need them, by path; an empty one is of no
// use. What it leaves out it judges by name alone, so that it keeps too much rather than too little.
func Prune(dir string, t Test) (map[string]string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	p := pruner{
		set: token.NewFileSet(), text: map[string]string{}, files: map[string]*ast.File{},
		named: map[string][]ast.Decl{}, on: map[string][]*ast.FuncDecl{}, kept: map[ast.Decl]bool{},
	}
	for _, f := range paths {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		p.text[f] = string(b)
		if p.files[f], err = parser.ParseFile(p.set, f, b, parser.ParseComments|parser.SkipObjectResolution); err != nil {
			return nil, fmt.Errorf("mutant: prune: %w", err)
		}
		for _, d := range p.files[f].Decls {
			p.index(d)
		}
	}
	for _, name := range slices.Concat(regexp.MustCompile(`\w+`).FindAllString(t.Run, -1), []string{"TestMain", "init"}) {
		p.need(name)
	}
	out := make(map[string]string)
	for f := range p.files {
		out[f] = p.rest(f)
	}
	return out, nil
}

// index notes what a declaration declares.
func (p *pruner) index(d ast.Decl) {
	add := func(n *ast.Ident) { p.named[n.Name] = append(p.named[n.Name], d) }
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			add(d.Name)
			return
		}
		ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				p.on[id.Name] = append(p.on[id.Name], d)
			}
			return true
		})
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				add(s.Name)
			case *ast.ValueSpec:
				for _, n := range s.Names {
					add(n)
				}
			}
		}
	}
}

// need keeps what declares a name, the methods of a type, and all that they mention.
func (p *pruner) need(name string) {
	for _, d := range p.named[name] {
		p.keep(d)
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE {
			for _, s := range g.Specs {
				for _, m := range p.on[s.(*ast.TypeSpec).Name.Name] {
					p.keep(m)
				}
			}
		}
	}
}

func (p *pruner) keep(d ast.Decl) {
	if p.kept[d] {
		return
	}
	p.kept[d] = true
	ast.Inspect(d, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			p.need(id.Name)
		}
		return true
	})
}

// rest returns what is left of a file.
func (p *pruner) rest(name string) string {
	f := p.files[name]
	file := p.set.File(f.Pos())
	var body strings.Builder
	used := map[string]bool{}
	for _, d := range f.Decls {
		if !p.kept[d] {
			continue
		}
		from := d.Pos()
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Doc != nil {
				from = d.Doc.Pos()
			}
		case *ast.GenDecl:
			if d.Doc != nil {
				from = d.Doc.Pos()
			}
		}
		body.WriteString(p.text[name][file.Offset(from):file.Offset(d.End())] + "\n\n")
		ast.Inspect(d, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok {
					used[x.Name] = true
				}
			}
			return true
		})
	}
	if body.Len() == 0 {
		return ""
	}
	var head strings.Builder
	head.WriteString("package " + f.Name.Name + "\n\n")
	for _, s := range f.Imports {
		as := ""
		if s.Name != nil {
			as = s.Name.Name
		}
		if as == "_" || as == "." || used[as] || as == "" && used[importName(s)] {
			head.WriteString("import " + as + " " + s.Path.Value + "\n")
		}
	}
	return head.String() + "\n" + body.String()
}

// importName guesses what a package is called.
func importName(s *ast.ImportSpec) string {
	full, _ := strconv.Unquote(s.Path.Value)
	name := path.Base(full)
	if regexp.MustCompile(`^v\d+$`).MatchString(name) {
		name = path.Base(path.Dir(full))
	}
	return strings.TrimPrefix(name, "go-")
}
