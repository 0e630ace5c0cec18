package importer

import (
	"cmp"
	"slices"
)

// makeRanks gives every record its rank. A torch file is one rank; of a report
// with several processes every (process, device) is one.
func (t *trace) makeRanks() error {
	if t.byDevice {
		t.ranksOfDevices()
		return nil
	}
	order := make([]int32, len(t.procs))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(t.procs[a].rank, t.procs[b].rank) })
	place := make([]int32, len(order))
	for k, p := range order {
		if k > 0 && t.procs[p].rank == t.procs[order[k-1]].rank {
			return refuse("%s and %s are both of rank %d; say --rank N to number files in the order given", t.procs[order[k-1]].file, t.procs[p].file, t.procs[p].rank)
		}
		place[p] = int32(k)
		t.ranks = append(t.ranks, rank{number: t.procs[p].rank, proc: p, device: -1})
	}
	t.each(func(_ int32, r *record) { r.rank = place[r.proc] })
	return nil
}

// ranksOfDevices numbers the (process, device) pairs that have GPU work.
func (t *trace) ranksOfDevices() {
	type key struct{ proc, device int32 }
	index := map[key]int32{}
	var keys []key
	t.each(func(_ int32, r *record) {
		k := key{r.proc, t.lanes[r.lane].device}
		if _, ok := index[k]; r.kind.onDevice() && !ok {
			index[k] = 0
			keys = append(keys, k)
		}
	})
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(t.procs[a.proc].number, t.procs[b.proc].number), cmp.Compare(t.procs[a.proc].pid, t.procs[b.proc].pid), cmp.Compare(a.device, b.device))
	})
	first := map[int32]int32{}
	for i, k := range keys {
		index[k] = int32(i)
		t.ranks = append(t.ranks, rank{number: t.options.Rank + int32(i), proc: k.proc, device: k.device})
		if _, ok := first[k.proc]; !ok {
			first[k.proc] = int32(i)
			t.procs[k.proc].rank = t.options.Rank + int32(i)
		}
	}
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
			r.rank = index[key{r.proc, t.lanes[r.lane].device}]
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
