//go:build cuda

package cuda

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"glmbatch/kernels"

	"gorgonia.org/cu"
)

// Matrices come in order, whoever reads them; what is not taken is left alone.
func TestReader(t *testing.T) {
	broken := errors.New("broken")
	for _, slots := range []int{2, 6, 24} {
		ranks := 25 - slots
		for _, taken := range []int{0, 3, 100} {
			w := kernels.Weights{Count: 100, Read: func(i int, a kernels.Alloc) (kernels.Matrix, error) {
				if i == 99 {
					return kernels.Matrix{}, broken
				}
				return kernels.Matrix{Global: float32(i)}, nil
			}}
			r := newReader(&w, ranks, make([]slot, slots))
			for i := range taken {
				m, err := r.matrix(i)
				if i < 99 && (err != nil || m.Global != float32(i)) || i == 99 && !errors.Is(err, broken) {
					t.Errorf("matrix %d: %+v, %v", i, m, err)
				}
			}
			r.close()
		}
	}
}

// What is read to pinned memory is there as a whole, whether it came from alloc or not.
func TestSlot(t *testing.T) {
	view := []byte{1, 2, 3, 4, 5, 6}
	for _, c := range []struct {
		name   string
		read   func(a kernels.Alloc) kernels.Matrix
		pinned bool
	}{
		{"views", func(kernels.Alloc) kernels.Matrix { return kernels.Matrix{Data: view[:4], Scales: view[4:]} }, true},
		{"a copy and a view", func(a kernels.Alloc) kernels.Matrix {
			b := a.Bytes(2)
			copy(b, view[4:])
			return kernels.Matrix{Data: view[:4], Scales: b}
		}, true},
		{"copies", func(a kernels.Alloc) kernels.Matrix {
			b, s := a.Bytes(4), a.Bytes(2)
			copy(b, view)
			copy(s, view[4:])
			return kernels.Matrix{Data: b, Scales: s}
		}, true},
		{"too much", func(a kernels.Alloc) kernels.Matrix {
			a.Bytes(5)
			return kernels.Matrix{Data: view[:4], Scales: view[4:]}
		}, false},
	} {
		memory := make([]byte, 6)
		s := slot{memory: memory, free: &cu.Event{}}
		x := s.read(&kernels.Weights{Read: func(_ int, a kernels.Alloc) (kernels.Matrix, error) {
			return c.read(a), nil
		}}, 0)
		if !bytes.Equal(x.Data, view[:4]) || !bytes.Equal(x.Scales, view[4:]) {
			t.Errorf("%s: %v %v", c.name, x.Data, x.Scales)
		}
		if in := within(x.Data, memory) && within(x.Scales, memory); (x.slot.free != nil) != c.pinned ||
			c.pinned && !in {
			t.Errorf("%s: pinned %v, inside %v", c.name, x.slot.free != nil, in)
		}
	}
}

// Plain memory is used again, but for one part of a matrix only.
func TestPlainSlot(t *testing.T) {
	var kept []byte
	s := slot{plain: &kept}
	w := kernels.Weights{Read: func(n int, a kernels.Alloc) (kernels.Matrix, error) {
		return kernels.Matrix{Data: a.Bytes(n), Scales: a.Bytes(n)}, nil
	}}
	x := s.read(&w, 9)
	if len(kept) != 9 || &x.Data[0] != &kept[0] || within(x.Scales, kept) {
		t.Errorf("9 bytes: %d are kept", len(kept))
	}
	if x = s.read(&w, 5); len(kept) != 9 || &x.Data[0] != &kept[0] || len(x.Data) != 5 {
		t.Errorf("5 bytes: %d are kept, %d given", len(kept), len(x.Data))
	}
	if s.read(&w, loadingBytes+1); len(kept) != 9 {
		t.Errorf("too many bytes: %d are kept", len(kept))
	}
}

func TestSpread(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	src := make([]byte, 3*copyLeast+5)
	for i := range src {
		src[i] = byte(rng.Uint32())
	}
	for _, n := range []int{0, 1, copyLeast - 1, copyLeast, copyLeast + 1, len(src)} {
		dst := make([]byte, len(src))
		if got := spread(dst[:n], src); got != n || !bytes.Equal(dst[:n], src[:n]) ||
			!bytes.Equal(dst[n:], make([]byte, len(src)-n)) {
			t.Errorf("%d bytes: %d were copied", n, got)
		}
	}
}
