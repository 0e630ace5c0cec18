package verify

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"

	"glmbatch/engine/checkpoint"
)

// Expected is a reference's file: a safetensors file with keys p{i}.input_ids
// [L], p{i}.logits [L, vocab] and any of p{i}.hidden [layers+1, L, hidden],
// p{i}.expert_index.{j} and p{i}.expert_weight.{j} [L, k] of the j-th MoE layer,
// p{i}.index_topk.{j} [L, k] of the j-th indexer, p{i}.greedy and
// p{i}.greedy_margin, p{i}.logits_w4a4, p{i}.mtp_input_ids [M] and
// p{i}.mtp_logits [M-1, vocab].
type Expected struct {
	file *checkpoint.Checkpoint
	n    int
}

const maxExpected = 4 << 30

// Open reads a reference's file.
func Open(path string) (*Expected, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading expected outputs: %w", err)
	}
	if info.Size() > maxExpected {
		return nil, fmt.Errorf("reading expected outputs: %s has %d bytes, at most %d are read", path, info.Size(),
			int64(maxExpected))
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading expected outputs: %w", err)
	}
	e, err := Read(b)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return e, nil
}

// Read reads a reference's file that is in memory.
func Read(b []byte) (*Expected, error) {
	f, err := checkpoint.FromFiles(map[string][]byte{checkpoint.ConfigFile: []byte("{}"), checkpoint.WeightsFile: b})
	if err != nil {
		return nil, err
	}
	e := &Expected{file: f}
	for f.Has(key(e.n, "input_ids")) {
		e.n++
	}
	if e.n == 0 {
		return nil, fmt.Errorf("it has no p0.input_ids: not expected outputs")
	}
	return e, nil
}

// Prompts returns the number of prompts.
func (e *Expected) Prompts() int { return e.n }

// Has reports whether prompt i has a key.
func (e *Expected) Has(i int, name string) bool { return e.file.Has(key(i, name)) }

func key(i int, name string) string { return fmt.Sprintf("p%d.%s", i, name) }

// ints returns an int32 tensor of prompt i. Its last dimension is cols, 0: any.
func (e *Expected) ints(i int, name string) (v []int32, cols int, err error) {
	t, err := e.tensor(i, name, "I32", "I64")
	if err != nil {
		return nil, 0, err
	}
	v = make([]int32, t.Len())
	for k := range v {
		if t.DType == "I32" {
			v[k] = int32(binary.LittleEndian.Uint32(t.Data[4*k:]))
		} else {
			v[k] = int32(binary.LittleEndian.Uint64(t.Data[8*k:]))
		}
	}
	return v, lastDim(t), nil
}

// floats returns a float32 tensor of n values of prompt i.
func (e *Expected) floats(i int, name string, n int) ([]float32, error) {
	t, err := e.tensor(i, name, checkpoint.F32)
	if err != nil {
		return nil, err
	}
	if t.Len() != n {
		return nil, fmt.Errorf("%s has shape %v, %d values are needed", t.Name, t.Shape, n)
	}
	v := make([]float32, n)
	for k := range v {
		v[k] = math.Float32frombits(binary.LittleEndian.Uint32(t.Data[4*k:]))
	}
	return v, nil
}

func (e *Expected) tensor(i int, name string, types ...checkpoint.DType) (*checkpoint.Tensor, error) {
	t, err := e.file.Tensor(key(i, name))
	if err != nil {
		return nil, err
	}
	for _, d := range types {
		if t.DType == d {
			return t, nil
		}
	}
	return nil, fmt.Errorf("%s is %s, not one of %v", t.Name, t.DType, types)
}

func lastDim(t *checkpoint.Tensor) int {
	if len(t.Shape) == 0 {
		return 1
	}
	return t.Shape[len(t.Shape)-1]
}
