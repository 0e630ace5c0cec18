package cpu

import "glmbatch/kernels"

// sampleArgs of the sample kernel that only some rows have.
const (
	argSeen    = 2
	argCounts  = 4
	argMasks   = 5
	argEntries = 6
)

// bitmap returns a row of an argument that has a bit for each token.
func (x *frame) bitmap(arg int, at int32) []byte {
	size := (int(x.N) + 63) / 64 * 8
	if pitch := int(x.call.Args[arg].Pitch); pitch > 0 {
		size = max(size, pitch)
	}
	return x.rowOf(arg, at, size, "bitmap")
}

// rowOf returns row at of an argument whose rows have size bytes.
func (x *frame) rowOf(arg int, at int32, size int, what string) []byte {
	b := x.bytes(arg, x.rank)
	if x.err == nil && int64(at) >= int64(len(b)/size) {
		x.fail(arg, "no %s %d of %d bytes in %d", what, at, size, len(b))
	}
	if x.err != nil {
		return nil
	}
	return b[int(at)*size:][:size]
}

// countPitch is the bytes of a row of counts.
func (x *frame) countPitch(arg int) int {
	return max(kernels.CountPitch(int(x.N)), int(x.call.Args[arg].Pitch))
}

// entriesOf returns the row's biases, then its labels, then the tokens that it assumes.
func (x *frame) entriesOf(p *kernels.SampleParams) []kernels.Entry {
	if p.Biases <= 0 && p.Labels <= 0 && p.Assumed <= 0 {
		return nil
	}
	b := x.bytes(argEntries, x.rank)
	from, n := int64(p.Entries), int64(p.Biases)+int64(p.Labels)+int64(p.Assumed)
	if x.err == nil && (!aligned(b, 4) ||
		p.Biases < 0 || p.Labels < 0 || p.Assumed < 0 || p.Assumed > kernels.MaxAssumed || from < 0 ||
		from+n > int64(len(b)/entryBytes)) {
		x.fail(argEntries, "entries %d to %d are not in %d bytes", from, from+n, len(b))
	}
	if x.err != nil {
		return nil
	}
	list := entries(b)[from : from+n]
	tokens := x.N
	if x.TopK > 0 {
		tokens = min(tokens, x.TopK)
	}
	for _, e := range list {
		if e.Token < 0 || e.Token >= tokens {
			x.fail(argEntries, "token %d is not one of %d", e.Token, tokens)
			return nil
		}
	}
	return list
}

// masked returns the logits that log-probabilities are of.
func (x *frame) masked(l []float32, p *kernels.SampleParams) []float32 {
	if p.Mask < 0 || x.err != nil {
		return l
	}
	bits := x.bitmap(argMasks, p.Mask)
	if x.err != nil {
		return l
	}
	return except(x.s.floats(3, len(l)), l, bits)
}

// except copies the logits of the tokens whose bit is set into out, and -Inf for the
// others.
func except(out, l []float32, bits []byte) []float32 {
	for i, v := range l {
		if bits[i/8]>>(i%8)&1 == 0 {
			v = negInf
		}
		out[i] = v
	}
	return out
}

// steered returns the logits that a token is chosen by: l itself where nothing changes
// them.
func (x *frame) steered(l []float32, p *kernels.SampleParams, list []kernels.Entry) []float32 {
	repeats := p.Repetition != 1 && p.Repetition > 0 && p.Seen >= 0
	counted := p.Counts >= 0 && (p.Presence != 0 || p.Frequency != 0)
	if x.err != nil || p.Forced >= 0 || !repeats && !counted && p.Allowed < 0 && p.Biases <= 0 {
		return l
	}
	out := x.s.floats(0, len(l))
	if p.Allowed < 0 {
		copy(out, l)
	} else if bits := x.bitmap(argMasks, p.Allowed); x.err == nil {
		except(out, l, bits)
	}
	for _, e := range list[:max(p.Biases, 0)] {
		if e.After < 0 || e.After == p.Last {
			out[e.Token] += e.Bias
		}
	}
	var seen []byte
	var made []uint16
	if repeats {
		seen = x.bitmap(argSeen, p.Seen)
	}
	if counted {
		if row := x.rowOf(argCounts, p.Counts, x.countPitch(argCounts), "row of counts"); x.err == nil {
			made = counts(row)
		}
	}
	if x.err == nil {
		penalize(out, seen, made, p, list[max(p.Biases, 0)+max(p.Labels, 0):])
	}
	return out
}

// penalize takes in the tokens seen, how often tokens were generated (nil: nobody asks), and
// those assumed beside them.
func penalize(l []float32, seen []byte, made []uint16, p *kernels.SampleParams, assumed []kernels.Entry) {
	var late [kernels.MaxAssumed]float32
	for i, e := range assumed {
		v := l[e.Token]
		if seen != nil {
			v = repeated(v, p.Repetition)
		}
		if made != nil {
			n := int(made[e.Token])
			for _, o := range assumed {
				if o.Token == e.Token {
					n++
				}
			}
			v = penalized(v, min(n, kernels.MaxCount), p)
		}
		late[i] = v
	}
	if seen != nil {
		for b, set := range seen[:(len(l)+7)/8] {
			for i := b * 8; set != 0 && i < len(l); i, set = i+1, set>>1 {
				if set&1 != 0 {
					l[i] = repeated(l[i], p.Repetition)
				}
			}
		}
	}
	if made != nil {
		for i, n := range made[:len(l)] {
			if n > 0 {
				l[i] = penalized(l[i], int(n), p)
			}
		}
	}
	for i, e := range assumed {
		l[e.Token] = late[i]
	}
}

// repeated is the logit of a token seen: divided where it is positive, else multiplied.
func repeated(v, penalty float32) float32 {
	if v > 0 {
		return v / penalty
	}
	return v * penalty
}

// penalized is the logit of a token that was generated n times.
func penalized(v float32, n int, p *kernels.SampleParams) float32 {
	return v - float32(float32(n)*p.Frequency) - p.Presence
}
