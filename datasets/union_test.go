package datasets

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"glmbatch/datasets/pages"
)

// parquetOf is a file of rows, by the library.
func parquetOf[T any](t *testing.T, rows []T, options ...parquet.WriterOption) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, options...)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// footerOf reads a file's footer.
func footerOf(t *testing.T, data []byte) *format.FileMetaData {
	t.Helper()
	meta := &format.FileMetaData{}
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), data[footerAt(data):len(data)-8], meta); err != nil {
		t.Fatal(err)
	}
	return meta
}

// withFooter is a file with its footer changed.
func withFooter(t *testing.T, data []byte, change func(*format.FileMetaData)) []byte {
	t.Helper()
	meta := footerOf(t, data)
	change(meta)
	return withFooterBytes(t, data, meta)
}

// withFooterBytes is a file with another footer.
func withFooterBytes(t *testing.T, data []byte, meta any) []byte {
	t.Helper()
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), meta)
	if err != nil {
		t.Fatal(err)
	}
	out := append(bytes.Clone(data[:footerAt(data)]), footer...)
	return append(binary.LittleEndian.AppendUint32(out, uint32(len(footer))), parquetMagic...)
}

// union opens files as one table.
func union(t *testing.T, files ...[]byte) (*Input, error) {
	t.Helper()
	var sources []source
	for i, data := range files {
		sources = append(sources, source{path: string(rune('a' + i)), data: data, bare: true})
	}
	return open(sources)
}

// output passes a table through and returns the file.
func output(t *testing.T, in *Input) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "out.parquet")
	if err := passThrough(in, path); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

type (
	wideRow struct {
		N int64   `parquet:"n"`
		S *string `parquet:"s"`
	}
	narrowRow struct {
		S string `parquet:"s"`
		N int8   `parquet:"n"`
	}
	unsignedRow struct {
		N uint16 `parquet:"n"`
		X []struct {
			A int32 `parquet:"a"`
		} `parquet:"x,list"`
	}
	nestedRow struct {
		X []struct {
			B string `parquet:"b"`
			A int64  `parquet:"a"`
		} `parquet:"x,list"`
	}
	textRow struct {
		N string `parquet:"n"`
	}
)

// TestUnion: files whose columns differ in order, width, sign, nullability and depth,
// or lack, are one table. Annotations that say the same are the same.
func TestUnion(t *testing.T) {
	nested := unsignedRow{N: 65535}
	nested.X = append(nested.X, struct {
		A int32 `parquet:"a"`
	}{-5})
	deeper := nestedRow{}
	deeper.X = append(deeper.X, struct {
		B string `parquet:"b"`
		A int64  `parquet:"a"`
	}{"b", 1 << 40})
	wide := parquetOf(t, []wideRow{{1 << 60, ptr("x")}, {-1, nil}})
	bare := withFooter(t, wide, func(m *format.FileMetaData) {
		m.Schema[1].LogicalType = format.LogicalType{}
		m.Schema[1].ConvertedType = thrift.Null[deprecated.ConvertedType]{}
	})
	in, err := union(t, wide, bare, parquetOf(t, []narrowRow{{"y", -128}}), parquetOf(t, []unsignedRow{nested, {N: 1}}),
		parquetOf(t, []nestedRow{deeper, {}}),
		parquetOf(t, []textRow{}))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`{"n":1152921504606846976,"s":"x"}`, `{"n":-1}`, `{"n":1152921504606846976,"s":"x"}`, `{"n":-1}`,
		`{"n":-128,"s":"y"}`,
		`{"n":65535,"x":[{"a":-5}]}`, `{"n":1,"x":[]}`, `{"x":[{"a":1099511627776,"b":"b"}]}`, `{"x":[]}`}
	if d := cmp.Diff(want, rowsOf(t, in)); d != "" {
		t.Error(d)
	}
	back, err := union(t, output(t, in))
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rowsOf(t, back) {
		if got := strings.Replace(row, `,"truncated_tokens":0`, "", 1); got != want[i] {
			t.Errorf("row %d comes back as %s, want %s", i, got, want[i])
		}
	}
	if _, err := union(t, wide, parquetOf(t, []textRow{{"1"}})); err == nil ||
		!strings.Contains(err.Error(), `b: column "n" is STRING, but INT64 in a`) {
		t.Errorf("numbers and texts: %v", err)
	}
}

// TestWider: of two types, whichever comes first.
func TestWider(t *testing.T) {
	integer := func(bits int8, unsigned bool) leafType {
		typ := leafType{kind: pages.Int32, logical: pages.Logical{Class: pages.Integer, Bits: bits, Unsigned: unsigned}}
		if bits == 64 {
			typ.kind = pages.Int64
		}
		return typ
	}
	decimal := func(kind pages.Kind, precision, scale, length int32) leafType {
		return leafType{kind: kind, length: length, logical: pages.Logical{Class: pages.Decimal, Precision: precision,
			Scale: scale}}
	}
	instant := func(unit pages.Unit, utc bool) leafType {
		return leafType{kind: pages.Int64, logical: pages.Logical{Class: pages.Timestamp, Unit: unit, UTC: utc}}
	}
	i32, i64 := leafType{kind: pages.Int32}, leafType{kind: pages.Int64}
	f32, f64 := leafType{kind: pages.Float}, leafType{kind: pages.Double}
	for _, c := range []struct {
		a, b leafType
		want string // "": none
	}{
		{i32, i64, "INT64"},
		{integer(8, false), integer(16, false), "INT(16,true)"},
		{integer(8, true), integer(8, false), "INT(16,true)"},
		{integer(32, true), i32, "INT64"},
		{integer(64, true), i64, ""},
		{i32, f32, "DOUBLE"},
		{i64, f64, ""},
		{f32, f64, "DOUBLE"},
		{f32, leafType{kind: pages.FixedLenByteArray, length: 2, logical: pages.Logical{Class: pages.Half}}, "FLOAT"},
		{decimal(pages.Int32, 4, 2, 0), decimal(pages.FixedLenByteArray, 12, 2, 6), "DECIMAL(12,2)"},
		{decimal(pages.Int32, 4, 2, 0), decimal(pages.Int32, 4, 1, 0), ""},
		{instant(pages.Millis, false), instant(pages.Nanos, false), "TIMESTAMP(ns)"},
		{instant(pages.Millis, false), leafType{kind: pages.Int96}, "TIMESTAMP(us)"},
		{leafType{kind: pages.Int64, duration: pages.Seconds}, leafType{kind: pages.Int64, duration: pages.Micros},
			"DURATION(us)"},
		{leafType{kind: pages.Int64, duration: pages.Seconds}, i64, ""},
		{textType, i32, ""},
	} {
		for _, pair := range [][2]leafType{{c.a, c.b}, {c.b, c.a}} {
			typ, ok := wider(pair[0], pair[1])
			if ok != (c.want != "") || ok && typ.String() != c.want {
				t.Errorf("%s and %s: %s, %v, want %s", pair[0], pair[1], typ, ok, c.want)
			}
		}
	}
}

// TestBounds: the least and greatest value in the order of what values mean.
func TestBounds(t *testing.T) {
	le := binary.LittleEndian
	number := func(f float64) []byte { return le.AppendUint64(nil, math.Float64bits(f)) }
	for name, c := range map[string]struct {
		typ      leafType
		values   [][]byte
		min, max []byte
	}{
		"decimal": {leafType{kind: pages.FixedLenByteArray, length: 2, logical: pages.Logical{Class: pages.Decimal,
			Precision: 4}},
			[][]byte{{0, 5}, {0xff, 0xff}, {1, 0}, nil}, []byte{0xff, 0xff}, []byte{1, 0}},
		"decimal of any length": {leafType{kind: pages.ByteArray, logical: pages.Logical{Class: pages.Decimal,
			Precision: 4}},
			[][]byte{{5}, {0xff}, {1, 0}, {0xfe, 0}, {0}}, []byte{0xfe, 0}, []byte{1, 0}},
		"half": {leafType{kind: pages.FixedLenByteArray, length: 2, logical: pages.Logical{Class: pages.Half}},
			[][]byte{{0, 0x3c}, {0, 0xc0}, {1, 0x7e}, {0, 0}}, []byte{0, 0xc0}, []byte{0, 0x3c}},
		"unsigned": {leafType{kind: pages.Int32, logical: pages.Logical{Class: pages.Integer, Bits: 32,
			Unsigned: true}},
			[][]byte{{0, 0, 0, 0x80}, {1, 0, 0, 0}}, []byte{1, 0, 0, 0}, []byte{0, 0, 0, 0x80}},
		"NaN": {leafType{kind: pages.Double}, [][]byte{number(math.NaN()), number(2), number(-1)}, number(-1),
			number(2)},
		"only NaN":    {leafType{kind: pages.Double}, [][]byte{number(math.NaN())}, nil, nil},
		"zeros":       {leafType{kind: pages.Double}, [][]byte{number(0)}, number(math.Copysign(0, -1)), number(0)},
		"no order":    {leafType{kind: pages.Int96}, [][]byte{make([]byte, 12)}, nil, nil},
		"text":        {textType, [][]byte{[]byte("b"), []byte(""), []byte("é")}, []byte(""), []byte("é")},
		"long a text": {textType, [][]byte{bytes.Repeat([]byte("b"), 2*maxBound)}, nil, nil},
	} {
		b := bounds{typ: c.typ, ordered: ordered(c.typ)}
		for _, v := range c.values {
			b.add(v)
		}
		var m format.ColumnMetaData
		b.put(&m)
		if !bytes.Equal(m.Statistics.MinValue, c.min) || !bytes.Equal(m.Statistics.MaxValue, c.max) {
			t.Errorf("%s: %x to %x, want %x to %x", name, m.Statistics.MinValue, m.Statistics.MaxValue, c.min, c.max)
		}
	}
}

// TestConvertedDecimal: a decimal that only the older annotation tells of stays one.
func TestConvertedDecimal(t *testing.T) {
	type row struct {
		D int64 `parquet:"d,decimal(2:15)"`
	}
	data := withFooter(t, parquetOf(t, []row{{-5}}),
		func(m *format.FileMetaData) { m.Schema[1].LogicalType = format.LogicalType{} })
	in, err := union(t, data)
	if err != nil {
		t.Fatal(err)
	}
	if f, _ := in.Lookup("d"); f.Shape != Float || f.Type() != "DECIMAL(15,2)" || rowsOf(t, in)[0] != `{"d":-0.05}` {
		t.Errorf("it is %s: %s", f.Type(), rowsOf(t, in))
	}
	if d := cmp.Diff(footerOf(t, data).Schema[1], footerOf(t, output(t, in)).Schema[1]); d != "" {
		t.Errorf("the output's column is another: %s", d)
	}
}

// stored is an Arrow schema as files have it.
func stored(t *testing.T, fields ...arrow.Field) parquet.WriterOption {
	t.Helper()
	var b bytes.Buffer
	if err := ipc.NewWriter(&b, ipc.WithSchema(arrow.NewSchema(fields, nil))).Close(); err != nil {
		t.Fatal(err)
	}
	return parquet.KeyValueMetadata(arrowSchemaKey, base64.StdEncoding.EncodeToString(b.Bytes()))
}

// TestDurations: a unit that only Arrow's schema tells is honoured, and kept.
func TestDurations(t *testing.T) {
	type row struct {
		D int64 `parquet:"d"`
	}
	bare := func(m *format.FileMetaData) {
		m.Schema[1].LogicalType = format.LogicalType{}
		m.Schema[1].ConvertedType = thrift.Null[deprecated.ConvertedType]{}
	}
	seconds := withFooter(t, parquetOf(t, []row{{2}},
		stored(t, arrow.Field{Name: "d", Type: arrow.FixedWidthTypes.Duration_s})), bare)
	millis := withFooter(t, parquetOf(t, []row{{2}},
		stored(t, arrow.Field{Name: "d", Type: arrow.FixedWidthTypes.Duration_ms})), bare)
	in, err := union(t, seconds, millis)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{`{"d":2000}`, `{"d":2}`}, rowsOf(t, in)); d != "" {
		t.Error(d)
	}
	back, err := union(t, output(t, in))
	if err != nil {
		t.Fatal(err)
	}
	if f, _ := back.Lookup("d"); f.Type() != "DURATION(ms)" {
		t.Errorf("the output's column is %s", f.Type())
	}
}

// TestArrowIntegers: a stored schema with integers that Arrow has not is not passed on.
func TestArrowIntegers(t *testing.T) {
	type row struct {
		A int32 `parquet:"a"`
	}
	option := stored(t, arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32})
	for _, bits := range []byte{32, 4, 0, 33} {
		data := withFooter(t, parquetOf(t, []row{{7}}, option), func(m *format.FileMetaData) {
			for i := range m.KeyValueMetadata {
				if kv := &m.KeyValueMetadata[i]; kv.Key == arrowSchemaKey {
					raw, err := base64.StdEncoding.DecodeString(kv.Value)
					if err != nil {
						t.Fatal(err)
					}
					at := bytes.Index(raw, []byte{32, 0, 0, 0}) // the width
					if at < 0 || bytes.Count(raw, []byte{32, 0, 0, 0}) != 1 {
						t.Fatalf("the width is not where it was: % x", raw)
					}
					raw[at] = bits
					kv.Value = base64.StdEncoding.EncodeToString(raw)
				}
			}
		})
		in, err := union(t, data)
		if err != nil {
			t.Fatal(err)
		}
		has := false
		for _, kv := range footerOf(t, output(t, in)).KeyValueMetadata {
			has = has || kv.Key == arrowSchemaKey
		}
		if has != (bits == 32) {
			t.Errorf("%d bits: the output has Arrow's schema: %v", bits, has)
		}
	}
}

// TestArrowTypesOfTomorrow: one type that is not known here leaves the others as they are.
func TestArrowTypesOfTomorrow(t *testing.T) {
	type row struct {
		A string `parquet:"a"`
		B string `parquet:"b"`
	}
	data := parquetOf(t, []row{{"x", "y"}}, stored(t, arrow.Field{Name: "a", Type: arrow.BinaryTypes.LargeString},
		arrow.Field{Name: "b", Type: arrow.BinaryTypes.LargeString}))
	in, err := union(t, data)
	if err != nil {
		t.Fatal(err)
	}
	f := in.arrow.fields[1]
	f.message = bytes.Clone(f.message)
	f.message[f.slot(fieldKind)] = 99
	in.arrow.fields[1] = f
	s, err := readArrowSchema(decode(t, in.arrow.text(nil)))
	if err != nil || len(s.fields) != 2 {
		t.Fatalf("%v, %v", s, err)
	}
	for i, want := range []byte{20, 99} { // LargeUtf8
		if got := s.fields[i].message[s.fields[i].slot(fieldKind)]; got != want {
			t.Errorf("field %s is of type %d, want %d", s.fields[i].name(), got, want)
		}
	}
}

func decode(t *testing.T, text string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestBatchBytes: a batch ends by its bytes, whatever its rows have.
func TestBatchBytes(t *testing.T) {
	type row struct {
		V []float32 `parquet:"v,list"`
	}
	rows := make([]row, 40)
	for i := range rows[1:] {
		rows[i+1].V = make([]float32, 30_000)
	}
	in, err := union(t, parquetOf(t, rows, parquet.Compression(codec)))
	if err != nil {
		t.Fatal(err)
	}
	r := in.Reader(0, in.Rows)
	defer r.Close()
	for n := int64(0); n < in.Rows; {
		records, err := r.Read()
		if err != nil {
			t.Fatal(err)
		}
		size := 0
		for _, rec := range records[:len(records)-1] {
			size += rec.Bytes()
		}
		if size > batchBytes+4*len(records) {
			t.Errorf("a batch of %d rows has %d bytes before its last", len(records), size)
		}
		n += int64(len(records))
	}
}
