package pages

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"
)

// A file of one column is put together by hand, so that it may be as no writer here
// would have it.

// compact writes Thrift's compact protocol.
type compact struct {
	b    []byte
	last []int64
}

func (c *compact) field(id int64, typ byte) {
	d := id - c.last[len(c.last)-1]
	if d > 0 && d < 16 {
		c.b = append(c.b, byte(d)<<4|typ)
	} else {
		c.b = binary.AppendVarint(append(c.b, typ), id)
	}
	c.last[len(c.last)-1] = id
}
func (c *compact) int(id int64, typ byte, v int64) *compact {
	c.field(id, typ)
	c.b = binary.AppendVarint(c.b, v)
	return c
}
func (c *compact) i32(id, v int64) *compact { return c.int(id, thriftI32, v) }
func (c *compact) i64(id, v int64) *compact { return c.int(id, thriftI64, v) }
func (c *compact) text(id int64, v string) *compact {
	c.field(id, thriftBinary)
	c.b = append(binary.AppendUvarint(c.b, uint64(len(v))), v...)
	return c
}
func (c *compact) open() { c.last = append(c.last, 0) }
func (c *compact) shut() { c.b, c.last = append(c.b, 0), c.last[:len(c.last)-1] }
func (c *compact) nest(id int64, f func()) *compact {
	c.field(id, thriftStruct)
	c.open()
	f()
	c.shut()
	return c
}
func (c *compact) list(id int64, n int, f func(i int)) *compact {
	c.field(id, thriftList)
	c.b = append(c.b, byte(n)<<4|thriftStruct)
	for i := range n {
		c.open()
		f(i)
		c.shut()
	}
	return c
}

// craftPage is a page as it is to lie in the file.
type craftPage struct {
	kind         int64
	values       int64
	encoding     int64
	body         []byte // as compressed
	uncompressed int64  // 0: as body
	levels       int64  // bytes of definition levels, of version 2
	crc          bool
	badCRC       bool
}

func (p craftPage) bytes() []byte {
	c := &compact{}
	c.open()
	size := p.uncompressed
	if size == 0 {
		size = int64(len(p.body))
	}
	c.i32(1, p.kind).i32(2, size).i32(3, int64(len(p.body)))
	if p.crc {
		sum := int32(crc32.ChecksumIEEE(p.body))
		if p.badCRC {
			sum++
		}
		c.i32(4, int64(sum))
	}
	switch p.kind {
	case dataPage:
		c.nest(5, func() { c.i32(1, p.values).i32(2, p.encoding).i32(3, runLength).i32(4, runLength) })
	case dictionaryPage:
		c.nest(7, func() { c.i32(1, p.values).i32(2, p.encoding) })
	case dataPageV2:
		c.nest(8, func() {
			c.i32(1, p.values).i32(2, p.values).i32(3, p.values).i32(4, p.encoding).i32(5, p.levels).i32(6, 0)
		})
	}
	c.shut()
	return append(c.b, p.body...)
}

// craft is a file of one column of one row group.
type craft struct {
	kind     Kind
	optional bool
	codec    int64
	rows     int64
	fileRows int64 // that the footer claims
	short    int64 // bytes that total_compressed_size lacks
	by       string
	dict     int64 // added to the dictionary's place; 0: it is not said
	meta     func(c *compact)
	chunk    func(c *compact)
	pages    []craftPage
}

func (f craft) file() []byte {
	out := []byte(magic)
	data := int64(4)
	for _, p := range f.pages {
		if p.kind == dictionaryPage {
			data = int64(len(out) + len(p.bytes()))
		}
		out = append(out, p.bytes()...)
	}
	size := int64(len(out)) - 4
	c := &compact{}
	c.open()
	c.i32(1, 1).list(2, 2, func(i int) {
		if i == 0 {
			c.text(4, "root").i32(5, 1)
			return
		}
		rep := int64(Required)
		if f.optional {
			rep = Optional
		}
		c.i32(1, int64(f.kind)).i32(3, rep).text(4, "x")
	}).i64(3, f.fileRows).list(4, 1, func(int) {
		c.list(1, 1, func(int) {
			c.i64(2, 4).nest(3, func() {
				c.i32(1, int64(f.kind)).list(2, 0, nil).list(3, 0, nil).i32(4, f.codec).i64(5, f.rows).i64(6, size)
				c.i64(7, size-f.short).i64(9, data)
				if f.dict != 0 {
					c.i64(11, 3+f.dict)
				}
				if f.chunk != nil {
					f.chunk(c)
				}
			})
		}).i64(2, size).i64(3, f.rows)
	})
	if f.meta != nil {
		f.meta(c)
	}
	if f.by != "" {
		c.text(6, f.by)
	}
	c.shut()
	out = append(out, c.b...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(c.b)))
	return append(out, magic...)
}

// values reads the column: values as text, null as "-".
func (f craft) values() (string, error) {
	data := f.file()
	file, err := Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return "", err
	}
	return columnText(file, 0)
}

func columnText(file *File, leaf int) (string, error) {
	var all []string
	for g := range file.Groups {
		var budget Budget
		c := file.Column(g, leaf, 7, &budget)
		defer c.Close()
		for {
			w, err := c.Next()
			if err != nil {
				if err.Error() == "EOF" {
					break
				}
				return strings.Join(all, " "), err
			}
			next, l := 0, file.Leaves[leaf]
			for i := range w.N {
				if l.MaxDef > 0 && w.Def[i] < l.MaxDef {
					all = append(all, "-")
					continue
				}
				switch width := l.Width(); width {
				case 0:
					all = append(all, string(w.Texts[next]))
				case 1:
					all = append(all, fmt.Sprint(w.Fixed[next]))
				case 4:
					all = append(all, fmt.Sprint(int32(binary.LittleEndian.Uint32(w.Fixed[4*next:]))))
				default:
					all = append(all, fmt.Sprintf("%x", w.Fixed[width*next:width*(next+1)]))
				}
				next++
			}
		}
	}
	return strings.Join(all, " "), nil
}

func ints(v ...int32) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	return b
}

// framed is bytes behind their length, as runs of version 1 are.
func framed(b ...byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)
}

// lz4Literals is a block of LZ4 that has b as it is; at most 14 bytes.
func lz4Literals(b []byte) []byte { return append([]byte{byte(len(b)) << 4}, b...) }

func hadoop(b []byte) []byte {
	block := lz4Literals(b)
	head := binary.BigEndian.AppendUint32(nil, uint32(len(b)))
	return append(binary.BigEndian.AppendUint32(head, uint32(len(block))), block...)
}

// TestCrafted: what other writers do that libraries get wrong, and what nobody may do.
func TestCrafted(t *testing.T) {
	dict := craftPage{kind: dictionaryPage, values: 2, encoding: plain, body: ints(7, 9)}
	positions := craftPage{kind: dataPage, values: 4, encoding: rleDictionary, body: []byte{1, 3, 0b0110}}
	for name, c := range map[string]struct {
		f    craft
		want string
		err  string
	}{
		"plain": {craft{kind: Int32, rows: 2, fileRows: 2,
			pages: []craftPage{{values: 2, body: ints(1, -2)}}}, "1 -2", ""},
		"two pages": {craft{kind: Int32, rows: 3, pages: []craftPage{{values: 2,
			body: ints(1, 2)}, {values: 1, body: ints(3), crc: true}}}, "1 2 3", ""},
		"rows of the file are 0": {craft{kind: Int32, rows: 1, fileRows: 0,
			pages: []craftPage{{values: 1, body: ints(5)}}}, "5", ""},
		"booleans in runs, version 1": {craft{kind: Boolean, rows: 10,
			pages: []craftPage{{values: 10, encoding: runLength,
				body: framed(16, 1, 3, 0b10)}}}, "1 1 1 1 1 1 1 1 0 1", ""},
		"booleans in runs, version 2": {craft{kind: Boolean, rows: 9,
			pages: []craftPage{{kind: dataPageV2, values: 9, encoding: runLength,
				body: framed(5, 0b10101010, 0b1)}}}, "0 1 0 1 0 1 0 1 1", ""},
		"version 2 of nulls alone": {craft{kind: Int32, optional: true, codec: 1, rows: 3,
			pages: []craftPage{{kind: dataPageV2, values: 3, levels: 2, body: []byte{6, 0}}}}, "- - -", ""},
		"version 2 without values": {craft{kind: Int32, optional: true, rows: 1,
			pages: []craftPage{{kind: dataPageV2, values: 0, body: nil}, {kind: dataPageV2, values: 1, levels: 2,
				body: append([]byte{2, 1}, ints(4)...)}}}, "4", ""},
		"no rows": {craft{kind: Int32, rows: 0}, "", ""},
		"LZ4_RAW": {craft{kind: Int32, codec: 7, rows: 2,
			pages: []craftPage{{values: 2, uncompressed: 8, body: lz4Literals(ints(3, 4))}}}, "3 4", ""},
		"LZ4 as Hadoop frames it": {craft{kind: Int32, codec: 5, rows: 2,
			pages: []craftPage{{values: 2, uncompressed: 8, body: hadoop(ints(3, 4))}}}, "3 4", ""},
		"LZ4 of a bare block": {craft{kind: Int32, codec: 5, rows: 2,
			pages: []craftPage{{values: 2, uncompressed: 8, body: lz4Literals(ints(3, 4))}}}, "3 4", ""},
		"LZ4_RAW of more than it says": {craft{kind: Int32, codec: 7, rows: 1,
			pages: []craftPage{{values: 1, uncompressed: 4, body: lz4Literals(ints(3, 4))}}}, "", "damaged: LZ4_RAW"},
		"LZ4_RAW of less than it says": {craft{kind: Int32, codec: 7, rows: 1,
			pages: []craftPage{{values: 1, uncompressed: 12,
				body: lz4Literals(ints(3, 4))}}}, "", "damaged: LZ4_RAW: 8 bytes decompressed, want 12"},
		"dictionary": {craft{kind: Int32, rows: 4, dict: 1,
			pages: []craftPage{dict, positions}}, "7 9 9 7", ""},
		"dictionary whose place is not said": {craft{kind: Int32, rows: 2, pages: []craftPage{{values: 2,
			body: ints(1, 2)}}, dict: 1}, "1 2", ""},
		"dictionary's checksum": {craft{kind: Int32, rows: 4, dict: 1,
			pages: []craftPage{{kind: dictionaryPage, values: 2, body: ints(7, 9), crc: true, badCRC: true},
				positions}}, "", "damaged: the checksum of the page at byte 4"},
		"page's checksum": {craft{kind: Int32, rows: 1, pages: []craftPage{{values: 1, body: ints(1),
			crc: true, badCRC: true}}}, "", "damaged: the checksum"},
		"position past the dictionary": {craft{kind: Int32, rows: 4, dict: 1,
			pages: []craftPage{{kind: dictionaryPage, values: 1, body: ints(7)},
				positions}}, "", "damaged: position 1 in a dictionary of 1"},
		"metadata without a value": {craft{kind: Int32, rows: 1, pages: []craftPage{{values: 1, body: ints(1)}},
			meta: func(c *compact) {
				c.list(5, 2, func(i int) { c.text(1, "k") })
			}}, "1", ""},
		"too many values": {craft{kind: Int32, rows: 1 << 28, pages: []craftPage{{kind: dataPage, values: 1 << 28,
			encoding: rleDictionary, body: []byte{0}}}}, "", "not supported: a page of 268435456 values"},
		"too large a page": {craft{kind: Int32, codec: 6, rows: 1,
			pages: []craftPage{{values: 1, uncompressed: 1 << 30,
				body: ints(1)}}}, "", "not supported: a page of 1024 MiB"},
		"a column shorter than its pages": {craft{kind: Int32, rows: 2, short: 1, pages: []craftPage{{values: 2,
			body: ints(1, 2)}}}, "", "as total_compressed_size in the footer has it"},
		"the same of a new parquet-mr": {craft{kind: Int32, rows: 2, short: 1, by: "parquet-mr version 1.13.1",
			pages: []craftPage{{values: 2, body: ints(1, 2)}}}, "", "as total_compressed_size in the footer has it"},
		"the same of an old parquet-mr": {craft{kind: Int32, rows: 2, short: 1, by: "parquet-mr version 1.2.8",
			pages: []craftPage{{values: 2, body: ints(1, 2)}}}, "1 2", ""},
		"unknown codec": {craft{kind: Int32, codec: 3, rows: 1, pages: []craftPage{{values: 1, uncompressed: 4,
			body: ints(1)}}}, "", "not supported: compression LZO"},
		"unknown encoding": {craft{kind: Int32, rows: 1, pages: []craftPage{{values: 1, encoding: 42, body: ints(1)}}},
			"", "not supported: encoding 42"},
		"values end early": {craft{kind: Int32, rows: 2, pages: []craftPage{{values: 2, body: ints(1)}}}, "",
			"damaged: values end early"},
		"pages end early": {craft{kind: Int32, rows: 2, pages: []craftPage{{values: 1, body: ints(1)}}}, "1",
			"damaged"},
		"more than it says": {craft{kind: Int32, rows: 1, pages: []craftPage{{values: 2, body: ints(1, 2)}}}, "1", ""},
	} {
		got, err := c.f.values()
		switch {
		case c.err == "" && (err != nil || got != c.want):
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: %q, %v, want an error with %q", name, got, err, c.err)
		}
	}
}

// FuzzColumn reads a file of any bytes to its end.
func FuzzColumn(f *testing.F) {
	for _, codec := range []int64{0, 1, 2, 4, 5, 6, 7} {
		for _, kind := range []Kind{Boolean, Int32, ByteArray} {
			for _, encoding := range []int64{plain, runLength, deltaBinaryPacked, deltaByteArray, rleDictionary,
				byteStreamSplit} {
				f.Add(craft{kind: kind, codec: codec, rows: 4, optional: true, pages: []craftPage{
					{kind: dataPageV2, values: 4, levels: 2, encoding: encoding,
						body: append([]byte{8, 1}, ints(4, 5, 6, 7)...)}}}.file())
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Open(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		total := int64(0)
		for _, g := range file.Groups {
			total += g.Rows
		}
		for leaf := range file.Leaves {
			if total < 1<<20 {
				_, _ = columnText(file, leaf) // it returns: that is the test
			}
		}
	})
}

// TestFootersWithoutFields: what a footer must have is not taken for 0, and names are UTF-8.
func TestFootersWithoutFields(t *testing.T) {
	element := func(name string) func(c *compact) {
		return func(c *compact) {
			c.list(2, 2, func(i int) {
				if i == 0 {
					c.text(4, "root").i32(5, 1)
					return
				}
				if c.i32(1, int64(Int32)).i32(3, Required); name != "" {
					c.text(4, name)
				}
			})
		}
	}
	none := func(*compact) {}
	groups := func(c *compact) { c.list(4, 0, func(int) {}) }
	for name, f := range map[string]struct {
		schema, groups func(c *compact)
		err            string
	}{
		"whole":     {element("x"), groups, ""},
		"no groups": {element("x"), none, "field 4 of a struct is missing"},
		"no schema": {none, groups, "field 2 of a struct is missing"},
		"no name":   {element(""), groups, "field 4 of a struct is missing"},
		"not UTF-8": {element("x\xe3"), groups, "is not UTF-8"},
		"no chunks": {element("x"), func(c *compact) { c.list(4, 1, func(int) { c.i64(2, 0).i64(3, 0) }) },
			"field 1 of a struct is missing"},
		"no rows said": {element("x"), func(c *compact) {
			c.list(4, 1, func(int) { c.list(1, 0, func(int) {}).i64(2, 0) })
		}, "field 3 of a struct is missing"},
		"rows of another type": {element("x"), func(c *compact) {
			c.list(4, 1, func(int) { c.list(1, 0, func(int) {}).i64(2, 0).i32(3, 7) })
		}, "field 3 of a struct is missing"},
		"groups of another type": {element("x"), func(c *compact) {
			c.field(4, thriftList)
			c.b = append(c.b, 1<<4|thriftI32, 0)
		}, "a list has entries of type 5, not 12"},
		"an order without its column": {element("x"), func(c *compact) {
			c.list(4, 1, func(int) {
				c.list(1, 0, nil).i64(2, 0).i64(3, 0).list(4, 1, func(int) {
					c.field(2, thriftFalse)
					c.field(3, thriftTrue)
				})
			})
		}, "field 1 of a struct is missing"},
		"a column without its path": {element("x"), func(c *compact) {
			c.list(4, 1, func(int) {
				c.list(1, 1, func(int) {
					c.i64(2, 4).nest(3, func() {
						c.i32(1, int64(Int32)).list(2, 0, nil).text(3, "x").i32(4, 0).i64(5, 0).i64(6,
							0).i64(7, 0).i64(9, 4)
					})
				}).i64(2, 0).i64(3, 0)
			})
		}, "field 3 of a struct is missing"},
	} {
		c := &compact{}
		c.open()
		c.i32(1, 1)
		f.schema(c)
		c.i64(3, 0)
		f.groups(c)
		c.shut()
		data := append([]byte(magic), c.b...)
		data = append(binary.LittleEndian.AppendUint32(data, uint32(len(c.b))), magic...)
		_, err := Open(bytes.NewReader(data), int64(len(data)))
		if f.err == "" && err != nil || f.err != "" && (err == nil || !strings.Contains(err.Error(), f.err)) {
			t.Errorf("%s: %v, want %q", name, err, f.err)
		}
	}
}

// TestAnnotations: an annotation that the format never had, or not of such a type, is damage.
func TestAnnotations(t *testing.T) {
	old := func(n int64) func(c *compact) { return func(c *compact) { c.i32(6, n) } }
	logical := func(id int64, f func(c *compact)) func(c *compact) {
		return func(c *compact) { c.nest(10, func() { c.nest(id, func() { f(c) }) }) }
	}
	none := func(*compact) {}
	integer := func(bits byte) func(c *compact) {
		return func(c *compact) {
			c.field(1, thriftI8)
			c.b = append(c.b, bits)
			c.field(2, thriftTrue)
		}
	}
	time := func(unit int64) func(c *compact) {
		return func(c *compact) {
			c.field(1, thriftFalse)
			c.nest(2, func() { c.nest(unit, func() {}) })
		}
	}
	for name, c := range map[string]struct {
		kind Kind
		says func(c *compact)
		err  string
	}{
		"text":                     {ByteArray, old(0), ""},
		"text of whole numbers":    {Int32, old(0), "of INT32 is no STRING"},
		"16 bits":                  {Int32, old(16), ""},
		"an interval":              {FixedLenByteArray, old(21), ""},
		"a list that is no group":  {ByteArray, old(3), "is no LIST"},
		"converted type 22":        {ByteArray, old(22), "has the converted type 22"},
		"converted type 76":        {ByteArray, old(76), "has the converted type 76"},
		"converted type -1":        {ByteArray, old(-1), "has the converted type -1"},
		"logical text":             {ByteArray, logical(1, none), ""},
		"logical text of doubles":  {Double, logical(1, none), "of DOUBLE is no STRING"},
		"12 bits":                  {Int32, logical(10, integer(12)), "integers of 12 bits"},
		"64 bits in 32":            {Int32, logical(10, integer(64)), "is no INT(64,true)"},
		"times":                    {Int64, logical(8, time(3)), ""},
		"times of an unknown unit": {Int64, logical(8, time(4)), "is no TIMESTAMP"},
		"a variant":                {ByteArray, logical(16, none), ""},
		"a type of the future":     {ByteArray, logical(40, none), "not supported: the logical type 40"},
		"no type":                  {ByteArray, func(c *compact) { c.nest(10, func() {}) }, "logical type"},
	} {
		b := &compact{}
		b.open()
		b.text(4, "x")
		c.says(b)
		b.shut()
		err := (&Element{Name: "x", Kind: c.kind, Length: 12, Raw: b.b}).checkAnnotations()
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %v, want %q", name, err, c.err)
		}
	}
}

// TestShapes: what readers of a footer refuse is refused, also where its values are not needed here.
func TestShapes(t *testing.T) {
	items := func(c *compact, id int64, n int) {
		c.field(id, thriftList)
		c.b = append(c.b, byte(n)<<4|thriftI64)
		c.b = append(c.b, make([]byte, n)...)
	}
	for name, c := range map[string]struct {
		chunk, file func(c *compact)
		err         string
	}{
		"nothing more":  {nil, nil, ""},
		"histograms":    {func(c *compact) { c.nest(16, func() { items(c, 2, 1); items(c, 3, 2) }) }, nil, ""},
		"no histograms": {func(c *compact) { c.nest(16, func() { items(c, 2, 0); items(c, 3, 0) }) }, nil, ""},
		"another histogram": {func(c *compact) { c.nest(16, func() { items(c, 3, 3) }) }, nil,
			"the size statistics of column"},
		"one of repetitions": {func(c *compact) { c.nest(16, func() { items(c, 2, 2) }) }, nil,
			"the size statistics"},
		"bytes of numbers": {func(c *compact) { c.nest(16, func() { c.i64(1, 5) }) }, nil, "the size statistics"},
		"half a box": {func(c *compact) { c.nest(17, func() { c.nest(1, func() {}) }) }, nil,
			"field 1 of a struct"},
		"a pair without a key": {func(c *compact) { c.list(8, 1, func(int) { c.text(2, "v") }) }, nil,
			"field 1 of a struct"},
		"encodings of pages": {func(c *compact) { c.list(13, 1, func(int) { c.i32(1, 0).i32(2, 0) }) }, nil,
			"field 3 of a struct"},
		"orders":    {nil, func(c *compact) { c.list(7, 1, func(int) { c.nest(1, func() {}) }) }, ""},
		"no orders": {nil, func(c *compact) { c.list(7, 0, nil) }, "0 column orders of 1 columns"},
	} {
		_, err := craft{kind: Int32, optional: true, rows: 1, pages: []craftPage{{values: 1,
			body: append(framed(2, 1), ints(5)...)}}, meta: c.file, chunk: c.chunk}.values()
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %v, want %q", name, err, c.err)
		}
	}
}
