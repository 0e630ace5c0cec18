//go:build cuda

package cuda

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"
	"glmbatch/kernels/cuda/plan"
)

// floats are n random values as a device holds them.
func floats(rng *rand.Rand, n int) []byte {
	b := make([]byte, 4*n)
	for i := range n {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(float32(rng.NormFloat64())))
	}
	return b
}

func ints(v []int32) []byte {
	b := make([]byte, 4*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(b[4*i:], uint32(x))
	}
	return b
}

// Calls that share a launch, and kernels that read early what is settled, give the bits
// that the calls give one by one: layers that write keys, score all positions, select
// some and take queries into the latent space.
func TestSelectionInLists(t *testing.T) {
	if err := driver.Status(); err != nil {
		t.Skip(err)
	}
	held := hold(t)
	for _, f := range []kernels.Format{kernels.FP8, kernels.BF16} {
		for _, m := range []int32{1, 8, 9, 17, 64, 65} {
			t.Run(fmt.Sprintf("%s/%d", f, m), func(t *testing.T) { testSelection(t, held, f, m) })
		}
	}
}

func testSelection(t *testing.T, held []kernels.Device, f kernels.Format, m int32) {
	const layers, pages, heads, key, rope, latent, nope, topk = 4, 5, 32, 128, 64, 512, 192, 100
	width := int32(pages * kernels.PageTokens)
	runtime.LockOSThread() // the GPU's context is the thread's
	defer runtime.UnlockOSThread()
	ds, err := Open(1, Options{like: held})
	if err != nil {
		t.Fatal(err)
	}
	d := ds[0]
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	rng := rand.New(rand.NewPCG(1, uint64(m)))
	alloc := func(n int, data []byte) kernels.Buffer {
		t.Helper()
		b, err := d.Alloc(int64(n), kernels.Sharded)
		if err == nil && data != nil {
			err = d.Upload(b, data)
		}
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	put := func(data []byte) kernels.Buffer { return alloc(len(data), data) }
	pos, seq, slots, table := make([]int32, m), make([]int32, m), make([]int32, m), make([]int32, m*pages)
	for i, p := range rng.Perm(len(table)) {
		table[i] = int32(p)
	}
	for i := range m { // the last rows are of one sequence, their keys being written in the same list
		pos[i], seq[i] = width-1-i%70, i
		if i >= 4 {
			pos[i], seq[i] = width-m+i-2, 4
		}
		slots[i] = table[seq[i]*pages+pos[i]/kernels.PageTokens]*kernels.PageTokens + pos[i]%kernels.PageTokens
	}
	weight := make([]byte, 2*latent*nope)
	for i := 0; i < len(weight); i += 2 {
		binary.LittleEndian.PutUint16(weight[i:], uint16(math.Float32bits(float32(rng.NormFloat64()))>>16))
	}
	w, err := d.Load(kernels.Weights{Name: "absorb", Format: kernels.BF16, Count: 8, Rows: latent, Cols: nope,
		Read: func(int, kernels.Alloc) (kernels.Matrix, error) { return kernels.Matrix{Data: weight, Global: 1}, nil }},
		kernels.Sharded)
	if err != nil {
		t.Fatal(err)
	}
	angles, norm, bias := put(floats(rng, int(width)*rope)), put(floats(rng, key)), put(floats(rng, key))
	p, s, sl, tb := put(ints(pos)), put(ints(seq)), put(ints(slots)), put(ints(table))
	tb.Pitch = 4 * pages
	cache := alloc(len(table)*kernels.PageTokens*kernels.IndexEntry(f, key), nil)
	var calls []kernels.Call
	var outs []kernels.Buffer
	call := func(name kernels.Name, d kernels.Dims, scalar float32, args ...kernels.Buffer) {
		d.M = m
		calls = append(calls, kernels.Call{Kernel: name, Dims: d, Args: args, Scalars: [4]float32{scalar}})
	}
	write := func(x, slots, pos kernels.Buffer) {
		call(kernels.With("index_write", f), kernels.Dims{K: key, Rope: rope}, 1e-5, x, norm, bias, angles,
			pos, slots, cache)
	}
	for i := range width { // every position of every sequence has a key
		all := make([]int32, m)
		for j := range all {
			all[j] = table[int32(j)*pages+i/kernels.PageTokens]*kernels.PageTokens + i%kernels.PageTokens
		}
		if i%16 == 0 {
			calls = calls[:0]
		}
		write(put(floats(rng, int(m)*key)), put(ints(all)), p)
		if i%16 == 15 {
			start(t, d, calls)
		}
	}
	calls = calls[:0]
	for range layers {
		n, heads64 := int(m), int32(heads)
		scores, sel, qa := alloc(4*n*int(width), nil), alloc(4*n*topk, nil), alloc(4*n*8*(latent+rope), nil)
		write(put(floats(rng, n*key)), sl, p)
		call("q_absorb_bf16", kernels.Dims{N: latent, K: nope, Heads: 8, Rope: rope}, 0, w,
			put(floats(rng, n*8*(nope+rope))), angles, p, qa)
		call(kernels.With("index_logits", f), kernels.Dims{N: width, K: key, Heads: heads64, Rope: rope,
			Slots: int64(m * width), Ctx: int64(m * width)}, 1,
			put(floats(rng, n*heads*key)), put(floats(rng, n*heads)), angles, cache, tb, s, p, scores)
		call("index_topk", kernels.Dims{N: width, TopK: topk, Ctx: int64(m * width)}, 0, scores, p, sel)
		outs = append(outs, qa, sel)
	}
	read := func() (all [][]byte) {
		for _, b := range outs {
			x := make([]byte, b.Len)
			if err := d.Download(x, b); err != nil {
				t.Fatal(err)
			}
			all = append(all, x)
			if err := d.Upload(b, make([]byte, b.Len)); err != nil {
				t.Fatal(err)
			}
		}
		return all
	}
	for i := range calls {
		start(t, d, calls[i:i+1])
	}
	want := read()
	shared := 0
	planned, err := plan.Together(calls, &d.(*device).target, &d.(*device).memory.Memory)
	if err != nil {
		t.Fatal(err)
	}
	for _, which := range planned.Chain {
		if len(which) == 2 && calls[which[1]].Kernel == "index_topk" {
			shared++
		}
	}
	if (shared == layers) != (m <= 64) {
		t.Errorf("%d of %d layers are launched together", shared, layers)
	}
	for try := range 3 { // call by call, then as a graph
		start(t, d, calls)
		for i, got := range read() {
			if !bytes.Equal(got, want[i]) {
				t.Fatalf("try %d, layer %d: output %d differs", try, i/2, i%2)
			}
		}
	}
}

func start(t *testing.T, d kernels.Device, calls []kernels.Call) {
	t.Helper()
	err := d.Start(calls, nil, kernels.Fetch{})
	if err == nil {
		err = d.Wait()
	}
	if err != nil {
		t.Fatal(err)
	}
}
