package tokenizer

import (
	"os"
	"strings"
	"testing"
)

// BenchmarkEncode encodes the vectors' texts, and those of a file that
// GLMBATCH_BENCH_TEXT names; GLMBATCH_BENCH_TOKENIZER names another tokenizer.json.
func BenchmarkEncode(b *testing.B) {
	tok := tiny(b)
	if name := os.Getenv("GLMBATCH_BENCH_TOKENIZER"); name != "" {
		data, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		if tok, err = Load(data); err != nil {
			b.Fatal(err)
		}
	}
	var texts []string
	for _, v := range tinyVectors(b) {
		texts = append(texts, v.Text)
	}
	cases := map[string][]string{
		"vectors":    texts,
		"one letter": {strings.Repeat("a", 300_000)},
	}
	if name := os.Getenv("GLMBATCH_BENCH_TEXT"); name != "" {
		data, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		cases["file"] = []string{string(data)}
	}
	for name, texts := range cases {
		b.Run(name, func(b *testing.B) {
			size := 0
			for _, s := range texts {
				size += len(s)
			}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			var ids []int32
			for b.Loop() {
				for _, s := range texts {
					ids = tok.Encode(ids[:0], s)
				}
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	tok := tiny(b)
	var ids []int32
	for _, v := range tinyVectors(b) {
		ids = append(ids, v.IDs...)
	}
	b.SetBytes(int64(len(tok.Decode(ids, false))))
	b.ReportAllocs()
	for b.Loop() {
		d := tok.NewDecoder(false)
		for _, id := range ids {
			d.Next(id)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	data := tinyFile(b)
	if name := os.Getenv("GLMBATCH_BENCH_TOKENIZER"); name != "" {
		var err error
		if data, err = os.ReadFile(name); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := Load(data); err != nil {
			b.Fatal(err)
		}
	}
}
