package engine_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"glmbatch/engine"
	"glmbatch/engine/checkpoint"
	"glmbatch/engine/glm5"
	"glmbatch/kernels"
	"glmbatch/kernels/cpu"
	"glmbatch/kernels/ranks"
	"glmbatch/kernels/roofline"
)

// decoding starts so many sequences and steps until all of them decode.
func decoding(b *testing.B, m *glm5.Model, seqs, tokens int, o engine.Options) *engine.Engine {
	kind, observe := "", o.OnStep
	o.OnStep = func(s engine.StepInfo) {
		kind = s.Kind
		if observe != nil {
			observe(s)
		}
	}
	e, err := engine.New(m, o)
	if err != nil {
		b.Fatal(err)
	}
	for id := range seqs {
		prompt := make([]int32, 40)
		for i := range prompt {
			prompt[i] = int32(i+id) % 2000
		}
		if err := e.Add(engine.Request{ID: int64(id), Prompt: prompt,
			Sampling: engine.Sampling{MaxTokens: tokens, IgnoreEOS: true}}); err != nil {
			b.Fatal(err)
		}
	}
	for kind != "decode" || e.Stats().Running < seqs {
		step(b, e)
	}
	return e
}

func step(b *testing.B, e *engine.Engine) {
	if _, err := e.Step(); err != nil {
		b.Fatal(err)
	}
}

// Steps of the demo model that decode, by ranks and sequences. The phases are
// those of kernels.Times.
func BenchmarkDecode(b *testing.B) {
	for _, tp := range []int{1, 8} {
		for _, seqs := range []int{1, 64} {
			b.Run(fmt.Sprintf("tp%d/seqs%d", tp, seqs), func(b *testing.B) {
				m := load(b, tp, 0, glm5.Options{MaxRows: 512, MaxSeqs: seqs, Context: 256, Pages: 256})
				var sum struct{ schedule, upload, sample int64 }
				o := engine.Options{OnStep: func(s engine.StepInfo) {
					sum.schedule += s.Times.Schedule.NS()
					sum.upload += s.Times.Upload.NS()
					sum.sample += s.Times.Sample.NS()
				}}
				var e *engine.Engine
				const tokens, steps = 200, 150 // the first sequence has begun some steps before the last
				n := 0
				for b.Loop() {
					if n%steps == 0 {
						b.StopTimer()
						before := sum
						e = decoding(b, m, seqs, tokens, o)
						sum = before
						b.StartTimer()
					}
					step(b, e)
					n++
				}
				each := float64(n) * 1000
				b.ReportMetric(float64(sum.schedule)/each, "schedule-µs")
				b.ReportMetric(float64(sum.upload)/each, "upload-µs")
				b.ReportMetric(float64(sum.sample)/each, "sample-µs")
			})
		}
	}
}

// BenchmarkBandwidth decodes one sequence with a model of about 1 B parameters
// and compares the bytes that a step must read in the median step's time with
// what plain reads reach in this process.
func BenchmarkBandwidth(b *testing.B) {
	ck := billion(b)
	for _, tp := range []int{1, 2, 8} {
		b.Run(fmt.Sprintf("tp%d", tp), func(b *testing.B) {
			devices, err := cpu.Open(tp, cpu.Options{})
			if err != nil {
				b.Fatal(err)
			}
			g, err := ranks.New(devices, ranks.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer g.Close()
			start := kernels.Now()
			m, err := glm5.Load(b.Context(), ck, g, glm5.Options{MaxRows: 64, MaxSeqs: 1, Context: 2048, Pages: 32})
			if err != nil {
				b.Fatal(err)
			}
			loading := kernels.Now() - start
			var bytes int64
			var times []int64
			const traced = 10 // a step that decodes
			read := roofline.Measure(0).Read
			e := decoding(b, m, 1, 2000, engine.Options{
				Trace:   func(step int64, _ string) bool { return step == traced },
				OnTrace: func(t kernels.Trace) { bytes = work(t, tp) },
				OnStep:  func(s engine.StepInfo) { times = append(times, s.Times.Wall.NS()) },
			})
			for len(times) <= traced {
				step(b, e)
			}
			times = times[:0]
			for b.Loop() {
				step(b, e)
			}
			read = max(read, roofline.Measure(0).Read)
			slices.Sort(times)
			rate := float64(bytes) / float64(times[len(times)/2])
			b.ReportMetric(float64(bytes)/1e6, "MB/step")
			b.ReportMetric(rate, "GB/s")
			b.ReportMetric(float64(read)/1e9, "read-GB/s")
			b.ReportMetric(rate/(float64(read)/1e9), "of-read")
			b.ReportMetric(float64(loading)/1e9, "load-s")
		})
	}
}

// work is the bytes that a step's calls must move on all ranks.
func work(t kernels.Trace, tp int) int64 {
	var n int64
	for i := range t.Calls {
		c := &t.Calls[i]
		bytes := c.Cost(t.Spans[0][i].Groups).HBM
		if !c.Replicated {
			bytes *= int64(tp)
		}
		n += bytes
	}
	return n
}

// billion is GLM-5 with hidden size 1536, 16 layers and 64 experts of which a
// token uses 8: BF16 with NVFP4 experts. All weights are views of one random block.
func billion(b *testing.B) *checkpoint.Checkpoint {
	text, err := glm5.Builtin("glm-5")
	if err != nil {
		b.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		b.Fatal(err)
	}
	for k, v := range map[string]int{"num_hidden_layers": 16, "hidden_size": 1536, "n_routed_experts": 64,
		"num_attention_heads": 16,
		"num_key_value_heads": 16, "vocab_size": 32768, "moe_intermediate_size": 128, "intermediate_size": 4096,
		"q_lora_rank":  768,
		"eos_token_id": 32767, "pad_token_id": 32767} {
		fields[k] = v
	}
	if text, err = json.Marshal(fields); err != nil {
		b.Fatal(err)
	}
	c, err := glm5.ParseConfig(text)
	if err != nil {
		b.Fatal(err)
	}
	// BF16 values of magnitude 2^-6 to 2^-4; as NVFP4 they are any codes.
	random, rng := make([]byte, 128<<20), rand.New(rand.NewPCG(1, 1))
	for i := 0; i < len(random); i += 2 {
		v := rng.Uint32()
		random[i], random[i+1] = byte(v), byte(v>>8)&0x80|0x3c|byte(v>>16)&1
	}
	scales := slices.Repeat([]byte{0x30}, 1<<20) // 0.5
	var ts []checkpoint.Tensor
	add := func(name string, d checkpoint.DType, data []byte, shape ...int) {
		ts = append(ts, checkpoint.Tensor{Name: name, DType: d, Shape: shape, Data: data})
	}
	at := 0
	for t := range c.Tensors(true) {
		at = (at + 4096) % (16 << 20)
		switch {
		case t.Part == glm5.Routed && !t.MTP:
			add(t.Name, checkpoint.U8, random[at:][:t.Params()/2], t.Rows, t.Cols/2)
			add(t.Module()+".weight_scale", checkpoint.F8, scales[:t.Params()/16], t.Rows, t.Cols/16)
			add(t.Module()+".weight_scale_2", checkpoint.F32, float32Bytes(.02))
		case t.Cols == 0 && t.Part == glm5.Router:
			add(t.Name, checkpoint.F32, make([]byte, 4*t.Rows), t.Rows)
		case t.Cols == 0:
			add(t.Name, checkpoint.BF16, slices.Repeat([]byte{0x80, 0x3f}, t.Rows), t.Rows) // 1
		default:
			add(t.Name, checkpoint.BF16, random[at:][:2*t.Params()], t.Rows, t.Cols)
		}
	}
	ck, err := checkpoint.FromTensors("about 1 B parameters", text, ts)
	if err != nil {
		b.Fatal(err)
	}
	return ck
}

func float32Bytes(v float32) []byte {
	n := math.Float32bits(v)
	return []byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)}
}
