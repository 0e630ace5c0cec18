package glm5

import (
	"errors"
	"fmt"
	"strings"

	"glmbatch/engine/checkpoint"
	"glmbatch/kernels"
)

// Coverage compares a checkpoint with the list of weights that its config asks
// for. It reads headers and scales only.
type Coverage struct {
	Weights []Stored // in the order of [Config.Tensors]
	HasMTP  bool     // the prediction layers are there, in whole or in part
	Missing []string // weights that are not there; prediction layers count if HasMTP
	Unread  []string // weights that are there but cannot be used, with the reason
	Unused  []string // tensors that no weight is read from

	Contradictions []string // between the quantisation configuration and the weights
}

// Stored is a weight as the checkpoint has it.
type Stored struct {
	Tensor
	Format kernels.Format
	Bytes  int64 // in its file, scales included
}

// suffixes of the tensors that make up a Linear, in all forms.
var suffixes = []string{"", "_scale", "_scale_2", "_packed", "_global_scale"}

// Cover compares ck, the checkpoint of c, with what c asks for.
func (c *Config) Cover(ck *checkpoint.Checkpoint) Coverage {
	var v Coverage
	used := map[string]bool{}
	for i := c.Layers; i < c.AllLayers() && !v.HasMTP; i++ {
		for t := range c.LayerTensors(i) {
			if ck.Has(t.Name) || ck.Has(t.Name+"_packed") {
				v.HasMTP = true
				break
			}
		}
	}
	var plain []string
	for t := range c.Tensors(true) {
		s, err := c.stored(ck, t)
		switch {
		case errors.Is(err, checkpoint.ErrMissing):
			if !t.MTP || v.HasMTP {
				v.Missing = append(v.Missing, t.Name)
			}
			continue
		case err != nil:
			v.Unread = append(v.Unread, err.Error())
		default:
			v.Weights = append(v.Weights, s)
			if t.MayQuantize && s.Format != kernels.FP4 && ck.ClaimsQuantized(t.Module()) {
				plain = append(plain, t.Module())
			}
		}
		if t.Cols == 0 {
			used[t.Name] = true
			continue
		}
		for _, x := range suffixes {
			used[t.Name+x] = true
		}
		used[t.Module()+".input_scale"], used[t.Module()+".input_global_scale"] = true, true
	}
	for _, name := range ck.Names() {
		if !used[name] {
			v.Unused = append(v.Unused, name)
		}
	}
	v.Contradictions = ck.Warnings()
	if len(plain) > 0 {
		v.Contradictions = append(v.Contradictions, fmt.Sprintf("%d weights are not stored as NVFP4, but the quantisation configuration does not leave them out: %s", len(plain), first(plain, 3)))
	}
	return v
}

// stored looks a weight up and compares its shape.
func (c *Config) stored(ck *checkpoint.Checkpoint, t Tensor) (Stored, error) {
	s := Stored{Tensor: t}
	if t.Cols == 0 {
		x, err := ck.Tensor(t.Name)
		if err != nil {
			return s, err
		}
		if x.Len() != t.Rows {
			return s, fmt.Errorf("%s has %d values, config.json says %d", t.Name, x.Len(), t.Rows)
		}
		s.Format, s.Bytes = kernels.F32, int64(len(x.Data))
		switch x.DType {
		case checkpoint.BF16:
			s.Format = kernels.BF16
		case checkpoint.F32, checkpoint.F16:
		default:
			return s, fmt.Errorf("%s has dtype %s: it must be BF16, F32 or F16", t.Name, x.DType)
		}
		return s, nil
	}
	l, err := ck.Linear(t.Module())
	if err != nil {
		return s, err
	}
	if l.Rows != t.Rows || l.Cols != t.Cols {
		return s, fmt.Errorf("%s is [%d, %d], config.json says [%d, %d]", t.Name, l.Rows, l.Cols, t.Rows, t.Cols)
	}
	if l.Format == kernels.FP4 && !t.MayQuantize {
		return s, fmt.Errorf("%s is stored as NVFP4: it must be BF16, F32 or F16", t.Name)
	}
	s.Format, s.Bytes = l.Format, l.Bytes()
	return s, nil
}

// Share returns the bytes of one of n ranks' part.
func (s *Stored) Share(n int) int64 {
	if s.Split == Whole {
		return s.Bytes
	}
	return s.Bytes / int64(n)
}

// Active returns how many of the weight's values a token is multiplied with on
// average: of routed experts the share that is chosen, of the embedding none.
func (c *Config) Active(t *Tensor) int64 {
	switch {
	case t.Expert >= 0:
		return t.Params() * int64(c.ExpertsPerToken) / int64(c.Experts)
	case t.Name == "model.embed_tokens.weight" && !c.TiedHead:
		return 0
	}
	return t.Params()
}

// first joins the first n of many names.
func first(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}
