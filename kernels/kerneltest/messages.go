package kerneltest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"glmbatch/kernels"
)

// Messages checks collectives of all numbers of ranks on messages from 2 KB to
// most bytes. Sums have the bits of additions in the ranks' order, every rank has
// the same, and a row's bits do not depend on the message that it is part of. Of ranks that have
// rows of their own, some have none.
func Messages(t *testing.T, open Open, most int64) {
	shapes := []struct{ m, n int32 }{{1, 512}, {1, 6144}, {3, 6144}, {11, 6144}, {43, 6144}, {171, 6144}, {683, 6144},
		{2731, 6144}, {7, 1000}, {2, 50}}
	for _, n := range []int32{1, 2, 4, 8} {
		t.Run(fmt.Sprintf("ranks=%d", n), func(t *testing.T) {
			b := opened(t, open(t, int(n)))
			for _, s := range shapes {
				if 4*int64(s.m)*int64(s.n) <= most {
					b.reduceMessage(s.m, s.n)
				}
				if 4*int64(s.m)*int64(s.n) <= min(most, mostOwn) {
					b.ownMessage(s.m, s.n)
				}
			}
			for _, m := range []int32{1, 8, 64} {
				for _, each := range []int32{19360, 25} {
					if 4*int64(m)*int64(each*n) <= most {
						b.gatherMessage(m, each)
					}
				}
			}
		})
	}
}

// mostOwn is the most bytes of a rank's rows that are its own: all ranks' are on each.
const mostOwn = 8 << 20

// noise is many random values; a message takes them from some place on, over and over.
var noise = putFloats(normals(seeded(0x6e6f697365), 1<<18+11, 1))

func noiseFrom(place int, bytes int64) []byte {
	out := make([]byte, 0, bytes)
	at := place * 4 % len(noise)
	for int64(len(out)) < bytes {
		out = append(out, noise[at:min(len(noise), at+int(bytes)-len(out))]...)
		at = 0
	}
	return out
}

func (b *bench) alloc(bytes int64) kernels.Buffer {
	b.Helper()
	buf, err := b.g.Alloc(bytes, kernels.Sharded)
	if err != nil {
		b.Fatal(err)
	}
	return buf
}

// do runs one call and returns the contents of buffers on each rank.
func (b *bench) do(c kernels.Call, outs ...kernels.Buffer) [][][]byte {
	b.Helper()
	return b.run([]kernels.Call{c}, outs...)
}

// run runs a list and returns the contents of buffers on each rank.
func (b *bench) run(calls []kernels.Call, outs ...kernels.Buffer) [][][]byte {
	b.Helper()
	if err := b.g.Run(calls, nil); err != nil {
		b.Fatal(err)
	}
	got := make([][][]byte, len(outs))
	for i, o := range outs {
		for r := range b.g.Ranks() {
			data := make([]byte, o.Len)
			if err := b.g.Download(r, data, o); err != nil {
				b.Fatal(err)
			}
			got[i] = append(got[i], data)
		}
	}
	return got
}

func (b *bench) reduceMessage(m, n int32) {
	b.Helper()
	ranks, row := b.g.Ranks(), 4*int64(n)
	size := int64(m) * row
	part, x, w, y := b.alloc(size), b.alloc(size), b.alloc(row), b.alloc(size)
	parts := make([][]byte, ranks)
	for r := range parts {
		parts[r] = noiseFrom(1+7919*r, size)
		if err := b.g.UploadTo(r, part, parts[r]); err != nil {
			b.Fatal(err)
		}
	}
	old, weight := noiseFrom(3, size), noiseFrom(5, row)
	if err := b.g.Upload(x, old); err != nil {
		b.Fatal(err)
	}
	if err := b.g.Upload(w, weight); err != nil {
		b.Fatal(err)
	}
	call := func(from, rows int64) kernels.Call {
		cut := func(b kernels.Buffer) kernels.Buffer { return b.Slice(from*row, rows*row) }
		return kernels.Call{Kernel: "all_reduce_norm", Dims: kernels.Dims{M: int32(rows), N: n, Ranks: int32(ranks)},
			Args: []kernels.Buffer{cut(part), cut(x), w, cut(y)}, Scalars: [4]float32{1e-5}}
	}
	want := sumsInOrder(old, parts)
	got := b.do(call(0, int64(m)), x, y)
	k := kernels.Lookup("all_reduce_norm")
	for r := range ranks {
		if i := firstDifference(got[0][r], want); i >= 0 {
			b.Fatalf("%dx%d: rank %d: sum %d is %g, want %g", m, n, r, i/4, float32At(got[0][r], i/4),
				float32At(want, i/4))
		}
		if i := firstDifference(got[1][r], got[1][0]); i >= 0 {
			b.Fatalf("%dx%d: value %d differs between ranks %d and 0", m, n, i/4, r)
		}
	}
	for _, i := range []int64{0, int64(m) / 2, int64(m) - 1} {
		normed := norm(getFloats(want[i*row:][:row]), getFloats(weight), 1e-5)
		if _, err := within(getFloats(got[1][0][i*row:][:row]), normed, k.MaxDiff); err != nil {
			b.Errorf("%dx%d, row %d: %v", m, n, i, err)
		}
		if err := b.g.Upload(x.Slice(i*row, row), old[i*row:][:row]); err != nil {
			b.Fatal(err)
		}
		alone := b.do(call(i, 1), x.Slice(i*row, row), y.Slice(i*row, row))
		for r := range ranks {
			if !bytes.Equal(alone[0][r], want[i*row:][:row]) || !bytes.Equal(alone[1][r], got[1][r][i*row:][:row]) {
				b.Errorf("%dx%d: row %d has other bits alone, on rank %d", m, n, i, r)
			}
		}
	}
}

// sumsInOrder returns x + (parts[0] + parts[1] + …), each addition rounded.
func sumsInOrder(x []byte, parts [][]byte) []byte {
	out := make([]byte, len(x))
	for i := 0; i < len(x); i += 4 {
		at := func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b[i:])) }
		sum := at(parts[0])
		for _, p := range parts[1:] {
			sum += at(p)
		}
		binary.LittleEndian.PutUint32(out[i:], math.Float32bits(at(x)+sum))
	}
	return out
}

func (b *bench) gatherMessage(m, each int32) {
	b.Helper()
	ranks := int32(b.g.Ranks())
	row := 4 * int64(each)
	part, y := b.alloc(int64(m)*row), b.alloc(int64(m)*row*int64(ranks))
	want := make([]byte, y.Len)
	for r := range int(ranks) {
		data := noiseFrom(1+7919*r, part.Len)
		if err := b.g.UploadTo(r, part, data); err != nil {
			b.Fatal(err)
		}
		for i := range int64(m) {
			copy(want[(i*int64(ranks)+int64(r))*row:], data[i*row:][:row])
		}
	}
	got := b.do(kernels.Call{Kernel: "all_gather", Dims: kernels.Dims{M: m, N: each * ranks, Ranks: ranks},
		Args: []kernels.Buffer{part, y}}, y)
	for r := range int(ranks) {
		if i := firstDifference(got[0][r], want); i >= 0 {
			b.Fatalf("gather of %dx%d: rank %d: value %d is %g, want %g", m, each, r, i/4, float32At(got[0][r], i/4),
				float32At(want, i/4))
		}
	}
}
