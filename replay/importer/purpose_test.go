package importer

import (
	"fmt"
	"strings"
	"testing"
)

const (
	aSoftmax     = "void (anonymous namespace)::softmax_warp_forward<float, float, float, 11, false, false>"
	aSort        = "void at::native::sbtopk::gatherTopK<float, unsigned int, 1, false>"
	anElementary = "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float>>"
	aProduct     = "nvjet_tst_64x8"
)

// TestPurposes holds what kernels that do anybody's work are classed as, by where they
// were launched from and by their neighbours.
func TestPurposes(t *testing.T) {
	for _, c := range []struct {
		name, kernel  string
		module        string // around the launch; "": none
		frame         string
		annotation    string
		before, after string // neighbours
		class         string
	}{
		{"alone", aSoftmax, "", "", "", "", "", "softmax"},
		{"softmax in a module of attention", aSoftmax, "LlamaSdpaAttention_3", "", "", "", "", "attn.softmax"},
		{"softmax in a router", aSoftmax, "MixtralTopKRouter_1", "", "", "", "", "moe.route"},
		{"softmax in a sampler", aSoftmax, "Sampler_0", "", "", "", "", "sample"},
		{"softmax between products", aSoftmax, "", "", "", aProduct, aProduct, "attn.softmax"},
		{"softmax behind one product", aSoftmax, "", "", "", aProduct, "", "softmax"},
		{"softmax in an annotated layer", aSoftmax, "", "", "layer.3.attention", "", "", "attn.softmax"},
		{"sort in an annotated layer", aSort, "", "", "layer.3.moe", "", "", "moe.route"},
		{"sort beside experts", aSort, "", "", "", aProduct, "void vllm::moe::moe_align_block_size_kernel<int>",
			"moe.route"},
		{"sort between products", aSort, "", "", "", aProduct, aProduct, "sort"},
		{"elementwise in a norm", anElementary, "Qwen2RMSNorm_4", "", "", "", "", "norm"},
		{"elementwise in a rotation", anElementary, "Qwen2Attention_4", "modeling_qwen2.py(151): apply_rotary_pos_emb",
			"", "", "", "rope"},
		{"elementwise elsewhere", anElementary, "Qwen2Attention_4", "modeling_qwen2.py(180): forward", "", aProduct,
			aProduct, "elementwise"},
		{"a product in a norm", aProduct, "Qwen2RMSNorm_4", "", "", "", "", "gemm.bf16"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tt := &traceText{}
			at, id := int64(100), int64(0)
			add := func(kernel string) {
				id++
				tt.launch("cudaLaunchKernel", at*us, 2*us, id)
				tt.kernel(kernel, (at+5)*us, 4*us, 7, id)
				at += 20
			}
			if c.before != "" {
				add(c.before)
			}
			for cat, name := range map[string]string{"python_function": c.frame, "user_annotation": c.annotation} {
				if name != "" {
					tt.raw(fmt.Sprintf(`{"ph": "X", "cat": "%s", "name": "%s", "pid": 9, "tid": 9, "ts": %s, "dur": 10.000, "args": {}}`, cat, name, micros((at-1)*us)))
				}
			}
			if c.module != "" {
				tt.raw(fmt.Sprintf(`{"ph": "X", "cat": "python_function", "name": "nn.Module: %s", "pid": 9, "tid": 9, "ts": %s, "dur": 12.000, "args": {}}`, c.module, micros((at-2)*us)))
			}
			add(c.kernel)
			if c.after != "" {
				add(c.after)
			}
			_, rows, err := importText(t.TempDir(), tt.String())
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rows {
				if r.Kernel == c.kernel && r.Class != "host" && r.Class != c.class && r.StartNS > 0 {
					t.Errorf("class %q by %q, want %q", r.Class, r.Evidence, c.class)
				}
				if r.Kernel == c.kernel && r.Class == c.class && c.class != "softmax" &&
					(c.kernel == aSoftmax || c.kernel == aSort) && c.class != "sort" &&
					!strings.Contains(r.Evidence, "; ") {
					t.Errorf("the evidence is %q", r.Evidence)
				}
			}
		})
	}
	own := []Rule{{Pattern: "softmax_warp", Class: "mine"}}
	tt := &traceText{}
	tt.pairs(1, 1000*us)
	tt.launch("cudaLaunchKernel", 1010*us, 2*us, 77)
	tt.kernel(aSoftmax, 1015*us, 4*us, 7, 77)
	tt.launch("cudaLaunchKernel", 1020*us, 2*us, 78)
	tt.kernel(aProduct, 1025*us, 4*us, 7, 78)
	_, rows := importTorch(t, Options{Rules: own}, writeFile(t, "t.json", []byte(tt.String())))
	found := false
	for _, r := range rows {
		found = found || r.Kernel == aSoftmax && r.Class == "mine"
	}
	if !found {
		t.Error("a user's rule gave way")
	}
}
