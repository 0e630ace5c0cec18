package sched

import "slices"

// queue is the sequences that wait, the best first: a heap.
type queue []*Seq

// before reports whether a goes before b: those that ran already, in the order in
// which they began, then those with the longest answers, so that few rows are left
// alone at the end, then as they were added.
func before(a, b *Seq) bool {
	switch {
	case a.turn != b.turn:
		return a.turn < b.turn
	case a.expect != b.expect:
		return a.expect > b.expect
	}
	return a.order < b.order
}

// sort makes a heap of it, whatever its order.
func (w queue) sort() {
	slices.SortFunc(w, func(a, b *Seq) int {
		if before(a, b) {
			return -1
		}
		return 1
	})
	for i, q := range w {
		q.place = i
	}
}

func (w *queue) put(i int, q *Seq) { (*w)[i], q.place = q, i }

func (w *queue) push(q *Seq) {
	*w = append(*w, q)
	w.up(len(*w)-1, q)
}

// up puts q at i or nearer to the front.
func (w *queue) up(i int, q *Seq) {
	for i > 0 && before(q, (*w)[(i-1)/2]) {
		w.put(i, (*w)[(i-1)/2])
		i = (i - 1) / 2
	}
	w.put(i, q)
}

// remove takes out a sequence that is in the queue.
func (w *queue) remove(q *Seq) {
	i, n := q.place, len(*w)-1
	last := (*w)[n]
	(*w)[n] = nil
	*w = (*w)[:n]
	q.place = -1
	if i == n {
		return
	}
	for {
		k := 2*i + 1
		if k+1 < n && before((*w)[k+1], (*w)[k]) {
			k++
		}
		if k >= n || !before((*w)[k], last) {
			break
		}
		w.put(i, (*w)[k])
		i = k
	}
	w.up(i, last)
}
