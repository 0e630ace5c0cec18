package importer

import (
	"cmp"
	"slices"
)

// rankKey is what a rank is: a device of a process.
type rankKey struct{ proc, device int32 }

// makeRanks numbers the (process, device) pairs that have GPU work, and gives every
// record its rank. Calls belong to the rank whose work they launch, others to the
// first of their process.
func (t *trace) makeRanks() error {
	index := map[rankKey]int32{}
	var keys []rankKey
	t.each(func(_ int32, r *record) {
		k := rankKey{r.proc, t.lanes[r.lane].device}
		if _, ok := index[k]; r.kind.onDevice() && !ok {
			index[k] = 0
			keys = append(keys, k)
		}
	})
	slices.SortFunc(keys, func(a, b rankKey) int {
		return cmp.Or(cmp.Compare(t.procs[a.proc].number, t.procs[b.proc].number),
			cmp.Compare(t.procs[a.proc].pid, t.procs[b.proc].pid),
			cmp.Compare(t.procs[a.proc].label, t.procs[b.proc].label), cmp.Compare(a.proc,
				b.proc), cmp.Compare(a.device, b.device))
	})
	numbers, err := t.rankNumbers(keys)
	if err != nil {
		return err
	}
	order := make([]int, len(keys))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(numbers[a], numbers[b]) })
	first := map[int32]int32{}
	for place, i := range order {
		k := keys[i]
		index[k] = int32(place)
		t.ranks = append(t.ranks, rank{number: numbers[i], proc: k.proc, device: k.device})
		if _, ok := first[k.proc]; !ok {
			first[k.proc] = int32(place)
			t.procs[k.proc].rank = numbers[i]
		}
	}
	t.giveRanks(index, first)
	return nil
}

// rankNumbers decides what the ranks are called. Processes with one device have the
// number that their file or label says; devices of one process count on.
func (t *trace) rankNumbers(keys []rankKey) ([]int32, error) {
	counted := make([]int32, len(keys))
	said := make([]int32, len(keys))
	inFile, inProc := map[int]int{}, map[int32]int{}
	for _, k := range keys {
		inFile[t.procs[k.proc].number]++
		inProc[k.proc]++
	}
	seen := map[int32]rankKey{}
	usable := !t.byDevice && !t.options.SetRank
	for i, k := range keys {
		p := &t.procs[k.proc]
		counted[i] = t.options.Rank + int32(i)
		switch {
		case p.labelled && inProc[k.proc] == 1:
			said[i] = p.label
		case inFile[p.number] == 1:
			said[i] = p.rank
		default:
			said[i] = -1
		}
		other, twice := seen[said[i]]
		if twice && usable && inFile[p.number] == 1 && inFile[t.procs[other.proc].number] == 1 {
			return nil, refuse("%s and %s are both of rank %d; say --rank N to number files in the order given",
				t.procs[other.proc].file, p.file, said[i])
		}
		seen[said[i]] = k
	}
	if _, unknown := seen[-1]; usable && !unknown && len(seen) == len(keys) {
		return said, nil
	}
	return counted, nil
}

// giveRanks gives every record its rank; first has the first rank of a process.
func (t *trace) giveRanks(index map[rankKey]int32, first map[int32]int32) {
	several := map[int32]bool{}
	for _, r := range t.ranks {
		several[r.proc] = several[r.proc] || t.ranks[first[r.proc]].device != r.device
	}
	type call struct {
		proc        int32
		correlation int64
	}
	of := map[call]int32{}
	t.each(func(_ int32, r *record) {
		if r.kind.onDevice() {
			r.rank = index[rankKey{r.proc, t.lanes[r.lane].device}]
			if c := (call{r.proc, r.correlation}); several[r.proc] {
				if _, ok := of[c]; !ok {
					of[c] = r.rank
				}
			}
		}
	})
	t.each(func(_ int32, r *record) {
		if r.kind.onDevice() {
			return
		}
		if k, ok := first[r.proc]; ok {
			r.rank = k
		}
		if k, ok := of[call{r.proc, r.correlation}]; ok {
			r.rank = k
		}
	})
}
