package tokenizer

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// vector is one line of a file of reference encodings, made by the Hugging Face
// library: encode without special tokens, decode with them kept and skipped.
type vector struct {
	Text        string
	IDs         []int32
	Decoded     string
	DecodedSkip string `json:"decoded_skip"`
}

func TestVectors(t *testing.T) {
	tok := tiny(t)
	vectors := tinyVectors(t)
	if len(vectors) < 1544 {
		t.Fatalf("%d vectors", len(vectors))
	}
	for i, v := range vectors {
		ids := tok.Encode(nil, v.Text)
		if !slices.Equal(ids, v.IDs) {
			t.Errorf("vector %d: %q: ids\n%v, want\n%v", i, v.Text, ids, v.IDs)
		}
		for _, d := range []struct {
			skip bool
			want string
		}{{false, v.Decoded}, {true, v.DecodedSkip}} {
			if got := tok.Decode(v.IDs, d.skip); got != d.want {
				t.Errorf("vector %d: skip %v: decoded %q, want %q", i, d.skip, got, d.want)
			}
			if got := stream(tok, v.IDs, d.skip); got != d.want {
				t.Errorf("vector %d: skip %v: streamed %q, want %q", i, d.skip, got, d.want)
			}
		}
	}
}

// stream decodes id by id.
func stream(t *Tokenizer, ids []int32, skip bool) string {
	var b strings.Builder
	d := t.NewDecoder(skip)
	for _, id := range ids {
		b.WriteString(d.Next(id))
	}
	b.WriteString(d.Flush())
	return b.String()
}

func tiny(t testing.TB) *Tokenizer {
	t.Helper()
	tok, err := Load(tinyFile(t))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// tinyFile is the tokenizer.json of the demo model.
func tinyFile(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile("../../datasets/demo/model/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func tinyVectors(t testing.TB) []vector {
	t.Helper()
	var vectors []vector
	lines := bufio.NewScanner(bytes.NewReader(gunzip(t, "tiny.jsonl.gz")))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var v vector
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		vectors = append(vectors, v)
	}
	return vectors
}

func gunzip(t testing.TB, name string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
