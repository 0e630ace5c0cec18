package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var docLink = regexp.MustCompile(`\[([A-Z]\w*)(?:\.([A-Z]\w*))?\]`)

// What package descriptions refer to is there.
func TestDocLinks(t *testing.T) {
	found := 0
	for _, depth := range []string{"*", "*/*", "*/*/*"} {
		docs, err := filepath.Glob(filepath.Join("..", "..", depth, "doc.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range docs {
			names, text := map[string]bool{}, ""
			files, err := filepath.Glob(filepath.Join(filepath.Dir(doc), "*.go"))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
				if err != nil {
					t.Fatal(err)
				}
				if file == doc {
					text = f.Doc.Text()
				}
				for _, d := range f.Decls {
					declared(d, names)
				}
			}
			for _, m := range docLink.FindAllStringSubmatch(text, -1) {
				name := m[1]
				if m[2] != "" {
					name += "." + m[2]
				}
				found++
				if !names[name] {
					t.Errorf("%s: nothing is called %s", doc, name)
				}
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d links: the test tests nothing", found)
	}
}

// declared adds the names that links may have: of types, their fields and methods,
// functions and values.
func declared(d ast.Decl, names map[string]bool) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		name := d.Name.Name
		if d.Recv != nil {
			of := d.Recv.List[0].Type
			if p, ok := of.(*ast.StarExpr); ok {
				of = p.X
			}
			if p, ok := of.(*ast.IndexExpr); ok {
				of = p.X
			}
			if id, ok := of.(*ast.Ident); ok {
				name = id.Name + "." + name
			}
		}
		names[name] = true
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				for _, n := range s.Names {
					names[n.Name] = true
				}
			case *ast.TypeSpec:
				names[s.Name.Name] = true
				var fields *ast.FieldList
				switch u := s.Type.(type) {
				case *ast.StructType:
					fields = u.Fields
				case *ast.InterfaceType:
					fields = u.Methods
				}
				if fields == nil {
					continue
				}
				for _, f := range fields.List {
					for _, n := range f.Names {
						names[s.Name.Name+"."+n.Name] = true
					}
				}
			}
		}
	}
}

var (
	docPath = regexp.MustCompile("`((?:cmd|engine|kernels|pipeline|replay|datasets|docs|\\.ci)/[\\w./-]*)`")
	docMake = regexp.MustCompile("`make (\\w[\\w-]*)`")
	docType = regexp.MustCompile("(?m)^\\| ((?:`\\w+`(?:, )?)+) \\|")
)

// Files, targets and types that the pages for developers name are there.
func TestDeveloperPages(t *testing.T) {
	root := filepath.Join("..", "..")
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	device, err := filepath.Glob(filepath.Join(root, "kernels", "cuda", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]bool{}
	for _, file := range device {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			declared(d, types)
		}
	}
	for page, least := range map[string]int{"CONTRIBUTING.md": 15, "docs/architecture.md": 15} {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, m := range docPath.FindAllSubmatch(text, -1) {
			found++
			if _, err := os.Stat(filepath.Join(root, string(m[1]))); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
		for _, m := range docMake.FindAllSubmatch(text, -1) {
			found++
			if !regexp.MustCompile("(?m)^" + string(m[1]) + ":").Match(makefile) {
				t.Errorf("%s: make has no %s", page, m[1])
			}
		}
		for _, m := range docType.FindAllSubmatch(text, -1) {
			for name := range strings.SplitSeq(string(m[1]), ", ") {
				found++
				if name = strings.Trim(name, "`"); !types[name] {
					t.Errorf("%s: package cuda has no %s", page, name)
				}
			}
		}
		if found < least {
			t.Errorf("%s: only %d names: the test tests nothing", page, found)
		}
	}
}

var parameterRow = regexp.MustCompile("(?m)^\\| `\\w+` \\|[^|]*\\| (`--[^|]*)\\|")

// TestParameterFlags: the flags in the table of docs/parameters.md are those of run, all
// of them.
func TestParameterFlags(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "parameters.md"))
	if err != nil {
		t.Fatal(err)
	}
	table, _, _ := strings.Cut(string(b), "<!-- /usual -->")
	said := map[string]bool{}
	for _, m := range parameterRow.FindAllStringSubmatch(table, -1) {
		for _, flag := range strings.Split(strings.TrimSpace(m[1]), " or ") {
			said[strings.Trim(flag, "`-")] = true
		}
	}
	flags := newRunCommand().Flags()
	for name := range said {
		if flags.Lookup(name) == nil {
			t.Errorf("run has no --%s", name)
		}
	}
	for _, name := range append([]string{"seed", "json-schema", "json-object", "regex", "choice", "grammar"},
		paramFlags...) {
		if name = strings.ReplaceAll(name, "_", "-"); !said[name] {
			t.Errorf("docs/parameters.md lacks --%s", name)
		}
	}
}
