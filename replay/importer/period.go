package importer

import "slices"

// period is a stretch of a sequence that repeats itself.
type period struct {
	start   int // where the first repetition begins
	length  int // of one repetition
	repeats int // whole ones, 3 or more; 0: there is no period
}

const (
	minRepeats = 3
	// longSequence is the length from which only likely lengths are tried.
	longSequence = 1 << 13
	// shortestLayer is the least number of kernels of a layer.
	shortestLayer = 4
)

// findPeriod returns the shortest period that covers about as much of the
// sequence as any other, if that is at least minShare of it.
func findPeriod(sequence []uint32, minShare float64) period {
	n := len(sequence)
	var best period
	try := func(length int) {
		run, runStart := longestRun(sequence, length)
		p := period{start: runStart, length: length, repeats: (run + length) / length}
		if p.repeats < minRepeats || float64(p.covered()) < minShare*float64(n) {
			return
		}
		// A longer period must cover clearly more than a shorter one.
		if best.repeats == 0 || 100*p.covered() > 103*best.covered() {
			best = p
		}
	}
	if n <= longSequence {
		for length := 1; length <= n/minRepeats; length++ {
			try(length)
		}
	} else {
		for _, length := range likelyLengths(sequence) {
			try(length)
		}
	}
	return best
}

func (p period) covered() int { return p.repeats * p.length }

// longestRun returns the longest stretch with sequence[i] == sequence[i+shift]
// and where it begins.
func longestRun(sequence []uint32, shift int) (run, start int) {
	from := 0
	for i := 0; i+shift < len(sequence); i++ {
		if sequence[i] != sequence[i+shift] {
			from = i + 1
			continue
		}
		if i+1-from > run {
			run, start = i+1-from, from
		}
	}
	return run, start
}

// likelyLengths returns the distances at which names come back most often,
// shortest first.
func likelyLengths(sequence []uint32) []int {
	last := map[uint32]int{}
	count := map[int]int{}
	for i, s := range sequence {
		if k, ok := last[s]; ok && i-k <= len(sequence)/minRepeats {
			if _, ok := count[i-k]; ok || len(count) < 1<<16 {
				count[i-k]++
			}
		}
		last[s] = i
	}
	type candidate struct{ length, weight int }
	var all []candidate
	for length, n := range count {
		all = append(all, candidate{length, n * length}) // how much of the sequence it explains
	}
	slices.SortFunc(all, func(a, b candidate) int {
		if a.weight != b.weight {
			return b.weight - a.weight
		}
		return a.length - b.length
	})
	if len(all) > 64 {
		all = all[:64]
	}
	out := make([]int, len(all))
	for i, c := range all {
		out[i] = c.length
	}
	slices.Sort(out)
	return out
}

// findLayers returns where the layers of a step begin, and behind the last
// where it ends; nil: the step has no layers. Layers that are all alike are the
// periods of the sequence. Layers that take turns between two forms are the
// periods of what all of them have exactly once.
func findLayers(sequence []uint32) []int {
	p := findPeriod(sequence, 0.5)
	anchored := anchoredLayers(sequence)
	if 2*(len(anchored)-1) >= 3*p.repeats && len(anchored) > minRepeats {
		return anchored
	}
	if p.repeats == 0 || p.length < shortestLayer {
		return nil
	}
	bounds := make([]int, p.repeats+1)
	for i := range bounds {
		bounds[i] = p.start + i*p.length
	}
	return bounds
}

// anchoredLayers finds layers by the kernels that come once in each.
func anchoredLayers(sequence []uint32) []int {
	count := map[uint32]int{}
	for _, s := range sequence {
		count[s]++
	}
	kinds := map[int]int{} // how many kernels come so often
	for _, n := range count {
		kinds[n]++
	}
	layers := 0
	for n, k := range kinds {
		if n >= minRepeats && (kinds[layers] < k || kinds[layers] == k && n > layers) {
			layers = n
		}
	}
	if layers == 0 {
		return nil
	}
	var places []int
	var anchors []uint32
	for i, s := range sequence {
		if count[s] == layers {
			places, anchors = append(places, i), append(anchors, s)
		}
	}
	each := kinds[layers]
	for i, s := range anchors {
		if s != anchors[i%each] {
			return nil // not in the same order in each layer
		}
	}
	starts := make([]int, layers)
	for i := range starts {
		starts[i] = places[i*each]
	}
	// What precedes the first anchor in most layers belongs to the layer too.
	back := 0
	for ; ; back++ {
		votes := map[uint32]int{}
		for i, s := range starts {
			before := -1
			if i > 0 {
				before = places[i*each-1]
			}
			if k := s - back - 1; k > before {
				votes[sequence[k]]++
			}
		}
		most := 0
		for _, n := range votes {
			most = max(most, n)
		}
		if 5*most < 4*layers {
			break
		}
	}
	bounds := make([]int, layers+1)
	for i, s := range starts {
		least := 0
		if i > 0 {
			least = places[i*each-1] + 1
		}
		bounds[i] = max(s-back, least)
	}
	// The last layer ends as far behind its last anchor as the others do at least.
	tail := len(sequence)
	for i := 1; i < layers; i++ {
		tail = min(tail, bounds[i]-places[i*each-1])
	}
	bounds[layers] = min(places[layers*each-1]+tail, len(sequence))
	if covered := bounds[layers] - bounds[0]; 2*covered < len(sequence) || covered < shortestLayer*layers {
		return nil
	}
	return bounds
}
