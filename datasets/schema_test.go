package datasets

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// TestSchemas prints the schemas of all rows of ours. A change here is a change
// of the format that users read: think of what reads the old one.
func TestSchemas(t *testing.T) {
	var b strings.Builder
	for _, row := range []any{Result{}, TokenIDs{}, Logprobs{}, Cut{}, Step{}, Span{}} {
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
			f := tags.Field(c.index)
			if p, _, _ := strings.Cut(f.Tag.Get("parquet"), ","); p != c.field.Name {
				t.Errorf("%v.%s is %q in Parquet and %q in Arrow", tags, f.Name, p, c.field.Name)
			}
		}
	}
	golden(t, "schemas.txt", b.String())
}
