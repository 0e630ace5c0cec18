package replay

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"glmbatch/datasets"
	"glmbatch/engine/glm5"
	"glmbatch/kernels"
	"glmbatch/replay/timeline"
)

// WhatIf is a change of a step.
type WhatIf struct {
	Name   string  // kv, kv-cache, drop, scale or tp
	Value  string  // a variant of attention, a format or a class
	Factor float64 // of scale
	Ranks  int     // of tp
}

// The variants of attention over the cache.
const (
	InPlace    = "in-place"    // as it is
	CastPool   = "cast-pool"   // each layer first copies the whole pool to BF16
	CastActive = "cast-active" // each layer first copies the batch's pages to BF16
)

// ParseWhatIf reads kv=cast-pool, kv-cache=fp8, drop=CLASS, scale=CLASS:0.5 or tp=4.
func ParseWhatIf(s string) (WhatIf, error) {
	name, value, _ := strings.Cut(s, "=")
	w := WhatIf{Name: name, Value: value}
	bad := func(format string, a ...any) (WhatIf, error) {
		return WhatIf{}, fmt.Errorf("what-if %q: %s", s, fmt.Sprintf(format, a...))
	}
	switch name {
	case "kv":
		if !slices.Contains([]string{InPlace, CastPool, CastActive}, value) {
			return bad("kv is %s, %s or %s", InPlace, CastPool, CastActive)
		}
	case "kv-cache":
		if !slices.Contains([]kernels.Format{kernels.F32, kernels.BF16, kernels.FP8}, kernels.Format(value)) {
			return bad("kv-cache is f32, bf16 or fp8")
		}
	case "tp":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > maxRanks {
			return bad("tp is a number of ranks")
		}
		w.Ranks = n
	case "scale":
		class, factor, _ := strings.Cut(value, ":")
		f, err := strconv.ParseFloat(factor, 64)
		if err != nil || !(f >= 0) || math.IsInf(f, 0) {
			return bad("scale is CLASS:FACTOR, gemm.bf16:0.5 say")
		}
		w.Value, w.Factor = class, f
		fallthrough
	case "drop":
		if !slices.ContainsFunc(kernels.Table, func(k kernels.Kernel) bool { return string(k.Class) == w.Value }) {
			return bad("no class %q; the report's first column has them", w.Value)
		}
	default:
		return bad("it is kv=, kv-cache=, drop=, scale= or tp=")
	}
	return w, nil
}

func (w WhatIf) String() string {
	if w.Name == "scale" {
		return fmt.Sprintf("scale=%s:%g", w.Value, w.Factor)
	}
	return w.Name + "=" + w.Value
}

// casts says whether w changes how attention reads the cache.
func (w WhatIf) casts() bool { return w.Name == "kv" && w.Value != InPlace }

var errNoAttention = errors.New("the step has no attention over an FP8 cache")

// withCast is [WithCast] with a pool of its own.
func (s *restored) withCast(calls []kernels.Call, slots int64) ([]kernels.Call, error) {
	pool, err := CastPoolOf(s.m, slots)
	if err != nil {
		return nil, err
	}
	return WithCast(s.m, calls, slots, pool)
}

// CastPoolOf allocates what slots of a layer's latent cache take in BF16.
func CastPoolOf(m *glm5.Model, slots int64) (kernels.Buffer, error) {
	pool, err := m.Group().Alloc(slots*int64(kernels.LatentEntry(kernels.BF16, m.Config.KVLoRA, m.Config.QKRope)),
		kernels.Replicated)
	if err != nil {
		return pool, fmt.Errorf("a BF16 copy of %d slots: %w", slots, err)
	}
	return pool, nil
}

// WithCast returns the list with a copy of the first slots of each layer's FP8
// latent cache to pool before its attention, which then reads the copy. The copy
// is BF16, as attention kernels without FP8 want it.
func WithCast(m *glm5.Model, calls []kernels.Call, slots int64, pool kernels.Buffer) ([]kernels.Call, error) {
	c := &m.Config
	from, to := kernels.With("mla_attend", kernels.FP8), kernels.With("mla_attend", kernels.BF16)
	var out []kernels.Call
	copied := int16(-1)
	for _, x := range cloneCalls(calls) {
		if x.Kernel != from {
			out = append(out, x)
			continue
		}
		if x.Layer != copied {
			copied = x.Layer
			cache := x.Args[1].Slice(0, slots*int64(kernels.LatentEntry(kernels.FP8, c.KVLoRA, c.QKRope)))
			out = append(out, kernels.Call{Kernel: "kv_cast_fp8", Layer: x.Layer, Replicated: true,
				Args: []kernels.Buffer{cache, pool},
				Dims: kernels.Dims{K: int32(c.KVLoRA), Rope: int32(c.QKRope), Slots: slots}})
		}
		x.Kernel, x.Args[1] = to, pool
		out = append(out, x)
	}
	if copied < 0 {
		return nil, errNoAttention
	}
	return out, nil
}

// slots is how many slots a variant copies in each layer.
func (s *restored) slots(variant string) int64 {
	if variant == CastPool {
		return int64(s.m.Options().Pages) * kernels.PageTokens
	}
	n := int64(0)
	for _, r := range s.runs {
		n = max(n, int64(r.First)+int64(r.Count))
	}
	return n * kernels.PageTokens
}

// scaled returns a timeline in which the calls of a class take factor times as
// long. Everything behind them moves along: gaps keep their lengths, and a
// collective ends when the last rank has come and its transfer is done.
func scaled(rows []datasets.Span, class string, factor float64) []datasets.Span {
	out := slices.Clone(rows)
	steps := map[int64][]int{}
	for i := range out {
		steps[out[i].Step] = append(steps[out[i].Step], i)
	}
	for _, at := range steps {
		scaleStep(rows, out, at, class, factor)
	}
	return out
}

// scaleStep moves the rows at of one step.
func scaleStep(rows, out []datasets.Span, at []int, class string, factor float64) {
	calls := map[int32][]int{} // rows of each call, one a rank
	last := int32(-1)
	for _, i := range at {
		if !timeline.IsHost(rows[i].Lane) {
			calls[rows[i].Call] = append(calls[rows[i].Call], i)
			last = max(last, rows[i].Call)
		}
	}
	type front struct{ was, is int64 } // where a rank's last call ended
	ranks := map[int32]*front{}
	var moved, ended int64
	for call := range last + 1 {
		of := calls[call]
		arrived, was := int64(math.MinInt64), int64(math.MinInt64)
		for _, i := range of {
			f := ranks[rows[i].Rank]
			if f == nil {
				f = &front{rows[i].StartNS, rows[i].StartNS}
				ranks[rows[i].Rank] = f
			}
			out[i].StartNS = f.is + rows[i].StartNS - f.was
			arrived, was = max(arrived, out[i].StartNS), max(was, rows[i].StartNS)
		}
		for _, i := range of {
			f, r := 1.0, &rows[i]
			if r.Class == class {
				f = factor
			}
			if timeline.IsComm(r.Class) && len(of) > 1 && r.EndNS >= was {
				out[i].EndNS = arrived + int64(math.Round(f*float64(r.EndNS-was)))
			} else {
				out[i].EndNS = out[i].StartNS + int64(math.Round(f*float64(r.EndNS-r.StartNS)))
			}
			ranks[r.Rank].was, ranks[r.Rank].is = r.EndNS, out[i].EndNS
		}
	}
	for _, f := range ranks {
		if f.was > ended {
			ended, moved = f.was, f.is-f.was
		}
	}
	for _, i := range at { // what the host does after the device, and the step's end
		if !timeline.IsHost(rows[i].Lane) {
			continue
		}
		if rows[i].StartNS >= ended {
			out[i].StartNS += moved
		}
		if rows[i].EndNS >= ended {
			out[i].EndNS += moved
		}
	}
}

// changed are the model's options and the ranks that a change asks for.
func (w WhatIf) changed(o glm5.Options, ranks int) (glm5.Options, int) {
	switch {
	case w.Name == "kv-cache":
		o.KVCache = kernels.Format(w.Value)
	case w.casts():
		o.KVCache = kernels.FP8
	case w.Name == "tp":
		if o.Shards == ranks { // the ranks had all of the model
			o.Shards = 0
		}
		ranks = w.Ranks
	}
	return o, ranks
}
