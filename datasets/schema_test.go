package datasets

import (
	"fmt"
	"glmbatch/golden"
	"reflect"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// TestSchemas prints the schemas of all rows of ours. A change here is a change
// of the format that users read: think of what reads the old one.
func TestSchemas(t *testing.T) {
	var b strings.Builder
	for _, row := range []any{Result{}, TokenIDs{}, Logprobs{}, PromptLogprobs{}, Cut{}, Step{}, Span{}} {
		fmt.Fprintln(&b, parquet.SchemaOf(row))
		cols, err := arrowColumns(reflect.TypeOf(row))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cols {
			fmt.Fprintln(&b, "arrow", c.field)
		}
		tags := reflect.TypeOf(row)
		for _, c := range cols {
			f := tags.FieldByIndex(c.index)
			if p, _, _ := strings.Cut(f.Tag.Get("parquet"), ","); p != c.field.Name {
				t.Errorf("%v.%s is %q in Parquet and %q in Arrow", tags, f.Name, p, c.field.Name)
			}
		}
	}
	golden.Check(t, "schemas.txt", b.String())
}

// TestResultColumns: the list for people is that of the structs, in the order of files.
func TestResultColumns(t *testing.T) {
	var fields []parquet.Field
	for _, row := range []any{Result{}, Cut{}, TokenIDs{}, Logprobs{}, PromptLogprobs{}, ToolCalls{}} {
		fields = append(fields, parquet.SchemaOf(row).Fields()...)
	}
	if len(fields) != len(ResultColumns) {
		t.Fatalf("%d columns, %d in the list", len(fields), len(ResultColumns))
	}
	for i, f := range fields {
		c := ResultColumns[i]
		typ := "list"
		if f.Leaf() {
			typ = map[parquet.Kind]string{parquet.ByteArray: "string", parquet.Int32: "int32",
				parquet.Int64: "int64"}[f.Type().Kind()]
		}
		if c.Name != f.Name() || !strings.HasPrefix(c.Type, typ) || f.Optional() == strings.HasPrefix(c.Null, "never") {
			t.Errorf("column %s is %s, optional %v; the list has %+v", f.Name(), typ, f.Optional(), c)
		}
	}
}
