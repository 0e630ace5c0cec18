package checkpoint

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// stored is a tensor of a file that a test makes.
type stored struct {
	name  string
	dtype DType
	shape []int
	data  []byte
}

// pack makes a safetensors file.
func pack(t testing.TB, ts ...stored) []byte {
	t.Helper()
	doc := map[string]any{"__metadata__": map[string]string{"format": "pt"}}
	var data []byte
	for _, x := range ts {
		if x.shape == nil {
			x.shape = []int{}
		}
		doc[x.name] = map[string]any{"dtype": x.dtype, "shape": x.shape, "data_offsets": []int{len(data),
			len(data) + len(x.data)}}
		data = append(data, x.data...)
	}
	header, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return withHeader(string(header), data)
}

func withHeader(header string, data []byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

// contents is what a tensor has.
func contents(t testing.TB, x *Tensor) []byte {
	t.Helper()
	b, err := x.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func f32(v ...float32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// bf16 has values whose low 16 bits are 0.
func bf16(v ...float32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint16(b, uint16(math.Float32bits(x)>>16))
	}
	return b
}

// small is a checkpoint in two files with an index.
func small(t testing.TB) map[string][]byte {
	index, err := json.Marshal(map[string]any{"metadata": map[string]int{"total_size": 40},
		"weight_map": map[string]string{
			"a.weight": "model-00001-of-00002.safetensors", "b.weight": "model-00002-of-00002.safetensors",
			"norm.weight": "model-00002-of-00002.safetensors",
		}})
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{
		ConfigFile:                         []byte(`{"model_type":"glm_moe_dsa"}`),
		IndexFile:                          index,
		"model-00001-of-00002.safetensors": pack(t, stored{"a.weight", F32, []int{2, 3}, f32(1, 2, 3, 4, 5, 6)}),
		"model-00002-of-00002.safetensors": pack(t, stored{"b.weight", BF16, []int{2, 2}, bf16(1, -2, .5, 4)},
			stored{"norm.weight", BF16, []int{4}, bf16(1, 2, 3, 4)}),
	}
}

func writeFiles(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestOpen: a folder and the same files in memory are the same checkpoint.
func TestOpen(t *testing.T) {
	files := small(t)
	disk := mustOpen(t, writeFiles(t, files))
	memory, err := FromFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*Checkpoint{disk, memory} {
		if got := strings.Join(c.Names(), " "); got != "a.weight b.weight norm.weight" {
			t.Errorf("names %s", got)
		}
		l, err := c.Linear("b")
		if err != nil {
			t.Fatal(err)
		}
		v, err := l.Float32(1, 2)
		if err != nil || l.Format != "bf16" || v[0] != .5 || v[1] != 4 {
			t.Errorf("row 1 of b: %v %v %v", l.Format, v, err)
		}
		if v, err := c.Vector("norm.weight"); err != nil || len(v) != 4 || v[3] != 4 {
			t.Errorf("norm: %v %v", v, err)
		}
		if _, err := c.Linear("c"); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "c.weight") {
			t.Errorf("a weight that is not there: %v", err)
		}
		if len(c.Warnings()) != 0 {
			t.Errorf("warnings %q", c.Warnings())
		}
	}
	a, err := disk.Hash()
	if err != nil {
		t.Fatal(err)
	}
	b, err := memory.Hash()
	if err != nil || a != b {
		t.Errorf("hashes %s and %s: %v", a, b, err)
	}
	if err := disk.Close(); err != nil {
		t.Error(err)
	}
	if err := disk.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
}

// TestHash: it changes with the config, a name, a header and data.
func TestHash(t *testing.T) {
	seen := map[string]string{}
	hash := func(what string, files map[string][]byte) {
		c, err := FromFiles(files)
		if err != nil {
			t.Fatal(err)
		}
		h, err := c.Hash()
		if err != nil {
			t.Fatal(err)
		}
		if old, ok := seen[h]; ok {
			t.Errorf("%s and %s have one hash", what, old)
		}
		seen[h] = what
	}
	one := func(name string, n int, v byte) map[string][]byte {
		data := make([]byte, n)
		data[n-1] = v
		return map[string][]byte{ConfigFile: []byte("{}"), WeightsFile: pack(t, stored{name, U8, []int{n}, data})}
	}
	hash("one", one("x", 1<<20, 0))
	hash("another name", one("y", 1<<20, 0))
	hash("another size", one("x", 1<<20+1, 0))
	hash("another last byte", one("x", 1<<20, 1))
	hash("another config", map[string][]byte{ConfigFile: []byte("{ }"), WeightsFile: one("x", 1<<20, 0)[WeightsFile]})
	hash("few bytes", one("x", 5, 0))
	hash("few other bytes", one("x", 5, 1))
}

func TestOpenFaults(t *testing.T) {
	first, second := "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
	for _, tt := range []struct {
		name   string
		change func(files map[string][]byte)
		want   string
	}{
		{"no config", func(m map[string][]byte) { delete(m, ConfigFile) }, ConfigFile},
		{"no weights", func(m map[string][]byte) { delete(m, IndexFile); delete(m, first); delete(m, second) },
			"neither " + IndexFile + " nor " + WeightsFile},
		{"a file is missing", func(m map[string][]byte) { delete(m, second) },
			"1 of 2 weight files are missing, download them: " + second},
		{"truncated", func(m map[string][]byte) { m[first] = m[first][:len(m[first])-1] },
			first + ": truncated: a.weight"},
		{"outside the folder", func(m map[string][]byte) {
			m[IndexFile] = []byte(`{"weight_map":{"a":"../x.safetensors"}}`)
		}, `"../x.safetensors"`},
		{"of another form", func(m map[string][]byte) { m[IndexFile] = []byte(`{"weight_map":{"a":"x.bin"}}`) },
			`"x.bin"`},
		{"no map", func(m map[string][]byte) { m[IndexFile] = []byte(`{}`) }, "weight_map"},
		{"not JSON", func(m map[string][]byte) { m[IndexFile] = []byte(`{`) }, IndexFile},
		{"config is not JSON", func(m map[string][]byte) { m[ConfigFile] = []byte(`{`) }, ConfigFile},
		{"FP8 blocks that are none", func(m map[string][]byte) {
			m[ConfigFile] = []byte(
				`{"quantization_config":{"quant_method":"fp8","fmt":"e4m3","weight_block_size":[128,0]}}`)
		}, "weight_block_size is [128 0]"},
		{"another method", func(m map[string][]byte) {
			m[ConfigFile] = []byte(`{"quantization_config":{"quant_method":"gptq"}}`)
		}, `"gptq"`},
	} {
		files := maps.Clone(small(t))
		tt.change(files)
		if _, err := FromFiles(files); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		c, err := Open(writeFiles(t, files))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s on disk: %v, want %q", tt.name, err, tt.want)
		}
		if err == nil {
			c.Close()
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	if _, err := Open(filepath.Join(sampleDir, WeightsFile)); err == nil || !strings.Contains(err.Error(), "folder") {
		t.Errorf("a file for a folder: %v", err)
	}
}

// TestStrays: what the index does not place is used, or said.
func TestStrays(t *testing.T) {
	files := small(t)
	files["model-00001-of-00002.safetensors"] = pack(t, stored{"a.weight", F32, []int{2, 3}, f32(1, 2, 3, 4, 5, 6)},
		stored{"extra", F32, nil, f32(1)})
	c, err := FromFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	if !c.Has("extra") || len(c.Warnings()) != 1 || !strings.Contains(c.Warnings()[0], "extra") {
		t.Errorf("has %v, warnings %q", c.Has("extra"), c.Warnings())
	}
	one := map[string][]byte{ConfigFile: []byte("{}"), WeightsFile: pack(t, stored{"x", F32, nil, f32(1)})}
	if c, err := FromFiles(one); err != nil || len(c.Files()) != 1 {
		t.Errorf("one file: %v", err)
	}
}

// TestTruncatedInUse: a file that shrinks after it was opened gives an error,
// not a fault of memory.
func TestTruncatedInUse(t *testing.T) {
	dir := writeFiles(t, small(t))
	c := mustOpen(t, dir)
	l, err := c.Linear("a")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "model-00001-of-00002.safetensors"), 3); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Slice(0, 1, 0, 3); err == nil || !strings.Contains(err.Error(), "truncated") {
		t.Errorf("Slice: %v", err)
	}
	if _, err := l.Float32(0, 1); err == nil || !strings.Contains(err.Error(), "truncated") {
		t.Errorf("Float32: %v", err)
	}
	if _, err := c.Vector("a.weight"); err == nil || !strings.Contains(err.Error(), "truncated") {
		t.Errorf("Vector: %v", err)
	}
	if _, err := c.Hash(); err == nil {
		t.Error("Hash: no error")
	}
	if _, err := c.Vector("norm.weight"); err != nil {
		t.Errorf("another file: %v", err)
	}
}

func TestFromTensors(t *testing.T) {
	block := bf16(1, 2, 3, 4, 5, 6)
	ts := []Tensor{{Name: "a.weight", DType: BF16, Shape: []int{2, 2}, Data: block[:8]},
		{Name: "b.weight", DType: BF16, Shape: []int{2, 2}, Data: block[4:]},
		{Name: "c", DType: F32, Data: f32(7)}}
	ck, err := FromTensors("memory", []byte("{}"), ts)
	if err != nil {
		t.Fatal(err)
	}
	l, err := ck.Linear("b")
	if err != nil {
		t.Fatal(err)
	}
	if v, err := l.Float32(0, 2); err != nil || v[0] != 3 || v[3] != 6 {
		t.Errorf("b has %v, %v", v, err)
	}
	if v, err := ck.Vector("c"); err != nil || len(v) != 1 || v[0] != 7 {
		t.Errorf("c has %v, %v", v, err)
	}
	if err := ck.Close(); err != nil {
		t.Error(err)
	}
	if _, err := FromTensors("memory", nil, append(ts, Tensor{Name: "d", DType: BF16, Shape: []int{3},
		Data: block[:4]})); err == nil {
		t.Error("a tensor with too few bytes was taken")
	}
	if _, err := FromTensors("memory", nil, append(ts, ts[0])); err == nil {
		t.Error("a name was taken twice")
	}
}
