package datasets

import (
	"bytes"
	"encoding/base64"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// arrowSchemaKey is where Arrow's writers store the schema that a Parquet file
// was made from. Readers restore types from it that Parquet lacks: large_string,
// dictionaries, time zones. It must describe all columns, so ours are added.
const arrowSchemaKey = "ARROW:schema"

// describe writes the Arrow schema of the output, if the input has one that can
// be read; else readers take Parquet's own types.
func (o *Output) describe(meta map[string]string, added []parquet.Field) {
	stored, ok := meta[arrowSchemaKey]
	if !ok {
		return
	}
	text := ""
	err := guard(func() (err error) {
		text, err = extendArrowSchema(stored, added)
		return err
	})
	if err == nil && text != "" {
		o.meta[arrowSchemaKey] = text
	}
}

func extendArrowSchema(stored string, added []parquet.Field) (string, error) {
	raw, err := base64.StdEncoding.DecodeString(stored)
	if err != nil {
		return "", err
	}
	r, err := ipc.NewReader(bytes.NewReader(raw))
	if err != nil {
		return "", err
	}
	defer r.Release()
	fields := r.Schema().Fields()
	for _, f := range added {
		typ := parquetArrowType(f)
		if typ == nil {
			return "", nil
		}
		fields = append(fields, arrow.Field{Name: f.Name(), Type: typ, Nullable: f.Optional()})
	}
	md := r.Schema().Metadata()
	var buf bytes.Buffer
	w := ipc.NewWriter(&buf, ipc.WithSchema(arrow.NewSchema(fields, &md)))
	if err := w.Close(); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(buf.Bytes()), nil
}

// parquetArrowType is the Arrow type of one of our own columns; nil: it has none here.
func parquetArrowType(n parquet.Node) arrow.DataType {
	fields := n.Fields()
	switch {
	case n.Leaf():
		if lt := n.Type().LogicalType(); lt != nil { // of partition columns
			switch lt.Value.(type) {
			case *format.DateType:
				return arrow.PrimitiveTypes.Date32
			case *format.TimestampType:
				return &arrow.TimestampType{Unit: arrow.Microsecond}
			}
		}
		switch n.Type().Kind() {
		case parquet.Int32:
			return arrow.PrimitiveTypes.Int32
		case parquet.Int64:
			return arrow.PrimitiveTypes.Int64
		case parquet.Float:
			return arrow.PrimitiveTypes.Float32
		case parquet.ByteArray:
			return arrow.BinaryTypes.String
		}
		return nil
	case len(fields) == 1 && fields[0].Repeated() && len(fields[0].Fields()) == 1:
		elem := parquetArrowType(fields[0].Fields()[0])
		if elem == nil {
			return nil
		}
		return arrow.ListOfNonNullable(elem)
	}
	members := make([]arrow.Field, len(fields))
	for i, f := range fields {
		members[i] = arrow.Field{Name: f.Name(), Type: parquetArrowType(f), Nullable: f.Optional()}
		if members[i].Type == nil {
			return nil
		}
	}
	return arrow.StructOf(members...)
}
