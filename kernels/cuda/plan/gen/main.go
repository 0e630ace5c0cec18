// Command gen writes the Go side of what CUDA kernels are given: the structs and the
// constants of src/*/*.h, as a C compiler lays them out. Its output is plan/params.go; go
// generate runs it in that folder, and its test compares them.
//
// A header is C that nvcc reads too. Pointers become addresses (uintptr), unions arrays of
// words, names Go's: kMaxRanks is maxRanks, by_pair byPair. What Go would lay out otherwise
// is an error. It needs cc (or CC), of which it takes the debugging information.
package main

import (
	"bytes"
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"go/format"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	text, err := params("../src")
	if err == nil {
		err = os.WriteFile("params.go", text, 0o666)
	}
	if err != nil {
		log.Fatal("parameters of CUDA kernels: ", err)
	}
}

// params is the Go file for the headers below src.
func params(src string) ([]byte, error) {
	headers, err := filepath.Glob(filepath.Join(src, "*", "*.h"))
	if err != nil || len(headers) == 0 {
		return nil, fmt.Errorf("%d headers in %s: %v", len(headers), src, err)
	}
	var all bytes.Buffer
	for _, h := range headers {
		name, err := filepath.Rel(src, h)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&all, "#include %q\n", filepath.ToSlash(name))
	}
	data, err := compile(all.Bytes(), src)
	if err != nil {
		return nil, err
	}
	return write(data)
}

// compile returns the debugging information of C source, with that of types that nothing
// is of.
func compile(source []byte, include string) (*dwarf.Data, error) {
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	dir, err := os.MkdirTemp("", "params")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	object := filepath.Join(dir, "params.o")
	c := exec.Command(cc, "-g", "-gdwarf-4", "-fno-eliminate-unused-debug-types", "-I", include, "-x", "c", "-c", "-o",
		object, "-")
	c.Stdin = bytes.NewReader(source)
	if out, err := c.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", cc, err, out)
	}
	f, err := elf.Open(object)
	if err != nil {
		return nil, fmt.Errorf("what %s wrote: %w", cc, err)
	}
	defer f.Close()
	return f.DWARF()
}

// write is a Go file with the enumerators and structs, in their order.
func write(data *dwarf.Data) ([]byte, error) {
	out := bytes.NewBufferString("// Code generated from src/*/*.h by gen. DO NOT EDIT.\n\npackage plan\n")
	r := data.Reader()
	for {
		e, err := r.Next()
		if err != nil {
			return nil, err
		}
		if e == nil {
			return format.Source(out.Bytes())
		}
		if e.Tag != dwarf.TagEnumerationType && e.Tag != dwarf.TagStructType {
			continue
		}
		t, err := data.Type(e.Offset)
		if err != nil {
			return nil, err
		}
		switch t := t.(type) {
		case *dwarf.EnumType:
			fmt.Fprintln(out, "\nconst (")
			for _, v := range t.Val {
				fmt.Fprintf(out, "%s = %d\n", lower(strings.TrimPrefix(v.Name, "k")), v.Val)
			}
			fmt.Fprintln(out, ")")
		case *dwarf.StructType:
			if t.Incomplete || t.Kind != "struct" || t.StructName == "" {
				continue
			}
			if err := structure(out, t); err != nil {
				return nil, err
			}
		}
	}
}

// structure writes a struct, if Go lays its fields where C does.
func structure(out *bytes.Buffer, t *dwarf.StructType) error {
	fmt.Fprintf(out, "\ntype %s struct {\n", lower(t.StructName))
	end, most, last := int64(0), int64(1), ""
	for _, f := range t.Field {
		name, size, align, err := typeOf(f.Type)
		if err != nil {
			return fmt.Errorf("%s of %s: %w", f.Name, t.StructName, err)
		}
		if at := (end + align - 1) / align * align; at != f.ByteOffset {
			return fmt.Errorf("%s of %s is at %d, in Go it would be at %d", f.Name, t.StructName, f.ByteOffset, at)
		}
		end, most = f.ByteOffset+size, max(most, align)
		if last != name { // fields of one type share a line
			if last != "" {
				fmt.Fprintln(out, "", last)
			}
			last = name
			fmt.Fprint(out, lower(f.Name))
		} else {
			fmt.Fprint(out, ", ", lower(f.Name))
		}
	}
	fmt.Fprintln(out, "", last)
	if size := (end + most - 1) / most * most; size != t.ByteSize {
		return fmt.Errorf("%s has %d bytes, in Go it would have %d", t.StructName, t.ByteSize, size)
	}
	fmt.Fprintln(out, "}")
	return nil
}

// typeOf is a C type in Go.
func typeOf(t dwarf.Type) (name string, size, align int64, err error) {
	size = t.Size()
	switch t := t.(type) {
	case *dwarf.QualType:
		return typeOf(t.Type)
	case *dwarf.TypedefType:
		return typeOf(t.Type)
	case *dwarf.PtrType:
		return "uintptr", 8, 8, nil
	case *dwarf.FloatType:
		return fmt.Sprintf("float%d", 8*size), size, size, nil
	case *dwarf.IntType, *dwarf.CharType:
		return fmt.Sprintf("int%d", 8*size), size, size, nil
	case *dwarf.UintType, *dwarf.UcharType, *dwarf.BoolType:
		return fmt.Sprintf("uint%d", 8*size), size, size, nil
	case *dwarf.ArrayType:
		name, size, align, err = typeOf(t.Type)
		return fmt.Sprintf("[%d]%s", t.Count, name), t.Count * size, align, err
	case *dwarf.StructType:
		for _, f := range t.Field {
			_, _, a, err := typeOf(f.Type)
			if err != nil {
				return "", 0, 0, err
			}
			align = max(align, a)
		}
		if t.Kind == "union" {
			return fmt.Sprintf("[%d]uint%d", size/align, 8*align), size, align, nil
		}
		return lower(t.StructName), size, align, nil
	}
	return "", 0, 0, fmt.Errorf("no Go type is like %v", t)
}

// lower is a name as Go has it inside of a package: maxRanks, byPair.
func lower(name string) string {
	words := strings.Split(name, "_")
	for i, w := range words {
		if i == 0 {
			words[i] = strings.ToLower(w[:1]) + w[1:]
		} else if w != "" {
			words[i] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return strings.Join(words, "")
}
