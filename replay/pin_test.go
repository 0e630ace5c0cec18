package replay

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"glmbatch/datasets"
	"glmbatch/datasets/demo"
	"glmbatch/engine/checkpoint"
	"glmbatch/engine/glm5"
	"glmbatch/kernels"
	"glmbatch/kernels/cpu"
	"glmbatch/kernels/ranks"
	"glmbatch/replay/timeline"
)

// model loads the demo on ranks that end with the test.
func model(t testing.TB, tp int, o glm5.Options) *glm5.Model {
	t.Helper()
	ck, err := checkpoint.FromFiles(demo.Files())
	if err != nil {
		t.Fatal(err)
	}
	devices, err := cpu.Open(tp, cpu.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	g, err := ranks.New(devices, ranks.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	m, err := glm5.Load(t.Context(), ck, g, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// ran runs a decode step of three sequences, one of them longer than the
// indexer's top-k, over made up entries, and captures it.
func ran(t testing.TB, m *glm5.Model) *Capture {
	t.Helper()
	b := glm5.Batch{}
	pages := [][]int32{{5}, {9}, {2, 11, 7}}
	for seat, pos := range []int32{12, 50, 150} {
		if err := m.SetPages(seat, pages[seat]); err != nil {
			t.Fatal(err)
		}
		row := b.Add(int32(100+seat), pos, int32(seat), pages[seat][pos/64]*64+pos%64)
		b.Logits = append(b.Logits, row)
		three := kernels.Greedy()
		three.Logprobs = 3
		b.Params = append(b.Params, three)
	}
	if err := uploadPages(m, seeded(m, 7, []PageRun{{0, 16}})); err != nil {
		t.Fatal(err)
	}
	if err := m.Upload(&b); err != nil {
		t.Fatal(err)
	}
	calls := m.Program(&b)
	spans := make([][]kernels.Span, m.Group().Ranks())
	for r := range spans {
		spans[r] = make([]kernels.Span, len(calls))
	}
	if err := m.Group().Run(calls, spans); err != nil {
		t.Fatal(err)
	}
	c, err := take(m, &Step{Sequences: 3, Batch: &b, Trace: kernels.Trace{Step: 3, Kind: kernels.Decode, Calls: calls,
		Spans: spans}},
		&CaptureOptions{KV: KVExact, Detail: DetailNone, MaxBytes: DefaultMaxBytes})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var demoOptions = glm5.Options{MaxRows: 16, MaxSeqs: 4, Pages: 16}

// With the capture's routing and selections a step has the same outcome, also
// without the calls that would have made them.
func TestPinned(t *testing.T) {
	m := model(t, 2, demoOptions)
	c := ran(t, m)
	if len(c.Selections) == 0 || !slices.ContainsFunc(c.Selections, func(o Output) bool { return o.Arg == "sel" }) {
		t.Fatal("the step selects nothing")
	}
	s, err := restore(c, m, false)
	if err != nil {
		t.Fatal(err)
	}
	pinned, err := s.pin(s.calls)
	if err != nil {
		t.Fatal(err)
	}
	less := without(without(pinned, string(kernels.Route)), string(kernels.Indexer))
	if len(less) > len(pinned)-10 {
		t.Fatalf("%d of %d calls are left", len(less), len(pinned))
	}
	// Routing as it was left by nothing: what pinned calls do not read.
	for _, name := range []string{glm5.RegionExperts, glm5.RegionSel} {
		b := m.Region(name, -1)
		if err := m.Group().Upload(b, make([]byte, b.Len)); err != nil {
			t.Fatal(err)
		}
	}
	for _, calls := range [][]kernels.Call{less, pinned} {
		if err := m.Group().Run(calls, nil); err != nil {
			t.Fatal(err)
		}
		r := newReader(m, s.calls, &s.batch)
		for _, i := range last(s.calls) {
			out, err := r.outputs(i)
			if err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(c.Outputs, func(o Output) bool { return o.Call == i })
			if string(out[0].Hash) != string(c.Outputs[at].Hash) {
				t.Errorf("%d calls: %s: %s", len(calls), out[0].what(s.calls),
					difference(s.calls[i].Kernel, &c.Outputs[at], &out[0]))
			}
		}
	}
}

// A choice outside of what there is, or experts that do not ascend, are refused.
func TestPinnedHostile(t *testing.T) {
	m := model(t, 1, demoOptions)
	c := ran(t, m)
	for _, x := range []struct {
		arg   string
		spoil func(values []int32)
	}{
		{"experts", func(v []int32) { v[1] = v[0] }},
		{"experts", func(v []int32) { v[0], v[1] = v[1], v[0] }},
		{"experts", func(v []int32) { v[0] = -1 }},
		{"sel", func(v []int32) { v[0] = math.MaxInt32 }},
	} {
		at := slices.IndexFunc(c.Selections, func(o Output) bool { return o.Arg == x.arg })
		o := &c.Selections[at]
		kept := o.Data
		values := slices.Clone(ints(kept))
		x.spoil(values)
		o.Data = nil
		for _, v := range values {
			o.Data = binary.LittleEndian.AppendUint32(o.Data, uint32(v))
		}
		s, err := restore(c, m, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.pin(s.calls); err == nil || !strings.Contains(err.Error(), "not there") {
			t.Errorf("%s %v: %v", x.arg, values[:2], err)
		}
		o.Data = kept
	}
}

// Runs that are launched ahead have the step's outcome, and each begins when the one
// before it has landed.
func TestRepeatsAhead(t *testing.T) {
	m := model(t, 2, demoOptions)
	c := ran(t, m)
	s, err := restore(c, m, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, ahead := range []int{0, kernels.MaxAhead - 1} {
		clear(s.sampled)
		rows, err := s.inPlace(s.calls, 1, 3, ahead)
		if err != nil {
			t.Fatal(err)
		}
		var steps []datasets.Span
		for _, r := range rows {
			if r.Kernel == c.Kind {
				steps = append(steps, r)
			}
		}
		if len(steps) != 3 || len(rows) < 3*2*len(s.calls) {
			t.Fatalf("%d ahead: %d steps in %d rows", ahead, len(steps), len(rows))
		}
		for i, x := range steps {
			if x.Step != int64(i) || x.EndNS <= x.StartNS || i > 0 && ahead > 0 && x.StartNS != steps[i-1].EndNS {
				t.Errorf("%d ahead: step %d from %d to %d", ahead, x.Step, x.StartNS, x.EndNS)
			}
		}
		want := s.tokens()
		if got, err := s.fetch(); err != nil || !slices.Equal(got, want) {
			t.Errorf("%d ahead: tokens %v, then %v: %v", ahead, want, got, err)
		}
	}
}

// A copy of the pool costs in proportion to the pool and changes the logits by no
// more than BF16 rounds.
func TestCastPool(t *testing.T) {
	o := demoOptions
	o.KVCache = kernels.FP8
	c := ran(t, model(t, 2, o))
	var bytes []int64
	for _, pages := range []int{16, 64} {
		o.Pages = pages
		m := model(t, 2, o)
		s, err := restore(c, m, false)
		if err != nil {
			t.Fatal(err)
		}
		calls, err := s.withCast(s.calls, s.slots(CastPool))
		if err != nil {
			t.Fatal(err)
		}
		var cost int64
		copies := 0
		for i := range calls {
			if classOf(&calls[i]) == string(kernels.CacheCast) {
				copies++
				cost += calls[i].Cost(0).HBM
				if n := calls[i].Dims.Slots; n != int64(pages)*kernels.PageTokens {
					t.Errorf("%d slots of %d pages", n, pages)
				}
			}
		}
		if copies != m.Config.Layers || len(calls) != len(s.calls)+copies {
			t.Errorf("%d copies in %d calls, %d layers in %d", copies, len(calls), m.Config.Layers, len(s.calls))
		}
		bytes = append(bytes, cost)
		if err := m.Group().Run(calls, nil); err != nil {
			t.Fatal(err)
		}
		sameLogits(t, s, c, 0.02)
		sameCopy(t, s, calls)
	}
	if bytes[1] != 4*bytes[0] {
		t.Errorf("bytes of pools of 16 and 64 pages are %v", bytes)
	}
	m := model(t, 2, o)
	s, err := restore(c, m, true)
	if err != nil {
		t.Fatal(err)
	}
	if n := s.slots(CastActive); n != 5*kernels.PageTokens { // pages 2, 5, 7, 9, 11
		t.Errorf("%d slots are active", n)
	}
	calls, err := s.withCast(s.calls, s.slots(CastActive))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Group().Run(calls, nil); err != nil {
		t.Fatal(err)
	}
	sameLogits(t, s, c, 0.02)
	if _, err := s.withCast(without(s.calls, string(kernels.Attention)), 64); err == nil {
		t.Error("a step without attention was given copies")
	}
}

// sameCopy compares what the last layer's copy left with entries that were
// converted one by one.
func sameCopy(t *testing.T, s *restored, calls []kernels.Call) {
	t.Helper()
	layer := s.m.Config.Layers - 1
	at := slices.IndexFunc(calls, func(c kernels.Call) bool {
		return classOf(&c) == string(kernels.CacheCast) && int(c.Layer) == layer
	})
	f := layoutOf(s.m, glm5.RegionLatent, kernels.FP8)
	run := PageRun{11, 1} // of a sequence
	from := Pages{glm5.RegionLatent, layer, run, make([]byte, f.page())}
	if err := s.m.Group().Download(0, from.Data, calls[at].Args[0].Slice(int64(11*f.page()),
		int64(f.page()))); err != nil {
		t.Fatal(err)
	}
	want, err := converted(s.m, []Pages{from}, kernels.FP8, kernels.BF16)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want[0].Data))
	if err := s.m.Group().Download(0, got, calls[at].Args[1].Slice(int64(11*len(got)), int64(len(got)))); err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want[0].Data) {
		t.Error("the copy of page 11 differs from its entries")
	}
}

// sameLogits compares the logits on the device with the capture's, relative to
// their largest.
func sameLogits(t *testing.T, s *restored, c *Capture, limit float64) {
	t.Helper()
	i := last(s.calls)[0]
	out, err := newReader(s.m, s.calls, &s.batch).outputs(i)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(c.Outputs, func(o Output) bool { return o.Call == i })
	worst, size := 0.0, 0.0
	for j := 0; j < len(out[0].Data); j += 4 {
		a, b := float64(float32At(c.Outputs[at].Data, j)), float64(float32At(out[0].Data, j))
		worst, size = max(worst, math.Abs(a-b)), max(size, math.Abs(a))
	}
	if size == 0 || worst > limit*size {
		t.Errorf("logits are off by %.3g of %.3g", worst, size)
	}
	t.Logf("logits off by %.3g of %.3g", worst, size)
}

// A step over the cache in another format is nearly the same; over the same bits
// in another place it is the same.
func TestConvertedAndMoved(t *testing.T) {
	o := demoOptions
	o.KVCache = kernels.F32
	c := ran(t, model(t, 1, o))
	for _, f := range []kernels.Format{kernels.F32, kernels.BF16, kernels.FP8} {
		o := o
		o.KVCache = f
		m := model(t, 1, o)
		s, err := restore(c, m, true)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Group().Run(s.calls, nil); err != nil {
			t.Fatal(err)
		}
		sameLogits(t, s, c, map[kernels.Format]float64{kernels.F32: 0, kernels.BF16: 0.05, kernels.FP8: 0.3}[f])
	}
}

func TestScaled(t *testing.T) {
	rows := []datasets.Span{
		{Rank: -1, Lane: timeline.LaneHost, Call: -1, Kernel: "decode", Class: "host", Evidence: timeline.RoleStep,
			StartNS: 0, EndNS: 100},
		{Rank: 0, Lane: "device", Call: 0, Class: "gemm.bf16", StartNS: 10, EndNS: 30},
		{Rank: 1, Lane: "device", Call: 0, Class: "gemm.bf16", StartNS: 10, EndNS: 20},
		{Rank: 0, Lane: "device", Call: 1, Class: "comm", StartNS: 32, EndNS: 40},
		{Rank: 1, Lane: "device", Call: 1, Class: "comm", StartNS: 22, EndNS: 40}, // waits for rank 0
		{Rank: 0, Lane: "device", Call: 2, Class: "attn", StartNS: 41, EndNS: 80},
		{Rank: 1, Lane: "device", Call: 2, Class: "attn", StartNS: 41, EndNS: 81},
		{Rank: -1, Lane: timeline.LaneHost, Call: -1, Kernel: "sample", Class: "host", StartNS: 85, EndNS: 100},
	}
	got := scaled(rows, "gemm.bf16", 0.5)
	want := [][2]int64{{0, 90}, {10, 20}, {10, 15}, {22, 30}, {17, 30}, {31, 70}, {31, 71}, {75, 90}}
	for i, w := range want {
		if got[i].StartNS != w[0] || got[i].EndNS != w[1] {
			t.Errorf("row %d is %d to %d, want %d to %d", i, got[i].StartNS, got[i].EndNS, w[0], w[1])
		}
	}
	for i, r := range scaled(rows, "moe.route", 3) {
		if r != rows[i] {
			t.Errorf("row %d changed", i)
		}
	}
}

func TestSelectors(t *testing.T) {
	for s, want := range map[string][]int64{
		"every=3": {0, 3, 6, 9}, "step=4": {4}, "first=2": {0, 1}, "decode:every=2": {1, 5,
			9}, "mixed:first=9": nil, "prefill:first=9": {0, 2, 4, 6, 8},
		"slowest=1": {0, 1, 2, 3, 4, 9},
	} {
		x, err := ParseSelectors(s)
		if err != nil || len(x) != 1 || x[0].String() != s {
			t.Fatalf("%s: %v, %v", s, x, err)
		}
		w := watch{Selector: x[0]}
		var got []int64
		for step := range int64(10) {
			kind, wall := []string{"prefill", "decode"}[step%2], []int64{1, 2, 3, 4, 5, 1, 1, 1, 5, 6}[step]
			if w.wants(step, kind, wall) {
				got = append(got, step)
				w.keep(step, wall)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s takes %v, want %v", s, got, want)
		}
	}
	for _, s := range []string{"", "every", "every=", "every=0", "every=-1", "every=x", "often=3", "decod:every=3",
		"decode:step=3", "slowest=99999999", "step=-1", "every=2,first", "decode:"} {
		if _, err := ParseSelectors(s); err == nil {
			t.Errorf("%q was taken", s)
		}
	}
}

func TestParseWhatIf(t *testing.T) {
	for _, s := range []string{"kv=cast-pool", "kv=cast-active", "kv=in-place", "kv-cache=fp8", "drop=gemm.bf16",
		"scale=attn:0.5", "tp=4"} {
		if w, err := ParseWhatIf(s); err != nil || w.String() != s {
			t.Errorf("%s: %v, %v", s, w, err)
		}
	}
	for _, s := range []string{"", "kv", "kv=cast", "kv-cache=fp4", "drop=gemm", "drop=", "scale=attn", "scale=attn:-1",
		"scale=attn:NaN", "scale=attn:Inf", "scale=x:1", "tp=0", "tp=x", "speed=2"} {
		if _, err := ParseWhatIf(s); err == nil {
			t.Errorf("%q was taken", s)
		}
	}
}

// The estimate that is held against the cap is near the file's size.
func TestEstimate(t *testing.T) {
	for _, tp := range []int{1, 8} {
		m := model(t, tp, demoOptions)
		c := ran(t, m)
		path := filepath.Join(t.TempDir(), FileName(c.Step))
		if err := c.Write(path); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if e, n := c.estimate(m), info.Size(); e < n*7/10 || e > n*15/10 {
			t.Errorf("%d ranks: %d bytes were estimated, the file has %d", tp, e, n)
		} else {
			t.Logf("%d ranks: %d estimated, %d written", tp, e, n)
		}
	}
}
