package kerneltest

import (
	"encoding/binary"
	"math"

	"glmbatch/kernels"
)

// What rows of parameters refer to in examples: rows of bitmaps, masks and counts, and
// entries, in runs of biases, labels and assumed tokens.
const (
	steerRows  = 3
	runBiases  = 7
	runLabels  = 3
	entryRuns  = 4
	runAssumed = 4
	runEntries = runBiases + runLabels + runAssumed
)

// kinds are ways to sample. Their sums are far from where rounding decides.
func kinds() []kernels.SampleParams {
	with := func(set func(p *kernels.SampleParams)) kernels.SampleParams {
		p := kernels.Greedy()
		set(&p)
		return p
	}
	return []kernels.SampleParams{
		with(func(p *kernels.SampleParams) { p.Logprobs = 0 }),
		with(func(p *kernels.SampleParams) {
			p.Temperature, p.TopP, p.Repetition, p.Logprobs, p.Seen = .8, .9, 1.2, 5, 1
		}),
		with(func(p *kernels.SampleParams) { p.Temperature = 1 }),
		with(func(p *kernels.SampleParams) {
			p.Temperature, p.TopK, p.TopP, p.MinP, p.Logprobs = .7, 12, .95, .02, 20
		}),
		with(func(p *kernels.SampleParams) { p.Temperature, p.MinP, p.Logprobs = 1.3, .1, 1 }),
		with(func(p *kernels.SampleParams) { p.Mask, p.Logprobs = 1, 4 }),
		with(func(p *kernels.SampleParams) { p.Temperature, p.Mask, p.Logprobs = 1, 0, 20 }),
		with(func(p *kernels.SampleParams) { p.Temperature, p.Allowed, p.Logprobs = 1, 2, 2 }),
		with(func(p *kernels.SampleParams) {
			p.Temperature, p.Counts, p.Presence, p.Frequency, p.Logprobs = 1, 1, .5, .25, 3
		}),
		with(func(p *kernels.SampleParams) { p.Counts, p.Presence = 0, -1.5 }),
		with(func(p *kernels.SampleParams) { p.Biases, p.Temperature, p.Logprobs = runBiases, 1, 2 }),
		with(func(p *kernels.SampleParams) { p.Labels, p.Logprobs = runLabels, 17 }),
		with(func(p *kernels.SampleParams) {
			p.Temperature, p.TopP, p.Mask, p.Allowed = 1.1, .95, 2, 1
			p.Biases, p.Labels, p.Logprobs = runBiases, runLabels, 6
			p.Repetition, p.Seen, p.Counts, p.Presence, p.Frequency = .9, 2, 2, .25, -.125
			p.Assumed = runAssumed
		}),
		// The token with the largest bias is assumed, twice.
		with(func(p *kernels.SampleParams) {
			p.Biases, p.Labels, p.Assumed, p.Counts, p.Presence, p.Frequency = runBiases, runLabels, runAssumed, 1, 1, 9
		}),
		with(func(p *kernels.SampleParams) {
			p.Biases, p.Labels, p.Assumed, p.Seen, p.Repetition = runBiases, runLabels, runAssumed, 0, 60
		}),
		with(func(p *kernels.SampleParams) {
			p.Biases, p.Labels, p.Assumed, p.Seen, p.Repetition, p.Logprobs = runBiases, runLabels, runAssumed, 2, .9, 4
			p.Temperature, p.Counts, p.Frequency = 1.2, 0, 4
		}),
		with(func(p *kernels.SampleParams) { p.Forced, p.Logprobs, p.Temperature, p.Biases = 5, 3, 1, runBiases }),
		with(func(p *kernels.SampleParams) { p.Forced, p.Logprobs, p.Mask, p.Labels = 77, 1, 0, 1 }),
	}
}

func (f fill) params(rows int32) {
	var b []byte
	kinds := kinds()
	first := f.r.IntN(len(kinds))
	for i := range rows {
		p := kinds[(int(i)+first)%len(kinds)]
		p.Seed, p.Counter = f.r.Uint64(), uint64(f.r.IntN(1000))
		p.Last, p.Entries = int32(f.r.IntN(3)), int32(f.r.IntN(entryRuns)*runEntries)
		b = appendParams(b, &p)
	}
	f.arg.words = paramSize / 4
	f.arg.data = append(f.arg.data, b)
}

func appendParams(b []byte, p *kernels.SampleParams) []byte {
	floats := func(list ...float32) {
		for _, v := range list {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
	}
	ints := func(list ...int32) {
		for _, v := range list {
			b = binary.LittleEndian.AppendUint32(b, uint32(v))
		}
	}
	floats(p.Temperature, p.TopP, p.MinP, p.Repetition)
	ints(p.TopK, p.Logprobs, p.Seen, p.Last)
	b = binary.LittleEndian.AppendUint64(b, p.Seed)
	b = binary.LittleEndian.AppendUint64(b, p.Counter)
	floats(p.Presence, p.Frequency)
	ints(p.Counts, p.Mask, p.Allowed, p.Entries, p.Biases, p.Labels, p.Forced, p.Assumed)
	return b
}

// steering fills what rows of parameters refer to.
func (f fill) steering() {
	n, r := int(f.e.d.N), f.r
	if f.e.d.TopK > 0 {
		n = int(f.e.d.TopK)
	}
	switch f.arg.Name {
	case "seen", "masks":
		b := make([]byte, steerRows*((int(f.e.d.N)+63)/64*8))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		f.arg.data = append(f.arg.data, b)
	case "counts":
		wide := (int(f.e.d.N) + 3) / 4 * 4
		b := make([]byte, 2*steerRows*wide)
		for i := range steerRows * wide {
			if r.IntN(3) == 0 {
				binary.LittleEndian.PutUint16(b[2*i:], uint16(1+r.IntN(4)))
			}
		}
		f.arg.data = append(f.arg.data, b)
	case "entries": // a token has one finite bias at most
		var b []byte
		for range entryRuns {
			tokens := r.Perm(n)[:runEntries]
			for i, token := range tokens {
				after, bias := -1, float32(r.IntN(17)-8)
				switch i {
				case 0:
					bias = 20
				case 1:
					after, bias = r.IntN(3), float32(math.Inf(-1))
				case 2:
					bias = float32(math.Inf(-1))
				case 3:
					bias = 10
				case runBiases: // a label is no reason for a penalty
					token = tokens[3]
				case runBiases + runLabels, runBiases + runLabels + 1:
					token = tokens[0]
				}
				b = binary.LittleEndian.AppendUint32(b, uint32(token))
				b = binary.LittleEndian.AppendUint32(b, uint32(int32(after)))
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(bias))
			}
		}
		f.arg.data = append(f.arg.data, b)
	}
}
