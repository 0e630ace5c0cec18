package glm5_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"glmbatch/datasets/demo"
	"glmbatch/engine/checkpoint"
	"glmbatch/engine/glm5"
	"glmbatch/kernels"
	"glmbatch/kernels/cpu"
	"glmbatch/kernels/ranks"
)

// loadWith loads the demo with some of its files changed.
func loadWith(t *testing.T, tp int, memory int64, o glm5.Options, edit func(files map[string][]byte)) error {
	t.Helper()
	return loadUntil(t, t.Context(), tp, memory, o, edit)
}

func loadUntil(t *testing.T, ctx context.Context, tp int, memory int64, o glm5.Options,
	edit func(files map[string][]byte)) error {
	t.Helper()
	files := maps.Clone(demo.Files())
	if edit != nil {
		edit(files)
	}
	ck, err := checkpoint.FromFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	devices, err := cpu.Open(tp, cpu.Options{Memory: memory})
	if err != nil {
		t.Fatal(err)
	}
	g, err := ranks.New(devices, ranks.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	_, err = glm5.Load(ctx, ck, g, o)
	return err
}

func config(from, to string) func(map[string][]byte) {
	return func(files map[string][]byte) {
		files["config.json"] = bytes.Replace(files["config.json"], []byte(from), []byte(to), 1)
	}
}

// rename gives a tensor another name of the same length.
func rename(from, to string) func(map[string][]byte) {
	return func(files map[string][]byte) {
		files["model.safetensors"] = bytes.Replace(files["model.safetensors"], []byte(`"`+from+`"`),
			[]byte(`"`+to+`"`), 1)
	}
}

func TestLoadNamesWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		name string
		tp   int
		o    glm5.Options
		edit func(map[string][]byte)
		want []string // words of the error
	}{
		{name: "ranks", tp: 3, want: []string{"tensor parallelism 3"}},
		{name: "shards", tp: 2, o: glm5.Options{Shards: 1}, want: []string{"in 1 parts for 2 ranks"}},
		{name: "odd shards", tp: 1, o: glm5.Options{Shards: 5}, want: []string{"5 is not supported"}},
		{name: "options", tp: 1, o: glm5.Options{KVCache: "fp4", Act: "w1a1", Context: 4096},
			want: []string{"fp4", "w1a1", "Context 4096"}},
		{name: "missing weight", tp: 2, edit: rename("model.layers.3.self_attn.o_proj.weight",
			"model.layers.3.self_attn.x_proj.weight"),
			want: []string{"layers.3", "self_attn.o_proj", "not in the checkpoint"}},
		{name: "missing vector", tp: 1, edit: rename("model.norm.weight", "model.nurm.weight"),
			want: []string{"model.norm.weight", "not in the checkpoint"}},
		{name: "missing expert", tp: 1, edit: rename("model.layers.2.mlp.experts.7.up_proj.weight",
			"model.layers.2.mlp.experts.7.xp_proj.weight"),
			want: []string{"layers.2", "experts.7.up_proj"}},
		{name: "shape", tp: 1, edit: config(`"q_lora_rank": 128`, `"q_lora_rank": 256`),
			want: []string{"config.json says"}},
		{name: "vector's length", tp: 1, edit: config(`"index_head_dim": 32`, `"index_head_dim": 64`),
			want: []string{"config.json says"}},
		{name: "experts", tp: 1, edit: config(`"n_routed_experts": 16`, `"n_routed_experts": 20`),
			want: []string{"60 weights are not in the checkpoint"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tp := c.tp
			err := loadWith(t, tp, 0, c.o, c.edit)
			if err == nil {
				t.Fatal("loaded")
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
		})
	}
}

// A config may ask for more than there is, whatever the size of its files.
func TestLoadOutOfMemory(t *testing.T) {
	for _, c := range []struct {
		name string
		o    glm5.Options
		edit func(map[string][]byte)
	}{
		{"weights", glm5.Options{}, func(map[string][]byte) {}},
		{"cache", glm5.Options{Pages: 1 << 20}, nil},
		{"rows", glm5.Options{MaxRows: 1 << 19}, nil},
		{"context", glm5.Options{}, config(`"max_position_embeddings": 2048`, `"max_position_embeddings": 16777216`)},
	} {
		memory := int64(200 << 20)
		if c.name == "weights" {
			memory = 1 << 20
		}
		if err := loadWith(t, 1, memory, c.o, c.edit); !errors.Is(err, kernels.ErrMemory) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// looked is a context that ends after some looks at it.
type looked struct {
	context.Context
	left int
}

func (l *looked) Err() error {
	if l.left--; l.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestLoadEnds: a model of many layers need not be there first.
func TestLoadEnds(t *testing.T) {
	for _, layers := range []int{0, 3} {
		if err := loadUntil(t, &looked{t.Context(), layers}, 2, 0, glm5.Options{}, nil); !errors.Is(err,
			context.Canceled) {
			t.Errorf("after %d layers: %v", layers, err)
		}
	}
}

// TestLatentEps: the option is the epsilon of both latent norms of every layer, and of
// no other.
func TestLatentEps(t *testing.T) {
	ck, err := checkpoint.FromFiles(demo.Files())
	if err != nil {
		t.Fatal(err)
	}
	devices, err := cpu.Open(1, cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := ranks.New(devices, ranks.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	for _, c := range []struct{ option, want float32 }{{0, glm5.DefaultLatentEps}, {3e-5, 3e-5}} {
		m, err := glm5.Load(t.Context(), ck, g, glm5.Options{MaxRows: 8, MaxSeqs: 1, Context: 64, LatentEps: c.option})
		if err != nil {
			t.Fatal(err)
		}
		b := &glm5.Batch{}
		b.Add(1, 0, 0, 0)
		latent := 0
		for _, call := range m.Program(b) {
			of := strings.HasPrefix(string(call.Kernel), "latent_write") || call.Kernel == "rms_norm" &&
				call.Dims.K == int32(m.Config.QLoRA)
			if of {
				latent++
			}
			if of && call.Scalars[0] != c.want || call.Kernel == "add_norm" && call.Scalars[0] != m.Config.NormEps {
				t.Errorf("option %g: %s of layer %d has %g", c.option, call.Kernel, call.Layer, call.Scalars[0])
			}
		}
		if latent != 2*m.Config.Layers {
			t.Errorf("%d latent norms in %d layers", latent, m.Config.Layers)
		}
	}
	for _, eps := range []float32{-1e-6, 1} {
		if err := loadWith(t, 1, 0, glm5.Options{LatentEps: eps}, nil); err == nil ||
			!strings.Contains(err.Error(), "epsilon") {
			t.Errorf("epsilon %g: %v", eps, err)
		}
	}
}
