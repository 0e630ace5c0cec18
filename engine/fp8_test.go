package engine_test

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"glmbatch/datasets/demo"
	"glmbatch/engine"
	"glmbatch/engine/checkpoint"
	"glmbatch/engine/glm5"
	"glmbatch/kernels"
	"glmbatch/kernels/nvfp4"
)

// released is the demo as GLM-5-FP8 is stored: Linears of the layers as E4M3 with a
// scale for each 128 x 128 values, all else as it was. plain is the same values as BF16.
func released(t testing.TB) (fp8, plain *checkpoint.Checkpoint) {
	t.Helper()
	ck, err := checkpoint.FromFiles(demo.Files())
	if err != nil {
		t.Fatal(err)
	}
	c, err := glm5.ParseConfig(ck.Config())
	if err != nil {
		t.Fatal(err)
	}
	quantised := map[string]bool{}
	for w := range c.Tensors(true) {
		quantised[w.Name] = w.MayQuantize && w.Layer >= 0 && !strings.HasSuffix(w.Name, "weights_proj.weight") && !w.MTP
	}
	var codes, values []checkpoint.Tensor
	for _, name := range ck.Names() {
		if at := strings.Index(name, ".weight_scale"); at > 0 || strings.HasSuffix(name, ".input_scale") {
			continue // of NVFP4 experts
		}
		old, err := ck.Tensor(name)
		if err != nil {
			t.Fatal(err)
		}
		b, err := old.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		same := checkpoint.Tensor{Name: name, DType: old.DType, Shape: old.Shape, Data: b}
		if !quantised[name] {
			codes, values = append(codes, same), append(values, same)
			continue
		}
		l, err := ck.Linear(strings.TrimSuffix(name, ".weight"))
		if err != nil {
			t.Fatal(err)
		}
		rows, cols := l.Rows, l.Cols
		v, err := l.Float32(0, rows)
		if err != nil {
			t.Fatal(err)
		}
		data, scales, decoded := blocks(v, rows, cols)
		codes = append(codes, checkpoint.Tensor{Name: name, DType: checkpoint.F8, Shape: []int{rows, cols}, Data: data},
			checkpoint.Tensor{Name: name + "_scale_inv", DType: checkpoint.F32,
				Shape: []int{(rows + 127) / 128, (cols + 127) / 128}, Data: scales})
		values = append(values, checkpoint.Tensor{Name: name, DType: checkpoint.BF16, Shape: []int{rows, cols},
			Data: decoded})
	}
	if fp8, err = checkpoint.FromTensors("fp8", ck.Config(), codes); err != nil {
		t.Fatal(err)
	}
	if plain, err = checkpoint.FromTensors("bf16", ck.Config(), values); err != nil {
		t.Fatal(err)
	}
	return fp8, plain
}

// blocks quantises a matrix by blocks of 128 x 128.
func blocks(v []float32, rows, cols int) (codes, scales, bf16 []byte) {
	across := (cols + 127) / 128
	most := make([]float32, (rows+127)/128*across)
	at := func(i int) int { return i/cols/128*across + i%cols/128 }
	for i, x := range v {
		most[at(i)] = max(most[at(i)], float32(math.Abs(float64(x))))
	}
	for i, x := range v {
		s := most[at(i)] / nvfp4.MaxE4M3
		codes = append(codes, nvfp4.EncodeE4M3(x/s))
		b := math.Float32bits(nvfp4.E4M3[codes[i]] * s)
		bf16 = binary.LittleEndian.AppendUint16(bf16, uint16((b+0x7fff+b>>16&1)>>16))
	}
	for _, m := range most {
		scales = binary.LittleEndian.AppendUint32(scales, math.Float32bits(m/nvfp4.MaxE4M3))
	}
	return codes, scales, bf16
}

// An FP8 release runs as its codes, in every product but the heads' parts of kv_b_proj,
// with the bits of the same weights as BF16, on however many ranks, and in any batch.
func TestFP8Release(t *testing.T) {
	fp8, plain := released(t)
	rs := requests(5, 2048)
	o := glm5.Options{MaxRows: 300, MaxSeqs: 32, Pages: 64, Context: 256}
	for _, tp := range []int{1, 8} {
		want, _ := answers(t, loadFrom(t, plain, tp, 2, o), engine.Options{}, rs)
		ran := map[kernels.Name]int{}
		traced := engine.Options{Trace: func(int64, string) bool { return true }, OnTrace: func(tr kernels.Trace) {
			for _, c := range tr.Calls {
				if c.Layer >= 0 {
					ran[c.Kernel]++
				}
			}
		}}
		m := loadFrom(t, fp8, tp, 2, o)
		for _, e := range []engine.Options{traced, {MaxSeqs: 2, MaxBatchTokens: 5}} {
			got, _ := answers(t, m, e, rs)
			for id := range want {
				if got[id].String() != want[id].String() {
					t.Errorf("tp %d: request %d:\n got %v\nwant %v", tp, id, got[id], want[id])
				}
			}
		}
		if ran["moe_up_fp8b"] == 0 || ran["moe_down_fp8b"] == 0 || ran["gemm_fp8b"] < 4*ran["moe_up_fp8b"] ||
			ran["moe_up_bf16"]+ran["moe_down_bf16"] > 0 {
			t.Errorf("tp %d: products %v", tp, ran)
		}
	}
}

// Experts of several formats run as BF16, with the bits that they have where all are
// stored so.
func TestMixedExperts(t *testing.T) {
	_, plain := released(t)
	ck, err := checkpoint.FromFiles(demo.Files())
	if err != nil {
		t.Fatal(err)
	}
	tensors := map[bool][]checkpoint.Tensor{}
	keep := func(mixed bool, name string, d checkpoint.DType, shape []int, b []byte) {
		tensors[mixed] = append(tensors[mixed], checkpoint.Tensor{Name: name, DType: d, Shape: shape, Data: b})
	}
	for _, name := range ck.Names() {
		old, err := ck.Tensor(name)
		if err != nil {
			t.Fatal(err)
		}
		b, err := old.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(name, ".mlp.experts.") {
			keep(true, name, old.DType, old.Shape, b)
			keep(false, name, old.DType, old.Shape, b)
			continue
		}
		other := strings.Contains(name, "experts.3.") // is stored as BF16
		if !other {
			keep(true, name, old.DType, old.Shape, b)
		}
		module, ok := strings.CutSuffix(name, ".weight")
		if !ok {
			continue
		}
		l, err := ck.Linear(module)
		if err != nil {
			t.Fatal(err)
		}
		v, err := l.Float32(0, l.Rows)
		if err != nil {
			t.Fatal(err)
		}
		b, shape := checkpoint.ToBF16(v), []int{l.Rows, l.Cols}
		keep(false, name, checkpoint.BF16, shape, b)
		if other {
			keep(true, name, checkpoint.BF16, shape, b)
		}
	}
	var got [2]map[int64]answer
	for i, mixed := range []bool{false, true} {
		c, err := checkpoint.FromTensors("mixed", plain.Config(), tensors[mixed])
		if err != nil {
			t.Fatal(err)
		}
		got[i], _ = answers(t, loadFrom(t, c, 2, 2, glm5.Options{MaxRows: 300, MaxSeqs: 32, Pages: 64, Context: 256}),
			engine.Options{}, requests(3, 2048))
	}
	for id, want := range got[0] {
		if got[1][id].String() != want.String() {
			t.Errorf("request %d:\n got %v\nwant %v", id, got[1][id], want)
		}
	}
}
