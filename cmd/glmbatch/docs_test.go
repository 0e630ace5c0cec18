package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
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
