package layout

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Source is one file.
type Source struct {
	name     string
	includes []*Source
	consts   map[string][]constant
	structs  map[string]*structure
}

// constant is an expression, of parameters if it is a template or a function.
type constant struct {
	params []string
	expr   string
}

// structure is a struct as it is written.
type structure struct {
	params []string
	align  int64 // 0: what its fields need
	body   string
}

const template = `(?:template <([^>]*)>\s*)?`

var (
	comments  = regexp.MustCompile(`(?s)//[^\n]*|/\*.*?\*/`)
	includes  = regexp.MustCompile(`#include "([^"]+)"`)
	records   = regexp.MustCompile(template + `struct\s+(?:(?:alignas|__align__)\((\d+)\)\s*)?(\w+)\s*\{`)
	variables = regexp.MustCompile(template + `(?:static\s+)?constexpr\s+(?:int|unsigned|uint32_t|u64|bool)\s+(\w+\s*=[^;{]*);`)
	enums     = regexp.MustCompile(`enum\s+\w+\s*\{([^}=]*)\}`)
	functions = regexp.MustCompile(`constexpr\s+int\s+(\w+)\(([^)]*)\)\s*\{\s*return\s+([^;]*);\s*\}`)
)

// Read reads a folder's .cu and .cuh files, by name.
func Read(dir string) (map[string]*Source, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.cu*"))
	if err != nil {
		return nil, err
	}
	all := map[string]*Source{}
	for _, p := range paths {
		if _, err := read(dir, filepath.Base(p), all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// read adds a file and what it includes to all.
func read(dir, name string, all map[string]*Source) (*Source, error) {
	if s := all[name]; s != nil {
		return s, nil
	}
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return nil, fmt.Errorf("reading CUDA sources: %w", err)
	}
	s := &Source{name: name, structs: map[string]*structure{}}
	all[name] = s
	for _, m := range includes.FindAllSubmatch(b, -1) {
		in, err := read(dir, string(m[1]), all)
		if err != nil {
			return nil, err
		}
		s.includes = append(s.includes, in)
	}
	text := comments.ReplaceAllString(string(b), "")
	s.consts = constants(text)
	for _, at := range records.FindAllStringSubmatchIndex(text, -1) {
		part := func(i int) string { return text[max(0, at[2*i]):max(0, at[2*i+1])] }
		t := &structure{params: names(part(1)), body: block(text[at[1]:])}
		t.align, _ = strconv.ParseInt(part(2), 10, 64) // digits, or nothing
		s.structs[part(3)] = t
	}
	return s, nil
}

// Structs are the names of the file's own.
func (s *Source) Structs() (all []string) {
	for name := range s.structs {
		all = append(all, name)
	}
	return all
}

func constants(text string) map[string][]constant {
	all := map[string][]constant{}
	for _, m := range variables.FindAllStringSubmatch(text, -1) {
		for _, d := range split(m[2]) {
			if name, expr, ok := strings.Cut(d, "="); ok {
				name = strings.TrimSpace(name)
				all[name] = append(all[name], constant{names(m[1]), expr})
			}
		}
	}
	for _, m := range enums.FindAllStringSubmatch(text, -1) {
		for i, name := range split(m[1]) {
			name = strings.TrimSpace(name)
			all[name] = append(all[name], constant{expr: strconv.Itoa(i)})
		}
	}
	for _, m := range functions.FindAllStringSubmatch(text, -1) {
		all[m[1]] = append(all[m[1]], constant{names(m[2]), m[3]})
	}
	return all
}

// names are those of "int a, bool b".
func names(params string) (all []string) {
	for _, p := range split(params) {
		if f := strings.Fields(p); len(f) > 0 {
			all = append(all, f[len(f)-1])
		}
	}
	return all
}

// block is the text up to the brace that ends it.
func block(text string) string {
	depth := 1
	for i, c := range []byte(text) {
		switch c {
		case '{':
			depth++
		case '}':
			depth--
		}
		if depth == 0 {
			return text[:i]
		}
	}
	return text
}

// split cuts at the commas that are in no brackets.
func split(list string) (parts []string) {
	from, depth := 0, 0
	for i, c := range []byte(list) {
		switch c {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		case ',':
			if depth == 0 {
				parts, from = append(parts, list[from:i]), i+1
			}
		}
	}
	return append(parts, list[from:])
}

// constant finds a name in the file or in those it includes, and where it is.
func (s *Source) constant(name string) ([]constant, *Source) {
	if c := s.consts[name]; c != nil {
		return c, s
	}
	for _, in := range s.includes {
		if c, at := in.constant(name); c != nil {
			return c, at
		}
	}
	return nil, nil
}

func (s *Source) structure(name string) (*structure, *Source) {
	if t := s.structs[name]; t != nil {
		return t, s
	}
	for _, in := range s.includes {
		if t, at := in.structure(name); t != nil {
			return t, at
		}
	}
	return nil, nil
}
