package datasets

import (
	"encoding/binary"
	"math"
	"testing"
)

func TestHalf(t *testing.T) {
	for bits, want := range map[uint16]float64{
		0: 0, 0x3c00: 1, 0xc000: -2, 0x3800: 0.5, 0x7bff: 65504, 0x0001: math.Ldexp(1, -24), 0x03ff: math.Ldexp(1023,
			-24), 0x0400: math.Ldexp(1, -14), 0xfc00: math.Inf(-1),
	} {
		if got := half(binary.LittleEndian.AppendUint16(nil, bits)); got != want {
			t.Errorf("%#x: %v, want %v", bits, got, want)
		}
	}
	if f := half([]byte{1, 0x7e}); !math.IsNaN(f) {
		t.Errorf("%v, want NaN", f)
	}
}
