package checkpoint

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// What Hash samples of each file.
const (
	hashSamples = 64
	hashBlock   = 4096
)

// Hash identifies the model in manifests. It covers config.json and, of each
// weight file, the name, the size, the header and 64 blocks of 4 KiB spread
// evenly from the data's first byte to its last. It does not cover every byte:
// that would mean to read the whole checkpoint. It covers no other file.
func (c *Checkpoint) Hash() (string, error) {
	h := sha256.New()
	length := func(n int) {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(n)))
	}
	field := func(b []byte) {
		length(len(b))
		h.Write(b)
	}
	field(c.config)
	block := make([]byte, hashBlock)
	for _, f := range c.files {
		field([]byte(f.name))
		field(f.header)
		base := 8 + int64(len(f.header))
		size := f.size - base
		length(int(size))
		n := min(hashSamples, (size+hashBlock-1)/hashBlock)
		for i := range n {
			at := int64(0)
			if n > 1 {
				at = (size - hashBlock) / (n - 1) * i
			}
			if i == n-1 {
				at = max(0, size-hashBlock)
			}
			b := block[:min(hashBlock, size-at)]
			if err := f.read(b, base+at); err != nil {
				return "", fmt.Errorf("hashing %s: %w", f.name, err)
			}
			h.Write(b)
		}
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}
