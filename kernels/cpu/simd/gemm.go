package simd

import "unsafe"

// Gemm computes dst[i][r] = Σ x[i][k]·w[r][k] for rows i < m and the output
// rows r of panels [lo, hi). Rows of x are w.Cols long. dst and x must not overlap.
func Gemm(dst, x Rows, m int, w Weight, lo, hi int, s *Scratch) {
	active.gemm(dst, x, m, w, lo, hi, s)
}

func (l *level) gemm(dst, x Rows, m int, w Weight, lo, hi int, s *Scratch) {
	if m <= 0 || lo >= hi {
		return
	}
	f := formatIndex(w.Format)
	if m == 1 && l.gemv[f][0] != nil {
		l.stream(f, dst, x, w, lo, hi, s)
		return
	}
	width := min(hi*Lanes, w.Rows)
	s.x, s.y = grow(&s.x, m), grow(&s.y, m)
	x.offsets(s.x, w.Cols)
	dst.offsets(s.y, width)
	for p := lo; p < hi; {
		n := 1
		if p+1 < hi && (p+2)*Lanes <= w.Rows && l.wide[min(m, l.rows)-1] != nil {
			n = 2
		}
		l.panels(f, dst.Data, x.Data, m, w, p, n, s)
		p += n
	}
}

// stream multiplies one row of x with packed panels as they come from memory.
func (l *level) stream(f int, dst, x Rows, w Weight, lo, hi int, s *Scratch) {
	in, out := x.offset(0, w.Cols), dst.offset(0, min(hi*Lanes, w.Rows))
	size, alpha := panelBytes(w.Format, w.Cols), w.Global()
	for p := lo; p < hi; {
		n := min(hi-p, maxGemv)
		for l.gemv[f][n-1] == nil {
			n--
		}
		data := w.panel(p, n)
		if (p+n)*Lanes <= w.Rows {
			l.gemv[f][n-1](&dst.Data[out+p*Lanes], &x.Data[in], &data[0], size, w.Cols, alpha)
		} else { // the last panel has fewer rows than lanes
			l.gemv[f][n-1](&s.edge[0], &x.Data[in], &data[0], size, w.Cols, alpha)
			copy(dst.Data[out+p*Lanes:out+w.Rows], s.edge[:])
		}
		p += n
	}
}

// panels computes n (1 or 2) panels for all rows, a block of columns after the
// other. Between blocks the sums rest in dst, which leaves their bits as they are.
func (l *level) panels(f int, dst, x []float32, m int, w Weight, p, n int, s *Scratch) {
	data, size := w.panel(p, n), panelBytes(w.Format, w.Cols)
	for k := 0; k < w.Cols; k += blockCols {
		t := tiles{level: l, f: f, n: n, c: &dst[p*Lanes:][0], a: &x[k:][0], cols: min(blockCols, w.Cols-k), alpha: 1}
		for i := range n {
			t.b[i] = l.block(f, data[i*size:(i+1)*size], k, t.cols, i, s)
		}
		if k > 0 {
			t.load = 1
		}
		if k+t.cols == w.Cols {
			t.alpha = w.Global()
		}
		for i := 0; i < m; {
			rows, times := min(l.rows, m-i), 1
			if (p+n)*Lanes <= w.Rows {
				if m-i >= 2*rows {
					times = (m - i) / rows
				}
				t.run(rows, times, &s.y[i], &s.x[i])
			} else {
				t.edge(rows, dst[p*Lanes:], w.Rows-p*Lanes, s.y[i:], &s.x[i], s)
			}
			i += rows * times
		}
	}
}

// block returns columns [k, k+cols) of a panel as tiles read them.
func (l *level) block(f int, panel []byte, k, cols, slot int, s *Scratch) *float32 {
	if l.decode[f] == nil {
		return (*float32)(unsafe.Pointer(&panel[k*64]))
	}
	s.block = grow(&s.block, 2*decodedBlock)
	b := &s.block[slot*decodedBlock]
	at := 0
	switch f {
	case f32:
		at = k * 64
	case bf16:
		at = k * 32
	case fp4:
		at = k / 16 * fp4Block
	case fp8b:
		at = k / fp8Columns * fp8Block
	}
	l.decode[f](b, &panel[at], cols)
	return b
}

// tiles are the products of one block of columns of n panels.
type tiles struct {
	*level
	f, n  int
	c, a  *float32 // results and inputs, from where rows' offsets count
	b     [2]*float32
	cols  int
	load  int // 0: results begin at 0
	alpha float32
}

// run does up to level.rows rows, so many times.
func (t *tiles) run(rows, times int, coff, aoff *int64) {
	switch {
	case t.f == fp4 && t.n == 2:
		t.scaledWide[rows-1](t.c, coff, t.a, aoff, t.b[0], t.cols, t.load, t.alpha, times)
	case t.f == fp4:
		t.scaled[rows-1](t.c, coff, t.a, aoff, t.b[0], t.cols, t.load, t.alpha, times)
	case t.n == 2:
		t.wide[rows-1](t.c, coff, t.a, aoff, t.b[0], t.b[1], 64, t.cols, t.load, t.alpha, times)
	default:
		t.tile[rows-1](t.c, coff, t.a, aoff, t.b[0], 64, t.cols, t.load, t.alpha, times)
	}
}

// edge does rows of the last panel, when that has only width results for a row.
func (t *tiles) edge(rows int, dst []float32, width int, coff []int64, aoff *int64, s *Scratch) {
	for r := range rows {
		s.edgeAt[r] = int64(r) * Lanes * 4
		if t.load == 1 {
			copy(s.edge[r*Lanes:r*Lanes+width], dst[coff[r]/4:])
		}
	}
	inner := *t
	inner.c = &s.edge[0]
	inner.run(rows, 1, &s.edgeAt[0], aoff)
	for r := range rows {
		copy(dst[coff[r]/4:], s.edge[r*Lanes:r*Lanes+width])
	}
}
