package kerneltest

import "encoding/binary"

// acceptTips gives each tip some of n rows of logits.
func (f fill) acceptTips() (tips []int32) {
	n := int(f.e.d.N)
	for range f.e.d.M {
		first := f.same.IntN(n)
		tips = append(tips, int32(first), int32(1+f.same.IntN(min(6, n-first))))
	}
	return tips
}

// accept fills an argument of accept. Samples confirm the drafts behind them more often
// than not.
func (f fill) accept() {
	n := int(f.e.d.N)
	steps := n + sourceRows
	const vocab = 3 // so that a sample is a draft now and then
	switch f.arg.Name {
	case "sampled":
		b := make([]byte, n*sampledSize)
		for i := range n {
			token := int32(f.r.IntN(vocab+1) - 1)
			if f.r.IntN(3) > 0 {
				token = 0
			}
			binary.LittleEndian.PutUint32(b[i*sampledSize:], uint32(token))
		}
		f.arg.data = append(f.arg.data, b)
	case "tips":
		f.ints(f.acceptTips())
	case "rows":
		v := make([]int32, n)
		for i, r := range f.same.Perm(steps)[:n] {
			v[i] = int32(r)
		}
		f.ints(v)
	case "tokens":
		v := randomInts(f.r, steps, vocab)
		for i := range v {
			if f.r.IntN(3) > 0 {
				v[i] = 0
			}
		}
		f.ints(v)
	case "pos", "seq", "slots", "next":
		f.ints(randomInts(f.r, steps, 100000))
	case "params":
		f.params(f.e.d.N)
		f.arg.words = 0 // its rows are not the call's
	case "at_params":
		f.arg.words = paramSize / 4
		f.poison(int(f.e.d.M) * f.arg.words)
	default:
		f.plain()
	}
}

func refAccept(r *reference) {
	samples, tips, rows, tokens := r.ints(0), r.ints(1), r.ints(2), r.ints(3)
	params := r.args[7].on(r.rank)
	next := append([]int32{}, r.ints(8)...)
	for i, row := range rows {
		next[row] = max(0, samples[i*sampledSize/4])
	}
	m := len(tips) / 2
	from, pos, seq, slots := make([]int32, m), make([]int32, m), make([]int32, m), make([]int32, m)
	var at []byte
	for i := range m {
		row := int(tips[2*i])
		for left := tips[2*i+1]; left > 1; left-- {
			if samples[row*sampledSize/4] != tokens[rows[row+1]] {
				break
			}
			row++
		}
		from[i], pos[i], seq[i], slots[i] = rows[row], r.ints(4)[rows[row]], r.ints(5)[rows[row]], r.ints(6)[rows[row]]
		p := append([]byte{}, params[paramSize*row:][:paramSize]...)
		set := func(at int, v uint32) { binary.LittleEndian.PutUint32(p[at:], v) }
		const none = 0xffffffff
		set(20, none)                               // no log-probabilities
		set(28, uint32(samples[row*sampledSize/4])) // the token before
		binary.LittleEndian.PutUint64(p[40:], binary.LittleEndian.Uint64(p[40:])+1)
		set(60, none) // no mask
		set(80, none) // no forced token
		at = append(at, p...)
	}
	r.want[8], r.want[9], r.want[10], r.want[11], r.want[12], r.want[13] = next, from, pos, seq, slots, getInts(at)
}
