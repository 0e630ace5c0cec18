package kerneltest

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"glmbatch/kernels"
	"glmbatch/kernels/ranks"
)

const (
	guard     = 64 // bytes before and after an argument
	guardByte = 0xAB
	slack     = 32 // bytes between the rows of a strided view
)

// bench is a group of devices under test, with what is loaded on it.
type bench struct {
	testing.TB
	g      *ranks.Group
	loaded map[*argument]kernels.Buffer
}

// opened makes a group of devices that the test closes.
func opened(t testing.TB, devices []kernels.Device) *bench {
	t.Helper()
	g, err := ranks.New(devices, ranks.Options{Lock: devices[0].Info().Kind != "cpu"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return &bench{t, g, map[*argument]kernels.Buffer{}}
}

// placed is an example whose arguments are on the devices.
type placed struct {
	*bench
	*example
	call   kernels.Call
	images [][][]byte // by argument and rank: what was uploaded, guards and all
}

// strided says whether an argument may be a view of wider rows.
func (e *example) strided(a *argument) bool {
	many := e.k.Op == "moe_up" && a.Name == "y" || e.k.Op == "moe_down" && a.Name == "x" // several rows a token
	return a.Type == "f32" && a.Len != nil && a.words > 0 && !many
}

// place uploads an example between guards; pitched: with gaps between rows.
func (b *bench) place(e *example, pitched bool) *placed {
	b.Helper()
	p := &placed{bench: b, example: e, images: make([][][]byte, len(e.args))}
	p.call = kernels.Call{Kernel: e.k.Name, Replicated: e.replicated, Dims: e.d, Scalars: e.scalars}
	for i, a := range e.args {
		switch {
		case a.none:
			p.call.Args = append(p.call.Args, kernels.Buffer{})
		case a.weights != nil:
			p.call.Args = append(p.call.Args, b.load(a))
		default:
			p.call.Args = append(p.call.Args, p.upload(i, a, pitched && e.strided(a)))
		}
	}
	return p
}

func (b *bench) load(a *argument) kernels.Buffer {
	b.Helper()
	if buf, ok := b.loaded[a]; ok {
		return buf
	}
	buf, err := b.g.Load(a.sharing, func(rank int) kernels.Weights { return a.weightOn(rank).Weights })
	if err != nil {
		b.Fatal(err)
	}
	b.loaded[a] = buf
	return buf
}

func (p *placed) upload(i int, a *argument, pitched bool) kernels.Buffer {
	p.Helper()
	width, pitch, rows := len(a.on(0)), len(a.on(0)), 1
	if pitched {
		width, rows = 4*a.words, int(p.d.M)
		pitch = width + slack
	}
	size := guard + (rows-1)*pitch + width
	buf, err := p.g.Alloc(int64(size+guard), a.sharing)
	if err != nil {
		p.Fatal(err)
	}
	for r := range p.g.Ranks() {
		image := bytes.Repeat([]byte{guardByte}, size+guard)
		for j := range rows {
			copy(image[guard+j*pitch:], a.on(r)[j*width:(j+1)*width])
		}
		p.images[i] = append(p.images[i], image)
		if err := p.g.UploadTo(r, buf, image); err != nil {
			p.Fatal(err)
		}
	}
	view := buf.Slice(guard, int64(size-guard))
	if pitched {
		view.Pitch = int32(pitch)
	} else if a.Name == "pages" {
		view.Pitch = int32(4 * p.pageWidth)
	}
	return view
}

// run executes the call and returns each argument's contents on each rank, none
// for weights. It fails where anything but an output has changed.
func (p *placed) run() [][][]byte {
	p.Helper()
	if err := p.g.Run([]kernels.Call{p.call}, nil); err != nil {
		p.Fatal(err)
	}
	out := make([][][]byte, len(p.args))
	for i, a := range p.args {
		for r, image := range p.images[i] {
			got := make([]byte, len(image))
			if err := p.g.Download(r, got, kernels.Buffer{Index: p.call.Args[i].Index, Len: int64(len(got))}); err !=
				nil {
				p.Fatal(err)
			}
			out[i] = append(out[i], p.inside(i, got, image, a.Role == kernels.In))
		}
	}
	return out
}

// inside returns the argument's contents, dense, and checks what surrounds it.
func (p *placed) inside(i int, got, image []byte, in bool) []byte {
	p.Helper()
	v := p.call.Args[i]
	if in && !bytes.Equal(got, image) {
		p.Fatalf("input %s was written to", p.args[i].Name)
	}
	width, pitch, rows := int(v.Len), int(v.Len), 1
	if v.Pitch != 0 && p.args[i].Name != "pages" {
		width, pitch, rows = int(v.Pitch)-slack, int(v.Pitch), int(p.d.M)
	}
	var dense []byte
	around := slices.Clone(got)
	for j := range rows {
		at := guard + j*pitch
		dense = append(dense, got[at:at+width]...)
		copy(around[at:at+width], bytes.Repeat([]byte{guardByte}, width))
	}
	if n := slices.IndexFunc(around, func(b byte) bool { return b != guardByte }); n >= 0 {
		p.Fatalf("byte %d, outside argument %s, was written", n-guard, p.args[i].Name)
	}
	return dense
}

// everyRow lists the example's rows in order.
func (e *example) everyRow() []int {
	every := make([]int, e.d.M)
	for i := range every {
		every[i] = i
	}
	return every
}

// rows returns the example with some of its rows, in the order of idx.
func (e *example) rows(idx []int) *example {
	c := *e
	c.d.M = int32(len(idx))
	c.args = nil
	for _, a := range e.args {
		if a.words > 0 {
			b := *a
			b.data = nil
			for _, d := range a.data {
				var sub []byte
				for _, m := range idx {
					sub = append(sub, d[4*a.words*m:4*a.words*(m+1)]...)
				}
				b.data = append(b.data, sub)
			}
			a = &b
		}
		c.args = append(c.args, a)
	}
	return &c
}

// same checks that the rows idx of e's outputs are, bit for bit, sub's.
func (e *example) same(whole, part [][][]byte, idx []int) error {
	for i, a := range e.args {
		if a.Role != kernels.Out && a.Role != kernels.InOut {
			continue
		}
		for r := range whole[i] {
			if a.Name == "cache" {
				if err := e.sameEntries(whole[i][r], part[i][r], idx, r); err != nil {
					return err
				}
				continue
			}
			if a.Name == "pool" { // it has no rows of a batch
				if n := firstDifference(whole[i][r], part[i][r]); n >= 0 {
					return fmt.Errorf("byte %d of %s on rank %d differs", n, a.Name, r)
				}
				continue
			}
			n := 4 * a.words
			for j, m := range idx {
				used := n
				if e.k.Op == "index_logits" { // past the row's own position anything goes
					used = 4 * (int(getInts(e.args[6].on(r))[m]) + 1)
				}
				x, y := whole[i][r][n*m:][:used], part[i][r][n*j:][:used]
				if !bytes.Equal(x, y) {
					return fmt.Errorf("row %d of %s on rank %d has other bits: %x and %x at byte %d", m, a.Name, r,
						x[:4], y[:4], firstDifference(x, y))
				}
			}
		}
	}
	return nil
}

func (e *example) sameEntries(whole, part []byte, idx []int, rank int) error {
	a, b := e.cacheOf(rank), e.cacheOf(rank)
	a.data, b.data = whole, part
	for i, arg := range e.args {
		if arg.Name != "slots" {
			continue
		}
		slots := getInts(e.args[i].on(rank))
		for _, m := range idx {
			if s := int(slots[m]); !bytes.Equal(a.bytes(s), b.bytes(s)) {
				return fmt.Errorf("the cache entry of row %d has other bits", m)
			}
		}
	}
	return nil
}

func firstDifference(a, b []byte) int {
	if bytes.Equal(a, b) {
		return -1
	}
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}
