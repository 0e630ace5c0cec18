package checkpoint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"glmbatch/golden"
	"glmbatch/kernels/nvfp4"
)

const sampleDir = "testdata/requantize"

// TestRequantize quantises BF16 weights and compares the bytes with their NVFP4
// forms, which training/nvfp4.py made. That script's rules are ModelOpt's but
// for block scales: it divides by 6 and by the global scale one after the other,
// where ModelOpt divides by their product, so some quotients that lie between
// two E4M3 values fall on the other side; and it lacks the floor of 2^-9 and the
// 1 for blocks of zeros. Everything else must be equal, bit by bit.
//
// The data are one weight of the tiny model; GLMBATCH_TESTDATA names a folder
// with models/tiny-glm5-bf16 and -nvfp4 for all 288.
func TestRequantize(t *testing.T) {
	root := os.Getenv("GLMBATCH_TESTDATA")
	if root == "" {
		c := mustOpen(t, sampleDir)
		requantize(t, c, c, func(module string) string { return "bf16." + module })
		return
	}
	bf16 := mustOpen(t, filepath.Join(root, "models/tiny-glm5-bf16"))
	fp4 := mustOpen(t, filepath.Join(root, "models/tiny-glm5-nvfp4"))
	requantize(t, bf16, fp4, func(module string) string { return module })
	if golden.Update() {
		writeSample(t, bf16, fp4, "model.layers.6.mlp.experts.14.gate_proj")
	}
}

func mustOpen(t *testing.T, dir string) *Checkpoint {
	t.Helper()
	c, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func requantize(t *testing.T, bf16, fp4 *Checkpoint, from func(module string) string) {
	var weights, blocks, differ int
	for _, name := range fp4.Names() {
		module, ok := strings.CutSuffix(name, ".weight_scale")
		if !ok {
			continue
		}
		weights++
		want, err := fp4.Linear(module)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := bf16.Linear(from(module))
		if err != nil {
			t.Fatal(err)
		}
		w, err := plain.Float32(0, plain.Rows)
		if err != nil {
			t.Fatal(err)
		}
		packed, scales, global := nvfp4.Quantize(w, plain.Rows, plain.Cols)
		if global != want.Global {
			t.Errorf("%s: global %v, want %v", module, global, want.Global)
		}
		storedScales, storedCodes := contents(t, want.scales), contents(t, want.data)
		for b := range scales {
			blocks++
			block := w[16*b : 16*b+16]
			stored := storedScales[b]
			if scales[b] != stored {
				differ++
				amax := nvfp4.Amax(block)
				if script := nvfp4.EncodeE4M3(amax / 6 / global); script != stored || amax != 0 &&
					scales[b] != stored+1 && scales[b] != stored-1 {
					t.Errorf("%s block %d (largest %v): scale %#x, stored %#x", module, b, amax, scales[b], stored)
				}
				continue
			}
			if got, want := packed[8*b:8*b+8], storedCodes[8*b:8*b+8]; string(got) != string(want) {
				t.Errorf("%s block %d: codes %x, want %x", module, b, got, want)
			}
		}
	}
	t.Logf("%d weights, %d blocks: %d scales are one step off, all else is equal", weights, blocks, differ)
	if weights == 0 {
		t.Fatal("no weights")
	}
}

func writeSample(t *testing.T, bf16, fp4 *Checkpoint, module string) {
	var entries []Entry
	var data []*Tensor
	add := func(c *Checkpoint, prefix, name string) {
		x, err := c.Tensor(name)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, Entry{prefix + name, x.DType, x.Shape})
		data = append(data, x)
	}
	add(bf16, "bf16.", module+".weight")
	for _, s := range []string{".weight", ".weight_scale", ".weight_scale_2", ".input_scale"} {
		add(fp4, "", module+s)
	}
	if err := os.RemoveAll(sampleDir); err != nil {
		t.Fatal(err)
	}
	w, err := NewWriter(sampleDir, entries, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range entries {
		if err := w.Write(e.Name, 0, data[i].Data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.WriteFile(ConfigFile,
		[]byte(`{"quantization_config":{"quant_method":"modelopt","quant_algo":"NVFP4"}}`)); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
}
