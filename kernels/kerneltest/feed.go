package kerneltest

import (
	"encoding/binary"

	"glmbatch/kernels"
)

// feedPages is the width of the page tables of feed's examples.
const feedPages = 5

// r16 are counts to begin with.
var r16 = []uint16{0, 0, 1, 254, 255, 256, 65534, 65535}

// feed fills an argument of feed: more rows than are fed, in which the fed ones
// are all over, and sequences anywhere in their pages.
func (f fill) feed() {
	m, n := int(f.e.d.M), int(f.e.d.N)
	rows := m + sourceRows
	switch f.arg.Name {
	case "last":
		b := make([]byte, rows*sampledSize)
		for i := range rows {
			binary.LittleEndian.PutUint32(b[i*sampledSize:], uint32(f.r.IntN(n+1)-1)) // -1: there was none
		}
		f.arg.data = append(f.arg.data, b)
	case "from":
		v := randomInts(f.r, m, rows)
		for i := range v {
			if i%3 == 1 {
				v[i] = -1
			}
		}
		f.ints(v)
	case "rows":
		v := make([]int32, m)
		for i, r := range f.same.Perm(rows)[:m] {
			v[i] = int32(r)
		}
		f.ints(v)
	case "tokens", "slots":
		f.ints(randomInts(f.r, rows, n))
	case "pos": // the next position has a page
		f.ints(randomInts(f.r, rows, feedPages*kernels.PageTokens-1))
	case "seq":
		f.ints(randomInts(f.r, rows, rows))
	case "pages":
		f.ints(randomInts(f.r, rows*feedPages, 1000))
		f.e.pageWidth = feedPages
	case "params": // a bitmap has one row
		f.params(f.e.d.M)
		for i, b := 0, f.arg.data[len(f.arg.data)-1]; i < m; i++ {
			binary.LittleEndian.PutUint32(b[paramSize*i+24:], uint32(int32(i%2*(i+1)-1)))
			binary.LittleEndian.PutUint32(b[paramSize*i+56:], uint32(int32(i%3/2*(i+1)-1)))
		}
	case "counts": // some are as great as they can be
		b := make([]byte, (m+1)*((n+3)/4*8))
		for i := range len(b) / 2 {
			binary.LittleEndian.PutUint16(b[2*i:], r16[f.r.IntN(len(r16))])
		}
		f.arg.data = append(f.arg.data, b)
	case "seen":
		b := make([]byte, (m+1)*((n+63)/64*8))
		for i := range b {
			b[i] = byte(f.r.Uint32())
		}
		f.arg.data = append(f.arg.data, b)
	}
}

func refFeed(r *reference) {
	last, from, rows := r.ints(0), r.ints(1), r.ints(2)
	tokens, pos, seq, slots, pages := r.ints(3), r.ints(4), r.ints(5), r.ints(6), r.ints(7)
	params := append([]byte{}, r.args[8].on(r.rank)...)
	seen := append([]byte{}, r.args[9].on(r.rank)...)
	counts := append([]byte{}, r.args[10].on(r.rank)...)
	bitmap := (int(r.d.N) + 63) / 64 * 8
	for m, f := range from {
		if f < 0 {
			continue
		}
		i, token := rows[m], last[int(f)*sampledSize/4]
		pos[i]++
		tokens[i] = max(token, 0)
		slots[i] = pages[seq[i]*feedPages+pos[i]/kernels.PageTokens]*kernels.PageTokens + pos[i]%kernels.PageTokens
		p := params[paramSize*m:]
		binary.LittleEndian.PutUint32(p[28:], uint32(token))
		if row := int(int32(binary.LittleEndian.Uint32(p[56:]))); row >= 0 && token >= 0 {
			c := counts[row*((int(r.d.N)+3)/4*8)+2*int(token):]
			binary.LittleEndian.PutUint16(c, uint16(min(int(binary.LittleEndian.Uint16(c))+1, 65535)))
		}
		binary.LittleEndian.PutUint64(p[40:], binary.LittleEndian.Uint64(p[40:])+1)
		if row := int32(binary.LittleEndian.Uint32(p[24:])); row >= 0 && token >= 0 {
			seen[int(row)*bitmap+int(token)/8] |= 1 << (token % 8)
		}
	}
	r.want[3], r.want[4], r.want[6], r.want[8], r.want[9], r.want[10] = tokens, pos, slots, getInts(params), getInts(
		seen), getInts(counts)
}
