package plan

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"glmbatch/kernels"
)

// A grid that no GPU takes is refused with what to do, before anything is launched.
func TestGridLimit(t *testing.T) {
	for _, x := range []struct {
		grid  [3]uint32
		limit bool
	}{
		{[3]uint32{1 << 20, maxGrid, maxGrid}, false},
		{[3]uint32{1, maxGrid + 1, 1}, true},
		{[3]uint32{1, 1, maxGrid + 1}, true},
	} {
		err := newBuilder(&Target{}, &Memory{}).add(Launch{Entry: "any", Grid: x.grid, Params: &faultP{}})
		if (err != nil) != x.limit || x.limit && (!errors.Is(err, kernels.ErrKernel) || !strings.Contains(err.Error(), "--max-batch-tokens")) {
			t.Errorf("grid %v: %v", x.grid, err)
		}
	}
}

// What C is handed has no pointers of Go's.
func TestParametersHaveNoPointers(t *testing.T) {
	var plain func(reflect.Type) bool
	plain = func(x reflect.Type) bool {
		switch x.Kind() {
		case reflect.Array:
			return plain(x.Elem())
		case reflect.Struct:
			for i := range x.NumField() {
				if !plain(x.Field(i).Type) {
					return false
				}
			}
			return true
		}
		return x.Kind() >= reflect.Bool && x.Kind() <= reflect.Complex128
	}
	for _, p := range passed {
		if !plain(reflect.TypeOf(p.of)) {
			t.Errorf("%T has pointers", p.of)
		}
	}
}
