package replay_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"glmbatch/datasets"
	"glmbatch/datasets/demo"
	"glmbatch/engine"
	"glmbatch/engine/checkpoint"
	"glmbatch/engine/glm5"
	"glmbatch/kernels"
	"glmbatch/kernels/cpu"
	"glmbatch/kernels/ranks"
	"glmbatch/replay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// loader loads the demo model, one at a time.
type loader struct {
	t  testing.TB
	ck *checkpoint.Checkpoint
	g  *ranks.Group
}

func newLoader(t testing.TB) *loader {
	t.Helper()
	ck, err := checkpoint.FromFiles(demo.Files())
	if err != nil {
		t.Fatal(err)
	}
	l := &loader{t: t, ck: ck}
	t.Cleanup(l.close)
	return l
}

func (l *loader) close() {
	if l.g != nil {
		if err := l.g.Close(); err != nil {
			l.t.Error(err)
		}
	}
	l.g = nil
}

func (l *loader) load(o glm5.Options, n int) (*glm5.Model, error) {
	l.close()
	devices, err := cpu.Open(n, cpu.Options{Threads: 2, Memory: 2 << 30})
	if err != nil {
		return nil, err
	}
	if l.g, err = ranks.New(devices, ranks.Options{}); err != nil {
		return nil, err
	}
	return glm5.Load(context.Background(), l.ck, l.g, o)
}

func (l *loader) hash() string {
	h, err := l.ck.Hash()
	if err != nil {
		l.t.Fatal(err)
	}
	return h
}

// small is a model that tests load often.
var small = glm5.Options{MaxRows: 128, MaxSeqs: 8, Pages: 64}

// job runs a few requests on the demo model and captures steps of it. It returns
// the tokens of each request.
func job(t testing.TB, l *loader, tp int, o glm5.Options, c replay.CaptureOptions) (map[int64][]int32, replay.Counts) {
	t.Helper()
	var rs []engine.Request
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 5 {
		q := engine.Request{ID: int64(i), Prompt: make([]int32, []int{20, 150, 70, 5, 90}[i]),
			Sampling: engine.Sampling{MaxTokens: 6, Seed: uint64(i), IgnoreEOS: true, Logprobs: i % 3}}
		for j := range q.Prompt {
			q.Prompt[j] = r.Int32N(2048)
		}
		if i%2 == 1 {
			q.Sampling.Temperature, q.Sampling.Repetition = 0.8, 1.2
		}
		switch i {
		case 0:
			q.Sampling.Presence, q.Sampling.Labels = 1.5, []int32{7, 8}
		case 1:
			q.Sampling.Allowed, q.Sampling.Frequency = []int32{5, 50, 500, 501, 502}, .5
		case 2:
			q.Sampling.Bias, q.Sampling.BadWords = []engine.Bias{{Token: 9, Gain: 30}}, [][]int32{{9, 9}}
		case 3:
			q.Guide = &odd{}
		case 4:
			q.Sampling.PromptLogprobs = 2
		}
		rs = append(rs, q)
	}
	return jobOf(t, l, tp, o, c, rs)
}

// odd is a guide that allows odd tokens.
type odd struct{ drafts []int32 }

func (o *odd) Ask(drafts ...int32) { o.drafts = drafts }
func (*odd) Add(...int32)          {}
func (*odd) Close()                {}

func (o *odd) May() (n int) {
	for n < len(o.drafts) && o.drafts[n]%2 == 1 {
		n++
	}
	return n
}

func (*odd) Mask(_ int, words []uint64) (bool, error) {
	for i := range words {
		words[i] = 0xaaaaaaaaaaaaaaaa
	}
	return true, nil
}

func jobOf(t testing.TB, l *loader, tp int, o glm5.Options, c replay.CaptureOptions,
	rs []engine.Request) (map[int64][]int32, replay.Counts) {
	t.Helper()
	m, err := l.load(o, tp)
	if err != nil {
		t.Fatal(err)
	}
	opt := engine.Options{MaxBatchTokens: 100, Speculate: engine.Speculation{Drafts: o.Drafts}}
	var capturer *replay.Capturer
	if c.Selectors != nil {
		c.Model, c.Hash = "demo", l.hash()
		if capturer, err = replay.NewCapturer(m, c); err != nil {
			t.Fatal(err)
		}
		if capturer.Attach(&opt); opt.Alone != nil {
			opt.Ahead = kernels.MaxAhead
		}
	}
	e, err := engine.New(m, opt)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range rs {
		if err := e.Add(q); err != nil {
			t.Fatal(err)
		}
	}
	got := map[int64][]int32{}
	for !e.Idle() {
		tokens, err := e.Step()
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range tokens {
			got[k.ID] = append(got[k.ID], k.Token)
		}
	}
	var n replay.Counts
	if capturer != nil {
		n = capturer.Close()
	}
	return got, n
}

func selectors(t testing.TB, s string) []replay.Selector {
	t.Helper()
	x, err := replay.ParseSelectors(s)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// captured runs a job and returns the files of its captures.
func captured(t testing.TB, l *loader, tp int, o glm5.Options, steps string, c replay.CaptureOptions) []string {
	t.Helper()
	c.Dir, c.Selectors = filepath.Join(t.TempDir(), "captures"), selectors(t, steps)
	_, n := job(t, l, tp, o, c)
	if n.Failed > 0 {
		t.Fatalf("%d captures failed: %v", n.Failed, n.Last)
	}
	files, err := filepath.Glob(filepath.Join(c.Dir, "step-*.arrow"))
	if err != nil || len(files) == 0 || len(files) != n.Written {
		t.Fatalf("%d files, %d written, %d skipped: %v", len(files), n.Written, n.Skipped, err)
	}
	return files
}

// quick measures as little as can be.
func quick(l *loader) replay.Options {
	return replay.Options{Repeat: 2, Warmup: 1, NoAlone: true, NoMarginal: true, Hash: l.hash()}
}

// Steps of every kind, on one rank and on eight, over caches in two formats, leave
// the same bits when they are run again, call by call.
func TestReplayIsExact(t *testing.T) {
	if testing.Short() {
		t.Skip("replays many steps")
	}
	for _, c := range []struct {
		tp     int
		cache  kernels.Format
		kv     string
		detail string
	}{
		{1, kernels.BF16, replay.KVExact, replay.DetailData}, {8, kernels.FP8, replay.KVExact, replay.DetailHash},
		{8, kernels.BF16, replay.KVSeeded, replay.DetailHash}, {1, kernels.FP8, replay.KVSeeded, replay.DetailNone},
	} {
		t.Run(string(c.cache)+" "+c.kv, func(t *testing.T) {
			l := newLoader(t)
			o := small
			o.KVCache = c.cache
			kinds := map[string]int{}
			for _, steps := range []string{"prefill:first=1", "mixed:first=1", "decode:first=1"} {
				for _, file := range captured(t, l, c.tp, o, steps, replay.CaptureOptions{KV: c.kv, Detail: c.detail}) {
					x, err := replay.Load(file)
					if err != nil {
						t.Fatal(err)
					}
					opt := quick(l)
					if c.detail != replay.DetailNone {
						opt.Verify = replay.VerifyCalls
					}
					r, err := replay.Run(x, l.load, opt)
					if err != nil {
						t.Fatalf("%s step: %v", x.Kind, err)
					}
					if !r.Verdict.Equal || r.Verdict.Compared < 2 || c.detail != replay.DetailNone &&
						r.Verdict.Compared < len(x.Calls) {
						t.Errorf("%s step: %+v of %d calls", x.Kind, r.Verdict, len(x.Calls))
					}
					kinds[x.Kind]++
					for _, s := range r.Report.Sections {
						sum := int64(0)
						for _, a := range s.Ledger {
							sum += a.NS
						}
						if sum != s.Wall || s.Steps != opt.Repeat || s.Kind != x.Kind {
							t.Errorf("%s: the ledger of %d steps adds up to %d of %d ns", s.Kind, s.Steps, sum, s.Wall)
						}
					}
				}
			}
			if len(kinds) != 3 {
				t.Errorf("captured only %v", kinds)
			}
		})
	}
}

// Steps with drafts leave the same bits too: their rows of logits have masks of their own, and
// assume the drafts before them.
func TestReplayOfDrafts(t *testing.T) {
	if testing.Short() {
		t.Skip("replays many steps")
	}
	l := newLoader(t)
	o := small
	o.MTP, o.Drafts, o.MaxLogits = true, 3, 32
	var masked, assumed, tips int
	for tp, kv := range map[int]string{1: replay.KVExact, 8: replay.KVSeeded} {
		capture := replay.CaptureOptions{KV: kv, Detail: replay.DetailHash}
		for _, file := range captured(t, l, tp, o, "mixed:first=4,decode:first=1", capture) {
			x, err := replay.Load(file)
			if err != nil {
				t.Fatal(err)
			}
			opt := quick(l)
			opt.Verify, opt.NoAlone = replay.VerifyCalls, tp > 1
			r, err := replay.Run(x, l.load, opt)
			if err != nil {
				t.Fatal(err)
			}
			if !r.Verdict.Equal || r.Verdict.Compared < len(x.Calls) {
				t.Errorf("%d ranks: %+v of %d calls", tp, r.Verdict, len(x.Calls))
			}
			masks := 0
			for _, p := range x.Batch.Params {
				if p.Mask >= 0 {
					masks++
				}
				assumed += int(p.Assumed)
			}
			masked, tips = max(masked, masks), tips+len(x.Batch.Tips)
			for _, s := range r.Report.Sections {
				sum := int64(0)
				for _, a := range s.Ledger {
					sum += a.NS
				}
				if sum != s.Wall {
					t.Errorf("%d ranks: the ledger adds up to %d of %d ns", tp, sum, s.Wall)
				}
			}
		}
	}
	if masked < 2 || assumed == 0 || tips == 0 {
		t.Errorf("%d masks in a step, %d tokens assumed, %d tips: the test has lost its point", masked, assumed, tips)
	}
}

// A capture changes no token of the job, whatever it stores.
func TestCaptureLeavesTheJobAlone(t *testing.T) {
	l := newLoader(t)
	want, _ := job(t, l, 1, small, replay.CaptureOptions{})
	for _, kv := range []string{replay.KVExact, replay.KVSeeded} {
		got, n := job(t, l, 1, small, replay.CaptureOptions{Dir: t.TempDir(), Selectors: selectors(t, "every=1"),
			KV: kv, Detail: replay.DetailHash})
		if n.Written+n.Skipped < 8 || n.Written < 2 || n.Failed > 0 {
			t.Errorf("%s: %+v", kv, n)
		}
		for id := range want {
			if !slices.Equal(got[id], want[id]) {
				t.Errorf("%s: request %d has tokens %v, without captures %v", kv, id, got[id], want[id])
			}
		}
	}
}

// A capture that is too large or cannot be written costs only itself.
func TestCaptureFails(t *testing.T) {
	l := newLoader(t)
	want, _ := job(t, l, 1, small, replay.CaptureOptions{})
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		o    replay.CaptureOptions
		says string
	}{
		{replay.CaptureOptions{Dir: t.TempDir(), MaxBytes: 10_000}, "larger than a capture may be: about "},
		{replay.CaptureOptions{Dir: filepath.Join(file, "captures")}, "not a directory"},
	} {
		c.o.Selectors = selectors(t, "first=3")
		got, n := job(t, l, 1, small, c.o)
		if n.Written != 0 || n.Failed == 0 || n.Last == nil || !strings.Contains(n.Last.Error(), c.says) {
			t.Errorf("%+v: want %q", n, c.says)
		}
		for id := range want {
			if !slices.Equal(got[id], want[id]) {
				t.Errorf("request %d has other tokens", id)
			}
		}
	}
}

// Only the slowest steps' files are left.
func TestSlowest(t *testing.T) {
	l := newLoader(t)
	files := captured(t, l, 1, small, "slowest=2", replay.CaptureOptions{})
	if len(files) > 2 {
		t.Errorf("%d files: %v", len(files), files)
	}
}

// changedFile rewrites a capture with its rows changed and sealed again.
func changedFile(t testing.TB, file string, change func([]datasets.Capture) []datasets.Capture) string {
	t.Helper()
	rows, err := datasets.ReadCapture(file)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "changed.arrow")
	if err := datasets.WriteCapture(out, change(rows)); err != nil {
		t.Fatal(err)
	}
	return out
}

// each changes the rows of one part and name.
func each(part datasets.CapturePart, name string,
	f func(*datasets.Capture)) func([]datasets.Capture) []datasets.Capture {
	return func(rows []datasets.Capture) []datasets.Capture {
		for i := range rows {
			if rows[i].Part == part && (name == "" || rows[i].Name == name) {
				f(&rows[i])
			}
		}
		return rows
	}
}

// What is not as it was recorded is named.
func TestReplayNamesWhatDiffers(t *testing.T) {
	l := newLoader(t)
	file := captured(t, l, 1, small, "decode:first=1", replay.CaptureOptions{Detail: replay.DetailData})[0]
	for _, c := range []struct {
		name   string
		change func([]datasets.Capture) []datasets.Capture
		is     error
		says   string
	}{
		{"a token", each(datasets.CaptureInput, "tokens", func(r *datasets.Capture) {
			r.Data[0] ^= 1
		}), replay.ErrMismatch, "y of call 0, embed"},
		{"cache entries", each(datasets.CapturePage, glm5.RegionLatent, func(r *datasets.Capture) {
			if r.Layer == 2 {
				for i := range r.Data {
					r.Data[i] ^= 0x11
				}
			}
		}), replay.ErrMismatch, "mla_attend_bf16 of layer 2: "},
		{"an output", each(datasets.CaptureOutput, "", func(r *datasets.Capture) {
			if r.Call == 9 {
				r.Hash[0] ^= 1
				r.Data, r.Bytes = nil, 0
			}
		}), replay.ErrMismatch, "of call 9, "},
		{"the model", func(rows []datasets.Capture) []datasets.Capture {
			rows[0].Data = []byte(strings.Replace(string(rows[0].Data), `"model_hash":"`, `"model_hash":"x`, 1))
			return rows
		}, replay.ErrRefused, "model"},
		{"the device", func(rows []datasets.Capture) []datasets.Capture {
			rows[0].Data = []byte(strings.Replace(string(rows[0].Data), `"Kind":"cpu"`, `"Kind":"cuda"`, 1))
			return rows
		}, replay.ErrRefused, `device "cpu", captured was "cuda" (--allow device)`},
		{"the version", func(rows []datasets.Capture) []datasets.Capture {
			rows[0].Data = []byte(strings.Replace(string(rows[0].Data), `"versions":null`,
				`"versions":{"vcs.revision":"abc"}`, 1))
			return rows
		}, replay.ErrRefused, `version "", captured was "abc" (--allow version)`},
		{"a call", each(datasets.CaptureCall, "silu_mul", func(r *datasets.Capture) {
			r.N++
		}), replay.ErrRefused, "silu_mul"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, err := replay.Load(changedFile(t, file, c.change))
			if err != nil {
				t.Fatal(err)
			}
			o := quick(l)
			o.Verify = replay.VerifyCalls
			_, err = replay.Run(x, l.load, o)
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error is %v, want %v with %q", err, c.is, c.says)
			}
			if c.is == replay.ErrMismatch && c.name != "an output" &&
				!strings.Contains(err.Error(), "values differ, at most by ") {
				t.Errorf("%v does not say by how much", err)
			}
		})
	}
}
