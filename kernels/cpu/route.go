package cpu

import (
	"fmt"
	"math"

	"glmbatch/kernels"
)

// moeRoute chooses each row's experts. A score is the logit's sigmoid; the
// choice is by score + bias, the weight is the score without it.
//
// With n_group > 1 the experts are in groups of equal size; the topk_group
// groups with the largest sum of their two best choices stay, and the choices
// of all others count as 0, as in the reference implementation of the models
// that have groups.
func moeRoute(x *frame, lo, hi int) error {
	groups, keep := int(x.scalar(1)), int(x.scalar(2))
	logits, bias := x.rows(0, x.M, x.Groups), x.vector(1, x.Groups)
	experts, weights := x.intRows(2, x.M, x.TopK), x.rows(3, x.M, x.TopK)
	n, k := int(x.Groups), int(x.TopK)
	if x.err != nil {
		return x.err
	}
	if k < 1 || k > n || groups < 1 || n%groups != 0 || keep < 1 || keep > groups {
		return fmt.Errorf("%w: %d experts of %d, %d of %d groups", kernels.ErrKernel, k, n, keep, groups)
	}
	scores, choice, order := x.s.floats(0, n), x.s.floats(1, n), x.s.floats(2, groups)
	for m := lo; m < hi; m++ {
		for e, l := range row(logits, m, n) {
			scores[e] = float32(1 / (1 + math.Exp(-float64(l))))
			choice[e] = scores[e] + bias[e]
		}
		if keep < groups {
			limit(choice, order, keep)
		}
		ids, ws := intRow(experts, m, k), row(weights, m, k)
		choose(ids, choice)
		var sum float32
		for i, e := range ids {
			ws[i] = scores[e]
			sum += ws[i]
		}
		scale := x.scalar(0)
		if x.scalar(3) != 0 {
			scale /= sum + 1e-20
		}
		for i := range ws {
			ws[i] *= scale
		}
	}
	return nil
}

// limit zeroes the choices outside the keep best groups. order has a value for
// each group.
func limit(choice, order []float32, keep int) {
	size := len(choice) / len(order)
	for g := range order {
		a, b := negInf, negInf
		for _, v := range choice[g*size : (g+1)*size] {
			if v > a {
				a, b = v, a
			} else if v > b {
				b = v
			}
		}
		if order[g] = a + b; size == 1 {
			order[g] = a
		}
	}
	for g, v := range order {
		better := 0
		for h, u := range order {
			if u > v || u == v && h < g {
				better++
			}
		}
		if better >= keep {
			clear(choice[g*size : (g+1)*size])
		}
	}
}

var negInf = float32(math.Inf(-1))

// choose fills ids with the indices of the largest values, ascending; ties go
// to the lower index. Values that are no numbers count as the smallest.
func choose(ids []int32, values []float32) {
	n := 0
	for i := range values {
		v := values[i]
		at := n
		for at > 0 && above(v, values[ids[at-1]]) {
			at--
		}
		if at == len(ids) {
			continue
		}
		n = min(n+1, len(ids))
		copy(ids[at+1:n], ids[at:])
		ids[at] = int32(i)
	}
	sortInts(ids)
}

// above orders values, NaN below all.
func above(a, b float32) bool { return a > b || b != b && a == a }

// sortInts sorts a few values.
func sortInts(v []int32) {
	for i := 1; i < len(v); i++ {
		for j := i; j > 0 && v[j] < v[j-1]; j-- {
			v[j], v[j-1] = v[j-1], v[j]
		}
	}
}
