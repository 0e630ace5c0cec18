package glm5

import "math"

// ropeTable returns [positions, rotary/2] pairs (cos, sin). The frequencies and
// the angles are rounded to float32 as transformers' rotary embedding does.
func ropeTable(c *Config, positions int) []float32 {
	half := c.QKRope / 2
	freq := make([]float32, half)
	for i := range freq {
		freq[i] = 1 / float32(math.Pow(c.RopeTheta, float64(float32(2*i)/float32(c.QKRope))))
	}
	t := make([]float32, 0, positions*c.QKRope)
	for p := range positions {
		for _, f := range freq {
			sin, cos := math.Sincos(float64(float32(p) * f))
			t = append(t, float32(cos), float32(sin))
		}
	}
	return t
}
