package tokenizer

import "encoding/binary"

// The word cache: a fixed table with one entry a slot, so that it can neither
// grow nor allocate. 8,192 entries of 64 bytes stay in a core's own cache.
const (
	cacheBits      = 13
	cacheSlots     = 1 << cacheBits
	maxCachedBytes = 24
	maxCachedIDs   = 8
)

type cache struct{ slots []entry } // nil until the first word

type entry struct {
	key [maxCachedBytes]byte // the word, then zeros
	ids [maxCachedIDs]int32
	len uint8 // of the word; 0: free
	n   uint8 // ids in use
}

// find returns the word's slot and whether the word is in it. The word has at
// most maxCachedBytes and at least one.
func (c *cache) find(word string) (*entry, bool) {
	if c.slots == nil {
		c.slots = make([]entry, cacheSlots)
	}
	var key [maxCachedBytes]byte
	copy(key[:], word)
	h := binary.LittleEndian.Uint64(key[:]) * 0x9e3779b97f4a7c15
	h = (h ^ h>>29 ^ binary.LittleEndian.Uint64(key[8:])) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>32 ^ binary.LittleEndian.Uint64(key[16:]) ^ uint64(len(word))) * 0x94d049bb133111eb
	e := &c.slots[h>>(64-cacheBits)]
	return e, int(e.len) == len(word) && e.key == key
}

// keep puts a word into its slot, unless it has too many ids.
func (e *entry) keep(word string, ids []int32) {
	if len(ids) > maxCachedIDs {
		return
	}
	*e = entry{len: uint8(len(word)), n: uint8(len(ids))}
	copy(e.key[:], word)
	copy(e.ids[:], ids)
}
