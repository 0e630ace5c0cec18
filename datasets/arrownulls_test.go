package datasets

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/parquet-go/parquet-go"
)

// textStream is a stream of a column of texts, one of them null, and one of a dictionary.
func textStream(t *testing.T) []byte {
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
		"a name's end": {func(b []byte) {
			b[bytes.Index(b, []byte("prompt"))+6] = 2
		}, `"prompt" has no zero behind it`},
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
