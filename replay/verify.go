package replay

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"glmbatch/kernels"
)

// ErrMismatch: a step run again left something else than was recorded.
var ErrMismatch = errors.New("the replay's outputs differ from the recorded ones")

// What is compared.
const (
	VerifyOutputs = "outputs" // tokens, log-probabilities and logits
	VerifyCalls   = "calls"   // what each call left, as far as it was recorded
)

// Verdict says what a comparison found.
type Verdict struct {
	Mode     string `json:"mode"`
	Equal    bool   `json:"equal"`
	Compared int    `json:"compared"` // outputs of calls
	Text     string `json:"text"`
}

// verify runs the step once and compares it with the capture. Its error wraps
// ErrMismatch and names the first call that parts.
func (s *restored) verify(mode string) (Verdict, error) {
	v := Verdict{Mode: mode}
	recorded := map[key]*Output{}
	ends := last(s.calls)
	for _, list := range [][]Output{s.c.Selections, s.c.Outputs} {
		for i := range list {
			o := &list[i]
			recorded[key{o.Call, o.Arg, o.Rank}] = o
		}
	}
	r := newReader(s.m, s.calls, &s.batch)
	stop := stops(s.calls, DetailNone)
	switch {
	case mode == VerifyCalls && s.c.Detail == DetailNone:
		return v, errors.New("--verify calls: the capture has no outputs of calls; capture with --capture-calls " +
			"hash or data")
	case mode == VerifyCalls:
		stop = stops(s.calls, s.c.Detail)
	}
	var first error // of a step's outputs, the choices before them tell where it began
	atEnd := 0
	err := r.walk(stop, func(out []Output) error {
		for i := range out {
			o := &out[i]
			want := recorded[key{o.Call, o.Arg, o.Rank}]
			if want == nil {
				continue
			}
			v.Compared++
			end := slices.Contains(ends, o.Call)
			if end {
				atEnd++
			}
			if first == nil && !bytes.Equal(o.Hash, want.Hash) {
				first = fmt.Errorf("%w: %s: %s", ErrMismatch, o.what(s.calls),
					difference(s.calls[o.Call].Kernel, want, o))
			}
		}
		return nil
	})
	if err != nil {
		return v, err
	}
	if first == nil && s.c.Unended() {
		v.Text = fmt.Sprintf("%s: it ran to its end here, on cache entries made from a seed, and there are no "+
			"outputs to compare with", s.c.unendedText())
		return v, nil
	}
	if first == nil && atEnd == 0 {
		first = fmt.Errorf("%w: none of the step's outputs was recorded", ErrMismatch)
	}
	if first != nil {
		v.Text = first.Error()
		return v, first
	}
	v.Equal = true
	v.Text = fmt.Sprintf("outputs equal the recorded ones bit for bit: %d tokens, %d outputs of calls compared",
		len(s.batch.Logits), v.Compared)
	return v, nil
}

type key struct {
	call int
	arg  string
	rank int
}

// difference says how far two outputs are from each other.
func difference(k kernels.Name, want, got *Output) string {
	if want.Data == nil {
		return "other bits (the capture has only its hash, so not by how much)"
	}
	if len(want.Data) != len(got.Data) {
		return fmt.Sprintf("%d bytes, recorded %d", len(got.Data), len(want.Data))
	}
	switch got.Arg {
	case "experts", "sel":
		return differentInts(ints(want.Data), ints(got.Data))
	}
	if k == "sample" {
		for i := 0; i < len(got.Data); i += sampledBytes {
			a, b := want.Data[i:i+sampledBytes], got.Data[i:i+sampledBytes]
			if !bytes.Equal(a, b) {
				return fmt.Sprintf("row %d: token %d with log-probability %v, recorded %d with %v", i/sampledBytes,
					ints(b)[0], float32At(b, 4), ints(a)[0], float32At(a, 4))
			}
		}
	}
	return differentFloats(want.Data, got.Data)
}

func differentInts(want, got []int32) string {
	n, at := 0, 0
	for i := range want {
		if want[i] != got[i] {
			if n == 0 {
				at = i
			}
			n++
		}
	}
	return fmt.Sprintf("%d of %d choices differ, the first, %d, is %d, recorded %d", n, len(want), at, got[at],
		want[at])
}

func differentFloats(want, got []byte) string {
	n, at, worst, size := 0, -1, 0.0, 0.0
	for i := 0; i+4 <= len(want); i += 4 {
		a, b := float64(float32At(want, i)), float64(float32At(got, i))
		size = max(size, math.Abs(a))
		if bytes.Equal(want[i:i+4], got[i:i+4]) {
			continue
		}
		n++
		if d := math.Abs(a - b); at < 0 || d > worst || d != d {
			at, worst = i, d
		}
	}
	if at < 0 {
		return "other bits"
	}
	return fmt.Sprintf("%d of %d values differ, at most by %.3g (value %d is %v, recorded %v; the largest is %.3g)",
		n, len(want)/4, worst, at/4, float32At(got, at), float32At(want, at), size)
}

func float32At(b []byte, i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(b[i:]))
}
