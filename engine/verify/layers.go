package verify

import (
	"fmt"
	"slices"
)

// layers returns what compares hidden states, routes and selections as the
// layers of prompt i end. It is nil where the reference differs by design.
func (k *checker) layers(i int, ids []int32, p *Prompt, r *Report) (func(layer int) error, error) {
	if !k.want.Has(i, "hidden") || r.Reference != "logits" {
		return nil, nil
	}
	n := len(ids) * k.c.Hidden
	want, err := k.want.floats(i, "hidden", (k.c.Layers+1)*n)
	if err != nil {
		return nil, err
	}
	got := make([]float32, n)
	at, routed, indexed := 0, 0, 0 // hidden states, MoE layers and indexers seen
	return func(layer int) error {
		if at > k.c.Layers {
			return nil
		}
		read := k.m.Residual
		if at == k.c.Layers { // the reference's last one is normed
			read = k.m.Final
		}
		if err := read(got); err != nil {
			return err
		}
		if d := maxDiff(got, want[at*n:(at+1)*n]); !(d <= p.Hidden) || at == 0 {
			p.Hidden, p.HiddenLayer = larger(p.Hidden, d), at
		}
		at++
		if layer < 0 {
			return nil
		}
		if !k.c.Dense(layer) {
			if err := k.routes(i, routed, len(ids), p); err != nil {
				return err
			}
			routed++
		}
		if k.c.IndexerFull(layer) {
			if err := k.selections(i, indexed, len(ids), p); err != nil {
				return err
			}
			indexed++
		}
		return nil
	}, nil
}

// routes compares the experts of the j-th MoE layer.
func (k *checker) routes(i, j, rows int, p *Prompt) error {
	index, weight := fmt.Sprintf("expert_index.%d", j), fmt.Sprintf("expert_weight.%d", j)
	if !k.want.Has(i, index) {
		return nil
	}
	want, topK, err := k.want.ints(i, index)
	if err != nil {
		return err
	}
	if topK != k.c.ExpertsPerToken || len(want) != rows*topK {
		return fmt.Errorf("%s has %d values, %d a token: the model routes %d tokens to %d experts", key(i, index), len(want), topK, rows, k.c.ExpertsPerToken)
	}
	wantW, err := k.want.floats(i, weight, len(want))
	if err != nil {
		return err
	}
	got, gotW := make([]int32, len(want)), make([]float32, len(want))
	if err := k.m.Routes(got, gotW); err != nil {
		return err
	}
	for r := range rows {
		g, w, ww := got[r*topK:(r+1)*topK], want[r*topK:(r+1)*topK], wantW[r*topK:(r+1)*topK]
		order := sortedBy(w)
		if p.Routes.compare(g, pick(w, order)) {
			p.RouteWeight = larger(p.RouteWeight, maxDiff(gotW[r*topK:(r+1)*topK], pick(ww, order)))
		}
	}
	return nil
}

// selections compares the positions of the j-th indexer. The reference fills
// short rows up with positions that are masked: they do not count.
func (k *checker) selections(i, j, rows int, p *Prompt) error {
	name := fmt.Sprintf("index_topk.%d", j)
	if !k.want.Has(i, name) {
		return nil
	}
	want, cols, err := k.want.ints(i, name)
	if err != nil {
		return err
	}
	if cols > k.c.IndexTopK || cols*rows != len(want) {
		return fmt.Errorf("%s has %d values, %d a token: the model selects %d positions for %d tokens", key(i, name), len(want), cols, k.c.IndexTopK, rows)
	}
	topK := k.c.IndexTopK
	var got []int32
	if rows > topK { // else no row selects, and there is no memory for it
		got = make([]int32, rows*topK)
		if err := k.m.Selection(got); err != nil {
			return err
		}
	}
	for r := range rows {
		w := slices.DeleteFunc(slices.Clone(want[r*cols:(r+1)*cols]), func(s int32) bool { return s < 0 || int(s) > r })
		slices.Sort(w)
		var g []int32
		if k.c.IsLong(r) {
			g = got[r*topK : (r+1)*topK]
			if end := slices.Index(g, -1); end >= 0 {
				g = g[:end]
			}
		} else {
			for s := range r + 1 {
				g = append(g, int32(s))
			}
		}
		p.Selections.compare(g, w)
	}
	return nil
}

// sortedBy returns the indices of v in the order of its values.
func sortedBy(v []int32) []int {
	order := make([]int, len(v))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return int(v[a] - v[b]) })
	return order
}

func pick[T any](v []T, order []int) []T {
	out := make([]T, len(order))
	for i, o := range order {
		out[i] = v[o]
	}
	return out
}
