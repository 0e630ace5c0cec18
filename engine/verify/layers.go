package verify

import (
	"cmp"
	"fmt"
	"slices"
)

// trail has a hash of the choices that a row's values come from, a row each:
// experts and positions in every layer so far. Choices are jumps: a row beyond
// a different choice is not comparable as a sum of small errors is.
type trail []uint64

func (t trail) add(row int, choice []int32) {
	h := t[row]
	for _, c := range choice {
		h = (h ^ uint64(uint32(c))) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	t[row] = h*31 + 1
}

// layers looks at what each layer leaves.
type layers struct {
	*checker
	prompt, rows int
	p            *Prompt
	made         trail
	hidden       []float32   // [layers+1, rows, hidden] of the reference; nil: none
	compare      bool        // the reference is of this run
	exact        bool        // choices must be the reference's
	tied         int         // the first row that a tie in a layer before has moved
	ties         []int       // rows of ties in this layer
	own          [][]float32 // an indexer's scores of rows from topK on, in this layer
	at           int         // hidden states seen
	routed       int         // MoE layers seen
	indexed      int         // indexers seen
}

// expect reads the reference's hidden states, if it has those of this run.
func (l *layers) expect(r *Report) (err error) {
	l.compare, l.exact = r.Reference == "logits", r.Exact
	if l.want.Has(l.prompt, "hidden") && l.compare {
		l.hidden, err = l.want.floats(l.prompt, "hidden", (l.c.Layers+1)*l.rows*l.c.Hidden)
	}
	return err
}

// after is called as a layer has ended.
func (l *layers) after(layer int) error {
	if layer < 0 {
		return l.states()
	}
	l.ties = l.ties[:0]
	if l.c.IndexerFull(layer) {
		if err := l.selections(layer); err != nil {
			return err
		}
	}
	if !l.c.Dense(layer) {
		if err := l.routes(layer); err != nil {
			return err
		}
	}
	l.own = nil
	for _, r := range l.ties {
		l.tied = min(l.tied, r)
	}
	return l.states()
}

// states compares the hidden states.
func (l *layers) states() error {
	n := l.rows * l.c.Hidden
	if l.hidden == nil || l.at > l.c.Layers {
		return nil
	}
	want, got := l.hidden[l.at*n:(l.at+1)*n], make([]float32, n)
	read := l.m.Residual
	if l.at == l.c.Layers { // the reference's last one is normed
		read = l.m.Final
	}
	if err := read(got); err != nil {
		return err
	}
	settled := l.tied * l.c.Hidden // rows beyond a tie have other inputs
	if d := maxDiff(got[:settled], want[:settled]) / scale(want); !(d <= l.p.Hidden) || l.at == 0 {
		l.p.Hidden, l.p.HiddenLayer = larger(l.p.Hidden, d), l.at
	}
	l.at++
	return nil
}

// routes records the experts of a MoE layer and compares them.
func (l *layers) routes(layer int) error {
	j, topK := l.routed, l.c.ExpertsPerToken
	l.routed++
	got, gotW := make([]int32, l.rows*topK), make([]float32, l.rows*topK)
	if err := l.m.Routes(got, gotW); err != nil {
		return err
	}
	for r := range l.rows {
		l.made.add(r, got[r*topK:(r+1)*topK])
	}
	index := fmt.Sprintf("expert_index.%d", j)
	if !l.compare || !l.want.Has(l.prompt, index) {
		return nil
	}
	want, cols, err := l.want.ints(l.prompt, index)
	if err != nil {
		return err
	}
	if cols != topK || len(want) != len(got) {
		return fmt.Errorf("%s has %d values, %d a token: the model routes %d tokens to %d experts",
			key(l.prompt, index), len(want), cols, l.rows, topK)
	}
	wantW, err := l.want.floats(l.prompt, fmt.Sprintf("expert_weight.%d", j), len(want))
	if err != nil {
		return err
	}
	for r := range l.rows {
		at := func(v []float32) []float32 { return v[r*topK : (r+1)*topK] }
		order := sortedBy(want[r*topK : (r+1)*topK])
		ours, theirs := got[r*topK:(r+1)*topK], pick(want[r*topK:(r+1)*topK], order)
		if l.p.Routes.compare(ours, theirs) {
			if l.comparable(r) {
				l.p.RouteWeight = larger(l.p.RouteWeight, maxDiff(at(gotW), pick(at(wantW), order)))
			}
			continue
		}
		if err := l.differs(&l.p.Routes, "route", layer, r, func() (choice, error) {
			return l.route(layer, r, ours,
				theirs)
		}); err != nil {
			return err
		}
	}
	return nil
}

// selections records the positions of an indexer and compares them. The
// reference fills short rows up with positions that are masked: they do not count.
func (l *layers) selections(layer int) error {
	j, topK := l.indexed, l.c.IndexTopK
	l.indexed++
	var got []int32
	if l.rows > topK { // else no row selects, and there is no memory for it
		got = make([]int32, l.rows*topK)
		if err := l.m.Selection(got); err != nil {
			return err
		}
		for r := topK; r < l.rows; r++ {
			l.made.add(r, got[r*topK:(r+1)*topK])
		}
	}
	name := fmt.Sprintf("index_topk.%d", j)
	if !l.compare || !l.want.Has(l.prompt, name) {
		return nil
	}
	want, cols, err := l.want.ints(l.prompt, name)
	if err != nil {
		return err
	}
	if cols > topK || cols*l.rows != len(want) {
		return fmt.Errorf("%s has %d values, %d a token: the model selects %d positions for %d tokens",
			key(l.prompt, name), len(want), cols, topK, l.rows)
	}
	for r := range l.rows {
		w := slices.DeleteFunc(slices.Clone(want[r*cols:(r+1)*cols]), func(s int32) bool { return s < 0 || int(s) > r })
		slices.Sort(w)
		ours := l.selected(got, r)
		if l.p.Selections.compare(ours, w) {
			continue
		}
		if err := l.differs(&l.p.Selections, "selection", layer, r, func() (choice, error) {
			return l.selection(r, ours,
				w), nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// selected returns the positions that row r attends to.
func (l *layers) selected(sel []int32, r int) []int32 {
	topK := l.c.IndexTopK
	if l.c.IsLong(r) {
		s := sel[r*topK : (r+1)*topK]
		if end := slices.Index(s, -1); end >= 0 {
			s = s[:end]
		}
		return s
	}
	s := make([]int32, r+1)
	for i := range s {
		s[i] = int32(i)
	}
	return s
}

// sortedBy returns the indices of v in the order of its values.
func sortedBy(v []int32) []int {
	order := make([]int, len(v))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(v[a], v[b]) })
	return order
}

func pick[T any](v []T, order []int) []T {
	out := make([]T, len(order))
	for i, o := range order {
		out[i] = v[o]
	}
	return out
}
