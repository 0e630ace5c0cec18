package checkpoint

import (
	"encoding/binary"
	"strings"
	"testing"
)

func TestHeaderFaults(t *testing.T) {
	data := make([]byte, 16)
	long := binary.LittleEndian.AppendUint64(nil, 1<<40)
	for _, tt := range []struct {
		file []byte
		want string
	}{
		{nil, "not a safetensors file"},
		{[]byte("1234567"), "not a safetensors file"},
		{long, "not a safetensors file"},
		{binary.LittleEndian.AppendUint64(nil, 100), "truncated"},
		{binary.LittleEndian.AppendUint64(nil, 1<<63), "not a safetensors file"},
		{withHeader(`[]`, nil), "not a JSON object"},
		{withHeader(`{`, nil), "damaged"},
		{withHeader(`{} {}`, nil), "more than one"},
		{withHeader(`{"a":3}`, nil), "damaged header: a"},
		{withHeader(`{"__metadata__":{"a":1}}`, nil), "__metadata__"},
		{withHeader(`{"a":{"dtype":"F7","shape":[4],"data_offsets":[0,16]}}`, data), `unknown dtype "F7"`},
		{withHeader(`{"a":{"dtype":"F32","shape":[4],"data_offsets":[0]}}`, data), "data_offsets"},
		{withHeader(`{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16,32]}}`, data), "data_offsets"},
		{withHeader(`{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,12]}}`, data), "takes 16 bytes"},
		{withHeader(`{"a":{"dtype":"F32","shape":[4],"data_offsets":[-16,0]}}`, data), "data_offsets"},
		{withHeader(`{"a":{"dtype":"F32","shape":[4],"data_offsets":[16,0]}}`, data), "data_offsets"},
		{withHeader(`{"a":{"dtype":"F32","shape":[-4],"data_offsets":[0,16]}}`, data), "too large"},
		{withHeader(`{"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,16]}}`, data), "damaged"},
		{withHeader(`{"a":{"dtype":"F32","shape":[2147483647,2147483647,2147483647],"data_offsets":[0,16]}}`, data),
			"too large"},
		{withHeader(`{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, data), "too large"},
		{withHeader(`{"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,4],"data_offsets":[0,16]}}`, data), "dimensions"},
		{withHeader(`{"a":{"dtype":"F32","shape":[8],"data_offsets":[0,32]}}`, data), "truncated: a"},
		{withHeader(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, data), "8 bytes at the end"},
		{withHeader(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}}`, data), "8 bytes before a"},
		{withHeader(`{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}}`, data), "overlaps"},
		{withHeader(`{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}`, data), `"a" twice`},
		{withHeader(`{"`+strings.Repeat("n", 2000)+`":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}`, data),
			"a name has 2000 bytes"},
		{withHeader(`{"\u001b[2Jx":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}`, data), `"\x1b[2Jx" is no name`},
		{withHeader(`{"a\u202eb":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}`, data), `"a\u202eb" is no name`},
		{[]byte("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"), "git lfs pull"},
		{[]byte("<!DOCTYPE html><html></html>"), "a web page"},
		{[]byte("GGUF\x03\x00\x00\x00"), "GGUF"},
		{[]byte("PK\x03\x04\x00\x00\x00\x00"), "PyTorch"},
	} {
		_, err := parseFile(tt.file)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.90q: %v, want %q", tt.file, err, tt.want)
		}
	}
	ok := withHeader(`{"e":{"dtype":"U8","shape":[0,7],"data_offsets":[0,0]},"b":{"dtype":"BF16","shape":[4],"data_offsets":[8,16]},"a":{"dtype":"F64","shape":[],"data_offsets":[0,8]}}  `, data)
	ts, err := parseFile(ok)
	if err != nil || len(ts) != 3 || ts[2].Name != "b" || ts[2].Len() != 4 || ts[0].Len() != 0 {
		t.Errorf("a sound file: %v %v", ts, err)
	}
}

func parseFile(b []byte) ([]Tensor, error) {
	f := &file{memory: b, size: int64(len(b))}
	if err := f.readHeader(); err != nil {
		return nil, err
	}
	return f.entries()
}

func FuzzHeader(f *testing.F) {
	f.Add(pack(f, stored{"a.weight", F32, []int{2, 3}, f32(1, 2, 3, 4, 5, 6)}, stored{"b", BF16, nil, bf16(1)}))
	f.Add(withHeader(`{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}`, make([]byte, 16)))
	f.Fuzz(func(t *testing.T, b []byte) {
		ts, err := parseFile(b)
		if err != nil {
			return
		}
		total := 0
		for _, x := range ts {
			if int64(x.Len())*sizes[x.DType] != int64(len(x.Data)) {
				t.Fatalf("%s: %s %v with %d bytes", x.Name, x.DType, x.Shape, len(x.Data))
			}
			total += len(x.Data)
		}
		if total > len(b) {
			t.Fatalf("%d bytes of tensors in a file of %d", total, len(b))
		}
	})
}

func FuzzIndex(f *testing.F) {
	f.Add(small(f)[IndexFile])
	f.Add([]byte(`{"weight_map":{"a":"../a.safetensors"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := parseIndex(b)
		if err != nil {
			return
		}
		if len(x.files) == 0 || len(x.fileOf) < len(x.files) {
			t.Fatalf("%d files for %d tensors", len(x.files), len(x.fileOf))
		}
		for _, name := range x.files {
			if strings.ContainsAny(name, "/\\\x00") || name == "" || name == ".." {
				t.Fatalf("file %q", name)
			}
		}
	})
}

func FuzzQuantization(f *testing.F) {
	f.Add([]byte(`{"quantization_config":{"quant_method":"modelopt","quant_algo":"NVFP4","ignore":["*x*","lm_head"]}}`),
		[]byte(`{"quantization":{"quant_algo":"NVFP4","exclude_modules":["a*"]}}`), "a.b")
	f.Add([]byte(`{"quantization_config":{"quant_method":"compressed-tensors","format":"nvfp4-pack-quantized","ignore":["re:.*[a-z]$"]}}`), []byte(nil), "a.b")
	f.Fuzz(func(t *testing.T, config, extra []byte, module string) {
		q, err := parseQuantization(config, extra)
		if err == nil {
			q.claims(module)
		}
	})
}
