package importer

import (
	"fmt"
	"slices"
)

// poolCast is a cast found to be as large as the whole KV pool.
type poolCast struct {
	slots, width int64
	numel        int64
	evidence     string
}

// notePools reports casts of the whole pool.
func (t *trace) notePools(pools map[castKey]poolCast) {
	rows, ns := int64(0), int64(0)
	var one poolCast
	t.each(func(_ int32, r *record) {
		if p, ok := pools[castKey{r.name, r.shape}]; ok && r.kind == isKernel {
			rows, ns, one = rows+1, ns+r.end-r.start, p
		}
	})
	if rows > 0 {
		t.find("kv_pool_cast", severityNote, -1, rows, "%d casts of the whole KV pool, %s: %s", rows, millis(ns),
			one.evidence)
	}
}

// castKey identifies launches of one kernel at one size.
type castKey struct{ name, shape uint32 }

const (
	// smallestPool is the least number of values that an inferred pool has.
	smallestPool = 4 << 20
	// poolFactor is how much larger a pool's cast is than the next largest copy
	// or elementwise kernel of the trace, to be inferred from the grid alone.
	poolFactor = 8
)

// findPools returns the launches that cast the whole KV pool. With a pool given
// by the options it is those of that size. Otherwise a cast to or from a
// one-byte type counts if its launch has room for exactly a whole number of
// slots of the default width, comes once in several layers or steps, and is much
// larger than anything else that the trace copies. Equal size is strong
// evidence, not proof: the evidence is kept with every row.
func (t *trace) findPools() map[castKey]poolCast {
	type group struct {
		key   castKey
		size  copySize
		numel int64
		block int64
		count int64
		cast  bool
	}
	groups := map[castKey]*group{}
	t.each(func(_ int32, r *record) {
		if r.kind != isKernel {
			return
		}
		k := castKey{r.name, r.shape}
		g := groups[k]
		if g == nil {
			g = &group{key: k}
			class, _ := t.class(r)
			if size, ok := t.names.copySize(r.name); ok {
				g.size, g.cast = size, class == "copy.cast"
				g.numel, g.block = size.values(t.shapes[r.shape])
			} else {
				s := t.shapes[r.shape]
				g.numel = int64(s.grid[0]) * int64(s.block[0]) * 4
			}
			groups[k] = g
		}
		g.count++
	})
	var casts []*group
	var others []int64
	for _, g := range groups {
		if g.cast && g.numel > 0 && g.size.in <= 2 && g.size.out <= 2 {
			casts = append(casts, g)
		} else {
			others = append(others, g.numel)
		}
	}
	found := map[castKey]poolCast{}
	width := t.options.KVWidth
	if slots := t.options.KVSlots; slots > 0 {
		for _, g := range casts {
			for layers := int64(1); layers <= 128; layers++ {
				if total := slots * width * layers; total <= g.numel && total > g.numel-g.block {
					found[g.key] = poolCast{slots * layers, width, total, poolEvidence(t.shapes[g.key.shape], g.block,
						slots*layers, width)}
					break
				}
			}
		}
		return found
	}
	largest := int64(0)
	if len(others) > 0 {
		largest = slices.Max(others)
	}
	slices.SortFunc(casts, func(a, b *group) int { return compare(b.numel, a.numel) })
	for i, g := range casts {
		next := largest
		for _, other := range casts[i:] {
			if other.numel < g.numel {
				next = max(next, other.numel)
				break
			}
		}
		if g.numel < smallestPool || g.numel < poolFactor*next {
			break
		}
		if g.numel%width == 0 && g.count > 1 {
			slots := g.numel / width
			found[g.key] = poolCast{slots, width, g.numel, poolEvidence(t.shapes[g.key.shape], g.block, slots, width)}
		}
	}
	return found
}

func poolEvidence(s shape, block, slots, width int64) string {
	return fmt.Sprintf("grid %d x %d = %d slots x %d", s.grid[0], block, slots, width)
}
