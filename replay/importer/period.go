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
