package plan

import (
	"reflect"
	"strings"
	"testing"

	"glmbatch/kernels"
)

// TestShared: what kernels' headers and package kernels both say is the same: sizes, and
// where the fields lie that the host writes and reads.
func TestShared(t *testing.T) {
	for _, c := range []struct {
		name      string
		has, want int
	}{
		{"tokens of a page", pageTokens, kernels.PageTokens},
		{"alternatives of a token", alternatives, kernels.MaxLogprobs},
		{"bytes of a unit of NVFP4 weights", 16 * fp4Unit, int(kernels.WeightBytes(kernels.FP4, 16*16, 64))},
	} {
		if c.has != c.want {
			t.Errorf("%s: %d, want %d", c.name, c.has, c.want)
		}
	}
	for _, c := range []struct{ of, want reflect.Type }{
		{reflect.TypeFor[params](), reflect.TypeFor[kernels.SampleParams]()},
		{reflect.TypeFor[sampled](), reflect.TypeFor[kernels.Sampled]()},
		{reflect.TypeFor[entry](), reflect.TypeFor[kernels.Entry]()},
	} {
		if c.of.Size() != c.want.Size() || c.of.NumField() != c.want.NumField() {
			t.Errorf("%v has %d fields in %d bytes, %v %d in %d", c.of, c.of.NumField(), c.of.Size(), c.want,
				c.want.NumField(),
				c.want.Size())
			continue
		}
		for i := range c.of.NumField() {
			f, g := c.of.Field(i), c.want.Field(i)
			if f.Offset != g.Offset || f.Type.Kind() != g.Type.Kind() || g.Name != "_" &&
				!strings.EqualFold(f.Name, g.Name) {
				t.Errorf("%v has %s at %d, %v has %s at %d", c.of, f.Name, f.Offset, c.want, g.Name, g.Offset)
			}
		}
	}
}
