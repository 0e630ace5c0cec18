package replay

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"glmbatch/engine/glm5"
	"glmbatch/kernels"
	"glmbatch/kernels/ranks"
)

const (
	paramBytes   = 48 // of a row of "params" in a file; what only some steps have is in "steering"
	steerBytes   = 40
	sampledBytes = 8 + 8*kernels.MaxLogprobs
	maxLogits    = 8 << 20 // bytes of logits that a capture keeps; of more it has the hash
)

// chooses reports whether a call's outputs decide what later calls touch.
func chooses(k kernels.Name) bool { return k == "moe_route" || k == "index_topk" }

// reader reads what calls of a step leave.
type reader struct {
	g      *ranks.Group
	calls  []kernels.Call
	batch  *glm5.Batch
	params kernels.Buffer // the model's region
}

func newReader(m *glm5.Model, calls []kernels.Call, b *glm5.Batch) *reader {
	return &reader{g: m.Group(), calls: calls, batch: b, params: m.Region("params", -1)}
}

// outputs reads what call i left in its arguments, on rank 0 where all ranks have
// the same.
func (r *reader) outputs(i int) ([]Output, error) {
	c := &r.calls[i]
	k := kernels.Lookup(c.Kernel)
	n := r.g.Ranks()
	if c.Replicated || k.Class == kernels.Comm || k.Class == kernels.Sample {
		n = 1
	}
	var all []Output
	for j, a := range k.Args {
		if a.Role != kernels.Out && a.Role != kernels.InOut || a.Name == "cache" || a.Name == "pool" ||
			c.Args[j].Index == 0 || a.Len == nil && a.Type != "sampled" {
			continue
		}
		for rank := range n {
			data, err := r.values(c, k, j, rank)
			if err != nil {
				return nil, fmt.Errorf("%s of call %d, %s: %w", a.Name, i, c.Kernel, err)
			}
			sum := sha256.Sum256(data)
			all = append(all, Output{Call: i, Arg: a.Name, Layer: int(c.Layer), Rank: rank, Hash: sum[:], Data: data})
		}
	}
	return all, nil
}

// values downloads argument j of a call, rows dense, and blanks what the kernel
// leaves as it was.
func (r *reader) values(c *kernels.Call, k *kernels.Kernel, j, rank int) ([]byte, error) {
	a, b, rows := k.Args[j], c.Args[j], int64(max(1, c.Dims.M))
	width := int64(sampledBytes)
	if a.Type != "sampled" {
		width = a.Len(c.Dims) * 4 / rows
	}
	pitch := max(int64(b.Pitch), width)
	raw := make([]byte, (rows-1)*pitch+width)
	if err := r.g.Download(rank, raw, b); err != nil {
		return nil, err
	}
	if pitch > width {
		for m := int64(1); m < rows; m++ {
			copy(raw[m*width:(m+1)*width], raw[m*pitch:])
		}
		raw = raw[:rows*width]
	}
	switch {
	case a.Type == "sampled":
		params := r.batch.Params
		if p := kernelArg(c, "params"); p.Index != r.params.Index || p.Offset != r.params.Offset { // of drafts
			params = slices.Repeat([]kernels.SampleParams{{Logprobs: -1}}, int(rows))
		}
		blankSampled(raw, params)
	case a.Name == "scores": // of positions up to the row's own
		at := make([]byte, 4*rows)
		if err := r.g.Download(0, at, *kernelArg(c, "pos")); err != nil {
			return nil, err
		}
		for m, pos := range ints(at) {
			clear(raw[int64(m)*width+4*min(width/4, int64(pos)+1) : int64(m+1)*width])
		}
	}
	return raw, nil
}

// blankSampled clears the alternatives and labels that no one asked for.
func blankSampled(raw []byte, params []kernels.SampleParams) {
	for m := range len(raw) / sampledBytes {
		row := raw[m*sampledBytes:][:sampledBytes]
		wanted := params[m].Logprobs
		if wanted < 0 {
			clear(row[4:8])
		} else {
			wanted += params[m].Labels
		}
		for i := max(0, wanted); i < kernels.MaxLogprobs; i++ {
			binary.LittleEndian.PutUint32(row[8+4*i:], 0xffffffff)
			clear(row[8+4*kernels.MaxLogprobs+4*i:][:4])
		}
	}
}

// walk runs the list and reads the outputs of the calls that stop says, each
// before the next call runs.
func (r *reader) walk(stop func(i int) bool, visit func([]Output) error) error {
	from := 0
	for i := range r.calls {
		if !stop(i) && i+1 < len(r.calls) {
			continue
		}
		if err := r.g.Run(r.calls[from:i+1], nil); err != nil {
			return err
		}
		from = i + 1
		if !stop(i) {
			continue
		}
		out, err := r.outputs(i)
		if err != nil {
			return err
		}
		if err := visit(out); err != nil {
			return err
		}
	}
	return nil
}

// last returns the calls whose outputs are the step's: logits and tokens, its own and
// those of drafts. There are none in a step that samples nothing; then it is the step's
// last call.
func last(calls []kernels.Call) []int {
	var ends []int
	for i := range calls {
		if calls[i].Kernel == "sample" {
			ends = append(ends, i-1, i)
		}
	}
	if ends == nil {
		return []int{len(calls) - 1}
	}
	return ends
}

// left is last without the calls whose outputs are not there any more when the step has
// ended: drafts' logits take the place of those before them.
func left(calls []kernels.Call) []int {
	at := map[kernels.Buffer]int{}
	ends := last(calls)
	out := func(i int) kernels.Buffer { return calls[i].Args[len(calls[i].Args)-1] }
	for _, i := range ends {
		at[out(i)] = i
	}
	return slices.DeleteFunc(ends, func(i int) bool { return at[out(i)] != i })
}

// stops returns the calls behind which the outcome of a step is read.
func stops(calls []kernels.Call, detail string) func(int) bool {
	ends := last(calls)
	return func(i int) bool {
		return detail != DetailNone && detail != "" || chooses(calls[i].Kernel) || slices.Contains(ends, i)
	}
}
