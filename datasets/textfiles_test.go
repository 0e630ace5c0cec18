package datasets

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// TestOpenLines: files of JSON lines, packed or not, are one table in their order.
func TestOpenLines(t *testing.T) {
	dir := t.TempDir()
	pack := func(name, text string) string {
		t.Helper()
		var b bytes.Buffer
		var w io.WriteCloser
		switch filepath.Ext(name) {
		case ".gz":
			w = gzip.NewWriter(&b)
		case ".zst":
			z, err := zstd.NewWriter(&b)
			if err != nil {
				t.Fatal(err)
			}
			w = z
		}
		if w == nil {
			b.WriteString(text)
		} else if _, err := io.WriteString(w, text); err != nil || w.Close() != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	paths := []string{pack("a.jsonl", "{\"prompt\":\"a\"}"),
		pack("b.jsonl.gz", "{\"prompt\":\"b\"}\n{\"prompt\":\"c\"}\n"), pack("c.NDJSON.zst", "{\"prompt\":\"d\"}\n")}
	in, err := OpenLines(paths)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	f, _ := in.Lookup("prompt")
	got := ""
	for _, r := range readAll(t, in.Reader(0, in.Rows)) {
		text, _, err := f.Text(r)
		if err != nil {
			t.Fatal(err)
		}
		got += string(text)
	}
	if got != "abcd" {
		t.Errorf("the rows are %q", got)
	}
	for name, want := range map[string]bool{"x.jsonl": true, "x.ndjson.gz": true, "s3://b/x.jsonl.zst?region=x": true,
		"x.parquet": false, "x.gz": false, "jsonl": false} {
		if IsLines(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
	if _, err := OpenLines([]string{filepath.Join(dir, "none.jsonl")}); !errors.Is(err, ErrFile) {
		t.Errorf("no file: %v", err)
	}
	bad := filepath.Join(dir, "bad.jsonl.gz")
	if err := os.WriteFile(bad, []byte("{\"prompt\":\"plain\"}"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLines([]string{bad}); !errors.Is(err, ErrFile) {
		t.Errorf("not gzip: %v", err)
	}
	bomb := bounded{strings.NewReader(strings.Repeat("x", 100)), 10}
	if _, err := io.ReadAll(&bomb); err == nil {
		t.Error("more than is allowed is read")
	}
}
