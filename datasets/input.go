package datasets

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// File is one file of an [Input], with what identifies its contents.
type File struct {
	Path    string `json:"path"`
	Size    int64  `json:"size"`
	ModTime int64  `json:"mtime_ns"` // since 1970
	Rows    int64  `json:"rows"`
	Footer  string `json:"footer_sha256"` // of the footer, which has the sizes and statistics of every column, and of the path's partition columns
	Content string `json:"content"`       // a hash of the file, or of parts of a large one

	data   []byte          // of a file in memory; nil: it is on disk
	local  string          // where it is on disk, if not at Path
	leaves []leafMap       // how its leaf columns become the table's; nil: as they are
	hive   []parquet.Value // of the table's partition columns, by their leaf columns
}

// leafMap places one leaf column of a file in the table.
type leafMap struct {
	to    int // -1: the value is left out
	shift int // added to definition levels: the column is optional in the table but not in the file
}

// Input is a list of Parquet files read as one table. Rows are numbered through
// all files in order, from 0.
type Input struct {
	Files []File
	Rows  int64

	root *node
	hive []*node           // of root's fields, those that come from the files' paths
	meta map[string]string // of the first file
	temp string            // folder that Close removes; "": none
}

// Open reads the footers of the files and makes one schema of theirs. Columns may
// stand in another order, be optional in some files and required in others, and
// be all-null (without a type) in some. Any other difference is an error that
// names the file and the column.
func Open(paths []string) (*Input, error) {
	sources := make([]source, len(paths))
	for i, path := range paths {
		sources[i].path = path
	}
	return open(sources)
}

func open(sources []source) (*Input, error) {
	if len(sources) == 0 {
		return nil, fmt.Errorf("no input files")
	}
	in := &Input{}
	roots := make([]*node, len(sources))
	for i, s := range sources {
		f, err := openParquet(s)
		if err != nil {
			return nil, err
		}
		err = guard(func() error {
			roots[i] = fileNode(f.File)
			return in.add(f)
		})
		f.Close()
		if err != nil {
			return nil, badFile(s.path, err)
		}
	}
	for i, root := range roots {
		if err := in.merge(sources[0].path, root); err != nil {
			return nil, badFile(sources[i].path, err)
		}
	}
	if !sources[0].bare {
		in.partition()
	}
	in.root.number(0, 0)
	for i, root := range roots {
		in.Files[i].leaves = in.place(root)
		in.Files[i].numberHive(in)
	}
	return in, nil
}

func (in *Input) add(f *parquetFile) error {
	footer, err := f.footer()
	if err != nil {
		return err
	}
	sum := sha256.Sum256(footer)
	content, err := contentHash(f.r, f.size)
	if err != nil {
		return err
	}
	in.Files = append(in.Files, File{Content: content, Path: f.path, Size: f.size, ModTime: f.modTime, Rows: f.NumRows(), Footer: hex.EncodeToString(sum[:]), data: f.data})
	in.Rows += f.NumRows()
	if in.meta == nil {
		in.meta = f.keyValues()
	}
	return nil
}

// merge widens the table's schema by a file's, or says why it cannot.
func (in *Input) merge(firstPath string, root *node) error {
	seen := map[string]bool{}
	for i := range root.fields {
		name := root.child(i).name
		if seen[name] {
			return fmt.Errorf("column %q is there twice", name)
		}
		seen[name] = true
	}
	if in.root == nil {
		in.root = &node{name: "schema", typ: root.typ, stored: root.typ}
		for i := range root.fields {
			c := *root.child(i)
			in.root.fields = append(in.root.fields, &c)
		}
		return nil
	}
	for i := range root.fields {
		if c := root.child(i); in.root.field(c.name) == nil {
			return fmt.Errorf("column %q is not in %s, whose columns are %s", c.name, firstPath, in.ColumnNames())
		}
	}
	for i := range in.root.fields {
		have := in.root.child(i)
		c := root.field(have.name)
		switch {
		case c == nil:
			return fmt.Errorf("column %q is missing; %s has it", have.name, firstPath)
		case signature(c) == signature(have) && c.rep == have.rep:
		case have.isNull() && c.leaf && c.rep != repeated:
			widened := *c
			widened.rep = optional
			in.root.fields[i] = &widened
			delete(in.meta, arrowSchemaKey) // the first file's no longer fits
		case c.isNull() && have.leaf && have.rep != repeated:
			have.rep = optional
		case signature(c) == signature(have) && c.rep != repeated && have.rep != repeated:
			have.rep = optional
		default:
			return fmt.Errorf("column %q is %s, but %s in %s", have.name, signature(c), signature(have), firstPath)
		}
	}
	return nil
}

// place maps a file's leaf columns to the table's.
func (in *Input) place(root *node) []leafMap {
	maps := make([]leafMap, root.leaves)
	same := true
	for i := range root.fields {
		c := root.child(i)
		t := in.root.field(c.name)
		if t == nil || slices.Contains(in.hive, t) { // the path has it
			for l := range c.leaves {
				maps[c.first+l] = leafMap{to: -1}
			}
			same = false
			continue
		}
		shift := 0
		if t.rep == optional && c.rep == required {
			shift = 1
		}
		for l := range c.leaves {
			maps[c.first+l] = leafMap{to: t.first + l, shift: shift}
			same = same && t.first == c.first && shift == 0
		}
	}
	if same {
		return nil
	}
	return maps
}

func (n *node) field(name string) *node {
	for i := range n.fields {
		if c := n.child(i); c.name == name {
			return c
		}
	}
	return nil
}

// ColumnNames lists the columns for messages: "a, b, c".
func (in *Input) ColumnNames() string { return strings.Join(in.Names(), ", ") }

// Paths lists the files for messages.
func (in *Input) Paths() string {
	if len(in.Files) == 1 {
		return in.Files[0].Path
	}
	return fmt.Sprintf("%s and %d more files", in.Files[0].Path, len(in.Files)-1)
}

// OpenBytes is [Open] for one file in memory, under a name for messages.
func OpenBytes(name string, data []byte) (*Input, error) {
	return open([]source{{path: name, data: data, bare: true}})
}
