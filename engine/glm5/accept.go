package glm5

import (
	"errors"
	"fmt"
	"strings"

	"glmbatch/engine/checkpoint"
	"glmbatch/kernels"
)

// Accept is ParseConfig for [checkpoint.Open]: a folder of another model is refused
// before anything else of it is read. Tensors of the main layers are needed.
func Accept(config []byte) (needs func(tensor string) bool, err error) {
	c, err := ParseConfig(config)
	if err != nil {
		return nil, err
	}
	return func(tensor string) bool {
		i, ok := layerOf(tensor)
		return !ok || i < c.Layers
	}, nil
}

// layerOf returns the layer in a tensor's name.
func layerOf(tensor string) (layer int, ok bool) {
	rest, ok := strings.CutPrefix(tensor, "model.layers.")
	if !ok {
		return 0, false
	}
	for i := range len(rest) {
		switch d := rest[i]; {
		case d == '.' && i > 0:
			return layer, true
		case d < '0' || d > '9' || i > 6:
			return 0, false
		default:
			layer = 10*layer + int(d-'0')
		}
	}
	return 0, false
}

// Untie lets a stored head be used though the config says that the embedding's table
// is it, as transformers does where the two differ.
func (c *Config) Untie(ck *checkpoint.Checkpoint) {
	c.TiedHead = c.TiedHead && !ck.Has("lm_head.weight") && !ck.Has("lm_head.weight_packed")
}

// without are the last parts of names of tensors that products are right without:
// scales of activations and caches, which are not rounded here or have scales of
// their own, and what follows from the config.
var without = map[string]bool{
	"input_scale": true, "input_global_scale": true, "q_scale": true, "k_scale": true, "v_scale": true,
	"kv_scale":     true,
	"weight_shape": true, "inv_freq": true,
}

// matters reports whether a tensor that no weight is read from would change what
// the model computes: it is of a module in use, and not one of the above.
func (c *Config) matters(tensor string, mtp bool) bool {
	if without[tensor[strings.LastIndexByte(tensor, '.')+1:]] {
		return false
	}
	i, ok := layerOf(tensor)
	switch {
	case ok && i < c.Layers: // a shared layer's indexer is not in use
		return c.IndexerFull(i) || !strings.Contains(tensor, ".self_attn.indexer.")
	case ok && c.IsMTP(i) && i < c.AllLayers(): // the tables that it shares are stored again by some
		return mtp && !strings.Contains(tensor, ".embed_tokens.") && !strings.Contains(tensor, ".shared_head.head.")
	case ok:
		return false
	}
	return strings.HasPrefix(tensor, "model.embed_tokens.") || strings.HasPrefix(tensor, "model.norm.") ||
		strings.HasPrefix(tensor, "lm_head.")
}

// Check is what stands in the way of running a checkpoint of c with some options; nil:
// nothing does. It reads headers and scales.
func (c *Config) Check(ck *checkpoint.Checkpoint, o Options) error {
	v := c.cover(ck, o.MTP)
	return v.Check(o)
}

// Check is what stands in the way of running the checkpoint with some options; nil:
// nothing does.
func (v *Coverage) Check(o Options) error {
	switch {
	case len(v.Fused) > 0:
		return fmt.Errorf("the experts of a layer are one tensor (%s): glmbatch reads one for each expert, as the "+
			"hub's releases and save_pretrained have them", first(v.Fused, 2))
	case len(v.Missing) > 0:
		return fmt.Errorf("%d weights are %w: %s", len(v.Missing), checkpoint.ErrMissing, first(v.Missing, 3))
	case len(v.Unread) > 0:
		return errors.New(first(v.Unread, 3))
	case len(v.Skipped) > 0:
		return fmt.Errorf("%d tensors would change what the model computes, and glmbatch does not know how: %s",
			len(v.Skipped), first(v.Skipped, 3))
	case o.Act == W4A4 && len(v.Unscaled) > 0:
		return fmt.Errorf("%d NVFP4 weights have no input scale, which 4-bit activations (w4a4) need, or one that is "+
			"not positive: %s; run with w4a16", len(v.Unscaled), first(v.Unscaled, 3))
	}
	return nil
}

// loads fills in the formats that weights have on a device: one for all experts of
// a layer that are multiplied together.
func (v *Coverage) loads() {
	type table struct {
		layer int
		down  bool
	}
	together := map[table]kernels.Format{}
	of := func(s *Stored) table { return table{s.Layer, strings.HasSuffix(s.Name, "down_proj.weight")} }
	for i := range v.Weights {
		s := &v.Weights[i]
		s.Loads = s.Format
		switch {
		case s.Cols == 0:
			s.Loads = kernels.F32
		case s.byHead() && s.Format != kernels.BF16:
			s.Loads = kernels.F32
		case s.Expert >= 0:
			together[of(s)] = common(together[of(s)], s.Format, false)
		}
	}
	mixed := map[int]bool{}
	for i := range v.Weights {
		s := &v.Weights[i]
		if s.Expert < 0 {
			continue
		}
		if s.Loads = together[of(s)]; s.Loads != s.Format && !mixed[s.Layer] {
			mixed[s.Layer] = true
			v.Notes = append(v.Notes,
				fmt.Sprintf("the experts of layer %d are stored in different formats: all of a kind are loaded as %s",
					s.Layer, formatNames[s.Loads]))
		}
	}
}

var formatNames = map[kernels.Format]string{
	kernels.F32:  "float32, 7.1 times the bytes of NVFP4",
	kernels.BF16: "BF16, 3.6 times the bytes of NVFP4",
}

// Loaded returns the bytes of one of n ranks' part on a device, with some options.
func (s *Stored) Loaded(n int, o Options) int64 {
	t := o.Layout.Of(s.Tensor)
	rows, cols := t.Share(n)
	f := s.Loads
	switch {
	case s.File == kernels.FP8 && f != kernels.FP8 && o.wide():
		f = kernels.F32
	case f == kernels.FP8B:
		if _, ok := s.linear.Blocks(cols); !ok {
			f = kernels.BF16
		}
	}
	if f == s.Format {
		f = s.Runs(f, o.Dense)
	}
	bytes := kernels.WeightBytes(f, int64(rows), int64(max(cols, 1)))
	if s.tied { // the head's copy
		t.Part, t.Split = Head, Rows
		head := o.Layout.Of(t)
		rows, cols := head.Share(n)
		bytes += kernels.WeightBytes(f, int64(rows), int64(cols))
	}
	return bytes
}
