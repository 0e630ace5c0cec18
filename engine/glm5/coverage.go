package glm5

import (
	"errors"
	"fmt"
	"slices"
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
	Fused   []string // tensors with all experts of a layer, where weights are missing
	Skipped []string // tensors that no weight is read from, but that would change what is computed
	Unused  []string // other tensors that no weight is read from

	Unscaled       []string // NVFP4 experts without an input scale
	Contradictions []string // between the quantisation configuration and the weights
	Notes          []string // what is odd, or costs more than it seems, but changes nothing
}

// Stored is a weight as the checkpoint has it.
type Stored struct {
	Tensor
	Format kernels.Format // as it is computed with
	Loads  kernels.Format // on a device, before Options.Dense
	File   kernels.Format // in its file
	Bytes  int64          // there, scales included
	scaled bool           // it has an input scale
	tied   bool           // it is the head's table too
	parts  []string       // the tensors that it is read from
	linear checkpoint.Linear
}

// suffixes of the tensors that make up a Linear, in all forms.
var suffixes = []string{"", "_scale", "_scale_2", "_packed", "_global_scale", "_scale_inv"}

// Cover compares ck, the checkpoint of c, with what c asks for.
func (c *Config) Cover(ck *checkpoint.Checkpoint) Coverage { return c.cover(ck, true) }

// cover leaves the prediction layers out of what it judges unless mtp.
func (c *Config) cover(ck *checkpoint.Checkpoint, mtp bool) Coverage {
	v := Coverage{Notes: c.Notes}
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
	for t := range c.Tensors(mtp) {
		s, err := c.stored(ck, t)
		switch {
		case errors.Is(err, checkpoint.ErrMissing):
			if !t.MTP || v.HasMTP {
				v.Missing = append(v.Missing, t.Name)
			}
			if t.Expert == 0 {
				v.fused(ck, t.Layer)
			}
			continue
		case err != nil:
			v.Unread = append(v.Unread, err.Error())
		default:
			s.tied = c.TiedHead && t.Part == Embedding
			v.Weights = append(v.Weights, s)
			if t.Expert >= 0 && s.Format == kernels.FP4 && !s.scaled {
				v.Unscaled = append(v.Unscaled, t.Module())
			}
			if t.MayQuantize && s.File != kernels.FP4 && s.File != kernels.FP8 && ck.ClaimsQuantized(t.Module()) {
				plain = append(plain, t.Module())
			}
		}
		used[t.Name], used[t.Name+"_packed"] = true, true
		for _, part := range s.parts {
			used[part] = true
		}
	}
	for _, name := range ck.Names() {
		switch {
		case used[name]:
		case c.matters(name, mtp):
			v.Skipped = append(v.Skipped, name)
		case !without[name[strings.LastIndexByte(name, '.')+1:]]:
			v.Unused = append(v.Unused, name)
		}
	}
	v.loads()
	v.Contradictions = ck.Warnings()
	if len(plain) > 0 {
		v.Contradictions = append(v.Contradictions,
			fmt.Sprintf("%d weights are not stored quantised, but the quantisation configuration does not leave them "+
				"out: %s", len(plain), first(plain, 3)))
	}
	return v
}

// fused notes tensors that have all of a layer's experts.
func (v *Coverage) fused(ck *checkpoint.Checkpoint, layer int) {
	for _, name := range []string{"gate_up_proj", "gate_proj", "up_proj", "down_proj"} {
		for _, end := range []string{"", ".weight", "_packed", "_blocks"} {
			n := LayerPrefix(layer) + "mlp.experts." + name + end
			if ck.Has(n) && !slices.Contains(v.Fused, n) {
				v.Fused = append(v.Fused, n)
			}
		}
	}
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
		s.Format, s.Bytes = kernels.F32, x.Size()
		switch x.DType {
		case checkpoint.BF16:
			s.Format = kernels.BF16
		case checkpoint.F32, checkpoint.F16:
		default:
			return s, fmt.Errorf("%s has dtype %s: it must be BF16, F32 or F16", t.Name, x.DType)
		}
		s.File = s.Format
		return s, nil
	}
	l, err := ck.Linear(t.Module())
	if err != nil {
		return s, err
	}
	if l.Rows != t.Rows || l.Cols != t.Cols {
		return s, fmt.Errorf("%s is [%d, %d], config.json says [%d, %d]", t.Name, l.Rows, l.Cols, t.Rows, t.Cols)
	}
	s.parts = l.Tensors()
	if l.Format == kernels.FP4 && !t.MayQuantize {
		return s, fmt.Errorf("%s is stored as NVFP4: it must be BF16, F32 or F16", t.Name)
	}
	if what := ck.Online(t.Module()); what != "" {
		return s,
			fmt.Errorf("%s is right only after an operation at every step (%s), which glmbatch does not do: use a "+
				"checkpoint without online transforms", t.Name, what)
	}
	l = t.asStored(l, false, 1)
	s.Format, s.File, s.Bytes, s.scaled = l.Format, l.Stored, l.Bytes(), l.Input > 0
	s.linear = l
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
