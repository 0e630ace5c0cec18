package main

import (
	"glmbatch/engine/glm5"
	"glmbatch/kernels"
)

// rankMemory is what a model takes on one of the ranks that share it.
type rankMemory struct {
	params  int64 // of the whole model
	weights int64 // bytes on each rank
	whole   int64 // of these, what is the same on all ranks
}

func (m *rankMemory) add(t *glm5.Tensor, share int64) {
	m.params += t.Params()
	m.weights += share
	if t.Split == glm5.Whole {
		m.whole += share
	}
}

// memoryOf sums a checkpoint's main layers, loaded with some options.
func memoryOf(v *glm5.Coverage, tp int, o glm5.Options) rankMemory {
	var m rankMemory
	for i := range v.Weights {
		s := &v.Weights[i]
		if s.MTP {
			continue
		}
		m.add(&s.Tensor, s.Loaded(tp, o))
	}
	return m
}

// memoryPlanned is memoryOf for a release of a config: routed experts NVFP4, all
// else BF16.
func memoryPlanned(c *glm5.Config, tp int) rankMemory {
	var m rankMemory
	for t := range c.Tensors(false) {
		f := kernels.BF16
		if quantizedByDefault(&t) {
			f = kernels.FP4
		}
		rows, cols := t.Share(tp)
		m.add(&t, kernels.WeightBytes(f, int64(rows), int64(max(cols, 1))))
	}
	return m
}

// together is the weights of n ranks that keep one copy of what is the same.
func (m *rankMemory) together(n int) int64 { return m.whole + int64(n)*(m.weights-m.whole) }

// usualRows is the most tokens of a step if nothing else is said: a GPU's products are
// at their best with more.
func usualRows(device string) int {
	if device == "cuda" {
		return 2048
	}
	return 512
}
