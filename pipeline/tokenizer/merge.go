package tokenizer

import "slices"

// mergeTable maps a pair of ids to the rank of its merge and the merged id. It
// is open addressing over two flat arrays: a lookup is most of an encoder's work.
type mergeTable struct {
	keys  []uint64 // left<<32 | right; noMerge where free
	vals  []uint64 // rank<<32 | merged id
	shift uint
}

// noMerge is above every rank and no pair's key.
const noMerge = ^uint64(0)

// newMergeTable makes room for n pairs.
func newMergeTable(n int) mergeTable {
	bits := uint(4)
	for 1<<bits < 2*n {
		bits++
	}
	t := mergeTable{make([]uint64, 1<<bits), make([]uint64, 1<<bits), 64 - bits}
	for i := range t.keys {
		t.keys[i] = noMerge
	}
	return t
}

// slot is where key is, or where it would go.
func (t *mergeTable) slot(key uint64) int {
	i := int(key * 0x9e3779b97f4a7c15 >> t.shift)
	for t.keys[i] != key && t.keys[i] != noMerge {
		i = (i + 1) & (len(t.keys) - 1)
	}
	return i
}

// set adds a merge; a pair that is there already is replaced, as in the library.
func (t *mergeTable) set(left, right int32, rank int, id int32) {
	key := uint64(left)<<32 | uint64(right)
	i := t.slot(key)
	t.keys[i], t.vals[i] = key, uint64(rank)<<32|uint64(id)
}

// get returns rank<<32 | id, or noMerge.
func (t *mergeTable) get(left, right int32) uint64 {
	key := uint64(left)<<32 | uint64(right)
	if i := t.slot(key); t.keys[i] == key {
		return t.vals[i]
	}
	return noMerge
}

// merger applies merges to one word, lowest rank first, leftmost among equals.
type merger struct {
	pairs []uint64 // by position: what mergeTable.get says of the symbol there and its right neighbour
	next  []int32  // long words only: position of the right neighbour; len(symbols) at the end
	prev  []int32  // long words only
	queue []uint64 // long words only: a heap of rank<<32 | position
}

// shortWord is where scanning all pairs for the lowest stops being cheaper than
// keeping a heap.
const shortWord = 48

// merge merges symbols in place and returns how many are left.
func (m *merger) merge(t *mergeTable, symbols []int32) int {
	switch n := len(symbols); {
	case n < 2:
		return n
	case n <= shortWord:
		return m.short(t, symbols)
	}
	return m.long(t, symbols)
}

func (m *merger) short(t *mergeTable, symbols []int32) int {
	n := len(symbols)
	pairs := slices.Grow(m.pairs[:0], shortWord)[:n-1]
	m.pairs = pairs
	for i := range pairs {
		pairs[i] = t.get(symbols[i], symbols[i+1])
	}
	for {
		at, low := 0, noMerge
		for i, p := range pairs {
			if p < low {
				at, low = i, p
			}
		}
		if low == noMerge {
			return n
		}
		symbols[at] = int32(uint32(low))
		copy(symbols[at+1:], symbols[at+2:n])
		copy(pairs[at:], pairs[at+1:])
		pairs = pairs[:len(pairs)-1]
		n--
		if at > 0 {
			pairs[at-1] = t.get(symbols[at-1], symbols[at])
		}
		if at < len(pairs) {
			pairs[at] = t.get(symbols[at], symbols[at+1])
		}
	}
}

// long is short with a heap and a linked list: O(n log n) for words such as
// 300 KB of one letter.
func (m *merger) long(t *mergeTable, symbols []int32) int {
	n := len(symbols)
	m.pairs = slices.Grow(m.pairs[:0], n)[:n]
	m.next = slices.Grow(m.next[:0], n)[:n]
	m.prev = slices.Grow(m.prev[:0], n)[:n]
	m.queue = m.queue[:0]
	for i := range n {
		m.next[i], m.prev[i], m.pairs[i] = int32(i+1), int32(i-1), noMerge
		if i+1 < n {
			m.look(t, symbols, int32(i))
		}
	}
	for len(m.queue) > 0 {
		top := m.pop()
		at := int32(uint32(top))
		pair := m.pairs[at]
		if pair == noMerge || pair>>32 != top>>32 {
			continue // what stood here has been merged since
		}
		right := m.next[at]
		symbols[at] = int32(uint32(pair))
		m.pairs[at], m.pairs[right] = noMerge, noMerge
		next := m.next[right]
		m.next[at] = next
		if int(next) < n {
			m.prev[next] = at
			m.look(t, symbols, at)
		}
		if p := m.prev[at]; p >= 0 {
			m.pairs[p] = noMerge
			m.look(t, symbols, p)
		}
	}
	out := 0
	for i := int32(0); int(i) < n; i = m.next[i] {
		symbols[out] = symbols[i]
		out++
	}
	return out
}

// look notes and queues the pair at position i.
func (m *merger) look(t *mergeTable, symbols []int32, i int32) {
	if p := t.get(symbols[i], symbols[m.next[i]]); p != noMerge {
		m.pairs[i] = p
		m.push(p>>32<<32 | uint64(uint32(i)))
	}
}

func (m *merger) push(v uint64) {
	q := append(m.queue, v)
	i := len(q) - 1
	for i > 0 && q[(i-1)/2] > v {
		q[i] = q[(i-1)/2]
		i = (i - 1) / 2
	}
	q[i] = v
	m.queue = q
}

func (m *merger) pop() uint64 {
	q := m.queue
	top, v := q[0], q[len(q)-1]
	q = q[:len(q)-1]
	for i := 0; len(q) > 0; {
		c := 2*i + 1
		if c+1 < len(q) && q[c+1] < q[c] {
			c++
		}
		if c >= len(q) || q[c] >= v {
			q[i] = v
			break
		}
		q[i] = q[c]
		i = c
	}
	m.queue = q
	return top
}

// release frees the space that an unusually long word took.
func (m *merger) release() {
	if cap(m.pairs) > 1<<16 {
		*m = merger{}
	}
}
