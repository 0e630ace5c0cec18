package datasets

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// TestOldLists: lists whose repeated field is the element itself, as Avro's and
// Thrift's writers have them, keep their structs and what is within.
func TestOldLists(t *testing.T) {
	type item struct {
		A int32 `parquet:"a"`
		B struct {
			Array []int32 `parquet:"array"`
		} `parquet:"b"`
	}
	type row struct {
		X struct {
			Array []item `parquet:"array"`
		} `parquet:"x"`
	}
	rows := make([]row, 3)
	rows[0].X.Array = make([]item, 2)
	rows[0].X.Array[0].A, rows[0].X.Array[0].B.Array = 7, []int32{1, 2, 3}
	rows[2].X.Array = make([]item, 1)
	rows[2].X.Array[0].B.Array = []int32{-1}
	data := withFooter(t, parquetOf(t, rows), func(m *format.FileMetaData) {
		for i, e := range m.Schema {
			if e.Name == "x" || e.Name == "b" {
				m.Schema[i].ConvertedType = thrift.New(deprecated.List)
			}
		}
	})
	in, err := union(t, data)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`{"x":[{"a":7,"b":[1,2,3]},{"a":0,"b":[]}]}`, `{"x":[]}`, `{"x":[{"a":0,"b":[-1]}]}`}
	if d := cmp.Diff(want, rowsOf(t, in)); d != "" {
		t.Error(d)
	}
	back, err := union(t, output(t, in))
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rowsOf(t, back) {
		if got := row[:len(row)-len(`,"truncated_tokens":0}`)] + "}"; got != want[i] {
			t.Errorf("row %d comes back as %s, want %s", i, got, want[i])
		}
	}
}

// TestShortIntegers: integers of 8 and 16 bits are what their bits say, whatever a
// writer left in the others, and so are their bounds.
func TestShortIntegers(t *testing.T) {
	type row struct {
		S int32 `parquet:"s"`
		U int32 `parquet:"u"`
	}
	typed := func(m *format.FileMetaData) {
		m.Schema[1].LogicalType, m.Schema[2].LogicalType = format.LogicalType{}, format.LogicalType{}
		m.Schema[1].ConvertedType = thrift.New(deprecated.Int8)
		m.Schema[2].ConvertedType = thrift.New(deprecated.Uint16)
	}
	in, err := union(t, withFooter(t, parquetOf(t, []row{{255, -1}, {0, 1 << 16}, {-128, 5}}), typed))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{`{"s":-1,"u":65535}`, `{"s":0,"u":0}`, `{"s":-128,"u":5}`}, rowsOf(t, in)); d != "" {
		t.Error(d)
	}
	meta := footerOf(t, output(t, in))
	for i, want := range []struct{ min, max string }{{"\x80\xff\xff\xff", "\x00\x00\x00\x00"},
		{"\x00\x00\x00\x00", "\xff\xff\x00\x00"}} {
		if s := meta.RowGroups[0].Columns[i].MetaData.Statistics; string(s.MinValue) != want.min ||
			string(s.MaxValue) != want.max {
			t.Errorf("column %d: %x to %x, want %x to %x", i, s.MinValue, s.MaxValue, want.min, want.max)
		}
	}
}

// TestFieldIDs: ids of fields pass through, 0 too.
func TestFieldIDs(t *testing.T) {
	type row struct {
		A string `parquet:"a"`
		B int32  `parquet:"b"`
		C int32  `parquet:"c"`
	}
	meta := footerOf(t, parquetOf(t, []row{{"x", 1, 2}}))
	own := &fileMeta{Version: meta.Version, NumRows: meta.NumRows, RowGroups: meta.RowGroups}
	for i, e := range meta.Schema {
		e := ownElement(e)
		if i == 1 || i == 2 {
			e.FieldID = thrift.New(int32(i - 1))
		}
		own.Schema = append(own.Schema, e)
	}
	in, err := union(t, withFooterBytes(t, parquetOf(t, []row{{"x", 1, 2}}), own))
	if err != nil {
		t.Fatal(err)
	}
	var back fileMeta
	out := output(t, in)
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), out[footerAt(out):len(out)-8], &back); err != nil {
		t.Fatal(err)
	}
	for i, want := range []thrift.Null[int32]{{}, thrift.New(int32(0)), thrift.New(int32(1)), {}, {}} {
		if got := back.Schema[i].FieldID; got != want {
			t.Errorf("%s has id %v, want %v", back.Schema[i].Name, got, want)
		}
	}
}

// TestDictionaries: texts that repeat are written as positions in a dictionary, and
// more of them than a dictionary holds come back as they were, in every row group.
func TestDictionaries(t *testing.T) {
	type row struct {
		Kind string   `parquet:"kind"`
		Text *string  `parquet:"text"`
		List []string `parquet:"list,list"`
	}
	rows := make([]row, 3000)
	for i := range rows {
		rows[i].Kind = fmt.Sprintf("kind %d", i%3)
		if i%5 > 0 {
			rows[i].Text = ptr(fmt.Sprintf("%d %s", i, strings.Repeat("x", 200)))
			rows[i].List = []string{rows[i].Kind, *rows[i].Text, ""}
		}
	}
	data := parquetOf(t, rows)
	in, err := union(t, data)
	if err != nil {
		t.Fatal(err)
	}
	want := rowsOf(t, in)
	path := filepath.Join(t.TempDir(), "out.parquet")
	o, err := NewOutput(in, Naming{}, Cut{})
	if err != nil {
		t.Fatal(err)
	}
	part, err := o.Create(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range readAll(t, in.Reader(0, in.Rows)) {
		if err := part.Write(r, Cut{}); err != nil {
			t.Fatal(err)
		}
		if i == 2000 {
			part.inGroup = groupRows // with the next row the row group is full
		}
	}
	if err := part.Close(); err != nil {
		t.Fatal(err)
	}
	back, err := Open([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rowsOf(t, back) {
		if got := strings.Replace(row, `,"truncated_tokens":0`, "", 1); got != want[i] {
			t.Fatalf("row %d comes back as %s, want %s", i, got, want[i])
		}
	}
	out, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for g, group := range footerOf(t, out).RowGroups {
		for i := range 3 {
			if m := group.Columns[i].MetaData; m.DictionaryPageOffset == 0 {
				t.Errorf("row group %d, column %d has no dictionary", g, i)
			}
		}
		if size := group.Columns[0].MetaData.TotalUncompressedSize; size > 2000 {
			t.Errorf("row group %d: three texts took %d bytes", g, size)
		}
	}
}
