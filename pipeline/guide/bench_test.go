//go:build linux

package guide

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"glmbatch/pipeline/tokenizer"
)

// threadTime is the processor's time of this thread, which others that run do not add to.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

// BenchmarkMask times each set of tokens on one core: of texts that a tokenizer would write,
// and of those that are drawn, whose words and numbers are nobody's. GLMBATCH_TOKENIZER is the
// tokenizer.json of another vocabulary than the demo's.
func BenchmarkMask(b *testing.B) {
	g, tok := newGuides(b, Options{Boxes: 1})
	if path := os.Getenv("GLMBATCH_TOKENIZER"); path != "" {
		g, tok = guidesOf(b, path)
	}
	files, err := filepath.Glob("testdata/schemas/*.json")
	if err != nil || len(files) == 0 {
		b.Fatal(files, err)
	}
	var specs []Spec
	var texts [][]int32
	for _, f := range files {
		schema, err := os.ReadFile(f)
		if err != nil {
			b.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join("testdata", "instances", filepath.Base(f)))
		if err != nil {
			b.Fatal(err)
		}
		s := schemaOf(b, string(schema))
		if err := g.Check(s); err != nil {
			b.Fatal(err)
		}
		specs = append(specs, s)
		texts = append(texts, tok.Encode(nil, strings.TrimSpace(string(text))))
	}
	rng := seeded(1)
	next := map[string]func(text, at int, set []uint64) int32{ // -1: the text ends
		"written": func(text, at int, _ []uint64) int32 {
			if at >= len(texts[text]) {
				return -1
			}
			return texts[text][at]
		},
		"drawn": func(_, at int, set []uint64) int32 {
			if id := drawFrom(set, rng); at < 200 && !slices.Contains(g.vocab.ends, id) {
				return id
			}
			return -1
		},
	}
	for _, how := range sorted(next) {
		b.Run(how, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var took []time.Duration
			w := g.benches[0]
			for i := 0; b.Loop(); {
				text := i % len(specs)
				m := g.Start(specs[text], false)
				var added []int32
				for at := 0; ; at++ {
					start := threadTime()
					if err := m.next(w, added); err != nil {
						b.Fatal(err)
					}
					took = append(took, threadTime()-start)
					id := next[how](text, at, m.sets[0])
					if id < 0 {
						break
					}
					added = []int32{id}
				}
				m.drop(w)
				i++
			}
			slices.Sort(took)
			for _, q := range []struct {
				name string
				at   float64
			}{{"p50", .5}, {"p90", .9}, {"p99", .99}} {
				b.ReportMetric(float64(took[int(q.at*float64(len(took)-1))].Nanoseconds())/1e3, q.name+"-us")
			}
			b.ReportMetric(float64(len(took))/float64(b.N), "sets/op")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func guidesOf(t testing.TB, path string) (*Guides, *tokenizer.Tokenizer) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Load(data)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Boxes: 1}
	for id, text := range tok.AddedIDs() {
		if text == "<|endoftext|>" || text == "<|im_end|>" {
			o.Ends = append(o.Ends, id)
		}
	}
	if dir, err := os.UserCacheDir(); err == nil {
		o.Cache = filepath.Join(dir, "glmbatch", "guide")
	}
	start := threadTime()
	g, err := New(context.Background(), tok, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	fmt.Printf("%d tokens: %v, %d bytes of a box\n", tok.VocabSize(),
		(threadTime() - start).Round(time.Millisecond), g.fresh.size)
	return g, tok
}
