package fit

import (
	"glmbatch/engine/glm5"
	"glmbatch/engine/modelopt"
	"glmbatch/kernels"
)

// Rank is what a model takes on one of the ranks that share it.
type Rank struct {
	Params  int64 // of the whole model
	Weights int64 // bytes on each rank
	Whole   int64 // of these, what is the same on all ranks
}

func (m *Rank) add(t *glm5.Tensor, share int64) {
	m.Params += t.Params()
	m.Weights += share
	if t.Split == glm5.Whole {
		m.Whole += share
	}
}

// Of sums the layers of a checkpoint that are loaded with some options.
func Of(v *glm5.Coverage, tp int, o glm5.Options) Rank {
	var m Rank
	for i := range v.Weights {
		s := &v.Weights[i]
		if s.MTP && !o.MTP {
			continue
		}
		t := o.Layout.Of(s.Tensor)
		m.add(&t, s.Loaded(tp, o))
	}
	return m
}

// Planned is Of for a release of a config: routed experts NVFP4, all
// else BF16.
func Planned(c *glm5.Config, tp int, o glm5.Options) Rank {
	var m Rank
	for t := range c.Tensors(false) {
		t = o.Layout.Of(t)
		f := t.Runs(kernels.BF16, o.Dense)
		if modelopt.Quantized(&t) {
			f = kernels.FP4
		}
		rows, cols := t.Share(tp)
		m.add(&t, kernels.WeightBytes(f, int64(rows), int64(max(cols, 1))))
	}
	return m
}

// Together is the weights of n ranks that keep one copy of what is the same.
func (m *Rank) Together(n int) int64 { return m.Whole + int64(n)*(m.Weights-m.Whole) }

// Rows is the most tokens of a step if nothing else is said, on each rank that has sequences of
// its own: a GPU's products are at their best with more.
func Rows(device string, o glm5.Options) int {
	switch {
	case device != "cuda":
		return 512 / o.Homes()
	case o.Apart():
		return 1024
	}
	return 2048
}
