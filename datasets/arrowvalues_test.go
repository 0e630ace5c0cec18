package datasets

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/parquet-go/parquet-go"
)

// textStream is a stream of a column of texts, one of them null, and one of a dictionary.
func textStream(t testing.TB) []byte {
	t.Helper()
	kind := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	schema := arrow.NewSchema([]arrow.Field{{Name: "prompt", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "kind", Type: kind, Nullable: true}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	for i, text := range []string{"a", "b", "c"} {
		b.Field(0).(*array.StringBuilder).AppendValues([]string{text}, []bool{i != 1})
		if err := b.Field(1).(*array.BinaryDictionaryBuilder).AppendString(text); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(schema))
	if err := w.Write(b.NewRecord()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// message returns the header of the first message of a kind, a view of the stream, and its body.
func message(t *testing.T, stream []byte, kind byte) (*flatTable, []byte) {
	t.Helper()
	for at := 0; at+8 < len(stream); {
		n := int(binary.LittleEndian.Uint32(stream[at+4:]))
		root, err := flat(stream[at+8 : at+8+n]).root()
		if err != nil {
			t.Fatal(err)
		}
		at += 8 + n
		body, err := root.long(3)
		if err != nil {
			t.Fatal(err)
		}
		header, err := root.table(2)
		if k, _ := root.byte(1); err == nil && k == kind {
			return header, stream[at : at+int(body)]
		}
		at += int(body)
	}
	t.Fatalf("there is no message of kind %d", kind)
	return nil, nil
}

// TestDamagedArrowStreams: what a batch says of its columns must be what they are.
func TestDamagedArrowStreams(t *testing.T) {
	nodes := func(h *flatTable) []byte {
		at, n, err := h.vector(1, 16)
		if err != nil || n == 0 {
			t.Fatal(n, err)
		}
		return h.b[at-4:] // their number, then {length, nulls} of each
	}
	for name, c := range map[string]struct {
		damage func(stream []byte)
		err    string
	}{
		"whole": {func([]byte) {}, ""},
		"the validity bitmap": {func(b []byte) {
			_, body := message(t, b, 3)
			body[0] |= 1 << 1
		}, `column "prompt": damaged Arrow metadata: null_count is 1, the validity bitmap has 0 nulls`},
		"the number of nulls": {func(b []byte) {
			h, _ := message(t, b, 3)
			nodes(h)[4+8] = 2
		}, "null_count is 2, the validity bitmap has 1 nulls"},
		"a longer column": {func(b []byte) {
			h, _ := message(t, b, 3)
			nodes(h)[4] = 4
		}, "column 0 has 4 values in a batch of 3 rows"},
		"a longer last column": {func(b []byte) {
			h, _ := message(t, b, 3)
			nodes(h)[4+16] = 4
		}, "column 1 has 4 values in a batch of 3 rows"},
		"no node of a dictionary": {func(b []byte) {
			h, _ := message(t, b, 2)
			h, err := h.table(1)
			if err != nil {
				t.Fatal(err)
			}
			nodes(h)[0] = 0
		}, "a batch has 0 nodes and 3 buffers, its schema needs 1 and 3"},
		"a column's node": {func(b []byte) {
			h, _ := message(t, b, 3)
			nodes(h)[0] = 1
		}, "a batch has 1 nodes and 5 buffers, its schema needs 2 and 5"},
		"a name's end": {func(b []byte) { b[bytes.Index(b, []byte("prompt"))+6] = 2 }, `"prompt" has no zero behind it`},
	} {
		stream := textStream(t)
		c.damage(stream)
		in, err := OpenStream(bytes.NewReader(stream), "x")
		if err == nil {
			in.Close()
		}
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err) ||
			!strings.HasPrefix(err.Error(), "x: ")) {
			t.Errorf("%s: %v, want %q", name, err, c.err)
		}
	}
}

// TestUnknownArrowType: a stored schema of a type that Arrow has not is not passed on to
// outputs, which no reader of it would open.
func TestUnknownArrowType(t *testing.T) {
	type row struct {
		Prompt string `parquet:"prompt"`
	}
	fields, err := fieldsOf([]*node{{name: "prompt", leaf: true, leaves: 1, typ: leafType{kind: 6}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []byte{lastKind - 2, 44} { // a view of texts is one of Arrow's
		fields[0].message[fields[0].slot(fieldKind)] = kind
		stored := (&arrowSchema{fields: fields}).text(nil)
		if _, err := base64.StdEncoding.DecodeString(stored); err != nil {
			t.Fatal(err)
		}
		var data bytes.Buffer
		w := parquet.NewGenericWriter[row](&data, parquet.KeyValueMetadata(arrowSchemaKey, stored))
		if _, err := w.Write([]row{{"a"}}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		in, err := OpenBytes("x", data.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if passed := in.arrow != nil; passed != (kind <= lastKind) {
			t.Errorf("type %d: passed on: %v", kind, passed)
		}
	}
}

// TestArrowMetadata: what other readers refuse in metadata is refused, as the library alone does not.
func TestArrowMetadata(t *testing.T) {
	put := func(at *flatTable, field int, v ...byte) {
		place, err := at.at(field)
		if err != nil || place == 0 {
			t.Fatal(place, err)
		}
		copy(at.b[place:], v)
	}
	root := func(b []byte, i int) *flatTable { // of message i
		for at := 0; ; i-- {
			n := int(binary.LittleEndian.Uint32(b[at+4:]))
			root, err := flat(b[at+8 : at+8+n]).root()
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				return root
			}
			body, err := root.long(3)
			if err != nil {
				t.Fatal(err)
			}
			at += 8 + n + int(body)
		}
	}
	header := func(b []byte, i int) *flatTable {
		h, err := root(b, i).table(2)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	for name, c := range map[string]struct {
		damage func(b []byte) []byte
		err    string
	}{
		"an old version":  {func(b []byte) []byte { put(root(b, 0), 0, 2); return b }, "metadata of version 3"},
		"a later version": {func(b []byte) []byte { put(root(b, 2), 0, 5); return b }, "metadata of version 6"},
		"another kind":    {func(b []byte) []byte { put(root(b, 2), 1, 4); return b }, "a batch of kind 4"},
		"no dictionary": {func(b []byte) []byte { return withoutMessage(b, 1) },
			"0 dictionaries before the first batch"},
		"a misplaced table": {func(b []byte) []byte { put(root(b, 0), 2, 1); return b }, "damaged Arrow metadata"},
		"a misplaced buffer": {func(b []byte) []byte {
			at, _, err := header(b, 2).vector(2, 16)
			if err != nil {
				t.Fatal(err)
			}
			header(b, 2).b[at+16] += 4
			return b
		}, "a buffer of 16 bytes at 12"},
	} {
		in, err := OpenStream(bytes.NewReader(c.damage(textStream(t))), "x")
		if err == nil {
			in.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want %q", name, err, c.err)
		}
	}
}

// withoutMessage is a stream that lacks one of its messages.
func withoutMessage(b []byte, i int) []byte {
	for at := 0; ; i-- {
		n := 8 + int(binary.LittleEndian.Uint32(b[at+4:]))
		root, err := flat(b[at+8 : at+n]).root()
		if err == nil {
			var body int64
			if body, err = root.long(3); err == nil {
				n += int(body)
			}
		}
		if err != nil {
			panic(err)
		}
		if i == 0 {
			return append(append([]byte{}, b[:at]...), b[at+n:]...)
		}
		at += n
	}
}

// TestArrowValues: arrays that are not what their types say are damage, whichever part of them is.
func TestArrowValues(t *testing.T) {
	le := binary.LittleEndian
	of32 := func(v ...int32) (b []byte) {
		for _, x := range v {
			b = le.AppendUint32(b, uint32(x))
		}
		return b
	}
	of64 := func(v ...int64) (b []byte) {
		for _, x := range v {
			b = le.AppendUint64(b, uint64(x))
		}
		return b
	}
	view := func(n int32, rest ...byte) []byte {
		return append(of32(n), append(rest, make([]byte, 12-len(rest))...)...)
	}
	long := func(prefix string, buffer, at int32) []byte { return append([]byte(prefix), of32(buffer, at)...) }
	data := func(typ arrow.DataType, n, nulls int, buffers [][]byte, children ...arrow.ArrayData) arrow.ArrayData {
		var all []*memory.Buffer
		for _, b := range buffers {
			if b == nil {
				all = append(all, nil)
			} else {
				all = append(all, memory.NewBufferBytes(b))
			}
		}
		return array.NewData(typ, n, all, children, nulls, 0)
	}
	ints := func(n int) arrow.ArrayData {
		return data(arrow.PrimitiveTypes.Int32, n, 0, [][]byte{nil, make([]byte, 4*n)})
	}
	dict := func(index []byte, values arrow.ArrayData) arrow.ArrayData {
		d := data(&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: values.DataType()}, len(index),
			0,
			[][]byte{nil, index}).(*array.Data)
		d.SetDictionary(values)
		return d
	}
	list, text := arrow.ListOf(arrow.PrimitiveTypes.Int32), arrow.BinaryTypes.String
	entry := arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32}
	pair := arrow.StructOf(entry, arrow.Field{Name: "b", Type: arrow.PrimitiveTypes.Int32})
	sparse := arrow.SparseUnionOf([]arrow.Field{entry}, []arrow.UnionTypeCode{0})
	dense := arrow.DenseUnionOf([]arrow.Field{entry}, []arrow.UnionTypeCode{0})
	runs := arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int32)
	ends := func(v ...int32) arrow.ArrayData {
		return data(arrow.PrimitiveTypes.Int32, len(v), 0, [][]byte{nil, of32(v...)})
	}
	const day = 86_400
	for name, c := range map[string]struct {
		good, bad arrow.ArrayData
		err       string
	}{
		"numbers": {ints(3), data(arrow.PrimitiveTypes.Int64, 3, 0, [][]byte{nil, make([]byte, 23)}),
			"a buffer of 23 bytes for 3 values of int64"},
		"booleans": {data(arrow.FixedWidthTypes.Boolean, 9, 0, [][]byte{nil, {1, 1}}),
			data(arrow.FixedWidthTypes.Boolean, 9, 0, [][]byte{nil, {1}}), "a buffer of 1 bytes for 9 values of bool"},
		"bitmaps": {data(arrow.PrimitiveTypes.Int8, 9, 8, [][]byte{{1, 0}, make([]byte, 9)}),
			data(arrow.PrimitiveTypes.Int8, 9, 8, [][]byte{{1}, make([]byte, 9)}),
			"a validity bitmap of 1 bytes for 9 values"},
		"nulls": {data(arrow.PrimitiveTypes.Int8, 2, 1, [][]byte{{1}, {0, 0}}),
			data(arrow.PrimitiveTypes.Int8, 2, 1, [][]byte{{3}, {0, 0}}),
			"null_count is 1, the validity bitmap has 0 nulls"},
		"a column of nulls": {data(arrow.Null, 3, 3, nil), data(arrow.Null, 3, 2, nil), "null_count is 2 of 3 nulls"},
		"fixed bytes": {data(&arrow.FixedSizeBinaryType{ByteWidth: 3}, 2, 0, [][]byte{nil, make([]byte, 6)}),
			data(&arrow.FixedSizeBinaryType{ByteWidth: 3}, 2, 0, [][]byte{nil, make([]byte, 5)}),
			"a buffer of 5 bytes for 2"},
		"texts": {data(text, 2, 0, [][]byte{nil, of32(0, 1, 3), []byte("abc")}),
			data(text, 2, 0, [][]byte{nil, of32(0, 1, 4), []byte("abc")}), "offset 4 behind 1, of 3"},
		"offsets that are missing": {data(text, 0, 0, [][]byte{nil, {}, {}}),
			data(text, 2, 0, [][]byte{nil, of32(0, 1), []byte("abc")}), "a buffer of 8 bytes for 2 values of utf8"},
		"offsets that go back": {data(arrow.BinaryTypes.LargeBinary, 2, 0, [][]byte{nil, of64(0, 1, 1), []byte("abc")}),
			data(arrow.BinaryTypes.LargeBinary, 2, 0, [][]byte{nil, of64(0, 2, 1), []byte("abc")}),
			"offset 1 behind 2, of 3"},
		"views": {data(arrow.BinaryTypes.StringView, 2, 0, [][]byte{nil,
			append(view(2, 'a', 'b'), view(13, long("long", 0, 1)...)...), []byte("-long enough it is")}),
			data(arrow.BinaryTypes.StringView, 1, 0, [][]byte{nil, view(13, long("long", 0, 7)...),
				[]byte("-long enough it is")}), "a view of 13 bytes at 7 of buffer 0"},
		"views of another text": {data(arrow.BinaryTypes.BinaryView, 0, 0, [][]byte{nil, {}}),
			data(arrow.BinaryTypes.BinaryView, 1, 0, [][]byte{nil, view(13, long("lang", 0, 1)...),
				[]byte("-long enough it is")}), "a view whose text begins otherwise"},
		"views with more": {data(arrow.BinaryTypes.StringView, 1, 0, [][]byte{nil, view(1, 'a')}),
			data(arrow.BinaryTypes.StringView, 1, 0, [][]byte{nil, view(1, 'a', 'b')}), "a view of 1 bytes with more"},
		"lists": {data(list, 2, 0, [][]byte{nil, of32(0, 1, 3)}, ints(3)),
			data(list, 2, 0, [][]byte{nil, of32(0, 1, 4)}, ints(3)), "offset 4 behind 1, of 3"},
		"a list's values": {data(list, 0, 0, [][]byte{nil, {}}, ints(0)),
			data(list, 1, 0, [][]byte{nil, of32(0, 2)}, data(arrow.PrimitiveTypes.Int32, 2, 0, [][]byte{nil, of32(7)})),
			"a buffer of 4 bytes for 2 values of int32"},
		"list views": {data(arrow.ListViewOf(arrow.PrimitiveTypes.Int32), 2, 0, [][]byte{nil, of32(1, 0), of32(2, 3)},
			ints(3)),
			data(arrow.LargeListViewOf(arrow.PrimitiveTypes.Int32), 1, 0, [][]byte{nil, of64(2), of64(2)}, ints(3)),
			"a list of 2 values at 2, of 3"},
		"lists of three": {data(arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Int32), 2, 0, [][]byte{nil}, ints(6)),
			data(arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Int32), 2, 0, [][]byte{nil}, ints(5)),
			"5 values in 2 lists of 3"},
		"maps": {data(arrow.MapOf(arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int32), 1, 0,
			[][]byte{nil, of32(0, 2)},
			data(pair, 2, 0, [][]byte{nil}, ints(2), ints(2))),
			data(arrow.MapOf(arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int32), 1, 0, [][]byte{nil, of32(0, 2)},
				data(pair, 2, 1, [][]byte{{1}}, ints(2), ints(2))), "keys or entries that are null"},
		"structs": {data(pair, 2, 0, [][]byte{nil}, ints(2), ints(3)),
			data(pair, 2, 0, [][]byte{nil}, ints(2), ints(1)),
			"field 1 has 1 values, its column 2"},
		"a struct without a field": {data(pair, 0, 0, [][]byte{nil}, ints(0), ints(0)),
			data(pair, 2, 0, [][]byte{nil}, ints(2)), "1 children of a column"},
		"sparse unions": {data(sparse, 2, 0, [][]byte{nil, {0, 0}}, ints(2)),
			data(sparse, 2, 0, [][]byte{nil, {0, 0}}, ints(1)),
			"field 0 has 1 values"},
		"no types of a union": {data(sparse, 0, 0, [][]byte{nil, {}}, ints(0)),
			data(sparse, 1, 0, [][]byte{nil, {}}, ints(1)),
			"a union of 1 values with 0 types"},
		"types of a union": {data(sparse, 1, 0, [][]byte{nil, {0}}, ints(1)),
			data(sparse, 1, 0, [][]byte{nil, {3}}, ints(1)),
			"a value of type 3, which its union has not"},
		"dense unions": {data(dense, 2, 0, [][]byte{nil, {0, 0}, of32(0, 1)}, ints(2)),
			data(dense, 2, 0, [][]byte{nil, {0, 0}, of32(0, 2)}, ints(2)), "value 2 of a child of 2"},
		"runs": {data(runs, 5, 0, [][]byte{nil}, ends(2, 5), ints(2)),
			data(runs, 5, 0, [][]byte{nil}, ends(2, 4), ints(2)),
			"runs that end at 4 of 5 values"},
		"runs that go back": {data(runs, 5, 0, [][]byte{nil}, ends(5, 6), ints(2)),
			data(runs, 5, 0, [][]byte{nil}, ends(5, 5), ints(2)), "a run that ends at 5 behind one that ends at 5"},
		"dictionaries": {dict([]byte{0, 1}, ints(2)), dict([]byte{0, 2}, ints(2)), "position 2 in a dictionary of 2"},
		"a dictionary's values": {dict([]byte{0}, ints(1)), dict([]byte{0},
			data(text, 1, 0, [][]byte{nil, of32(0, 9), []byte("abc")})),
			"its dictionary: damaged Arrow metadata: offset 9"},
		"times": {data(arrow.FixedWidthTypes.Time32s, 1, 0, [][]byte{nil, of32(day - 1)}),
			data(arrow.FixedWidthTypes.Time32s, 1, 0, [][]byte{nil, of32(day)}), "86400 is no time of a day"},
		"nanoseconds": {data(arrow.FixedWidthTypes.Time64ns, 1, 0, [][]byte{nil, of64(day*1e9 - 1)}),
			data(arrow.FixedWidthTypes.Time64ns, 1, 0, [][]byte{nil, of64(-1)}), "-1 is no time of a day"},
		"days": {data(arrow.FixedWidthTypes.Date64, 2, 1, [][]byte{{1}, of64(day*1e3, 5)}),
			data(arrow.FixedWidthTypes.Date64, 1, 0, [][]byte{nil, of64(day*1e3 + 1)}), "are no whole days"},
		"decimals": {data(&arrow.Decimal128Type{Precision: 2}, 1, 0, [][]byte{nil, of64(-99, -1)}),
			data(&arrow.Decimal128Type{Precision: 2}, 1, 0, [][]byte{nil, of64(100, 0)}),
			"a decimal of more than 2 digits"},
		"decimals of no precision": {data(&arrow.Decimal256Type{Precision: 76}, 1, 0, [][]byte{nil, of64(1, 0, 0, 0)}),
			data(&arrow.Decimal256Type{Precision: 77}, 1, 0, [][]byte{nil, of64(1, 0, 0, 0)}), "decimals of 77 digits"},
	} {
		if err := new(arrowValues).array(c.good); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := new(arrowValues).array(c.bad); err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want %q", name, err, c.err)
		}
		whole := arrow.StructOf(arrow.Field{Name: "x", Type: c.bad.DataType(), Nullable: true})
		inside := data(whole, c.bad.Len(), 0, [][]byte{nil}, c.bad)
		if err := new(arrowValues).array(inside); err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s in a struct: %v, want %q", name, err, c.err)
		}
	}
}

// nestedStream is a stream of structs, lists, maps, views and decimals.
func nestedStream(t testing.TB) []byte {
	t.Helper()
	fields := []arrow.Field{
		{Name: "prompt", Type: arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int16, Nullable: true},
			arrow.Field{Name: "b", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true}), Nullable: true},
		{Name: "map", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.FixedWidthTypes.Date64), Nullable: true},
		{Name: "three", Type: arrow.FixedSizeListOf(3, arrow.FixedWidthTypes.Boolean), Nullable: true},
		{Name: "view", Type: arrow.BinaryTypes.StringView, Nullable: true},
		{Name: "money", Type: &arrow.Decimal128Type{Precision: 7, Scale: 2}, Nullable: true},
		{Name: "time", Type: arrow.FixedWidthTypes.Time32ms, Nullable: true},
		{Name: "none", Type: arrow.Null, Nullable: true},
	}
	schema := arrow.NewSchema(fields, nil)
	rows := `[{"prompt": {"a": 1, "b": ["x", null]}, "map": [{"key": "k", "value": "2024-01-31"}], "three": [true, false, null],
		"view": "a text that is longer than twelve bytes", "money": "1.25", "time": "01:02:03.004", "none": null},
		{"prompt": null, "map": null, "three": null, "view": "short", "money": null, "time": null, "none": null}]`
	batch, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(rows))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(schema))
	if err := w.Write(batch); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// FuzzArrowStream reads streams of any bytes as standard input is read: what is taken can be
// written and read again.
func FuzzArrowStream(f *testing.F) {
	f.Add(textStream(f))
	nested := nestedStream(f)
	f.Add(nested)
	for i := 0; i < len(nested); i += 61 {
		bad := bytes.Clone(nested)
		bad[i] ^= 1 << (i % 8)
		f.Add(bad)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		in, err := OpenStream(bytes.NewReader(data), "x")
		if err != nil {
			return
		}
		defer in.Close()
		path := filepath.Join(dir, "out.parquet")
		if err := passThrough(in, path); err != nil {
			t.Fatal(err)
		}
		out, err := Open([]string{path})
		if err != nil || out.Rows != in.Rows {
			t.Fatalf("%v, or other than %d rows", err, in.Rows)
		}
	})
}
