package glm5

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"

	"glmbatch/engine/checkpoint"
	"glmbatch/kernels"
	"glmbatch/kernels/nvfp4"
)

// Rounding is what rounding weights to FP8 has changed in a part of the model.
type Rounding struct {
	Part   Part    `json:"part"`
	Values int64   `json:"values"`         // rounded, on the ranks that are here
	Error  float64 `json:"relative_error"` // of their Frobenius norm: |rounded - stored| / |stored|
}

// asStored is an FP8 weight as one of n ranks' products read it: as its codes, with one
// scale or with those of blocks; BF16 where they do not; float32 where nothing may be
// rounded, but for codes with one scale, which multiplies finished sums.
func (t *Tensor) asStored(l checkpoint.Linear, exact bool, n int) checkpoint.Linear {
	if codes, ok := l.Codes(); ok && t.Runs(kernels.BF16, kernels.FP8) == kernels.FP8 {
		return codes
	}
	if exact {
		return l.Wide()
	}
	if _, cols := t.Share(n); t.MayQuantize && !t.byHead() {
		if blocks, ok := l.Blocks(cols); ok {
			return blocks
		}
	}
	return l
}

// byHead: the heads' parts of kv_b_proj, which products read as BF16 or float32.
func (t *Tensor) byHead() bool { return strings.HasSuffix(t.Name, ".kv_b_proj.weight") }

// Runs returns the format that a Linear stored in a format is multiplied in.
// dense is Options.Dense. The heads' parts of kv_b_proj are never rounded.
func (t *Tensor) Runs(stored, dense kernels.Format) kernels.Format {
	if dense != kernels.FP8 || stored != kernels.BF16 || !t.MayQuantize || t.byHead() {
		return stored
	}
	switch t.Part {
	case Attn, Index, DenseMLP, Shared:
		return kernels.FP8
	}
	return stored
}

// rounded rounds BF16 weights to E4M3 and keeps count of what that changes. A
// matrix has one scale, a power of two: E4M3 has exponents of its own, so a scale
// only has to bring the largest value below its end, and with a power of two a
// value is rounded alike on however many ranks.
type rounded struct {
	mu     sync.Mutex
	tables map[int]*table8
	parts  map[place8]sum8
}

// place8 is a rank's share of a weight. Of what is the same on all ranks it is
// rank 0's, whoever reads it.
type place8 struct {
	name string
	rank int
}

type sum8 struct {
	part        Part
	values      int64
	wrong, size float64 // sums of squares
}

// table8 has the code of every BF16 value, and its error squared, at a scale.
type table8 struct {
	codes [1 << 16]byte
	wrong [1 << 16]float64
}

// stack is a rank's shares one above the other in FP8.
func (r *rounded) stack(a kernels.Alloc, all []source, rank, n int) (kernels.Matrix, error) {
	shares := make([][]byte, len(all))
	total, most := 0, uint16(0)
	for i := range all {
		m, err := all[i].share(nil, kernels.BF16, rank, n)
		if err != nil {
			return m, err
		}
		shares[i] = m.Data
		total += len(m.Data) / 2
		most = max(most, largest(m.Data))
	}
	e := scale8(most)
	t := r.table(e)
	codes := a.Bytes(total)
	at := 0
	for i, b := range shares {
		counts := t.encode(codes[at:at+len(b)/2], b)
		at += len(b) / 2
		where := place8{all[i].Name, rank}
		if all[i].split == Whole {
			where.rank = 0
		}
		r.add(where, t.sum(all[i].part, counts))
	}
	return kernels.Matrix{Data: codes, Global: float32(math.Ldexp(1, e))}, nil
}

// largest returns the largest finite magnitude, as BF16.
func largest(b []byte) (most uint16) {
	for i := 0; i+1 < len(b); i += 2 {
		if v := binary.LittleEndian.Uint16(b[i:]) & 0x7fff; v > most && v < 0x7f80 {
			most = v
		}
	}
	return most
}

// scale8 returns the least exponent e for which v is at most 448 · 2^e.
func scale8(v uint16) int {
	if v == 0 {
		return 0
	}
	f, e := math.Frexp(bf16Value(v)) // f in [1/2, 1)
	if f <= 448./512 {
		return e - 9
	}
	return e - 8
}

func bf16Value(v uint16) float64 { return float64(math.Float32frombits(uint32(v) << 16)) }

func (r *rounded) table(e int) *table8 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.tables[e]; t != nil {
		return t
	}
	t := &table8{}
	for i := range t.codes {
		v := bf16Value(uint16(i))
		c := nvfp4.EncodeE4M3(float32(math.Ldexp(v, -e)))
		if i&0x7f80 == 0x7f80 { // no number stays none
			c = 0x7f
		} else {
			d := math.Ldexp(float64(nvfp4.E4M3[c]), e) - v
			t.wrong[i] = d * d
		}
		t.codes[i] = c
	}
	if r.tables == nil {
		r.tables = map[int]*table8{}
	}
	r.tables[e] = t
	return t
}

// encode fills in the codes of values, some cores at once, and counts the values.
func (t *table8) encode(codes, b []byte) *[1 << 16]int64 {
	const least = 1 << 20 // values that are worth a goroutine
	parts := max(1, min(len(codes)/least, runtime.GOMAXPROCS(0)))
	counts := make([][1 << 16]int64, parts)
	var wg sync.WaitGroup
	for p := range parts {
		wg.Go(func() {
			lo, hi := len(codes)*p/parts, len(codes)*(p+1)/parts
			out, in, n := codes[lo:hi], b[2*lo:2*hi], &counts[p]
			for i := range out {
				v := binary.LittleEndian.Uint16(in[2*i:])
				out[i] = t.codes[v]
				n[v]++
			}
		})
	}
	wg.Wait()
	for p := range counts[1:] {
		for v, n := range &counts[1+p] {
			counts[0][v] += n
		}
	}
	return &counts[0]
}

func (t *table8) sum(part Part, counts *[1 << 16]int64) sum8 {
	s := sum8{part: part}
	for v, n := range counts {
		if n > 0 && v&0x7f80 != 0x7f80 {
			x := bf16Value(uint16(v))
			s.values += n
			s.wrong += float64(n) * t.wrong[v]
			s.size += float64(n) * x * x
		}
	}
	return s
}

func (r *rounded) add(where place8, s sum8) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.parts == nil {
		r.parts = map[place8]sum8{}
	}
	r.parts[where] = s
}

// sum adds up the weights of each part, in one order whoever read them first.
func (r *rounded) sum() []Rounding {
	var places []place8
	for p := range r.parts {
		places = append(places, p)
	}
	slices.SortFunc(places, func(a, b place8) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.rank, b.rank))
	})
	var out []Rounding
	for _, part := range Parts {
		var s sum8
		for _, p := range places {
			if x := r.parts[p]; x.part == part {
				s.values, s.wrong, s.size = s.values+x.values, s.wrong+x.wrong, s.size+x.size
			}
		}
		if s.values > 0 {
			x := Rounding{Part: part, Values: s.values}
			if s.size > 0 {
				x.Error = math.Sqrt(s.wrong / s.size)
			}
			out = append(out, x)
		}
	}
	return out
}

// RoundingText says what rounding weights has cost.
func RoundingText(rs []Rounding) string {
	var parts []string
	for _, r := range rs {
		parts = append(parts, fmt.Sprintf("%s %.2f %%", r.Part, 100*r.Error))
	}
	return "relative errors " + strings.Join(parts, ", ")
}
