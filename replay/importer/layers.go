package importer

import (
	"encoding/binary"
	"hash/maphash"
	"maps"
	"slices"
)

// mainLane returns the kernels of the lane of a rank that has most of them, in
// order of start.
func (t *trace) mainLane(order []int32, rank int32) []int32 {
	count := map[uint32]int{}
	for _, i := range order {
		if r := t.at(i); r.rank == rank && r.kind == isKernel {
			count[r.lane]++
		}
	}
	best, most := uint32(0), 0
	for l, n := range count {
		if n > most || n == most && l < best {
			best, most = l, n
		}
	}
	out := make([]int32, 0, most)
	for _, i := range order {
		if r := t.at(i); r.rank == rank && r.kind == isKernel && r.lane == best {
			out = append(out, i)
		}
	}
	return out
}

func (t *trace) sequence(kernels []int32) []uint32 {
	s := make([]uint32, len(kernels))
	for i, k := range kernels {
		// Layers of a model often take turns between variants of one kernel, so
		// kernels of one rule count as the same.
		r := t.at(k)
		if _, rule := t.class(r); rule > 0 && (rule > len(Rules) || Rules[rule-1].Class != byOperations) {
			s[i] = uint32(rule)
		} else {
			s[i] = uint32(t.rules.numbers()) + r.name
		}
	}
	return s
}

// longestSequence bounds the search for periods.
const longestSequence = 1 << 22

// layersByPeriod finds the layers of steps whose device rows have none from
// annotations.
func (t *trace) layersByPeriod() {
	type key struct {
		rank, step int32
	}
	has := map[key][2]int{} // device rows, and those with a layer
	t.each(func(_ int32, r *record) {
		if !r.kind.onDevice() || r.step < 0 {
			return
		}
		h := has[key{r.rank, r.step}]
		h[0]++
		if r.layer >= 0 {
			h[1]++
		}
		has[key{r.rank, r.step}] = h
	})
	layersOf := map[uint64][]int{} // by hash of the sequence: steps repeat
	seed := maphash.MakeSeed()
	found, without, annotated := 0, 0, 0
	var example []int
	for rank := range t.ranks {
		bySteps := map[int32][]int32{}
		for _, i := range t.mainLane(t.order, int32(rank)) {
			if s := t.at(i).step; s >= 0 {
				bySteps[s] = append(bySteps[s], i)
			}
		}
		starts := map[int32][]int64{} // of layers, by step
		for _, s := range slices.Sorted(maps.Keys(bySteps)) {
			kernels := bySteps[s]
			h := has[key{int32(rank), s}]
			if 3*h[1] >= h[0] {
				annotated++
				continue
			}
			if len(kernels) > longestSequence {
				without++
				continue
			}
			sequence := t.sequence(kernels)
			sum := hash(seed, sequence)
			bounds, ok := layersOf[sum]
			if !ok {
				bounds = findLayers(sequence)
				layersOf[sum] = bounds
			}
			if len(bounds) == 0 {
				without++
				continue
			}
			found++
			if len(bounds) > len(example) {
				example = bounds
			}
			layer := -1
			for k, i := range kernels {
				if layer < len(bounds)-1 && k == bounds[layer+1] {
					layer++
					starts[s] = append(starts[s], t.at(i).start)
				}
				if t.at(i).layer = -1; layer < len(bounds)-1 {
					t.at(i).layer = int16(min(layer, 1<<15-1))
				}
			}
			if len(starts[s]) < len(bounds) { // the last layer ends the step
				starts[s] = append(starts[s], 1<<63-1)
			}
		}
		t.otherLanes(int32(rank), starts)
	}
	switch {
	case annotated > 0:
		t.find("layers", severityNote, -1, 0, "layers by annotation")
	case found > 0:
		t.find("layers", severityNote, -1, int64(len(example)-1),
			"layers by the period of the kernels: %d repetitions of %d kernels; a layer's number is its repetition",
			len(example)-1, example[2]-example[1])
	default:
		t.find("no_layers", severityNote, -1, 0, "no layer annotations and no period inside steps: rows have no layer")
	}
	if found > 0 && without > 0 {
		t.find("odd_steps", severityNote, -1, int64(without),
			"steps without a period inside, and so without layers: %d", without)
	}
}

// otherLanes gives work beside the main lane the layer that the main lane was
// in when it started.
func (t *trace) otherLanes(rank int32, starts map[int32][]int64) {
	t.each(func(_ int32, r *record) {
		if r.rank != rank || !r.kind.onDevice() || r.layer >= 0 || r.step < 0 {
			return
		}
		layers := starts[r.step] // of the layers and behind the last
		k, same := slices.BinarySearch(layers, r.start)
		if !same {
			k--
		}
		if k >= 0 && k < len(layers)-1 {
			r.layer = int16(min(k, 1<<15-1))
		}
	})
}

func hash(seed maphash.Seed, sequence []uint32) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	var b [4]byte
	for _, s := range sequence {
		binary.LittleEndian.PutUint32(b[:], s)
		h.Write(b[:])
	}
	return h.Sum64()
}
