package demo

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

//go:embed model/model.safetensors.zst
var compressed []byte

// weights decompresses once: the program is 3 MB smaller for it.
var weights = sync.OnceValue(func() []byte {
	d, err := zstd.NewReader(nil)
	if err != nil {
		panic(fmt.Sprintf("demo: %v", err)) // its options are constant
	}
	defer d.Close()
	b, err := d.DecodeAll(compressed, nil)
	if err != nil {
		panic(fmt.Sprintf("demo: the embedded weights: %v", err)) // a test decodes them
	}
	return together(b)
})

// together undoes training/pack.py: the low bytes of the BF16 values lie before
// the high ones there. b is a part of the program.
func together(b []byte) []byte {
	from, to := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	apart := b[16:]
	file := slices.Clone(apart)
	values := file[from:to]
	low, high := apart[from:][:len(values)/2], apart[from:to][len(values)/2:]
	for i := range low {
		values[2*i], values[2*i+1] = low[i], high[i]
	}
	return file
}

//go:embed model/config.json
var config []byte

//go:embed model/hf_quant_config.json
var quant []byte

//go:embed model/generation_config.json
var generation []byte

//go:embed model/tokenizer.json
var tokenizer []byte

//go:embed model/tokenizer_config.json
var tokenizerConfig []byte

//go:embed model/chat_template.jinja
var template []byte

//go:embed prompts.parquet
var prompts []byte

// Files returns the files of the checkpoint's folder, by name. They must not be
// written to.
func Files() map[string][]byte {
	return map[string][]byte{
		"model.safetensors":      weights(),
		"config.json":            config,
		"hf_quant_config.json":   quant,
		"generation_config.json": generation,
		"tokenizer.json":         tokenizer,
		"tokenizer_config.json":  tokenizerConfig,
		"chat_template.jinja":    template,
	}
}

// Prompts returns a Parquet file of 1,000 rows: id, task, system, prompt and
// expected, the right answer. It must not be written to.
func Prompts() []byte { return prompts }
