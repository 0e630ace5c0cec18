package replay

import (
	"encoding/binary"
	"fmt"
	"math"

	"glmbatch/kernels"
)

// entryBytes is a kernels.Entry in a file.
const entryBytes = 12

// writer puts values one behind the other, little-endian.
type writer []byte

func (w *writer) floats(list ...float32) {
	for _, v := range list {
		*w = binary.LittleEndian.AppendUint32(*w, math.Float32bits(v))
	}
}

func (w *writer) ints(list ...int32) {
	for _, v := range list {
		*w = binary.LittleEndian.AppendUint32(*w, uint32(v))
	}
}

// taker takes values off the front.
type taker []byte

func (t *taker) floats(list ...*float32) {
	for _, v := range list {
		*v = math.Float32frombits(binary.LittleEndian.Uint32(*t))
		*t = (*t)[4:]
	}
}

func (t *taker) ints(list ...*int32) {
	for _, v := range list {
		*v = int32(binary.LittleEndian.Uint32(*t))
		*t = (*t)[4:]
	}
}

func fromParams(ps []kernels.SampleParams) []byte {
	w := make(writer, 0, paramBytes*len(ps))
	for i := range ps {
		p := &ps[i]
		w.floats(p.Temperature, p.TopP, p.MinP, p.Repetition)
		w.ints(p.TopK, p.Logprobs, p.Seen, 0)
		w = binary.LittleEndian.AppendUint64(w, p.Seed)
		w = binary.LittleEndian.AppendUint64(w, p.Counter)
	}
	return w
}

func toParams(b []byte) []kernels.SampleParams {
	ps := make([]kernels.SampleParams, len(b)/paramBytes)
	for i := range ps {
		e, p, none := b[i*paramBytes:], &ps[i], int32(0)
		*p = kernels.Greedy()
		t := taker(e)
		t.floats(&p.Temperature, &p.TopP, &p.MinP, &p.Repetition)
		t.ints(&p.TopK, &p.Logprobs, &p.Seen, &none)
		p.Seed, p.Counter = binary.LittleEndian.Uint64(e[32:]), binary.LittleEndian.Uint64(e[40:])
	}
	return ps
}

// fromSteering is what the rows have beside what all have; nil: no row has more.
func fromSteering(ps []kernels.SampleParams) []byte {
	w, some := make(writer, 0, steerBytes*len(ps)), false
	for i := range ps {
		p := &ps[i]
		w.floats(p.Presence, p.Frequency)
		w.ints(p.Counts, p.Mask, p.Allowed, p.Entries, p.Biases, p.Labels, p.Forced, p.Last)
		some = some || p.Counts >= 0 || p.Mask >= 0 || p.Allowed >= 0 || p.Biases > 0 || p.Labels > 0 || p.Forced >= 0
	}
	if !some {
		return nil
	}
	return w
}

// toSteering gives it back to rows that were read.
func toSteering(ps []kernels.SampleParams, b []byte) error {
	if len(b) != steerBytes*len(ps) {
		return fmt.Errorf("%d bytes for %d rows of parameters", len(b), len(ps))
	}
	t := taker(b)
	for i := range ps {
		p := &ps[i]
		t.floats(&p.Presence, &p.Frequency)
		t.ints(&p.Counts, &p.Mask, &p.Allowed, &p.Entries, &p.Biases, &p.Labels, &p.Forced, &p.Last)
	}
	return nil
}

// fromAssumed is how many tokens the rows assume; nil: no row does.
func fromAssumed(ps []kernels.SampleParams) []byte {
	w, some := make(writer, 0, 4*len(ps)), false
	for i := range ps {
		w.ints(ps[i].Assumed)
		some = some || ps[i].Assumed > 0
	}
	if !some {
		return nil
	}
	return w
}

// toAssumed gives it back to rows that were read.
func toAssumed(ps []kernels.SampleParams, n []int32) error {
	if len(n) != len(ps) {
		return fmt.Errorf("%d numbers for %d rows of parameters", len(n), len(ps))
	}
	for i := range ps {
		ps[i].Assumed = n[i]
	}
	return nil
}

func fromEntries(list []kernels.Entry) []byte {
	var w writer
	for _, e := range list {
		w.ints(e.Token, e.After)
		w.floats(e.Bias)
	}
	return w
}

func toEntries(b []byte) []kernels.Entry {
	list := make([]kernels.Entry, len(b)/entryBytes)
	t := taker(b)
	for i := range list {
		t.ints(&list[i].Token, &list[i].After)
		t.floats(&list[i].Bias)
	}
	return list
}

func fromShorts(v []uint16) []byte {
	b := make([]byte, 0, 2*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint16(b, x)
	}
	return b
}

func shorts(b []byte) []uint16 {
	v := make([]uint16, len(b)/2)
	for i := range v {
		v[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return v
}
