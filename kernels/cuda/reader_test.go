//go:build cuda

package cuda

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"glmbatch/kernels"
)

// Matrices come in order, whoever reads them; what is not taken is left alone.
func TestReader(t *testing.T) {
	broken := errors.New("broken")
	for _, ranks := range []int{1, 64} {
		for _, taken := range []int{0, 3, 100} {
			w := kernels.Weights{Count: 100, Read: func(i int, a kernels.Alloc) (kernels.Matrix, error) {
				if i == 99 {
					return kernels.Matrix{}, broken
				}
				return kernels.Matrix{Global: float32(i)}, nil
			}}
			r := newReader(&w, ranks)
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

func TestSpread(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	src := make([]byte, 3*copyLeast+5)
	for i := range src {
		src[i] = byte(rng.Uint32())
	}
	for _, n := range []int{0, 1, copyLeast - 1, copyLeast, copyLeast + 1, len(src)} {
		dst := make([]byte, len(src))
		if got := spread(dst[:n], src); got != n || !bytes.Equal(dst[:n], src[:n]) || !bytes.Equal(dst[n:], make([]byte, len(src)-n)) {
			t.Errorf("%d bytes: %d were copied", n, got)
		}
	}
}
