package datasets

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// File is one file of an [Input], with what identifies its contents.
type File struct {
	Path    string `json:"path"`
	Size    int64  `json:"size"`
	ModTime int64  `json:"mtime_ns"` // since 1970
	Rows    int64  `json:"rows"`
	// of the footer, which has the sizes and statistics of every column, and of the path's partition columns
	Footer  string `json:"footer_sha256"`
	Content string `json:"content"` // a hash of the file, or of parts of a large one

	data   []byte   // of a file in memory; nil: it is on disk
	local  string   // where it is on disk, if not at Path
	leaves int      // columns of the file
	feeds  []feed   // of each leaf column of the table
	hive   [][]byte // of the table's partition columns, packed; nil: null
}

// Input is a list of Parquet files read as one table. Rows are numbered through
// all files in order, from 0.
type Input struct {
	Files []File
	Rows  int64

	root  *node
	hive  []*node           // of root's fields, those that come from the files' paths
	meta  map[string]string // of the first file
	arrow *arrowSchema      // of the table; nil: none is known
	temp  *Temporary        // what a stream had; nil: files are the input
}

// Open reads the footers of the files and makes one schema of theirs, as DuckDB's
// union by name does: columns that a file lacks are null there, nullable columns
// win over required ones, wider numbers over narrower, finer units over coarser,
// and a column of nulls takes any type. Any other difference is an error that
// names the file and the column.
func Open(paths []string) (*Input, error) {
	sources := make([]source, len(paths))
	for i, path := range paths {
		sources[i].path = path
	}
	return open(sources)
}

// OpenBytes is [Open] for one file in memory, under a name for messages.
func OpenBytes(name string, data []byte) (*Input, error) {
	return open([]source{{path: name, data: data, bare: true}})
}

func open(sources []source) (*Input, error) {
	if len(sources) == 0 {
		return nil, fmt.Errorf("no input files")
	}
	in := &Input{}
	roots := make([]*node, len(sources))
	arrows := make([]*arrowSchema, len(sources))
	for i, s := range sources {
		f, err := openParquet(s)
		if err != nil {
			return nil, err
		}
		err = guard(func() (err error) {
			if roots[i], arrows[i], err = in.add(f); err != nil {
				return err
			}
			return in.merge(roots[i], sources[0].path)
		})
		f.Close()
		if err != nil {
			return nil, badFile(s.path, err)
		}
	}
	if !sources[0].bare {
		in.partition()
	}
	in.root.number(0, 0, 0)
	for i, root := range roots {
		f := &in.Files[i]
		err := guard(func() (err error) {
			f.feeds, err = place(root, in.root, false)
			return err
		})
		if err != nil {
			return nil, badFile(sources[i].path, err)
		}
		for k, n := range in.hive {
			f.feeds[n.first] = feed{leaf: -1, value: f.hive[k]}
		}
	}
	in.arrow = mergeArrow(in.root, roots, arrows)
	return in, nil
}

// add lists a file and returns its schema.
func (in *Input) add(f *parquetFile) (*node, *arrowSchema, error) {
	sum := sha256.Sum256(f.Footer)
	content, err := contentHash(f.r, f.size)
	if err != nil {
		return nil, nil, err
	}
	in.Files = append(in.Files, File{Content: content, Path: f.path, Size: f.size, ModTime: f.modTime, Rows: f.Rows,
		Footer: hex.EncodeToString(sum[:]),
		data:   f.data, leaves: len(f.Leaves)})
	in.Rows += f.Rows
	meta := f.keyValues()
	if in.meta == nil {
		in.meta = meta
	}
	root := fileNode(f.File)
	seen := map[string]bool{}
	for i := range root.fields {
		name := root.child(i).name
		if seen[name] {
			return nil, nil, fmt.Errorf("column %q is there twice", name)
		}
		seen[name] = true
	}
	// What is not Arrow's says nothing.
	arrow, err := parseArrowSchema(meta[arrowSchemaKey], root)
	if err != nil {
		arrow = nil
	}
	return root, arrow, nil
}

// merge widens the table's schema by a file's, or says why it cannot.
func (in *Input) merge(root *node, firstPath string) error {
	if in.root == nil {
		in.root = copyNode(root)
		return nil
	}
	for i := range root.fields {
		c := root.child(i)
		have := in.root.field(c.name)
		if have == nil {
			have = copyNode(c)
			have.optional()
			in.root.fields = append(in.root.fields, have)
			continue
		}
		merged, err := merge(have, c)
		if err != nil {
			return fmt.Errorf("column %q is %s, but %s in %s: %w", c.name, signature(c), signature(have), firstPath,
				err)
		}
		in.root.replace(merged)
	}
	for i := range in.root.fields {
		if have := in.root.child(i); root.field(have.name) == nil {
			have.optional()
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

// place says how each leaf of the table comes from a file; loose as in [placer].
func place(file, table *node, loose bool) ([]feed, error) {
	p := placer{feeds: make([]feed, table.leaves), loose: loose}
	for i := range p.feeds {
		p.feeds[i].leaf = -1
	}
	err := p.fields(file, table, nil)
	return p.feeds, err
}

type placer struct {
	feeds []feed
	loose bool // the table is a struct of ours: its numbers may be narrower than the file's
}

// fields places the fields of a struct. levels are the table's definition levels
// of the file's, of the nodes above.
func (p *placer) fields(file, table *node, levels []uint8) error {
	for i := range table.fields {
		t := table.child(i)
		if f := file.field(t.name); f != nil {
			if err := p.node(f, t, levels); err != nil {
				return fmt.Errorf("column %q: %w", t.name, err)
			}
		} else if file.maxDef > 0 || file.maxRep > 0 { // within a group, which may be null itself
			p.missing(file, t, table, levels)
		}
	}
	return nil
}

// missing places a column that the file lacks within a group that it has: the
// levels of another column of that group tell where the group is.
func (p *placer) missing(file, t, table *node, levels []uint8) {
	p.nulls(file, t, append(levels[:len(levels):len(levels)], table.maxDef), table.maxRep, table.maxDef)
}

// nulls places nulls at each leaf of t, at a definition level or below. A leaf of
// the file tells where.
func (p *placer) nulls(file, t *node, levels []uint8, rep, def uint8) {
	from := file.leafNodes()[0]
	for len(levels) <= int(from.maxDef) {
		levels = append(levels, levels[len(levels)-1])
	}
	for _, leaf := range t.leafNodes() {
		p.feeds[leaf.first] = feed{leaf: from.first, levels: levels, missing: true, nulls: true, rep: rep, def: def}
	}
}

func (p *placer) node(f, t *node, levels []uint8) error {
	levels = levels[:len(levels):len(levels)]
	if f.rep != required {
		levels = append(levels, t.maxDef-1)
	}
	switch {
	case f.leaf && t.leaf:
		from := feed{leaf: f.first, levels: append(levels, t.maxDef)}
		switch {
		case f.typ == t.typ:
			from.convert = narrow(f.typ)
		case canWiden(f.typ, t.typ), p.loose && !f.nulls && !f.isNull():
			from.convert = converter(f.typ, t.typ)
		default: // it has nulls alone: merge saw to that
			from.nulls = true
		}
		p.feeds[t.first] = from
	case !fits(f, t): // nulls of another type
		p.nulls(f, t, append(levels, t.maxDef-1), t.maxRep, t.maxDef-1)
	case f.isList() && t.isList():
		fr, tr := f.child(0), t.child(0)
		levels = append(levels, tr.maxDef-1)
		fe, te := element(fr), element(tr)
		if fe == fr { // the repeated field is the element
			return p.element(fe, te, levels)
		}
		return p.node(fe, te, levels)
	case f.isMap() && t.isMap():
		fr, tr := f.child(0), t.child(0)
		levels = append(levels, tr.maxDef-1)
		for i := range 2 {
			if err := p.node(fr.child(i), tr.child(i), levels); err != nil {
				return err
			}
		}
	default:
		return p.fields(f, t, levels)
	}
	return nil
}

// element places a repeated field that is a list's element itself.
func (p *placer) element(f, t *node, levels []uint8) error {
	one, same := *f, *t
	one.rep = required
	if t.rep == repeated { // in the table too
		same.rep = required
	}
	return p.node(&one, &same, levels)
}

func canWiden(from, to leafType) bool {
	w, ok := wider(from, to)
	return ok && w == to
}
