package sched

// pool is a stack of free pages. The last one freed is the next one used: it is
// the likeliest to be in a cache.
type pool struct {
	free  []int32
	total int
}

func newPool(n int) *pool {
	p := &pool{free: make([]int32, n), total: n}
	for i := range p.free {
		p.free[i] = int32(n - 1 - i)
	}
	return p
}

func (p *pool) take() int32 {
	page := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	return page
}

func (p *pool) give(pages []int32) { p.free = append(p.free, pages...) }
