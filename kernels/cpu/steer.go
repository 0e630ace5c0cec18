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

// entriesOf returns the row's biases, then its labels.
func (x *frame) entriesOf(p *kernels.SampleParams) []kernels.Entry {
	if p.Biases <= 0 && p.Labels <= 0 {
		return nil
	}
	b := x.bytes(argEntries, x.rank)
	from, n := int64(p.Entries), int64(p.Biases)+int64(p.Labels)
	if x.err == nil && (!aligned(b, 4) || p.Biases < 0 || p.Labels < 0 || from < 0 ||
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
	if repeats {
		if seen := x.bitmap(argSeen, p.Seen); x.err == nil {
			repeated(out, seen, p.Repetition)
		}
	}
	if counted {
		pitch := x.countPitch(argCounts)
		if row := x.rowOf(argCounts, p.Counts, pitch, "row of counts"); x.err == nil {
			penalized(out, counts(row), p)
		}
	}
	return out
}

// repeated divides positive logits of tokens seen, and multiplies others.
func repeated(l []float32, seen []byte, penalty float32) {
	for b, set := range seen[:(len(l)+7)/8] {
		for i := b * 8; set != 0 && i < len(l); i, set = i+1, set>>1 {
			switch {
			case set&1 == 0:
			case l[i] > 0:
				l[i] /= penalty
			default:
				l[i] *= penalty
			}
		}
	}
}

// penalized takes from the logits of tokens that were generated.
func penalized(l []float32, n []uint16, p *kernels.SampleParams) {
	for i, c := range n[:len(l)] {
		if c > 0 {
			l[i] = l[i] - float32(float32(c)*p.Frequency) - p.Presence
		}
	}
}
