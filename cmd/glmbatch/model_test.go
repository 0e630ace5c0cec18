package main

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"glmbatch/datasets/demo"
	"glmbatch/engine/checkpoint"
	"glmbatch/engine/glm5"
	"glmbatch/engine/modelopt"
	"glmbatch/engine/synth"
	"glmbatch/kernels"
	"glmbatch/kernels/nvfp4"
)

// command runs the program and returns what it printed.
func command(t *testing.T, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	if got := run(context.Background(), args, &out, &errs); got != code {
		t.Fatalf("glmbatch %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), got, code,
			out.String(), errs.String())
	}
	return out.String(), errs.String()
}

// synthesize writes a random tiny checkpoint.
func synthesize(t *testing.T, args ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "model")
	command(t, exitOK, append([]string{"model", "synth", "--config", "tiny", "--out", out}, args...)...)
	return out
}

func openTest(t *testing.T, dir string) (*checkpoint.Checkpoint, glm5.Config) {
	t.Helper()
	ck, c, err := openModel(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ck.Close() })
	return ck, c
}

func tensorBytes(t *testing.T, ck *checkpoint.Checkpoint, name string) []byte {
	t.Helper()
	x, err := ck.Tensor(name)
	if err != nil {
		t.Fatal(err)
	}
	b, err := x.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestModelInspect(t *testing.T) {
	dir := synthesize(t)
	text, _ := command(t, exitOK, "model", "inspect", dir, "--tp", "4", "--kv-cache", "fp8", "--kv-tokens", "1000")
	for _, want := range []string{
		"layers            6: 1 dense, 5 with 16 experts, 4 a token",
		"parameters        11.3 M (4.86 M active a token)",
		"routed experts      240      7.86 M  4.42 MB  100 %        fp4",
		"fp4                 240      7.86 M  4.42 MB          4.50",
		"each of 4 ranks",
		"fp8 caches        816 B a token: 600 latent, 216 indexer",
		"for 1,000 tokens  816 kB",
		"nothing is missing, unused or contradictory",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
	for _, line := range strings.Split(text, "\n") {
		if len([]rune(line)) > 100 && !strings.Contains(line, dir) {
			t.Errorf("a line of %d columns: %s", len([]rune(line)), line)
		}
	}
	var r inspection
	text, _ = command(t, exitOK, "model", "inspect", dir, "--format", "json")
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	var parts, formats int64
	for _, p := range r.Parts {
		parts += p.Bytes
	}
	for _, f := range r.Formats {
		formats += f.Bytes
	}
	if parts != formats || r.Rank.TP != 8 || r.Missing == nil || !r.HasMTP || r.Params+r.MTPParams != 13336928 {
		t.Errorf("%d bytes by part, %d by format; %+v", parts, formats, r)
	}
}

// TestModelInspectDemo finds the checkpoint that is in the program by its name.
func TestModelInspectDemo(t *testing.T) {
	text, _ := command(t, exitOK, "model", "inspect", "demo")
	if !strings.Contains(text, "GlmMoeDsaForCausalLM") || !strings.Contains(text, "11.3 M") {
		t.Errorf("inspect demo:\n%s", text)
	}
}

// TestDemoByName runs prompts, and a step again, on the demo checkpoint by its name; a
// folder of that name comes first.
func TestDemoByName(t *testing.T) {
	dir := t.TempDir()
	prompts, out := filepath.Join(dir, "prompts.parquet"), filepath.Join(dir, "out")
	if err := os.WriteFile(prompts, demo.Prompts(), 0o644); err != nil {
		t.Fatal(err)
	}
	command(t, exitOK, "run", prompts, "--model", "demo", "--limit", "3", "--out", out, "--capture", "decode:first=1")
	command(t, exitOK, "replay", filepath.Join(out, "captures"), "--model", "demo", "--repeat", "2")
	if err := os.Mkdir(filepath.Join(dir, "demo"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if isDemo("demo") {
		t.Error("a folder is taken for the demo checkpoint")
	}
	if code, _, errs := glmbatch("run", prompts, "--model", "demo", "--limit", "3", "--out",
		out+"2"); code != exitInput {
		t.Errorf("an empty folder demo: exit code %d, %q", code, errs)
	}
}

func TestModelInspectFaults(t *testing.T) {
	dir := synthesize(t, "--shard-size", "4MB")
	config := filepath.Join(dir, "config.json")
	b, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	// Two layers more: the prediction layer's weights are in the first of them.
	more := bytes.Replace(b, []byte(`"num_hidden_layers": 6`), []byte(`"num_hidden_layers": 8`), 1)
	if err := os.WriteFile(config, more, 0o644); err != nil {
		t.Fatal(err)
	}
	text, errs := command(t, exitCheck, "model", "inspect", dir)
	for _, want := range []string{"missing weights: 67", "model.layers.7.input_layernorm.weight",
		"tensors that would change what is computed: 4", "model.layers.6.enorm.weight", "and 57 more"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
	if !strings.Contains(errs, "67 weights") {
		t.Errorf("error %q", errs)
	}
}

// TestSynth: the weights follow from the seed and the name alone, are valid
// NVFP4 and have the variance that keeps activations in range.
func TestSynth(t *testing.T) {
	one, many, other := synthesize(t), synthesize(t, "--shard-size", "3MB"), synthesize(t, "--seed", "7")
	a, c := openTest(t, one)
	b, _ := openTest(t, many)
	d, _ := openTest(t, other)
	if len(a.Files()) != 1 || len(b.Files()) < 4 {
		t.Errorf("%d and %d files", len(a.Files()), len(b.Files()))
	}
	tensor := func(ck *checkpoint.Checkpoint, name string) []byte { return tensorBytes(t, ck, name) }
	for _, name := range a.Names() {
		if !bytes.Equal(tensor(a, name), tensor(b, name)) {
			t.Errorf("%s depends on the size of files", name)
		}
		if x := tensor(a, name); len(x) >= 32 && !strings.Contains(name, "norm") && bytes.Equal(x, tensor(d, name)) {
			t.Errorf("%s does not depend on the seed", name)
		}
	}
	for w := range c.Tensors(true) {
		if w.Cols == 0 {
			continue
		}
		l, err := a.Linear(w.Module())
		if err != nil {
			t.Fatal(err)
		}
		if (l.Format == kernels.FP4) != modelopt.Quantized(&w) {
			t.Errorf("%s is %s", w.Name, l.Format)
		}
		v, err := l.Float32(0, l.Rows)
		if err != nil {
			t.Fatal(err)
		}
		var sum float64
		for _, x := range v {
			sum += float64(x) * float64(x)
		}
		want := 1 / float64(w.Cols)
		switch {
		case w.Part == glm5.Embedding:
			want = 1
		case strings.Contains(w.Name, "o_proj") || strings.Contains(w.Name, "down_proj"):
			want /= 12
		}
		if got := sum / float64(len(v)); math.Abs(got/want-1) > .1 {
			t.Errorf("%s has variance %.3g, want %.3g", w.Name, got, want)
		}
		if l.Format != kernels.FP4 {
			continue
		}
		// Quantising again gives the same: each block has a 6, the tensor a 448.
		packed, scales, global := nvfp4.Quantize(v, l.Rows, l.Cols)
		if math.Abs(float64(global/l.Global-1)) > 1e-6 || !bytes.Equal(scales, tensor(a, w.Module()+".weight_scale")) {
			t.Errorf("%s is not as quantisation would make it", w.Name)
		}
		for i, p := range tensor(a, w.Name) {
			if nvfp4.E2M1[p&15] != nvfp4.E2M1[packed[i]&15] || nvfp4.E2M1[p>>4] != nvfp4.E2M1[packed[i]>>4] {
				t.Errorf("%s: byte %d is %#x, quantised again %#x", w.Name, i, p, packed[i])
				break
			}
		}
	}
}

// TestSynthRuns: activations stay in range through many layers, dense attention
// and sparse.
func TestSynthRuns(t *testing.T) {
	dir := synthesize(t, "--layers", "20", "--mtp=false", "--seed", "3")
	ck, _ := openTest(t, dir)
	g, err := (&deviceFlags{kind: "cpu"}).open(2)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	const rows = 100
	m, err := glm5.Load(t.Context(), ck, g,
		glm5.Options{MaxRows: rows, MaxLogits: rows, MaxSeqs: 1, Context: rows, Pages: 2})
	if err != nil {
		t.Fatal(err)
	}
	var b glm5.Batch
	for i := range int32(rows) {
		b.Logits = append(b.Logits, b.Add(i*17%2048, i, 0, i))
		b.Params = append(b.Params, kernels.Greedy())
	}
	if err := m.SetPages(0, []int32{0, 1}); err != nil {
		t.Fatal(err)
	}
	if err := m.Upload(&b); err != nil {
		t.Fatal(err)
	}
	if err := m.Group().Run(m.Program(&b), nil); err != nil {
		t.Fatal(err)
	}
	rms := func(v []float32) float64 {
		var sum float64
		for _, x := range v {
			sum += float64(x) * float64(x)
		}
		return math.Sqrt(sum / float64(len(v)))
	}
	residual, logits := make([]float32, rows*m.Config.Hidden), make([]float32, rows*m.Config.Vocab)
	if err := m.Residual(residual); err != nil {
		t.Fatal(err)
	}
	if err := m.Logits(logits); err != nil {
		t.Fatal(err)
	}
	if r, l := rms(residual), rms(logits); !(r > .5 && r < 4) || !(l > .5 && l < 2) {
		t.Errorf("after 20 layers: residual stream %.3g, logits %.3g", r, l)
	}
}

// TestSynthConfig: the options change the config that is written.
func TestSynthConfig(t *testing.T) {
	parse := func(o synth.Options) glm5.Config {
		t.Helper()
		if o.Scale == 0 {
			o.Scale = 1
		}
		o.MTP = true
		_, c, err := o.Resolve()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := parse(synth.Options{Config: "glm-5", Layers: 16, Hidden: 1536, Experts: 64, Heads: 16, Vocab: 32768,
		Set: []string{"moe_intermediate_size=128", "intermediate_size=4096", "q_lora_rank=768"}})
	var params int64
	for w := range c.Tensors(true) {
		params += w.Params()
	}
	if params < 9e8 || params > 11e8 || c.CheckTP(8) != nil || c.EOS[0] != 32767 {
		t.Errorf("%d parameters, end tokens %v, %v", params, c.EOS, c.CheckTP(8))
	}
	if c := parse(synth.Options{Config: "glm-5.2", Layers: 8}); c.Layers != 8 || c.IndexerFull(5) || !c.IndexerFull(6) {
		t.Errorf("GLM-5.2 with 8 layers: %v", c.Indexers)
	}
	for _, scale := range []float64{.02, .1, .25, .5, 2} {
		c := parse(synth.Options{Config: "glm-5", Scale: scale, Layers: 4})
		if err := c.CheckTP(8); err != nil {
			t.Errorf("scale %g: %v", scale, err)
		}
	}
	// Lists with an entry for each layer follow the count.
	dir := synthesize(t, "--set", `indexer_types=["full","full","shared","full","shared","full"]`)
	if c := parse(synth.Options{Config: dir, Layers: 3}); c.Layers != 3 || c.IndexerFull(2) {
		t.Errorf("3 layers of a list: %v", c.Indexers)
	}
	if c := parse(synth.Options{Config: filepath.Join(dir, "config.json"),
		Set: []string{"num_hidden_layers=9"}}); c.Layers != 9 {
		t.Errorf("9 layers: %v", c.Layers)
	}
}

// TestQuantize: routed experts become NVFP4, everything else stays as it was.
func TestQuantize(t *testing.T) {
	from := synthesize(t, "--weights", "bf16")
	for name, text := range map[string]string{"tokenizer.json": "{}", "chat_template.jinja": "x",
		"notes.safetensors.bak": "y"} {
		if err := os.WriteFile(filepath.Join(from, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before, c := openTest(t, from)
	for _, tt := range []struct {
		args []string
		want func(w *glm5.Tensor) bool
	}{
		{nil, modelopt.Quantized},
		{[]string{"--include", "*shared_experts*", "--include", "model.layers.6.mlp.experts.*", "--input-amax", "10",
			"--shard-size", "4MB"},
			func(w *glm5.Tensor) bool { return w.Part == glm5.Routed || strings.Contains(w.Name, "shared_experts") }},
	} {
		to := filepath.Join(t.TempDir(), "fp4")
		command(t, exitOK, append([]string{"model", "quantize", from, "--out", to}, tt.args...)...)
		after, _ := openTest(t, to)
		v := c.Cover(after)
		if len(v.Missing)+len(v.Unread)+len(v.Unused)+len(v.Contradictions) != 0 {
			t.Errorf("%v: %q %q %q %q", tt.args, v.Missing, v.Unread, v.Unused, v.Contradictions)
		}
		for _, name := range []string{"tokenizer.json", "chat_template.jinja"} {
			if _, err := os.Stat(filepath.Join(to, name)); err != nil {
				t.Error(err)
			}
		}
		for w := range c.Tensors(true) {
			if !tt.want(&w) {
				x, err := before.Tensor(w.Name)
				if err != nil {
					t.Fatal(err)
				}
				if y, err := after.Tensor(w.Name); err != nil || y.DType != x.DType ||
					!bytes.Equal(tensorBytes(t, before, w.Name), tensorBytes(t, after, w.Name)) {
					t.Errorf("%s changed: %v", w.Name, err)
				}
				continue
			}
			x, err := before.Linear(w.Module())
			if err != nil {
				t.Fatal(err)
			}
			y, err := after.Linear(w.Module())
			if err != nil || y.Format != kernels.FP4 || (y.Input > 0) != (len(tt.args) > 0) {
				t.Fatalf("%s is %s with input scale %v: %v", w.Name, y.Format, y.Input, err)
			}
			if gate, ok := strings.CutSuffix(w.Module(), "up_proj"); ok {
				if g, err := after.Linear(gate + "gate_proj"); err != nil || g.Global != y.Global {
					t.Errorf("%s: gate has scale %v, up %v: %v", w.Name, g.Global, y.Global, err)
				}
			}
			want, err := x.Float32(0, x.Rows)
			if err != nil {
				t.Fatal(err)
			}
			got, err := y.Float32(0, y.Rows)
			if err != nil {
				t.Fatal(err)
			}
			for b := range len(want) / nvfp4.Block {
				amax := float64(nvfp4.Amax(want[b*nvfp4.Block : (b+1)*nvfp4.Block]))
				for i := b * nvfp4.Block; i < (b+1)*nvfp4.Block; i++ {
					if math.Abs(float64(got[i]-want[i])) > amax*(1./6+1./16) {
						t.Fatalf("%s: value %d became %v from %v", w.Name, i, got[i], want[i])
					}
				}
			}
		}
	}
}

func TestModelFaults(t *testing.T) {
	fp4 := synthesize(t)
	bf16 := synthesize(t, "--weights", "bf16")
	out := filepath.Join(t.TempDir(), "out")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"inspect"}, "takes one folder"},
		{[]string{"inspect", out}, "no such file"},
		{[]string{"inspect", fp4, "--format", "xml"}, `--format "xml"`},
		{[]string{"inspect", fp4, "--kv-cache", "fp4"}, `--kv-cache "fp4"`},
		{[]string{"inspect", fp4, "--kv-tokens", "-1"}, "--kv-tokens"},
		{[]string{"synth", "--out", out}, "--config is missing"},
		{[]string{"synth", "--config", "tiny"}, "--out is missing"},
		{[]string{"synth", "--config", "glm-6", "--out", out}, `"glm-6" is neither a file nor one of glm-5`},
		{[]string{"synth", "--config", "tiny", "--out", fp4}, "not empty"},
		{[]string{"synth", "--config", "tiny", "--out", out, "--set", "x"}, `--set "x"`},
		{[]string{"synth", "--config", "tiny", "--out", out, "--set", "hidden_act=gelu"}, "hidden_act"},
		{[]string{"synth", "--config", "tiny", "--out", out, "--layers", "-1"}, "--layers -1"},
		{[]string{"synth", "--config", "tiny", "--out", out, "--scale", "0"}, "--scale 0"},
		{[]string{"synth", "--config", "tiny", "--out", out, "--shard-size", "big"}, `"big" is not a size`},
		{[]string{"synth", "--config", "tiny", "--out", out, "--shard-size", "1"}, "raise the shard size"},
		{[]string{"synth", "--config", "tiny", "--out", out, "--tokenizer", fp4}, "no tokenizer.json"},
		{[]string{"synth", "--config", "tiny", "--out", out, "--weights", "int4"}, `--weights "int4"`},
		{[]string{"quantize", bf16}, "--out is missing"},
		{[]string{"quantize", fp4, "--out", out}, "NVFP4 already"},
		{[]string{"quantize", bf16, "--out", bf16}, "not empty"},
		{[]string{"quantize", bf16, "--out", out, "--include", "nothing*"}, "matches no weight"},
		{[]string{"quantize", bf16, "--out", out, "--include", "*.mlp.gate"}, "cannot be NVFP4"},
		{[]string{"quantize", bf16, "--out", out, "--include", "[a"}, "--include"},
		{[]string{"quantize", bf16, "--out", out, "--input-amax", "-3"}, "--input-amax"},
	} {
		_, errs := command(t, exitInput, append([]string{"model"}, tt.args...)...)
		if !strings.Contains(errs, tt.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: %q, want one line with %q", tt.args, errs, tt.want)
		}
	}
	left, err := os.ReadDir(filepath.Dir(out))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// TestQuantizeNotFinite: NVFP4 has no infinity, and nothing is left behind.
func TestQuantizeNotFinite(t *testing.T) {
	dir := synthesize(t, "--weights", "bf16")
	ck, _ := openTest(t, dir)
	x, err := ck.Tensor("model.layers.2.mlp.experts.3.up_proj.weight")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, ck.Files()[0])
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(b, tensorBytes(t, ck, x.Name))
	b[at], b[at+1] = 0x80, 0x7f
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	_, errs := command(t, exitFailed, "model", "quantize", dir, "--out", out)
	if !strings.Contains(errs, "model.layers.2.mlp.experts.3.up_proj has a value that is not finite") {
		t.Errorf("error %q", errs)
	}
	if left, err := os.ReadDir(filepath.Dir(out)); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// TestInterrupted: a signal leaves nothing behind.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	bf16 := synthesize(t, "--weights", "bf16")
	out := filepath.Join(t.TempDir(), "out")
	for _, args := range [][]string{{"model", "synth", "--config", "tiny", "--out", out},
		{"model", "quantize", bf16, "--out", out}} {
		var errs bytes.Buffer
		if got := run(ctx, args, &errs, &errs); got != exitInterrupted {
			t.Errorf("%v: exit code %d: %s", args, got, errs.String())
		}
		if left, err := os.ReadDir(filepath.Dir(out)); err != nil || len(left) != 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
	}
}

// TestModelInspectTP: a model that --tp ranks cannot share is described as far as it can
// be, what does not divide a line each, and the check fails.
func TestModelInspectTP(t *testing.T) {
	dir := synthesize(t, "--set", "moe_intermediate_size=96", "--set", "vocab_size=2044")
	if text, _ := command(t, exitOK, "model", "inspect", dir, "--tp", "2"); !strings.Contains(text,
		"each of 2 ranks\n  weights") {
		t.Errorf("2 ranks:\n%s", text)
	}
	text, errs := command(t, exitCheck, "model", "inspect", dir)
	for _, want := range []string{"\n  moe_intermediate_size 96 does not divide into 8 ranks", "\n  vocab_size 2044",
		"\n  bf16 caches", "nothing is missing"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "\n  weights") || errs != "glmbatch: "+dir+
		" cannot be run: 8 ranks cannot share it, try a smaller --tp\n" {
		t.Errorf("8 ranks: %s%s", text, errs)
	}
	var r inspection
	text, _ = command(t, exitCheck, "model", "inspect", dir, "--format", "json")
	if err := json.Unmarshal([]byte(text), &r); err != nil || r.Rank.Fault == "" || r.Rank.Weights != 0 ||
		r.Rank.LatentToken == 0 {
		t.Errorf("%v, %+v", err, r.Rank)
	}
}
