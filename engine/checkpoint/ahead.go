package checkpoint

import (
	"cmp"
	"slices"
)

// ahead is a part of a file that will be read.
type ahead struct {
	file   *file
	lo, hi int64
}

// ReadAhead asks the system to bring tensors to memory that will be read soon, and
// returns when it was asked for all of them, which can take a while. Names that
// are not there are passed over.
func (c *Checkpoint) ReadAhead(names []string) {
	var parts []ahead
	for _, n := range names {
		t := c.tensors[n]
		if t == nil || t.file == nil || t.file.f == nil || t.Size() == 0 { // in memory already
			continue
		}
		parts = append(parts, ahead{t.file, t.at, t.at + t.Size()})
	}
	slices.SortFunc(parts, func(a, b ahead) int {
		return cmp.Or(cmp.Compare(a.file.name, b.file.name), cmp.Compare(a.lo, b.lo))
	})
	for i := 0; i < len(parts); {
		p := parts[i]
		for i++; i < len(parts) && parts[i].file == p.file && parts[i].lo-p.hi < nearby; i++ {
			p.hi = max(p.hi, parts[i].hi)
		}
		willNeed(p.file.f, p.lo, p.hi)
	}
}

// nearby are parts that are read as one: the system reads in larger pieces.
const nearby = 64 << 10
