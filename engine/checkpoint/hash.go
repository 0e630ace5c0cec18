package checkpoint

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// What Hash samples of each file.
const (
	hashSamples = 64
	hashBlock   = 4096
)

// Hash identifies the model in manifests. It covers config.json and, of each
// weight file, the name, the size, the header and 64 blocks of 4 KiB spread
// evenly from the data's first byte to its last. It does not cover every byte:
// that would mean to read the whole checkpoint. It touches no other file.
func (c *Checkpoint) Hash() string {
	h := sha256.New()
	field := func(b []byte) {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	field(c.config)
	for _, f := range c.files {
		field([]byte(f.name))
		field(f.header)
		data := f.data[8+len(f.header):]
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(data)))
		h.Write(n[:])
		if f.check() != nil {
			continue // the next read of a tensor reports it
		}
		if len(data) <= hashSamples*hashBlock {
			h.Write(data)
			continue
		}
		last := len(data) - hashBlock
		for i := range hashSamples {
			at := last / (hashSamples - 1) * i
			if i == hashSamples-1 {
				at = last
			}
			h.Write(data[at : at+hashBlock])
		}
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
