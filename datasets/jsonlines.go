package datasets

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"unicode/utf8"

	"glmbatch/datasets/pages"
)

// Bounds of what a text may make this program hold.
const (
	maxLine        = 256 << 20 // bytes
	maxJSONColumns = 10_000
)

// JSONLines writes the objects of r, one a line, as the rows of a Parquet file. It
// reads r twice: a column's type is known when all its values are. Keys are columns in
// the order in which they first come; a key that a line lacks is null. Numbers are
// int64, or double where one has a fraction, lists and objects are texts that are marked
// as JSON. Text is also what a column is whose values are of several types, or numbers
// that none of the two types holds as they are: text as it is, all else as JSON. name is
// for messages.
func JSONLines(r io.ReadSeeker, name, path string) error {
	t := &jsonTable{index: map[string]int{}, values: map[string][]byte{}}
	size, err := r.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = r.Seek(0, io.SeekStart)
	}
	lines := lineReader{size: size}
	if err == nil {
		err = lines.each(r, t.look)
	}
	if err != nil {
		return badFile(name, err)
	}
	if len(t.columns) == 0 {
		return badFile(name, errors.New("there are no columns: JSON lines are objects such as {\"prompt\": \"…\"}, "+
			"one a line"))
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return badFile(name, err)
	}
	part, err := tableOf(t.schema(), nil).Create(path, nil)
	if err != nil {
		return err
	}
	err = lines.each(r, func(line []byte) error {
		row, err := t.row(line)
		if err != nil {
			return err
		}
		return part.Write(row)
	})
	if err != nil {
		part.Abort()
		return badFile(name, err)
	}
	return part.Close()
}

// lineReader reads lines into one buffer.
type lineReader struct {
	size int64 // of all lines: what a buffer never has to be greater than
	line []byte
}

// each calls f with every line that has something, and puts its number into errors.
func (l *lineReader) each(r io.Reader, f func(line []byte) error) error {
	in := bufio.NewReaderSize(r, 64<<10)
	for n := 1; ; n++ {
		err := l.next(in)
		if err != nil && err != io.EOF {
			return fmt.Errorf("line %d: %w", n, err)
		}
		line := l.line
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if ferr := f(line); ferr != nil {
				return fmt.Errorf("line %d: %w", n, ferr)
			}
		}
		if err == io.EOF {
			return nil
		}
	}
}

// next reads a line to its end, or to the reader's, which is io.EOF.
func (l *lineReader) next(in *bufio.Reader) error {
	l.line = l.line[:0]
	for {
		part, err := in.ReadSlice('\n')
		if len(l.line)+len(part) > maxLine {
			return fmt.Errorf("it is longer than %d bytes", maxLine)
		}
		if need := len(l.line) + len(part); need > cap(l.line) {
			most := max(int64(need), min(2*int64(need), l.size))
			l.line = append(make([]byte, 0, most), l.line...)
		}
		l.line = append(l.line, part...)
		if err != bufio.ErrBufferFull {
			return err
		}
	}
}

// jsonTable is the schema of JSON lines as far as they were looked at.
type jsonTable struct {
	columns []jsonColumn
	index   map[string]int
	keys    []string          // of the line at hand
	values  map[string][]byte // of them
	root    *node
}

type jsonColumn struct {
	name string
	kind jsonKind // of all values
}

// jsonKind is a set of the types that a column's values have.
type jsonKind uint8

const (
	jsonBool  jsonKind = 1 << iota
	jsonInt            // whole, and a double has it as it is
	jsonLong           // whole, in 64 bits
	jsonFloat          // not whole, or written with a point
	jsonText
	jsonNested // a list or an object
	jsonBeyond // a number of none of these types
)

func kindOf(v []byte) jsonKind {
	switch v[0] {
	case 'n':
		return 0
	case 't', 'f':
		return jsonBool
	case '"':
		return jsonText
	case '[', '{':
		return jsonNested
	}
	if bytes.ContainsAny(v, ".eE") {
		if f, err := strconv.ParseFloat(string(v), 64); err != nil || math.IsInf(f, 0) {
			return jsonBeyond
		}
		return jsonFloat
	}
	switch n, err := strconv.ParseInt(string(v), 10, 64); {
	case err != nil:
		return jsonBeyond
	case n >= -1<<53 && n <= 1<<53:
		return jsonInt
	}
	return jsonLong
}

// leafType is the type that holds all values of these types.
func (c *jsonColumn) leafType() leafType {
	switch c.kind {
	case 0:
		return leafType{kind: pages.Int32, logical: pages.Logical{Class: pages.Null}}
	case jsonBool:
		return leafType{kind: pages.Boolean}
	case jsonInt, jsonLong, jsonInt | jsonLong:
		return leafType{kind: pages.Int64}
	case jsonFloat, jsonFloat | jsonInt:
		return leafType{kind: pages.Double}
	case jsonNested:
		return jsonType
	}
	return textType
}

func (t *jsonTable) schema() *node {
	t.root = &node{name: "schema"}
	for i := range t.columns {
		c := &t.columns[i]
		t.root.fields = append(t.root.fields, leafNode(c.name, c.leafType()))
	}
	t.root.number(0, 0, 0)
	return t.root
}

// parse reads the line at hand. Values stay parts of it: a line may be long.
func (t *jsonTable) parse(line []byte) error {
	if !utf8.Valid(line) {
		return ErrUTF8
	}
	if line[0] != '{' {
		return fmt.Errorf("it begins with %q: JSON lines are objects, one a line", line[:1])
	}
	if !json.Valid(line) {
		return fmt.Errorf("not a JSON object: %w", json.Unmarshal(line, &json.RawMessage{}))
	}
	t.keys = t.keys[:0]
	clear(t.values)
	return eachMember(line, func(key, value []byte) error {
		name := string(unquoted(key))
		if _, twice := t.values[name]; !twice {
			t.keys = append(t.keys, name)
		}
		t.values[name] = value
		return nil
	})
}

// look takes the line's types into account, and its new keys in their order.
func (t *jsonTable) look(line []byte) error {
	if err := t.parse(line); err != nil {
		return err
	}
	for _, name := range t.keys {
		if i, ok := t.index[name]; ok {
			t.columns[i].kind |= kindOf(t.values[name])
			continue
		}
		if name == "" || len(t.columns) == maxJSONColumns {
			return fmt.Errorf("key %q: names are not empty, and there are at most %d", name, maxJSONColumns)
		}
		t.index[name] = len(t.columns)
		t.columns = append(t.columns, jsonColumn{name, kindOf(t.values[name])})
	}
	return nil
}

// row is the line as a record of the schema.
func (t *jsonTable) row(line []byte) (Record, error) {
	if err := t.parse(line); err != nil {
		return Record{}, err
	}
	b := batch{data: make([]byte, 0, len(line)+16*len(t.columns))} // so much at most
	b.begin(0)
	for i := range t.columns {
		v, err := t.columns[i].value(t.values[t.columns[i].name])
		if err != nil {
			return Record{}, err
		}
		b.cell(t.root.child(i), v)
		b.endLeaf()
	}
	return b.finish()[0], nil
}

// value is packed as in a [Record]; nil is null. It may be a part of v.
func (c *jsonColumn) value(v []byte) ([]byte, error) {
	if len(v) == 0 || v[0] == 'n' {
		return nil, nil
	}
	switch c.kind {
	case jsonBool:
		if v[0] == 't' {
			return []byte{1}, nil
		}
		return []byte{0}, nil
	case jsonInt, jsonLong, jsonInt | jsonLong:
		n, err := strconv.ParseInt(string(v), 10, 64)
		return binary.LittleEndian.AppendUint64(nil, uint64(n)), err
	case jsonFloat, jsonFloat | jsonInt:
		f, err := strconv.ParseFloat(string(v), 64)
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(f)), err
	}
	if v[0] == '"' {
		return unquoted(v), nil
	}
	return v, nil
}

// WriteJSONLines writes all rows to w; see [Printer].
func (in *Input) WriteJSONLines(w io.Writer) error { return in.print(w, Lines) }

func (in *Input) print(w io.Writer, format string) error {
	p, err := newPrinter(in.root, w, format)
	if err != nil {
		return badFile(in.Paths(), err)
	}
	if err := p.input(in); err != nil {
		return err
	}
	return p.Close()
}
