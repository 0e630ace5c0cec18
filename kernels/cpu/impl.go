package cpu

import "glmbatch/kernels"

// work does pieces [lo, hi) of a call.
type work func(x *frame, lo, hi int) error

// impl is how the device does one kernel: units says into how many pieces one
// rank's share can be cut, run does pieces [lo, hi). Pieces are rows, heads or
// panels of outputs, never parts of a sum, so the cut shows in no result.
type impl struct {
	units  func(d *kernels.Dims) int
	run    work
	unitNs int64 // what a unit takes beyond what the cost formula knows: exponentials, say

	// joint, if there is one, says whether one pass can do all ranks' shares of
	// a call. Its units are then as many as those of all ranks.
	joint func(c *kernels.Call, bufs []*buffer) bool
}

// operations are how the device does each operation, whatever the number format: run is
// for a kernel of the table, whose formats it takes.
var operations = map[kernels.Op]struct {
	units  func(d *kernels.Dims) int
	run    func(k *kernels.Kernel) work
	unitNs int64
	joint  func(c *kernels.Call, bufs []*buffer) bool
}{
	"embed":               {units: rowUnits, run: byFormat(embed)},
	"rms_norm":            {units: rowUnits, run: always(rmsNorm)},
	"add_norm":            {units: rowUnits, run: always(addNorm)},
	"gemm":                {units: gemmUnits, run: gemm},
	"q_absorb":            {units: absorbUnits, run: byFormat(absorb)},
	"v_up":                {units: absorbUnits, run: byFormat(valueUp)},
	"latent_write":        {units: rowUnits, run: byFormat(latentWrite)},
	"index_write":         {units: rowUnits, run: byFormat(indexWrite)},
	"index_logits":        {units: logitUnits, run: byFormat(indexLogits)},
	"index_topk":          {units: rowUnits, run: always(indexTopK), unitNs: 500},
	"mla_attend":          {units: headUnits, run: byFormat(attend), joint: sharedCache},
	"kv_cast":             {units: slotUnits, run: always(kvCast)},
	"silu_mul":            {units: rowUnits, run: always(siluMul)},
	"moe_route":           {units: rowUnits, run: always(moeRoute), unitNs: 1000},
	"moe_up":              {units: moeUpUnits, run: moeUp},
	"moe_down":            {units: moeDownUnits, run: moeDown},
	"feed":                {units: rowUnits, run: always(feed)},
	"accept":              {units: rowUnits, run: always(accept)},
	"gather_rows":         {units: rowUnits, run: always(gatherRows)},
	"all_reduce_norm":     {units: rowUnits, run: always(allReduceNorm)},
	"all_gather":          {units: rowUnits, run: always(allGather)},
	"all_gather_rows":     {units: rowUnits, run: always(allGatherRows)},
	"sample":              {units: rowUnits, run: always(sample), unitNs: 20000},
	"reduce_scatter_norm": {units: rowUnits, run: always(reduceScatterNorm)},
}

// byFormat is for operations that take one number format, of weights or cache entries.
func byFormat(run func(kernels.Format) work) func(*kernels.Kernel) work {
	return func(k *kernels.Kernel) work { return run(k.Format) }
}

// always is for operations without number formats.
func always(run work) func(*kernels.Kernel) work {
	return func(*kernels.Kernel) work { return run }
}

// implementations are those of the table's kernels.
var implementations = func() map[kernels.Name]*impl {
	m := map[kernels.Name]*impl{}
	for i := range kernels.Table {
		k := &kernels.Table[i]
		if o, ok := operations[k.Op]; ok {
			m[k.Name] = &impl{units: o.units, run: o.run(k), unitNs: o.unitNs, joint: o.joint}
		}
	}
	return m
}()

func rowUnits(d *kernels.Dims) int { return int(d.M) }
