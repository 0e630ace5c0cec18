package timeline

// SampleSteps bounds the steps of one kind that a [Sampler] keeps.
const SampleSteps = 200

// Sampler chooses steps of a job whose length nobody knows, so that of each kind at
// most SampleSteps are kept, evenly spread over the job, and at least about half as
// many of a kind that has them. It takes all steps at first; whenever it has taken too
// many of a kind it keeps about every second one of them, and takes as few of those to
// come. What it keeps follows from the steps alone. The zero value has seen none.
type Sampler struct {
	kinds map[string]*sampledKind
}

// sampledKind are the steps of a kind.
type sampledKind struct {
	least int               // level of steps that are kept
	taken [maxLevel + 1]int // steps that were taken, by level
}

const maxLevel = 62

// Choose says whether to take a step. Steps come in order, each once.
func (s *Sampler) Choose(step int64, kind string) bool {
	if s.kinds == nil {
		s.kinds = map[string]*sampledKind{}
	}
	k := s.kinds[kind]
	if k == nil {
		k = &sampledKind{}
		s.kinds[kind] = k
	}
	at := level(step)
	if at < k.least {
		return false
	}
	k.taken[at]++
	for k.kept() > SampleSteps {
		k.least++
	}
	return at >= k.least
}

func (k *sampledKind) kept() int {
	n := 0
	for _, taken := range k.taken[k.least:] {
		n += taken
	}
	return n
}

// Keeps says of a step that was taken whether it is still one of those to keep.
func (s *Sampler) Keeps(step int64, kind string) bool {
	k := s.kinds[kind]
	return k == nil || level(step) >= k.least
}

// Dropped reports whether steps were taken that are not to be kept.
func (s *Sampler) Dropped() bool {
	for _, k := range s.kinds {
		for _, n := range k.taken[:k.least] {
			if n > 0 {
				return true
			}
		}
	}
	return false
}

// level is the largest power of two so that the step is the one that was drawn from
// the block of so many steps: of each block's two halves one is drawn, by a hash of
// the block, and the step drawn from that half is the block's.
func level(step int64) int {
	block := uint64(step)
	for k := range maxLevel {
		parent := block >> 1
		if block&1 != mix(parent<<6|uint64(k))&1 {
			return k
		}
		block = parent
	}
	return maxLevel
}

// mix scatters a number's bits (the finaliser of splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
