package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"glmbatch/engine/checkpoint"
	"glmbatch/engine/glm5"
	"glmbatch/kernels"
	"glmbatch/kernels/ranks"
)

// step is a step of a model on one rank.
type step struct {
	layers, ranks, shards int
	cache                 kernels.Format
	act                   glm5.Act
	dense                 kernels.Format
	inputs                kernels.Format // of products
	batch, context        int            // sequences at a position
	prefill               int            // or rows of a prompt
	fed                   bool
}

func (s step) String() string {
	kind := fmt.Sprintf("decode of %d at %d", s.batch, s.context)
	if s.prefill > 0 {
		kind = fmt.Sprintf("prefill of %d", s.prefill)
	}
	return fmt.Sprintf("%s, %d layers, %d of %d ranks, %s caches, %s, %s", kind, s.layers, s.ranks, s.shards, s.cache,
		s.act, s.dense)
}

// glm5Step returns the calls of a step of GLM-5 and the memory of rank 0. Its weights take
// none: a recorder does not read them.
func glm5Step(t testing.TB, s step, units Units4) ([]kernels.Call, *Memory) {
	t.Helper()
	text, err := glm5.Builtin("glm-5")
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	m["num_hidden_layers"], m["num_nextn_predict_layers"] = s.layers, 0
	if text, err = json.Marshal(m); err != nil {
		t.Fatal(err)
	}
	c, err := glm5.ParseConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	ds := make([]kernels.Device, s.ranks)
	for i := range ds {
		ds[i] = &Recorder{Units4: units}
	}
	g, err := ranks.New(ds, ranks.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	ck := unread(t, text, &c)
	rows, seqs, context := s.batch, s.batch, s.context
	if s.prefill > 0 {
		rows, seqs, context = s.prefill, 1, s.prefill
	}
	per := (context + kernels.PageTokens - 1) / kernels.PageTokens
	o := glm5.Options{KVCache: s.cache, Act: s.act, Dense: s.dense, Activations: s.inputs, Shards: s.shards,
		MaxRows: rows, MaxSeqs: seqs, Context: context, Pages: max(1, min(seqs*per, 1<<20))}
	model, err := glm5.Load(t.Context(), ck, g, o)
	if err != nil {
		t.Fatal(err)
	}
	var b glm5.Batch
	greedy := kernels.Greedy()
	for i := range rows {
		pos, seq := context-1, i
		if s.prefill > 0 {
			pos, seq = i, 0
		}
		row := b.Add(1, int32(pos), int32(seq), int32((seq*per*kernels.PageTokens+pos)%(o.Pages*kernels.PageTokens)))
		if s.prefill == 0 || i == rows-1 {
			b.Logits, b.Params = append(b.Logits, row), append(b.Params, greedy)
			if s.fed {
				b.From = append(b.From, int32(i))
			}
		}
	}
	calls := slices.Clone(model.Program(&b))
	return calls, ds[0].(*Recorder).Memory()
}

// nothing is so many zeros, of which only those that are read take memory.
func nothing(bytes int64) []byte {
	zeros.Do(func() { zeros.all = make([]byte, 4<<30) })
	return zeros.all[:bytes]
}

var zeros struct {
	sync.Once
	all []byte
}

// unread is a checkpoint of NVIDIA's kind whose values nobody looks at: zeros, that the
// system has no memory for.
func unread(t testing.TB, config []byte, c *glm5.Config) *checkpoint.Checkpoint {
	t.Helper()
	var tensors []checkpoint.Tensor
	var most int64
	add := func(name string, d checkpoint.DType, bytes int64, shape ...int) {
		n := bytes
		for _, s := range shape {
			n *= int64(s)
		}
		most = max(most, n)
		tensors = append(tensors, checkpoint.Tensor{Name: name, DType: d, Shape: shape})
	}
	for w := range c.Tensors(false) {
		switch {
		case w.Part == glm5.Routed:
			add(w.Module()+".weight", checkpoint.U8, 1, w.Rows, w.Cols/2)
			add(w.Module()+".weight_scale", checkpoint.F8, 1, w.Rows, w.Cols/16)
			add(w.Module()+".weight_scale_2", checkpoint.F32, 4)
			add(w.Module()+".input_scale", checkpoint.F32, 4)
		case strings.HasSuffix(w.Name, "e_score_correction_bias"):
			add(w.Name, checkpoint.F32, 4, w.Rows)
		case w.Cols > 0:
			add(w.Name, checkpoint.BF16, 2, w.Rows, w.Cols)
		default:
			add(w.Name, checkpoint.BF16, 2, w.Rows)
		}
	}
	zeros, one := nothing(most), []byte{0, 0, 0x80, 0x3f}
	for i := range tensors {
		x := &tensors[i]
		n := map[checkpoint.DType]int64{checkpoint.U8: 1, checkpoint.F8: 1, checkpoint.F32: 4,
			checkpoint.BF16: 2}[x.DType]
		for _, s := range x.Shape {
			n *= int64(s)
		}
		if x.Data = zeros[:n:n]; len(x.Shape) == 0 {
			x.Data = one // a scale is positive
		}
	}
	ck, err := checkpoint.FromTensors("glm-5", config, tensors)
	if err != nil {
		t.Fatal(err)
	}
	return ck
}
