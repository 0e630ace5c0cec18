package checkpoint

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestWriter(t *testing.T) {
	entries := []Entry{{"a", U8, []int{5}}, {"b", F32, nil}, {"c", BF16, []int{3, 2}}, {"d", U8, []int{100}},
		{"empty", F32, []int{0}}}
	data := map[string][]byte{"a": []byte("hello"), "b": f32(7), "c": bf16(1, 2, 3, 4, 5, 6),
		"d": bytes.Repeat([]byte("x"), 100), "empty": nil}
	for _, tt := range []struct {
		shardSize int64
		files     string
	}{
		{1 << 30, WeightsFile},
		{21, "model-00001-of-00002.safetensors model-00002-of-00002.safetensors"},
		{1, "model-00001-of-00004.safetensors model-00002-of-00004.safetensors model-00003-of-00004.safetensors " +
			"model-00004-of-00004.safetensors"},
	} {
		out := filepath.Join(t.TempDir(), "deep", "model")
		if tt.shardSize == 21 {
			if err := os.MkdirAll(out, 0o755); err != nil { // an empty folder is no obstacle
				t.Fatal(err)
			}
		}
		w, err := NewWriter(out, entries, tt.shardSize)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for name, b := range data {
			wg.Go(func() {
				for i := range b { // byte by byte, in any order
					if err := w.Write(name, int64(i), b[i:i+1]); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if err := w.WriteFile(ConfigFile, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		if err := w.Commit(); err != nil {
			t.Fatal(err)
		}
		c := mustOpen(t, out)
		if len(c.Warnings()) != 0 {
			t.Error(c.Warnings())
		}
		if tt.shardSize == 1 { // an empty tensor goes with the one before it
			if got := len(c.Files()); got != 4 {
				t.Errorf("%d files", got)
			}
		} else if got := strings.Join(c.Files(), " "); got != tt.files {
			t.Errorf("files %s, want %s", got, tt.files)
		}
		for name, b := range data {
			x, err := c.Tensor(name)
			if err != nil || !bytes.Equal(contents(t, x), b) {
				t.Errorf("%s is %q: %v", name, contents(t, x), err)
			}
		}
		left, err := os.ReadDir(filepath.Dir(out))
		if err != nil || len(left) != 1 {
			t.Errorf("left beside it: %v %v", left, err)
		}
	}
}

func TestWriterFaults(t *testing.T) {
	entries := []Entry{{"a", U8, []int{5}}}
	dir := t.TempDir()
	open := func(out string, entries []Entry, shardSize int64) (*Writer, error) {
		return NewWriter(filepath.Join(dir, out), entries, shardSize)
	}
	t.Run("incomplete", func(t *testing.T) {
		w, err := open("m", entries, 100)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write("a", 0, []byte("1234")); err != nil {
			t.Fatal(err)
		}
		if err := w.Commit(); err == nil || !strings.Contains(err.Error(), "a has 4 of 5 bytes") {
			t.Errorf("Commit: %v", err)
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	t.Run("outside", func(t *testing.T) {
		w, err := open("m", entries, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, off := range []int64{-1, 1, 5} {
			if err := w.Write("a", off, []byte("12345")); err == nil {
				t.Errorf("offset %d: no error", off)
			}
		}
		if err := w.Write("b", 0, nil); err == nil {
			t.Error("another name: no error")
		}
		if err := w.Abort(); err != nil {
			t.Error(err)
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	t.Run("refused", func(t *testing.T) {
		if err := os.MkdirAll(filepath.Join(dir, "full", "x"), 0o755); err != nil {
			t.Fatal(err)
		}
		many := make([]Entry, maxShards+1)
		for i := range many {
			many[i] = Entry{string(rune('a' + i)), U8, []int{2}}
		}
		for _, tt := range []struct {
			out     string
			entries []Entry
			size    int64
			want    string
		}{
			{"full", entries, 100, "not empty"},
			{"twice", []Entry{{"a", U8, []int{5}}, {"a", U8, []int{5}}}, 100, "twice"},
			{"many", many, 1, "raise the shard size"},
			{"huge", []Entry{{"a", U8, []int{1 << 30, 1 << 20}}}, 100, "free"},
		} {
			if _, err := open(tt.out, tt.entries, tt.size); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v", tt.out, err)
			}
		}
		if left, _ := os.ReadDir(dir); len(left) != 1 {
			t.Errorf("left behind: %v", left)
		}
	})
}
