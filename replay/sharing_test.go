package replay_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"glmbatch/engine"
	"glmbatch/kernels"
	"glmbatch/replay"
)

// Steps whose sequences share pages, and steps that copy one for a sequence that goes
// on from its middle, leave the same bits when they are run again: from their own pages
// and from others.
func TestReplayOfSharedPrefixes(t *testing.T) {
	var rs []engine.Request
	prompt := make([]int32, 100)
	for i := range prompt {
		prompt[i] = int32(i * i % 2000)
	}
	for i := range 4 { // 64 tokens of a page and 20 or 26 of another are shared
		q := engine.Request{ID: int64(i), Prompt: slices.Concat(prompt[:84+6*(i%2)], []int32{int32(7 + i), 9}),
			Sampling: engine.Sampling{MaxTokens: 9, Seed: uint64(i), IgnoreEOS: true}}
		rs = append(rs, q)
	}
	l := newLoader(t)
	for _, drafts := range []int{0, 2} {
		t.Run(fmt.Sprint(drafts, " drafts"), func(t *testing.T) { replayShared(t, l, drafts, rs) })
	}
}

func replayShared(t *testing.T, l *loader, drafts int, rs []engine.Request) {
	o := small
	o.KVCache, o.MTP, o.Drafts, o.MaxLogits = kernels.FP8, drafts > 0, drafts, 32
	dir := filepath.Join(t.TempDir(), "captures")
	_, n := jobOf(t, l, 2, o, replay.CaptureOptions{Dir: dir, Selectors: selectors(t, "mixed:first=2,decode:first=2"),
		Detail: replay.DetailHash}, rs)
	files, err := filepath.Glob(filepath.Join(dir, "step-*.arrow"))
	if err != nil || n.Failed > 0 || len(files) < 2 {
		t.Fatalf("%d files, %+v: %v", len(files), n, err)
	}
	copies, shared := 0, 0
	for _, file := range files {
		x, err := replay.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		copies += len(x.Batch.Copies) / 2
		owners := map[int32]int{}
		for _, table := range x.Tables {
			for _, p := range table.Pages {
				if owners[p]++; owners[p] > 1 {
					shared++
				}
			}
		}
		for _, pool := range []int{0, 10 * kernels.PageTokens} {
			opt := quick(l)
			opt.Verify, opt.PoolTokens = replay.VerifyCalls, pool
			r, err := replay.Run(x, l.load, opt)
			if err != nil {
				t.Fatalf("%s step, a pool of %d: %v", x.Kind, pool, err)
			}
			if !r.Verdict.Equal || r.Verdict.Compared < len(x.Calls) {
				t.Errorf("%s step, a pool of %d: %+v of %d calls", x.Kind, pool, r.Verdict, len(x.Calls))
			}
		}
	}
	if copies == 0 || shared == 0 {
		t.Errorf("%d pages were copied and %d shared: the case has lost its point", copies, shared)
	}
}
