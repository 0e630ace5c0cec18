package glm5

import (
	"encoding/binary"
	"unsafe"

	"glmbatch/kernels"
)

// inputs is a rank's copy of what is uploaded for a step, on the host.
type inputs struct {
	a    *arena
	data []byte
}

// at is a view of the step's inputs.
func (in inputs) at(b kernels.Buffer) []byte {
	from := b.Offset - in.a.inputs.Offset
	return in.data[from : from+b.Len]
}

func (in inputs) put(b kernels.Buffer, i int, v int32) {
	binary.NativeEndian.PutUint32(in.at(b)[4*i:], uint32(v))
}

// fill writes a rank's inputs, of a batch cut as c; was is the cut of the batch before.
func (m *Model) fill(data []byte, rank int, b *Batch, c, was *cut) {
	a, s := &m.buf, &c.shares[rank]
	in, first := inputs{a, data}, int32(rank*m.o.MaxSeqs)
	if m.apart {
		m.fillApart(in, c)
	}
	for i := s.from; i < s.to; i++ {
		at := c.place(s, i)
		in.put(a.tokens, at, b.Tokens[i])
		in.put(a.pos, at, b.Pos[i])
		in.put(a.seq, at, b.Seq[i]-first)
		in.put(a.slots, at, b.Slots[i])
	}
	for i := s.logits; i < s.last; i++ {
		p, at := b.Params[i], i-s.logits
		if m.apart {
			p = of(p, first)
		}
		row := c.place(s, int(b.Logits[i]))
		in.put(a.logitRows, at, int32(row))
		if len(b.From) > 0 {
			from := b.From[i]
			if from >= 0 { // one token back: feed takes it on
				from -= int32(was.shares[rank].logits)
				p.Counter--
				in.put(a.pos, row, b.Pos[b.Logits[i]]-1)
			}
			in.put(a.from, at, from)
		}
		*(*kernels.SampleParams)(unsafe.Pointer(&in.at(a.params)[at*paramBytes])) = p
	}
	copy(in.at(a.next), bytesOf(b.Next))
	copy(in.at(a.tips), bytesOf(b.Tips))
}

// of is parameters whose rows of tables are those of a rank, the first of which it has.
func of(p kernels.SampleParams, first int32) kernels.SampleParams {
	for _, row := range []*int32{&p.Seen, &p.Counts, &p.Allowed} {
		if *row >= 0 {
			*row -= first
		}
	}
	return p
}

// fillApart writes what a rank has in places without a row, the first token of a sequence that
// nobody has, and where the ranks' rows are among all.
func (m *Model) fillApart(in inputs, c *cut) {
	a := &m.buf
	for i := range c.rows {
		in.put(a.tokens, i, 0)
		in.put(a.pos, i, 0)
		in.put(a.seq, i, int32(m.o.MaxSeqs))
		in.put(a.slots, i, int32(m.o.Pages*kernels.PageTokens))
	}
	none := kernels.Greedy()
	for i := range c.logits {
		in.put(a.logitRows, i, 0)
		in.put(a.from, i, -1)
		*(*kernels.SampleParams)(unsafe.Pointer(&in.at(a.params)[i*paramBytes])) = none
	}
	for i := range c.rows * m.homes {
		in.put(a.to, i, -1)
	}
	for r := range c.shares {
		s := &c.shares[r]
		for i := s.from; i < s.to; i++ {
			in.put(a.to, c.place(s, i)*m.homes+r, int32(i))
		}
	}
	for i := range c.all * (int(m.shards/m.ranks) - 1) {
		in.put(a.again, i, int32(i%c.all))
	}
}
