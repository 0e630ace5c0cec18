package verify

import (
	"fmt"
	"math"
	"slices"

	"glmbatch/engine/glm5"
	"glmbatch/kernels"
)

// tieBound is how far apart scores may be that rounding puts in either order,
// relative to the largest of their row: sums of some hundred float32 products in
// another order differ by less.
const tieBound = 0x1p-16

// Difference is a choice that is not the reference's, in the first layer where the
// two have the same inputs.
type Difference struct {
	What   string  `json:"what"` // route or selection
	Layer  int     `json:"layer"`
	Row    int     `json:"row"`
	Count  int     `json:"count"`  // of members that differ
	Margin float64 `json:"margin"` // by which our scores contradict the reference's choice, at most
	Scale  float64 `json:"scale"`  // the largest score of the row
	Tie    bool    `json:"tie"`    // the margin is within rounding
}

func (d Difference) String() string {
	kind := "a fault"
	if d.Tie {
		kind = "a tie"
	}
	return fmt.Sprintf("layer %d, row %d: %s differs in %d, by a margin of %.2g at scores up to %.2g: %s", d.Layer,
		d.Row, d.What, d.Count, d.Margin, d.Scale, kind)
}

// choice is what our scores say of what was chosen by one side only.
type choice struct {
	count         int
	margin, scale float64
}

// comparable reports whether a row has the reference's inputs: no tie before it, nor
// in its own selection in this layer.
func (l *layers) comparable(r int) bool { return r < l.tied && !slices.Contains(l.ties, r) }

// differs judges a choice that is not the reference's.
func (l *layers) differs(s *Sets, what string, layer, r int, look func() (choice, error)) error {
	if !l.exact {
		return nil
	}
	if !l.comparable(r) {
		s.After++
		return nil
	}
	c, err := look()
	if err != nil {
		return err
	}
	d := Difference{What: what, Layer: layer, Row: r, Count: c.count, Margin: c.margin, Scale: c.scale,
		Tie: c.margin <= tieBound*c.scale}
	l.p.Differences = append(l.p.Differences, d)
	if d.Tie {
		s.Tied++
		l.ties = append(l.ties, r)
	}
	return nil
}

// scored keeps the scores that an indexer has left for the next rows.
func (l *layers) scored(c *kernels.Call) error {
	if !l.compare || !l.exact {
		return nil
	}
	rows, width := int(c.Dims.M), int(c.Dims.N)
	v := make([]float32, rows*width)
	if err := l.m.Scores(v); err != nil {
		return err
	}
	for r := range rows {
		l.own = append(l.own, v[r*width:(r+1)*width])
	}
	return nil
}

// selection compares two selections of a row by our scores.
func (l *layers) selection(r int, ours, theirs []int32) choice {
	at := r - l.c.IndexTopK
	if at < 0 || at >= len(l.own) || r >= len(l.own[at]) {
		return choice{count: len(theirs), margin: math.MaxFloat64}
	}
	scores := make([]float64, r+1)
	for s := range scores {
		scores[s] = float64(l.own[at][s])
	}
	return contradiction(scores, ours, theirs)
}

// route compares two sets of experts of a row by our scores.
func (l *layers) route(layer, r int, ours, theirs []int32) (choice, error) {
	n := l.c.Experts
	logits := make([]float32, l.rows*n)
	if err := l.m.Router(logits); err != nil {
		return choice{}, err
	}
	bias, err := l.ck.Vector(glm5.LayerPrefix(layer) + "mlp.gate.e_score_correction_bias")
	if err != nil {
		return choice{}, err
	}
	scores := make([]float64, n)
	for e := range scores {
		scores[e] = 1/(1+math.Exp(-float64(logits[r*n+e]))) + float64(bias[e])
	}
	if l.c.Groups == 1 {
		return contradiction(scores, ours, theirs), nil
	}
	// Groups are chosen first, by their best two: where those differ, theirs is the cut.
	groups := func(of []int32) []int32 {
		var g []int32
		for _, e := range of {
			if k := e / int32(n/l.c.Groups); !slices.Contains(g, k) {
				g = append(g, k)
			}
		}
		slices.Sort(g)
		return g
	}
	if a, b := groups(ours), groups(theirs); !slices.Equal(a, b) {
		each := n / l.c.Groups
		best := make([]float64, l.c.Groups)
		for g := range best {
			of := slices.Sorted(slices.Values(scores[g*each : (g+1)*each]))
			best[g] = of[each-1] + of[each-2]
		}
		return contradiction(best, a, b), nil
	}
	return contradiction(scores, ours, theirs), nil
}

// contradiction is how far our scores put what only we chose above what only the
// reference did.
func contradiction(scores []float64, ours, theirs []int32) choice {
	c := choice{}
	high, low := -math.MaxFloat64, math.MaxFloat64
	for _, i := range ours {
		if !slices.Contains(theirs, i) {
			high = max(high, scores[i])
		}
	}
	for _, i := range theirs {
		if int(i) >= len(scores) || i < 0 {
			return choice{count: len(theirs), margin: math.MaxFloat64}
		}
		if !slices.Contains(ours, i) {
			c.count++
			low = min(low, scores[i])
		}
	}
	for _, s := range scores {
		c.scale = max(c.scale, math.Abs(s))
	}
	if c.margin = high - low; len(ours) != len(theirs) || !(math.Abs(c.margin) < math.MaxFloat64) ||
		!(c.scale < math.MaxFloat64) {
		c.margin, c.scale = math.MaxFloat64, 0
	}
	return c
}
