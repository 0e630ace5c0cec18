package glm5

import (
	"fmt"
	"math"

	"glmbatch/kernels"
)

// rope loads [positions, rotary/2] pairs (cos, sin), whole on every rank. It
// asks for the memory first and fills it in parts: a config may announce a
// context that does not fit.
func (l *loader) rope(positions int) (kernels.Buffer, error) {
	const part = 1 << 14 // positions
	row := int64(l.c.QKRope) * 4
	b, err := l.g.Alloc(int64(positions)*row, kernels.Replicated)
	if err != nil {
		return b, fmt.Errorf("angles of %d positions: %w; use a shorter context", positions, err)
	}
	for from := 0; from < positions; from += part {
		to := min(from+part, positions)
		t := ropeTable(l.c, from, to)
		if err := l.g.Upload(b.Slice(int64(from)*row, int64(to-from)*row), bytesOf(t)); err != nil {
			return b, err
		}
	}
	return b, nil
}

// ropeTable returns the pairs of positions [from, to). The frequencies and the
// angles are rounded to float32 as transformers' rotary embedding does.
func ropeTable(c *Config, from, to int) []float32 {
	half := c.QKRope / 2
	freq := make([]float32, half)
	for i := range freq {
		freq[i] = 1 / float32(math.Pow(c.RopeTheta, float64(float32(2*i)/float32(c.QKRope))))
	}
	t := make([]float32, 0, (to-from)*c.QKRope)
	for p := from; p < to; p++ {
		for _, f := range freq {
			sin, cos := math.Sincos(float64(float32(p) * f))
			t = append(t, float32(cos), float32(sin))
		}
	}
	return t
}
