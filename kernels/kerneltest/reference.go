package kerneltest

import (
	"math"

	"glmbatch/kernels"
)

// reference computes an example on one rank, in float64 and as plainly as can be.
type reference struct {
	*example
	rank int
	want map[int]any // by argument: []float64, []int32, map[int][]float64 (cache entries by slot), halves or []drawn
}

func (e *example) reference(rank int) *reference {
	r := &reference{example: e, rank: rank, want: map[int]any{}}
	references[e.k.Op](r)
	return r
}

// references has a formula for each kernel, whatever its number format.
var references = map[kernels.Op]func(r *reference){
	"embed":               refEmbed,
	"rms_norm":            refRMSNorm,
	"add_norm":            refAddNorm,
	"gemm":                refGemm,
	"q_absorb":            refAbsorb,
	"v_up":                refValueUp,
	"latent_write":        refLatentWrite,
	"index_write":         refIndexWrite,
	"index_logits":        refIndexLogits,
	"index_topk":          refIndexTopK,
	"mla_attend":          refAttend,
	"kv_cast":             refCast,
	"silu_mul":            refSiluMul,
	"moe_route":           refRoute,
	"moe_up":              refMoEUp,
	"moe_down":            refMoEDown,
	"gather_rows":         refGatherRows,
	"all_reduce_norm":     refAllReduceNorm,
	"all_gather":          refAllGather,
	"all_gather_rows":     refAllGatherRows,
	"reduce_scatter_norm": refReduceScatterNorm,
	"sample":              refSample,
	"feed":                refFeed,
	"accept":              refAccept,
}

func (r *reference) f(i int) []float64 { return getFloats(r.args[i].on(r.rank)) }

// taken is f of a product's inputs as it takes them: as they are, or rounded to BF16.
func (r *reference) taken(i int) []float64 {
	x := r.f(i)
	r.round(x)
	return x
}

// round rounds values to BF16 if the example asks for it.
func (r *reference) round(x []float64) {
	if r.k.RoundsInputs(r.scalars) {
		for j, v := range x {
			x[j] = roundBF16(v)
		}
	}
}
func (r *reference) ints(i int) []int32        { return getInts(r.args[i].on(r.rank)) }
func (r *reference) fOn(rank, i int) []float64 { return getFloats(r.args[i].on(rank)) }
func (r *reference) matrix(i int) ([]float64, float64) {
	return r.args[0].weightOn(r.rank).values(i)
}

func dot(a, b []float64) float64 {
	s := 0.0
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}

func norm(x, w []float64, eps float32) []float64 {
	y := make([]float64, len(x))
	r := 1 / math.Sqrt(dot(x, x)/float64(len(x))+float64(eps))
	for i := range x {
		y[i] = x[i] * r * w[i]
	}
	return y
}

// turn rotates pairs by the angles of a position.
func turn(v, rope []float64, pos int32) {
	a := rope[int(pos)*len(v):]
	for i := 0; i < len(v); i += 2 {
		v[i], v[i+1] = v[i]*a[i]-v[i+1]*a[i+1], v[i+1]*a[i]+v[i]*a[i+1]
	}
}

// inputs returns row x rounded to a format; "": as it is.
func inputs(f kernels.Format, x []float64, input float64) []float64 {
	y := make([]float64, len(x))
	for b := 0; b < len(x); b += 16 {
		most := 0.0
		for _, v := range x[b : b+16] {
			most = max(most, math.Abs(v))
		}
		for i, v := range x[b : b+16] {
			switch f {
			case kernels.FP4:
				if s := e4m3[nearestE4M3(most/6/input)] * input; s > 0 {
					y[b+i] = nearestE2M1(v/s) * s
				}
			case kernels.INT8:
				if s := most / 127; s > 0 {
					y[b+i] = math.RoundToEven(v/s) * s
				}
			default:
				y[b+i] = v
			}
		}
	}
	return y
}

func refEmbed(r *reference) {
	table, _ := r.matrix(0)
	var y []float64
	n := int(r.d.N)
	for _, t := range r.ints(1) {
		y = append(y, table[int(t)*n:int(t+1)*n]...)
	}
	r.want[2] = y
}

func refGatherRows(r *reference) {
	x, n := r.f(0), int(r.d.N)
	var y []float64
	for _, t := range r.ints(1) {
		y = append(y, x[int(t)*n:int(t+1)*n]...)
	}
	r.want[2] = y
}

func refRMSNorm(r *reference) {
	x, k := r.f(0), int(r.d.K)
	var y []float64
	for m := range int(r.d.M) {
		y = append(y, norm(x[m*k:(m+1)*k], r.f(1), r.scalars[0])...)
	}
	r.want[2] = y
}

func refAddNorm(r *reference) {
	part, x, w, n := r.f(0), r.f(1), r.f(2), int(r.d.N)
	var y []float64
	for i := range x {
		x[i] += part[i]
	}
	for m := range int(r.d.M) {
		y = append(y, norm(x[m*n:(m+1)*n], w, r.scalars[0])...)
	}
	r.want[1], r.want[3] = x, y
}

func refAllReduceNorm(r *reference) {
	x, w, n := r.f(1), r.f(2), int(r.d.N)
	for rank := range r.ranks {
		for i, v := range r.fOn(rank, 0) {
			x[i] += v
		}
	}
	var y []float64
	for m := range int(r.d.M) {
		y = append(y, norm(x[m*n:(m+1)*n], w, r.scalars[0])...)
	}
	r.want[1], r.want[3] = x, y
}

func refAllGather(r *reference) {
	each := int(r.d.N) / r.ranks
	var y []float64
	for m := range int(r.d.M) {
		for rank := range r.ranks {
			y = append(y, r.fOn(rank, 0)[m*each:(m+1)*each]...)
		}
	}
	r.want[1] = y
}

// places returns the rows, of those of all ranks, that a rank has, -1 for none.
func (r *reference) places(arg, rank int) []int32 {
	to := make([]int32, r.d.M)
	for m := range to {
		to[m] = r.ints(arg)[m*r.ranks+rank]
	}
	return to
}

func refAllGatherRows(r *reference) {
	n := int(r.d.N)
	y := make([]float64, int(r.d.K)*n)
	for rank := range r.ranks {
		for m, at := range r.places(1, rank) {
			if at >= 0 {
				copy(y[int(at)*n:], r.fOn(rank, 0)[m*n:(m+1)*n])
			}
		}
	}
	r.want[2] = y
}

func fillNaN(v []float64) {
	for i := range v {
		v[i] = math.NaN()
	}
}

func refReduceScatterNorm(r *reference) {
	x, w, n := r.f(2), r.f(3), int(r.d.N)
	y := make([]float64, len(x))
	for m, at := range r.places(1, r.rank) {
		if at < 0 { // anything
			fillNaN(x[m*n : (m+1)*n])
			fillNaN(y[m*n : (m+1)*n])
			continue
		}
		for rank := range r.ranks {
			for i, v := range r.fOn(rank, 0)[int(at)*n:][:n] {
				x[m*n+i] += v
			}
		}
		copy(y[m*n:], norm(x[m*n:(m+1)*n], w, r.scalars[0]))
	}
	r.want[2], r.want[4] = x, y
}

func silu(x float64) float64 { return x / (1 + math.Exp(-x)) }

func refSiluMul(r *reference) {
	x, n := r.f(0), int(r.d.N)
	var y []float64
	for m := range int(r.d.M) {
		for i := range n {
			y = append(y, silu(x[2*m*n+i])*x[(2*m+1)*n+i])
		}
	}
	r.want[1] = y
}

func refGemm(r *reference) {
	w, input := r.matrix(0)
	x, n, k := r.taken(1), int(r.d.N), int(r.d.K)
	var y []float64
	for m := range int(r.d.M) {
		in := inputs(r.k.Inputs, x[m*k:(m+1)*k], input)
		for o := range n {
			y = append(y, dot(in, w[o*k:(o+1)*k]))
		}
	}
	r.want[2] = y
}

func refAbsorb(r *reference) {
	q, nope, rope, pos := r.f(1), r.taken(1), r.f(2), r.ints(3)
	n, k, rot, heads := int(r.d.N), int(r.d.K), int(r.d.Rope), int(r.d.Heads)
	y := make([]float64, int(r.d.M)*heads*(n+rot))
	for h := range heads {
		w, _ := r.matrix(h)
		for m := range int(r.d.M) {
			at, out := (m*heads+h)*(k+rot), y[(m*heads+h)*(n+rot):][:n+rot]
			for o := range n {
				out[o] = dot(nope[at:at+k], w[o*k:(o+1)*k])
			}
			copy(out[n:], q[at+k:at+k+rot])
			turn(out[n:], rope, pos[m])
		}
	}
	r.want[4] = y
}

func refValueUp(r *reference) {
	x, n, k, heads := r.taken(1), int(r.d.N), int(r.d.K), int(r.d.Heads)
	y := make([]float64, int(r.d.M)*heads*n)
	for h := range heads {
		w, _ := r.matrix(h)
		for m := range int(r.d.M) {
			for o := range n {
				y[(m*heads+h)*n+o] = dot(x[(m*heads+h)*k:][:k], w[o*k:(o+1)*k])
			}
		}
	}
	r.want[2] = y
}

func refRoute(r *reference) {
	logits, bias := r.f(0), r.f(1)
	n, k := int(r.d.Groups), int(r.d.TopK)
	groups, keep := int(r.scalars[1]), int(r.scalars[2])
	var experts []int32
	var weights []float64
	for m := range int(r.d.M) {
		score, choice := make([]float64, n), make([]float64, n)
		for e := range n {
			score[e] = 1 / (1 + math.Exp(-logits[m*n+e]))
			choice[e] = score[e] + bias[e]
		}
		size := n / groups
		best := make([]float64, groups)
		for g := range groups {
			for i := range size {
				for j := range i {
					best[g] = max(best[g], choice[g*size+i]+choice[g*size+j])
				}
			}
		}
		kept := largest(best, keep)
		for e := range n {
			if !kept[e/size] {
				choice[e] = 0
			}
		}
		sum := 0.0
		from := len(weights)
		for e, in := range largest(choice, k) {
			if in {
				experts, weights = append(experts, int32(e)), append(weights, score[e])
				sum += score[e]
			}
		}
		for i := from; i < len(weights); i++ {
			if r.scalars[3] != 0 {
				weights[i] /= sum + 1e-20
			}
			weights[i] *= float64(r.scalars[0])
		}
	}
	r.want[2], r.want[3] = experts, weights
}

// largest marks the n largest values; ties go to the lower index.
func largest(v []float64, n int) []bool {
	in := make([]bool, len(v))
	for range min(n, len(v)) {
		best := -1
		for i, x := range v {
			if !in[i] && (best < 0 || x > v[best]) {
				best = i
			}
		}
		in[best] = true
	}
	return in
}

// byExpert returns the (token, choice) pairs of each expert that has any.
func (r *reference) byExpert(experts []int32) map[int32][]int {
	m := map[int32][]int{}
	for p, e := range experts {
		m[e] = append(m[e], p)
	}
	return m
}

func refMoEUp(r *reference) {
	x, n, k, top := r.taken(1), int(r.d.N), int(r.d.K), int(r.d.TopK)
	y := make([]float64, int(r.d.M)*top*n)
	for e, pairs := range r.byExpert(r.ints(2)) {
		w, input := r.matrix(int(e))
		for _, p := range pairs {
			in := inputs(r.k.Inputs, x[p/top*k:][:k], input)
			for o := range n {
				y[p*n+o] = silu(dot(in, w[o*k:(o+1)*k])) * dot(in, w[(n+o)*k:(n+o+1)*k])
			}
		}
	}
	r.want[3] = y
}

func refMoEDown(r *reference) {
	x, scale, y := r.taken(1), r.f(3), r.f(4)
	n, k, top := int(r.d.N), int(r.d.K), int(r.d.TopK)
	for e, pairs := range r.byExpert(r.ints(2)) {
		w, input := r.matrix(int(e))
		for _, p := range pairs {
			in := inputs(r.k.Inputs, x[p*k:][:k], input)
			for o := range n {
				y[p/top*n+o] += scale[p] * dot(in, w[o*k:(o+1)*k])
			}
		}
	}
	r.want[4] = y
}
