package checkpoint

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestDamage opens many damaged and hostile forms of a sound checkpoint: each
// gives an error, or a checkpoint whose every weight is an error or consistent.
// None takes memory that its size does not explain.
func TestDamage(t *testing.T) {
	sound := small(t)
	fp4 := forms(t, 2, 32, make([]float32, 64))
	sound[ConfigFile] = []byte(`{"model_type":"glm_moe_dsa","quantization_config":{"quant_method":"modelopt","quant_algo":"NVFP4","ignore":["lm_head","*self_attn*"],"config_groups":{"group_0":{"weights":{"num_bits":4,"type":"float","group_size":16}}}}}`)
	sound[QuantFile] = []byte(
		`{"quantization":{"quant_algo":"NVFP4","group_size":16,"exclude_modules":["lm_head","*self_attn*"]}}`)
	one := map[string][]byte{ConfigFile: sound[ConfigFile], QuantFile: sound[QuantFile],
		WeightsFile: pack(t, fp4["modelopt"]...)}
	other := map[string][]byte{ConfigFile: []byte(`{}`), WeightsFile: pack(t, fp4["compressed"]...)}

	cases := 0
	rng := rand.New(rand.NewPCG(1, 2))
	for _, base := range []map[string][]byte{sound, one, other} {
		for _, name := range slices.Sorted(maps.Keys(base)) {
			for what, b := range damage(base[name], rng) {
				files := maps.Clone(base)
				files[name] = b
				cases++
				openDamaged(t, fmt.Sprintf("%s %s", name, what), files)
			}
		}
	}
	t.Logf("%d damaged checkpoints", cases)
	if cases < 200 {
		t.Errorf("only %d cases", cases)
	}
}

// damage returns changed forms of a file.
func damage(b []byte, rng *rand.Rand) map[string][]byte {
	out := map[string][]byte{
		"empty":      {},
		"zeros":      make([]byte, len(b)),
		"twice":      append(slices.Clone(b), b...),
		"one more":   append(slices.Clone(b), 0),
		"deep":       bytes.Repeat([]byte("["), 1<<16),
		"deep names": bytes.Repeat([]byte(`{"a":`), 1<<14),
		"huge":       append(binary.LittleEndian.AppendUint64(nil, 1<<62), b...),
		"near limit": append(binary.LittleEndian.AppendUint64(nil, maxHeader), b...),
	}
	for i := range 6 {
		n := rng.IntN(len(b))
		out[fmt.Sprintf("cut %d", i)] = b[:n]
	}
	for i := range 12 {
		c := slices.Clone(b)
		at := rng.IntN(len(c))
		c[at] ^= 1 << rng.IntN(8)
		out[fmt.Sprintf("bit %d", i)] = c
		c = slices.Clone(b)
		at = rng.IntN(len(c))
		c[at] = byte(rng.IntN(256))
		out[fmt.Sprintf("byte %d", i)] = c
	}
	// Digits become other digits, so that sizes and offsets disagree.
	digits := 0
	for at, x := range b {
		if x >= '0' && x <= '9' && digits < 12 {
			digits++
			c := slices.Clone(b)
			c[at] = '0' + byte((int(x-'0')+1+rng.IntN(9))%10)
			out[fmt.Sprintf("digit %d", digits)] = c
			out[fmt.Sprintf("large %d", digits)] = slices.Insert(slices.Clone(b), at, []byte("99999999999")...)
		}
	}
	for i, p := range [][2]string{{"BF16", "F64"}, {"U8", "F8_E4M3"}, {"F32", "I64"}, {"shape", "shapes"},
		{"weight_scale", "weight_scala"},
		{"NVFP4", "FP8"}, {"lm_head", "re:((((a+)+)+)+)$"}, {"weight_map", "metadata"}, {"[", "{"}, {":", ","}, {"16",
			"-1"}} {
		if c := bytes.ReplaceAll(b, []byte(p[0]), []byte(p[1])); !bytes.Equal(c, b) {
			out[fmt.Sprintf("words %d", i)] = c
		}
	}
	return out
}

func openDamaged(t *testing.T, what string, files map[string][]byte) {
	t.Helper()
	size := 0
	for _, b := range files {
		size += len(b)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c, err := FromFiles(files)
	if err == nil {
		for _, name := range c.Names() {
			for _, module := range []string{name, strings.TrimSuffix(name, path.Ext(name))} {
				l, err := c.Linear(module)
				if err != nil {
					continue
				}
				if v, err := l.Float32(0, l.Rows); err == nil && len(v) != l.Rows*l.Cols {
					t.Errorf("%s: %s has %d values for [%d, %d]", what, module, len(v), l.Rows, l.Cols)
				}
			}
			c.Vector(name)
			c.ClaimsQuantized(name)
		}
		if _, err := c.Hash(); err != nil {
			t.Errorf("%s: hash: %v", what, err)
		}
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > uint64(1<<20+200*size) {
		t.Errorf("%s: %d bytes of memory for files of %d", what, n, size)
	}
}
