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
	g     *ranks.Group
	calls []kernels.Call
	batch *glm5.Batch
	pos   kernels.Buffer // the model's region
}

func newReader(m *glm5.Model, calls []kernels.Call, b *glm5.Batch) *reader {
	return &reader{g: m.Group(), calls: calls, batch: b, pos: m.Region("pos", -1)}
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
			c.Args[j].Index == 0 {
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
		blankSampled(raw, r.batch.Params)
	case a.Name == "scores": // of positions up to the row's own
		from := (kernelArg(c, "pos").Offset - r.pos.Offset) / 4
		for m := range rows {
			clear(raw[m*width+4*(int64(r.batch.Pos[from+m])+1) : (m+1)*width])
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

// last returns the calls whose outputs are the step's: logits and tokens. There
// are none in a step that samples nothing; then it is the step's last call.
func last(calls []kernels.Call) []int {
	for i := len(calls) - 1; i >= 0; i-- {
		if calls[i].Kernel == "sample" {
			return []int{i - 1, i}
		}
	}
	return []int{len(calls) - 1}
}

// stops returns the calls behind which the outcome of a step is read.
func stops(calls []kernels.Call, detail string) func(int) bool {
	ends := last(calls)
	return func(i int) bool {
		return detail != DetailNone && detail != "" || chooses(calls[i].Kernel) || slices.Contains(ends, i)
	}
}
