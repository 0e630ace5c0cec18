package quantize

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"glmbatch/engine/checkpoint"
	"glmbatch/engine/glm5"
	"glmbatch/engine/modelopt"
	"glmbatch/kernels"
	"glmbatch/kernels/nvfp4"
)

// Quantizer writes some weights of a checkpoint as NVFP4 and copies the rest.
type Quantizer struct {
	ck     *checkpoint.Checkpoint
	c      *glm5.Config
	input  float32        // the input scale of all; 0: none
	chosen map[string]int // module -> job
	jobs   []job

	Entries []checkpoint.Entry // of what is written
	Count   int                // weights that become NVFP4
	Total   int                // weights
	Params  int64
	Bytes   int64 // of what is written
}

// job is what one goroutine does at a time: Linears that share a global
// scale, a tensor to copy, or an FP8 weight to write as BF16.
type job struct {
	linears []checkpoint.Linear
	copied  *checkpoint.Tensor
	widened *checkpoint.Linear
}

// New chooses what of a checkpoint becomes NVFP4: what a release has so, and modules
// that patterns of path.Match name. input is the scale for 4-bit activations of all; 0:
// none is written.
func New(ck *checkpoint.Checkpoint, c *glm5.Config, include []string, input float32) (*Quantizer, error) {
	for _, p := range include {
		if _, err := path.Match(p, ""); err != nil {
			return nil, fmt.Errorf("--include %q: %w", p, err)
		}
	}
	cover := c.Cover(ck)
	if err := cover.Check(glm5.Options{}); err != nil {
		return nil, fmt.Errorf("%w; 'glmbatch model inspect %s' says more", err, ck.Name)
	}
	q := &Quantizer{ck: ck, c: c, input: input, chosen: map[string]int{}, Total: len(cover.Weights)}
	hits := make([]int, len(include))
	names := map[string]bool{} // tensors that are replaced
	for _, s := range cover.Weights {
		q.Params += s.Params()
		want := modelopt.Quantized(&s.Tensor)
		for i, p := range include {
			if ok, _ := path.Match(p, s.Module()); ok && s.Cols > 0 { // the form is checked above
				hits[i]++
				want = true
			}
		}
		if !want {
			if s.File == kernels.FP8 {
				if err := q.widen(s.Module(), names); err != nil {
					return nil, err
				}
			}
			continue
		}
		switch {
		case s.Format == kernels.FP4:
			return nil, fmt.Errorf("%s is NVFP4 already: give a BF16 checkpoint", s.Module())
		case !s.MayQuantize:
			return nil, fmt.Errorf("%s cannot be NVFP4: the engine reads it as BF16 or F32; change --include",
				s.Module())
		case s.Cols%nvfp4.Block != 0:
			return nil, fmt.Errorf("%s has %d columns, not whole blocks of %d: it cannot be NVFP4", s.Module(), s.Cols,
				nvfp4.Block)
		}
		if err := q.choose(s.Module(), names); err != nil {
			return nil, err
		}
	}
	for i, n := range hits {
		if n == 0 {
			return nil, fmt.Errorf("--include %q matches no weight; names are those of modules, "+
				"model.layers.3.mlp.shared_experts.up_proj say", include[i])
		}
	}
	if q.Count == 0 {
		return nil, fmt.Errorf("it has no routed experts: say with --include what to quantise")
	}
	for _, name := range ck.Names() {
		if names[name] {
			continue
		}
		t, err := ck.Tensor(name)
		if err != nil {
			return nil, err
		}
		q.jobs = append(q.jobs, job{copied: t})
		q.Entries = append(q.Entries, checkpoint.Entry{Name: name, DType: t.DType, Shape: t.Shape})
	}
	for i := range q.Entries {
		q.Bytes += q.Entries[i].Size()
	}
	return q, nil
}

// choose adds a weight to the jobs: the up of a gate to the gate's.
func (q *Quantizer) choose(module string, names map[string]bool) error {
	l, err := q.ck.Linear(module)
	if err != nil {
		return err
	}
	q.replace(&l, names)
	q.Count++
	q.Entries = append(q.Entries, modelopt.Entries(module, l.Rows, l.Cols, q.input > 0)...)
	if at, ok := strings.CutSuffix(module, "up_proj"); ok {
		if job, ok := q.chosen[at+"gate_proj"]; ok {
			q.jobs[job].linears = append(q.jobs[job].linears, l)
			q.chosen[module] = job
			return nil
		}
	}
	q.chosen[module] = len(q.jobs)
	q.jobs = append(q.jobs, job{linears: []checkpoint.Linear{l}})
	return nil
}

// widen adds an FP8 weight that is not to be NVFP4: what is written has one form of
// quantisation.
func (q *Quantizer) widen(module string, names map[string]bool) error {
	l, err := q.ck.Linear(module)
	if err != nil {
		return err
	}
	q.replace(&l, names)
	q.Entries = append(q.Entries, checkpoint.Entry{Name: module + ".weight", DType: checkpoint.BF16,
		Shape: []int{l.Rows, l.Cols}})
	q.jobs = append(q.jobs, job{widened: &l})
	return nil
}

// replace notes the tensors of a weight that is written anew. Scales of FP8
// activations go with it.
func (q *Quantizer) replace(l *checkpoint.Linear, names map[string]bool) {
	for _, part := range l.Tensors() {
		names[part] = true
	}
	names[l.Name+".input_scale"] = true
}

// Quantizes reports whether a weight becomes NVFP4.
func (q *Quantizer) Quantizes(t *glm5.Tensor) bool { _, ok := q.chosen[t.Module()]; return ok }

// Write writes all weights.
func (q *Quantizer) Write(ctx context.Context, w *checkpoint.Writer) error {
	return checkpoint.EachIndex(ctx, len(q.jobs), func(ctx context.Context, i int, _ []byte) error {
		if t := q.jobs[i].copied; t != nil {
			return q.copy(ctx, w, t)
		}
		if l := q.jobs[i].widened; l != nil {
			return q.wide(ctx, w, l)
		}
		return q.quantize(ctx, w, q.jobs[i].linears)
	})
}

func (q *Quantizer) copy(ctx context.Context, w *checkpoint.Writer, t *checkpoint.Tensor) error {
	b := make([]byte, min(checkpoint.Chunk, t.Size()))
	for at := int64(0); at < t.Size(); at += checkpoint.Chunk {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		b = b[:min(checkpoint.Chunk, t.Size()-at)]
		if err := t.Read(b, at); err != nil {
			return err
		}
		if err := w.Write(t.Name, at, b); err != nil {
			return err
		}
	}
	return nil
}

// wide writes a weight as BF16, some rows at a time.
func (q *Quantizer) wide(ctx context.Context, w *checkpoint.Writer, l *checkpoint.Linear) error {
	n := max(1, checkpoint.Chunk/2/max(l.Cols, 1))
	for row := 0; row < l.Rows; row += n {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		m, err := l.Slice(row, min(row+n, l.Rows), 0, l.Cols)
		if err != nil {
			return err
		}
		if err := w.Write(l.Name+".weight", 2*int64(row)*int64(l.Cols), m.Data); err != nil {
			return err
		}
	}
	return nil
}

// quantize reads the weights twice: for their largest value, then to pack them.
func (q *Quantizer) quantize(ctx context.Context, w *checkpoint.Writer, ls []checkpoint.Linear) error {
	var amax float32
	for i := range ls {
		err := eachRows(ctx, &ls[i], func(_ int, v []float32) error {
			m := nvfp4.Amax(v)
			if !(m <= maxFloat) {
				return fmt.Errorf("%s has a value that is not finite, which NVFP4 cannot hold", ls[i].Name)
			}
			amax = max(amax, m)
			return nil
		})
		if err != nil {
			return err
		}
	}
	global := nvfp4.Global(amax)
	for i := range ls {
		l := &ls[i]
		err := eachRows(ctx, l, func(row int, v []float32) error {
			packed, scales := make([]byte, len(v)/2), make([]byte, len(v)/nvfp4.Block)
			nvfp4.QuantizeBlocks(packed, scales, v, global)
			at := int64(row) * int64(l.Cols)
			if err := w.Write(l.Name+".weight", at/2, packed); err != nil {
				return err
			}
			return w.Write(l.Name+".weight_scale", at/nvfp4.Block, scales)
		})
		if err != nil {
			return err
		}
		if err := modelopt.WriteScales(w, l.Name, global, q.input); err != nil {
			return err
		}
	}
	return nil
}

const maxFloat = 0x1.fffffep127

// eachRows reads a weight in parts of at most [checkpoint.Chunk] bytes, or one row.
func eachRows(ctx context.Context, l *checkpoint.Linear, do func(row int, v []float32) error) error {
	n := max(1, checkpoint.Chunk/4/max(l.Cols, 1))
	for row := 0; row < l.Rows; row += n {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		v, err := l.Float32(row, min(row+n, l.Rows))
		if err != nil {
			return err
		}
		if err := do(row, v); err != nil {
			return err
		}
	}
	return nil
}

// WriteConfig writes the config of what is written.
func (q *Quantizer) WriteConfig(w *checkpoint.Writer) error {
	var m map[string]any
	if err := json.Unmarshal(q.ck.Config(), &m); err != nil {
		return err
	}
	return modelopt.WriteConfigs(w, m, modelopt.Ignored(q.c, q.Quantizes), true, q.input > 0)
}
