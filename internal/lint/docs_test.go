package lint

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// checkDocs finds exported names of packages that say nothing about themselves: functions, methods,
// types, constants, variables, interface methods, and the fields of what a caller fills in (Config,
// Options). Fields of other structs are left to their authors: a Topic string needs no sentence. A
// comment of a group, or of the line itself, counts for constants, variables and fields.
func checkDocs(s *source) []string {
	if s.test || s.command() || s.generated() {
		return nil
	}
	var findings []string
	miss := func(name *ast.Ident) {
		findings = append(findings, s.at(name)+": "+name.Name+" has no doc comment")
	}
	for _, d := range s.ast.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) && !standardMethod(d) {
				miss(d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				checkSpec(s, d, spec, miss)
			}
		}
	}
	return findings
}

func checkSpec(s *source, d *ast.GenDecl, spec ast.Spec, miss func(*ast.Ident)) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		if !spec.Name.IsExported() {
			return
		}
		if spec.Doc == nil && (d.Doc == nil || d.Lparen.IsValid()) && spec.Comment == nil {
			miss(spec.Name)
		}
		switch typ := spec.Type.(type) {
		case *ast.StructType:
			if strings.HasSuffix(spec.Name.Name, "Config") || strings.HasSuffix(spec.Name.Name, "Options") {
				checkFields(s, spec.Doc.Text()+d.Doc.Text(), typ.Fields, miss)
			}
		case *ast.InterfaceType:
			checkFields(s, spec.Doc.Text()+d.Doc.Text(), typ.Methods, miss)
		}
	case *ast.ValueSpec:
		if d.Doc != nil || spec.Doc != nil || spec.Comment != nil {
			return
		}
		for _, name := range spec.Names {
			// The constants after the first of an iota group are read with it.
			if name.IsExported() && (d.Tok == token.VAR || len(spec.Values) > 0) {
				miss(name)
			}
		}
	}
}

// checkFields looks at struct fields and interface methods. A comment introduces the fields that
// follow it on adjacent lines; the comment of the type may name them too.
func checkFields(s *source, doc string, list *ast.FieldList, miss func(*ast.Ident)) {
	words := strings.FieldsFunc(doc, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	documented, last := false, 0
	for _, f := range list.List {
		line := s.set.Position(f.Pos()).Line
		documented = f.Doc != nil || f.Comment != nil || documented && line == last+1
		last = s.set.Position(f.End()).Line
		for _, name := range f.Names {
			if name.IsExported() && !documented && !slices.Contains(words, name.Name) {
				miss(name)
			}
		}
	}
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	typ := d.Recv.List[0].Type
	for {
		switch t := typ.(type) {
		case *ast.StarExpr:
			typ = t.X
		case *ast.IndexExpr:
			typ = t.X
		case *ast.IndexListExpr:
			typ = t.X
		case *ast.Ident:
			return t.IsExported()
		default:
			return false
		}
	}
}

// standardMethod reports whether the method is one whose meaning its interface fixes.
func standardMethod(d *ast.FuncDecl) bool {
	return d.Recv != nil && slices.Contains([]string{"Error", "Unwrap", "String", "Len", "Less", "Swap"}, d.Name.Name)
}

func TestDocs(t *testing.T) { report(t, checkDocs) }

func TestPackageComments(t *testing.T) {
	has := map[string]bool{}
	for _, s := range sources(t) {
		if !s.test {
			has[s.dir] = has[s.dir] || s.ast.Doc != nil
		}
	}
	for dir, ok := range has {
		if !ok {
			t.Errorf("package in %q has no package comment", dir)
		}
	}
}

func TestDocRule(t *testing.T) {
	try(t, checkDocs, []sample{
		{"codec/a.go", "package p\nfunc F() {}", true},
		{"codec/a.go", "package p\n// F does.\nfunc F() {}", false},
		{"codec/a.go", "package p\nfunc (t t) F() {}", false},
		{"codec/a.go", "package p\nfunc (t *T[K]) F() {}", true},
		{"codec/a.go", "package p\nfunc (t *T) String() string {}", false},
		{"codec/a.go", "package p\ntype T int", true},
		{"codec/a.go", "package p\n// Group.\ntype (\nT int\n)", true},
		{"codec/a.go", "package p\nvar A = 1", true},
		{"codec/a.go", "package p\n// All of them.\nvar (\nA = 1\nB = 2\n)", false},
		{"codec/a.go", "package p\n// Options are.\ntype Options struct {\nA int\n}", true},
		{"codec/a.go", "package p\n// Options are.\ntype Options struct {\n// A and B are.\nA int\nB int\n}", false},
		{"codec/a.go", "package p\n// Options are.\ntype Options struct {\n// A is.\nA int\n\nB int\n}", true},
		{"codec/a.go", "package p\n// Options are A.\ntype Options struct {\nA int\n}", false},
		{"codec/a.go", "package p\n// T is.\ntype T interface {\nM()\n}", true},
		{"codec/a.go", "package p\n// T is.\ntype T struct {\nA int\n}", false},
		{"codec/a_test.go", "package p\nfunc F() {}", false},
		{"cmd/x/a.go", "package main\nfunc F() {}", false},
	})
}
