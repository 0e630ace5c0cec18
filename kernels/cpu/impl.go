package cpu

import "glmbatch/kernels"

// impl is how the device does one kernel: units says into how many pieces one
// rank's share can be cut, run does pieces [lo, hi). Pieces are rows, heads or
// panels of outputs, never parts of a sum, so the cut shows in no result.
type impl struct {
	units  func(d *kernels.Dims) int
	run    func(x *frame, lo, hi int) error
	unitNs int64 // what a unit takes beyond what the cost formula knows: exponentials, say

	// joint, if there is one, says whether one pass can do all ranks' shares of
	// a call. Its units are then as many as those of all ranks.
	joint func(c *kernels.Call, bufs []*buffer) bool
}

var implementations = func() map[kernels.Name]*impl {
	m := map[kernels.Name]*impl{
		"rms_norm":        {units: rowUnits, run: rmsNorm},
		"add_norm":        {units: rowUnits, run: addNorm},
		"index_topk":      {units: rowUnits, run: indexTopK, unitNs: 500},
		"kv_cast_fp8":     {units: slotUnits, run: kvCast},
		"silu_mul":        {units: rowUnits, run: siluMul},
		"moe_route":       {units: rowUnits, run: moeRoute, unitNs: 1000},
		"feed":            {units: rowUnits, run: feed},
		"gather_rows":     {units: rowUnits, run: gatherRows},
		"all_reduce_norm": {units: rowUnits, run: allReduceNorm},
		"all_gather":      {units: rowUnits, run: allGather},
		"sample":          {units: rowUnits, run: sample, unitNs: 20000},
	}
	for _, f := range []kernels.Format{kernels.F32, kernels.BF16, kernels.FP8} {
		m[kernels.With("latent_write", f)] = &impl{units: rowUnits, run: latentWrite(f)}
		m[kernels.With("index_write", f)] = &impl{units: rowUnits, run: indexWrite(f)}
		m[kernels.With("index_logits", f)] = &impl{units: logitUnits, run: indexLogits(f)}
		m[kernels.With("mla_attend", f)] = &impl{units: headUnits, run: attend(f), joint: sharedCache}
		m[kernels.With("gemm", f)] = &impl{units: gemmUnits, run: gemm(f)}
	}
	for _, f := range []kernels.Format{kernels.F32, kernels.BF16} {
		m[kernels.With("embed", f)] = &impl{units: rowUnits, run: embed(f)}
		m[kernels.With("q_absorb", f)] = &impl{units: absorbUnits, run: absorb(f)}
		m[kernels.With("v_up", f)] = &impl{units: absorbUnits, run: valueUp(f)}
	}
	for _, f := range []kernels.Format{kernels.FP8B, kernels.FP4, "fp4a4", "fp4a8"} {
		m[kernels.With("gemm", f)] = &impl{units: gemmUnits, run: gemm(f)}
	}
	for _, f := range []kernels.Format{kernels.F32, kernels.BF16, kernels.FP8B, kernels.FP4, "fp4a4", "fp4a8"} {
		m[kernels.With("moe_up", f)] = &impl{units: moeUpUnits, run: moeUp(f)}
		m[kernels.With("moe_down", f)] = &impl{units: moeDownUnits, run: moeDown(f)}
	}
	return m
}()

func rowUnits(d *kernels.Dims) int { return int(d.M) }
