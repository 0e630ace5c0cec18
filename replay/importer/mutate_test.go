package importer

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"glmbatch/datasets"
)

// mutations damage a trace's text, or the gzip around it.
var mutations = []struct {
	name   string
	packed bool // damages the gzip
	damage func(rng *rand.Rand, b []byte) []byte
}{
	{"cut", false, func(rng *rand.Rand, b []byte) []byte { return b[:rng.IntN(len(b))] }},
	{"cut gzip", true, func(rng *rand.Rand, b []byte) []byte { return b[:rng.IntN(len(b))] }},
	{"flip bits", false, flip},
	{"flip bits of gzip", true, flip},
	{"drop a stretch", false, func(rng *rand.Rand, b []byte) []byte {
		from := rng.IntN(len(b))
		return append(b[:from:from], b[min(len(b), from+rng.IntN(5000)):]...)
	}},
	{"repeat a stretch", false, func(rng *rand.Rand, b []byte) []byte {
		from := rng.IntN(len(b))
		to := min(len(b), from+rng.IntN(5000))
		return append(append(append([]byte{}, b[:to]...), b[from:to]...), b[to:]...)
	}},
	{"quotes and backslashes", false, func(rng *rand.Rand, b []byte) []byte {
		for range 1 + rng.IntN(20) {
			b[rng.IntN(len(b))] = `"\"{}[],:`[rng.IntN(9)]
		}
		return b
	}},
	{"control characters", false, func(rng *rand.Rand, b []byte) []byte {
		for range 1 + rng.IntN(20) {
			b[rng.IntN(len(b))] = byte(rng.IntN(32))
		}
		return b
	}},
	{"long durations", false, func(rng *rand.Rand, b []byte) []byte {
		return regexp.MustCompile(`"dur": `).ReplaceAllFunc(b, func(m []byte) []byte {
			if rng.IntN(200) == 0 {
				return []byte(fmt.Sprintf(`"dur": %d`, 1+rng.IntN(99)))
			}
			return m
		})
	}},
	{"negative and zero times", false, func(rng *rand.Rand, b []byte) []byte {
		return regexp.MustCompile(`"(ts|dur)": `).ReplaceAllFunc(b, func(m []byte) []byte {
			switch rng.IntN(200) {
			case 0:
				return append(m, '-')
			case 1:
				return append(m, "0.000, \"x\": "...)
			}
			return m
		})
	}},
}

func flip(rng *rand.Rand, b []byte) []byte {
	for range 1 + rng.IntN(20) {
		b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
	}
	return b
}

// TestMutated damages a trace in 80 ways. Each gives an error or rows with sane
// times; where the kernels come to take much longer than they did, the timeline
// says that it is not to be relied on.
func TestMutated(t *testing.T) {
	f, err := os.Open("testdata/fused-graph.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	sound, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "mutated.json")
	refused := 0
	for i := range damages * len(mutations) {
		m := mutations[i%len(mutations)]
		rng := rand.New(rand.NewPCG(uint64(i), 1))
		data := bytes.Clone(sound)
		if m.packed {
			var b bytes.Buffer
			z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
			z.Write(data)
			z.Close()
			data = b.Bytes()
		}
		if err := os.WriteFile(path, m.damage(rng, data), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Torch([]string{path}, Options{}, func(rows []datasets.Span) error {
			for _, r := range rows {
				if r.EndNS < r.StartNS || r.StartNS < 0 {
					t.Errorf("%d %s: row %d..%d", i, m.name, r.StartNS, r.EndNS)
				}
			}
			return nil
		})
		if err != nil {
			refused++
			continue
		}
		if unreliable := hasUnreliable(s); !unreliable && s.Ranks[0].KernelNS > 4358996*3/2 {
			t.Errorf("%d %s: kernels take %d ns and nothing is said about it", i, m.name, s.Ranks[0].KernelNS)
		}
	}
	t.Logf("%d of %d were refused", refused, damages*len(mutations))
}

func hasUnreliable(s *Summary) bool {
	for _, f := range s.Findings {
		if f.Severity == severityUnreliable {
			return true
		}
	}
	return false
}
