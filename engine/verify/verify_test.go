package verify

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"glmbatch/datasets/demo"
	"glmbatch/engine/checkpoint"
	"glmbatch/engine/glm5"
	"glmbatch/kernels"
	"glmbatch/kernels/cpu"
	"glmbatch/kernels/ranks"
)

func opener(tp int) func() (*ranks.Group, error) {
	return func() (*ranks.Group, error) {
		devices, err := cpu.Open(tp, cpu.Options{})
		if err != nil {
			return nil, err
		}
		return ranks.New(devices, ranks.Options{})
	}
}

// check verifies and fails on what is out of tolerance. most bounds the logits'
// difference further, 0: not.
func check(t *testing.T, ck *checkpoint.Checkpoint, want *Expected, tp int, o Options, most float64) *Report {
	t.Helper()
	r, err := Run(t.Context(), ck, want, opener(tp), o)
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK() || most > 0 && !(r.Worst() <= most) {
		t.Errorf("out of tolerance (at most %g):\n%v", most, r)
	}
	return r
}

// Small random checkpoints of every kind against the plain reference.
func TestSyntheticCheckpoints(t *testing.T) {
	for _, s := range synthetics {
		t.Run(s.name, func(t *testing.T) {
			ck, want := s.settled(t)
			for _, c := range []struct {
				layout glm5.Layout
				tp     int
			}{{glm5.Latency, 1}, {glm5.Latency, 8}, {glm5.Throughput, 2}, {glm5.Throughput, 8}} {
				r := check(t, ck, want, c.tp, Options{Layout: c.layout}, 1e-4)
				compared := r.Prompts[2]
				if compared.Routes.Total == 0 || compared.Selections.Total == 0 || compared.Greedy == 0 ||
					compared.HiddenLayer < 0 ||
					(compared.MTPTokens > 0) != (s.config["num_nextn_predict_layers"] == 1) {
					t.Errorf("%+v: not all was compared: %+v", c, compared)
				}
			}
			// What caches round away is small where no choice has tipped over.
			for f, most := range map[kernels.Format]float64{kernels.BF16: 0.1, kernels.FP8: 1} {
				r, err := Run(t.Context(), ck, want, opener(2), Options{KVCache: f})
				if err != nil {
					t.Errorf("cache %s: %v", f, err)
					continue
				}
				settled := 0.0
				for _, p := range r.Prompts {
					settled = larger(settled, p.SettledLogits)
				}
				t.Logf("cache %s: settled logits differ by %.2g", f, settled)
				if !(settled > 1e-4 && settled < most) {
					t.Errorf("cache %s: settled logits differ by %g, at most %g:\n%v", f, settled, most, r)
				}
			}
		})
	}
}

// settled returns a checkpoint of the first seed whose choices are not near ties.
func (s *synthetic) settled(t *testing.T) (*checkpoint.Checkpoint, *Expected) {
	t.Helper()
	for seed := range uint64(50) {
		ck, err := checkpoint.FromFiles(s.files(t, seed))
		if err != nil {
			t.Fatal(err)
		}
		m := newReference(t, ck)
		r := rand.New(rand.NewPCG(seed, 1))
		var prompts [][]int32
		for _, n := range []int{1, 5, 12} {
			ids := make([]int32, n)
			for i := range ids {
				ids[i] = r.Int32N(int32(m.c.Vocab))
			}
			prompts = append(prompts, ids)
		}
		b := m.expected(prompts, 3)
		if m.closest < 2e-5 {
			continue
		}
		want, err := Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return ck, want
	}
	t.Fatal("every seed has near ties")
	return nil, nil
}

// untar reads a compressed case of testdata.
func untar(t *testing.T, path string) map[string][]byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

// The reference implementation's outputs for a checkpoint with NVFP4 experts,
// and the slow reference of these tests against them.
func TestNVFP4Golden(t *testing.T) {
	files := untar(t, filepath.Join("testdata", "nvfp4.tar.gz"))
	ck, err := checkpoint.FromFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Read(files["expected.safetensors"])
	if err != nil {
		t.Fatal(err)
	}
	for _, tp := range []int{1, 2, 8} {
		check(t, ck, want, tp, Options{}, 1e-4)
		check(t, ck, want, tp, Options{Act: glm5.W4A4}, 1e-4)
	}
	if r := check(t, ck, want, 1, Options{Act: glm5.W4A8}, 0); !(r.Worst() > 1e-3) {
		t.Errorf("8-bit activations differ by %g only: are they rounded?", r.Worst())
	}
	m := newReference(t, ck)
	ids, _, err := want.ints(1, "input_ids")
	if err != nil {
		t.Fatal(err)
	}
	logits, _ := m.forward(ids)
	golden, err := want.floats(1, "logits", len(ids)*m.c.Vocab)
	if err != nil {
		t.Fatal(err)
	}
	if d := maxDiff(narrow(logits), golden); !(d < 1e-4) {
		t.Errorf("the slow reference differs from the golden file by %g", d)
	}
}

// The demo model, its greedy tokens and its prediction layer.
func TestDemoGolden(t *testing.T) {
	ck, err := checkpoint.FromFiles(demo.Files())
	if err != nil {
		t.Fatal(err)
	}
	want, err := Open(filepath.Join("testdata", "demo.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range glm5.Layouts {
		r := check(t, ck, want, 8, Options{Layout: l}, 1e-4)
		for _, p := range r.Prompts {
			if p.Greedy == 0 || p.MTPTokens == 0 || p.MTP > 1e-4 {
				t.Errorf("%s: %+v", l, p)
			}
		}
	}
}

// All cases of a folder that GLMBATCH_TESTDATA names.
func TestAllGolden(t *testing.T) {
	root := os.Getenv("GLMBATCH_TESTDATA")
	if root == "" {
		t.Skip("GLMBATCH_TESTDATA is not set")
	}
	for _, c := range []struct{ expected, model string }{
		{"golden/base", "golden/base"}, {"golden/groups", "golden/groups"}, {"golden/shared-index",
			"golden/shared-index"},
		{"golden/nvfp4", "golden/nvfp4"}, {"golden/tiny", "models/tiny-glm5-nvfp4"},
	} {
		for i := range 6 {
			tp, layout := []int{1, 2, 8}[i/2], glm5.Layouts[i%2]
			t.Run(fmt.Sprintf("%s/tp%d/%s", filepath.Base(c.expected), tp, layout), func(t *testing.T) {
				ck, err := checkpoint.Open(filepath.Join(root, c.model))
				if err != nil {
					t.Fatal(err)
				}
				defer ck.Close()
				want, err := Open(filepath.Join(root, c.expected, "expected.safetensors"))
				if err != nil {
					t.Fatal(err)
				}
				t.Log(check(t, ck, want, tp, Options{Layout: layout}, 1e-4))
			})
		}
	}
}

// A model that computes something else is found out.
func TestDamageIsFound(t *testing.T) {
	s := synthetics[0]
	_, want := s.settled(t)
	other := s.files(t, 999)
	ck, err := checkpoint.FromFiles(other)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), ck, want, opener(1), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.OK() || len(r.Prompts) != 3 {
		t.Errorf("another checkpoint passes:\n%v", r)
	}
	if _, err := Read([]byte("no")); err == nil {
		t.Error("a file that is none is read")
	}
	if _, err := Read(pack(map[string]entry{"x": i32Entry([]int32{1}, 1)})); err == nil {
		t.Error("a file without prompts is read")
	}
	bad, err := Read(pack(map[string]entry{"p0.input_ids": i32Entry([]int32{1, 96}, 2)}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), ck, bad, opener(1), Options{}); err == nil {
		t.Error("a token that the vocabulary lacks is accepted")
	}
}
