package sched

// pool is a stack of free pages. The last one freed is the next one used: it is
// the likeliest to be in a cache. A page has several owners where sequences share a
// prefix: those that run with it, and nodes of the tree that keep it for those to come.
type pool struct {
	free []int32
	refs []int32 // owners of each page, all
	kept []int32 // of them, nodes of the tree
	idle int     // pages that only the tree keeps

	// Of each page, how many of its first tokens have entries in the prediction layer's
	// caches; nil: there is no such layer.
	ready []uint16
}

func newPool(n int) *pool {
	p := &pool{free: make([]int32, n), refs: make([]int32, n), kept: make([]int32, n)}
	for i := range p.free {
		p.free[i] = int32(n - 1 - i)
	}
	return p
}

func (p *pool) used() int { return len(p.refs) - len(p.free) }

// take gives a free page to a sequence.
func (p *pool) take() int32 {
	page := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	p.refs[page] = 1
	if p.ready != nil {
		p.ready[page] = 0
	}
	return page
}

// share gives pages that are in use to one more sequence.
func (p *pool) share(pages ...int32) {
	for _, page := range pages {
		if p.onlyKept(page) {
			p.idle--
		}
		p.refs[page]++
	}
}

// give takes a sequence's pages back, the last of them first into use again.
func (p *pool) give(pages ...int32) {
	for _, page := range pages {
		p.refs[page]--
		if p.refs[page] == 0 {
			p.free = append(p.free, page)
		} else if p.onlyKept(page) {
			p.idle++
		}
	}
}

// keep makes a node of the tree an owner of a page that is in use.
func (p *pool) keep(page int32) {
	p.refs[page]++
	p.kept[page]++
}

// drop ends a node's part in a page.
func (p *pool) drop(page int32) {
	last := p.refs[page] == 1
	p.refs[page]--
	p.kept[page]--
	if last {
		p.idle--
		p.free = append(p.free, page)
	}
}

func (p *pool) onlyKept(page int32) bool { return p.refs[page] > 0 && p.refs[page] == p.kept[page] }

// shared reports whether several sequences run with a page.
func (p *pool) shared(page int32) bool { return p.refs[page]-p.kept[page] > 1 }
