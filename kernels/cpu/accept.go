package cpu

// accept finds, for each tip, the row that its sequence goes on from: that of its
// last token, or of the last draft that the sample before it confirms.
func accept(x *frame, lo, hi int) error {
	tips, rows := x.ints(1, 2*x.M), x.ints(2, x.N)
	out, ps, to := x.bytes(0, x.rank), x.bytes(7, x.rank), x.bytes(13, x.rank)
	if x.err == nil && (len(out) < int(x.N)*sampledBytes || !aligned(out, 8)) {
		x.fail(0, "%d bytes, aligned to 8, for %d rows of %d", len(out), x.N, sampledBytes)
	}
	if x.err == nil && (len(ps) < int(x.N)*paramBytes || !aligned(ps, 8)) {
		x.fail(7, "%d bytes, aligned to 8, for %d rows of %d", len(ps), x.N, paramBytes)
	}
	if x.err == nil && (len(to) < int(x.M)*paramBytes || !aligned(to, 8)) {
		x.fail(13, "%d bytes, aligned to 8, for %d rows of %d", len(to), x.M, paramBytes)
	}
	var n int32 // rows of the step
	for _, r := range rows {
		if r < 0 {
			x.fail(2, "row %d is negative", r)
			return x.err
		}
		n = max(n, r+1)
	}
	tokens, pos, seq, slots, behind := x.ints(3, n), x.ints(4, n), x.ints(5, n), x.ints(6, n), x.ints(8, n)
	from, atPos, atSeq, atSlots := x.ints(9, x.M), x.ints(10, x.M), x.ints(11, x.M), x.ints(12, x.M)
	if x.err != nil {
		return x.err
	}
	samples, own, ahead := sampled(out), params(ps), params(to)
	for i := 0; lo == 0 && i < int(x.N); i++ {
		behind[rows[i]] = max(samples[i].Token, 0)
	}
	for m := lo; m < hi; m++ {
		at, end := tips[2*m], tips[2*m]+tips[2*m+1]
		if at < 0 || end <= at || end > x.N {
			x.fail(1, "tip %d has rows [%d, %d) of %d", m, at, end, x.N)
			return x.err
		}
		for at+1 < end && samples[at].Token == tokens[rows[at+1]] {
			at++
		}
		r, p := rows[at], &own[at]
		from[m], atPos[m], atSeq[m], atSlots[m] = r, pos[r], seq[r], slots[r]
		next := *p
		next.Counter++
		next.Last, next.Logprobs, next.Mask, next.Forced = samples[at].Token, -1, -1, -1
		ahead[m] = next
	}
	return nil
}
