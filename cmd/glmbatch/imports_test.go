package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "glmbatch/"

// layers orders the packages: imports go down only. The longest prefix counts.
var layers = map[string]int{
	"cmd":   5,
	"bench": 4, "pipeline": 4, "replay": 4,
	"engine":  3,
	"kernels": 1, "kernels/ranks": 2, "kernels/roofline": 2, "kernels/cpu": 2, "kernels/cuda": 2,
	"kernels/kerneltest": 2, "kernels/nvfp4": 1,
	"datasets": 0, "golden": 0, "stores": 0, "telemetry": 0, "units": 0,
}

// forbidden arrows, each with its reason. A package stands for all below it.
var forbidden = []struct{ from, to, why string }{
	{"engine", "datasets", "the engine makes tokens and traces; what they look like on disk is not its business"},
	{"engine", "kernels/cpu", "the engine runs on any device; cmd picks one"},
	{"engine", "kernels/cuda", "the engine runs on any device; cmd picks one"},
	{"pipeline", "kernels/cpu", "cmd alone picks a device"},
	{"pipeline", "kernels/cuda", "cmd alone picks a device"},
	{"replay", "kernels/cpu", "cmd alone picks a device"},
	{"replay", "kernels/cuda", "cmd alone picks a device"},
	{"replay", "pipeline", "a step is replayed without prompts, rows or text"},
	{"replay", "engine/sched", "a captured step is run as it was, never scheduled again"},
	{"pipeline/tokenizer", "engine", "text and ids know nothing of the engine"},
	{"pipeline/chat", "engine", "a template renders text only"},
	{"engine/sched", "kernels/ranks", "scheduling is arithmetic on integers, testable without a device"},
	{"kernels", "datasets", "a kernel's row is not a file's row"},
}

// columnar libraries have one importer, so that a move to another version is one package's change.
var columnar = []string{"github.com/apache/arrow", "github.com/parquet-go/parquet-go"}

func below(pkg, root string) bool { return pkg == root || strings.HasPrefix(pkg, root+"/") }

func layer(pkg string) int {
	for p := pkg; p != "."; p = path.Dir(p) {
		if l, ok := layers[p]; ok {
			return l
		}
	}
	return -1
}

func TestImportsGoDown(t *testing.T) {
	seen := 0
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "testdata" ||
			d.Name() == "gen") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		pkg := path.Dir(filepath.ToSlash(rel))
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		test := strings.HasSuffix(file, "_test.go")
		for _, spec := range f.Imports {
			imp, _ := strconv.Unquote(spec.Path.Value)
			for _, lib := range columnar {
				if strings.HasPrefix(imp, lib) && !below(pkg, "datasets") && !test {
					t.Errorf("%s imports %s: datasets is the only importer of the columnar libraries", rel, imp)
				}
			}
			if !strings.HasPrefix(imp, module) || test {
				continue // tests wire devices themselves
			}
			to := strings.TrimPrefix(imp, module)
			seen++
			if layer(pkg) < 0 || layer(to) < 0 {
				t.Errorf("%s -> %s: a package without a layer", pkg, to)
			}
			if layer(pkg) < layer(to) {
				t.Errorf("%s (layer %d) imports %s (layer %d): imports go down only", rel, layer(pkg), to, layer(to))
			}
			for _, a := range forbidden {
				if below(pkg, a.from) && below(to, a.to) && !below(pkg, a.to) {
					t.Errorf("%s imports %s: %s", rel, to, a.why)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 5 {
		t.Fatalf("saw only %d imports between packages: the walk is broken", seen)
	}
}

// Every package says what it is.
func TestPackagesHaveDoc(t *testing.T) {
	dirs := map[string]bool{}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go") {
			dir := filepath.Dir(file)
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments)
			if err != nil {
				return err
			}
			dirs[dir] = dirs[dir] || f.Doc != nil
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir, ok := range dirs {
		if !ok {
			t.Errorf("package in %s has no doc comment", dir)
		}
	}
}
