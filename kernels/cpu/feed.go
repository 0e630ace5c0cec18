package cpu

import "glmbatch/kernels"

// feed takes sequences one token on: a row of logits whose from is 0 or more
// continues with the token that was sampled in that row of the list before.
func feed(x *frame, lo, hi int) error {
	from, rows := x.ints(1, x.M), x.ints(2, x.M)
	last, ps := x.bytes(0, x.rank), x.bytes(8, x.rank)
	if x.err == nil && (len(ps) < int(x.M)*paramBytes || !aligned(ps, 8)) {
		x.fail(8, "%d bytes, aligned to 8, for %d rows of %d", len(ps), x.M, paramBytes)
	}
	if x.err == nil && !aligned(last, 8) {
		x.fail(0, "not aligned to 8 bytes")
	}
	var n int32 // rows of the step
	for _, r := range rows {
		if r < 0 {
			x.fail(2, "row %d is negative", r)
			return x.err
		}
		n = max(n, r+1)
	}
	tokens, pos, seq, slots := x.ints(3, n), x.ints(4, n), x.ints(5, n), x.ints(6, n)
	pages, stride, _ := x.view(7, x.rank, 1, 1)
	seen := x.bytes(9, x.rank)
	size := (int(x.N) + 63) / 64 * 8
	if pitch := int(x.call.Args[9].Pitch); pitch > 0 {
		size = max(size, pitch)
	}
	counted, countPitch := x.bytes(10, x.rank), x.countPitch(10)
	if x.err != nil {
		return x.err
	}
	before := sampled(last)
	for m := lo; m < hi; m++ {
		if from[m] < 0 {
			continue
		}
		r := rows[m]
		if int(from[m]) >= len(before) {
			x.fail(1, "row %d continues row %d of %d", m, from[m], len(before))
			return x.err
		}
		token, at := before[from[m]].Token, pos[r]+1
		entry := int(seq[r])*stride + int(at)/kernels.PageTokens
		if seq[r] < 0 || at < 0 || int(at)/kernels.PageTokens >= stride || entry >= len(pages)/4 {
			x.fail(7, "no page for position %d of sequence %d", at, seq[r])
			return x.err
		}
		if token >= x.N {
			x.fail(0, "token %d is not one of %d", token, x.N)
			return x.err
		}
		p := &params(ps)[m]
		if token >= 0 && p.Seen >= 0 && len(seen) > 0 {
			if int(p.Seen) >= len(seen)/size {
				x.fail(9, "no bitmap %d of %d bytes in %d", p.Seen, size, len(seen))
				return x.err
			}
			seen[int(p.Seen)*size+int(token)/8] |= 1 << (token % 8)
		}
		if token >= 0 && p.Counts >= 0 && len(counted) > 0 {
			if int(p.Counts) >= len(counted)/countPitch {
				x.fail(10, "no row %d of counts of %d bytes in %d", p.Counts, countPitch, len(counted))
				return x.err
			}
			if c := &counts(counted[int(p.Counts)*countPitch:][:countPitch])[token]; *c < kernels.MaxCount {
				*c++
			}
		}
		p.Counter++
		p.Last = token
		tokens[r], pos[r] = max(token, 0), at
		slots[r] = ints(pages)[entry]*kernels.PageTokens + at%kernels.PageTokens
	}
	return nil
}
