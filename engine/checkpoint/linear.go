package checkpoint

import (
	"errors"
	"fmt"
	"math"

	"glmbatch/kernels"
	"glmbatch/kernels/nvfp4"
)

// Linear is one weight [Rows, Cols], whatever the form it is stored in.
type Linear struct {
	Name       string         // of the module, without ".weight"
	Format     kernels.Format // of its slices
	Stored     kernels.Format // of the file: Format, but FP8 where slices are BF16, F32 or FP8B
	Rows, Cols int
	Global     float32 // FP4, FP8: the tensor's scale, a factor
	Input      float32 // FP4: the scale of 4-bit activations, a factor; 0: none stored, or none that can be used
	form       form
	data       *Tensor
	scales     *Tensor // nil unless FP4 or FP8
	blocks     blocks  // FP8
	parts      []string
}

// Tensors returns the names of the tensors that the weight is read from.
func (l *Linear) Tensors() []string { return l.parts }

// form is how a Linear is stored.
type form uint8

const (
	plain form = iota
	modelOpt
	compressed
)

func (f form) String() string {
	return [...]string{"plain", "ModelOpt NVFP4", "compressed-tensors nvfp4-pack-quantized"}[f]
}

// Linear returns the weight of a module, "model.layers.3.mlp.gate" say. The
// error is [ErrMissing], or says why the weight cannot be read.
func (c *Checkpoint) Linear(module string) (Linear, error) {
	l, err := c.linear(module)
	if err != nil {
		if !errors.Is(err, ErrMissing) {
			err = fmt.Errorf("reading the weight of %s: %w", module, err)
		}
		return Linear{}, err
	}
	if l.parts = append(l.parts, l.data.Name); l.scales != nil {
		l.parts = append(l.parts, l.scales.Name)
	}
	return l, nil
}

func (c *Checkpoint) linear(module string) (Linear, error) {
	if c.Has(module + ".weight_packed") {
		return c.fp4(module, compressed, ".weight_packed", ".weight_global_scale", ".input_global_scale")
	}
	t, err := c.Tensor(module + ".weight")
	if err != nil {
		return Linear{}, err
	}
	switch t.DType {
	case BF16, F32, F16:
		if len(t.Shape) != 2 {
			return Linear{}, fmt.Errorf("it has shape %v, not two dimensions", t.Shape)
		}
		l := Linear{Name: module, Format: kernels.F32, Stored: kernels.F32, Rows: t.Shape[0], Cols: t.Shape[1], data: t}
		if t.DType == BF16 {
			l.Format, l.Stored = kernels.BF16, kernels.BF16
		}
		return l, nil
	case U8:
		return c.fp4(module, modelOpt, ".weight", ".weight_scale_2", ".input_scale")
	case F8:
		return c.fp8(module, t)
	}
	return Linear{}, fmt.Errorf("dtype %s is not supported: glmbatch reads BF16, F32, F16, FP8 (%s) and NVFP4", t.DType,
		F8)
}

// fp4 reads either form of NVFP4. compressed-tensors stores the reciprocals of
// ModelOpt's scales for tensors and inputs.
func (c *Checkpoint) fp4(module string, f form, packed, global, input string) (Linear, error) {
	w, err := c.Tensor(module + packed)
	if err != nil {
		return Linear{}, err
	}
	s, err := c.Tensor(module + ".weight_scale")
	if err != nil {
		return Linear{}, errors.New("an NVFP4 weight needs weight_scale, which is missing: the checkpoint is " +
			"incomplete or of another 4-bit form")
	}
	if len(w.Shape) != 2 || w.DType != U8 {
		return Linear{}, fmt.Errorf("%s is %s %v, NVFP4 is U8 [rows, columns/2]", w.Name, w.DType, w.Shape)
	}
	l := Linear{Name: module, Format: kernels.FP4, Stored: kernels.FP4, Rows: w.Shape[0], Cols: 2 * w.Shape[1], form: f,
		data: w, scales: s}
	if l.Cols%nvfp4.Block != 0 {
		return Linear{}, fmt.Errorf("%d columns are not whole blocks of %d", l.Cols, nvfp4.Block)
	}
	if s.DType != F8 || len(s.Shape) != 2 || s.Shape[0] != l.Rows || s.Shape[1] != l.Cols/nvfp4.Block {
		return Linear{}, fmt.Errorf("%s is %s %v, NVFP4 needs %s [%d, %d]: one scale for each %d columns", s.Name,
			s.DType, s.Shape, F8, l.Rows, l.Cols/nvfp4.Block, nvfp4.Block)
	}
	if !c.Has(module + global) {
		return Linear{}, fmt.Errorf("an NVFP4 weight needs %s, which is missing: the checkpoint is incomplete or of "+
			"another 4-bit form", global[1:])
	}
	if l.Global, err = c.scale(module+global, f); err != nil {
		return Linear{}, err
	}
	l.parts = []string{module + global}
	if c.Has(module + input) {
		// Only 4-bit activations are scaled by it: what it says is judged then.
		l.Input, _ = c.scale(module+input, f)
		l.parts = append(l.parts, module+input)
	}
	return l, nil
}

// scale reads a positive number and returns it as a factor.
func (c *Checkpoint) scale(name string, f form) (float32, error) {
	v, err := c.Vector(name)
	if err != nil {
		return 0, err
	}
	if len(v) != 1 {
		return 0, fmt.Errorf("%s has %d values, not 1", name, len(v))
	}
	x := v[0]
	if f == compressed {
		x = 1 / x
	}
	if !(x > 0) || math.IsInf(float64(x), 0) {
		return 0, fmt.Errorf("%s is %g: a scale is positive and finite", name, v[0])
	}
	return x, nil
}

// Vector returns all values of a tensor stored as BF16, F32 or F16.
func (c *Checkpoint) Vector(name string) ([]float32, error) {
	t, err := c.Tensor(name)
	if err != nil {
		return nil, err
	}
	if t.DType != BF16 && t.DType != F32 && t.DType != F16 {
		return nil, fmt.Errorf("reading %s: dtype %s is not supported here: it must be BF16, F32 or F16", name, t.DType)
	}
	b, err := t.Bytes()
	if err != nil {
		return nil, err
	}
	v := make([]float32, t.Len())
	t.DType.decode(v, b)
	return v, nil
}
