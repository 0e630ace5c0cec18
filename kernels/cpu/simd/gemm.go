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
	for i := range m {
		s.x[i] = 4 * int64(x.offset(i, w.Cols))
		s.y[i] = 4 * int64(dst.offset(i, width))
	}
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
		cols := min(blockCols, w.Cols-k)
		var b [2]*float32
		for i := range n {
			b[i] = l.block(f, data[i*size:(i+1)*size], k, cols, i, s)
		}
		alpha, load := float32(1), 1
		if k+cols == w.Cols {
			alpha = w.Global()
		}
		if k == 0 {
			load = 0
		}
		a := &x[k:][0]
		for i := 0; i < m; i += l.rows {
			rows := min(l.rows, m-i)
			c := &dst[p*Lanes:][0]
			switch {
			case n == 2:
				l.wide[rows-1](c, &s.y[i], a, &s.x[i], b[0], b[1], 64, cols, load, alpha)
			case (p+1)*Lanes <= w.Rows:
				l.tile[rows-1](c, &s.y[i], a, &s.x[i], b[0], 64, cols, load, alpha)
			default:
				l.edgeTile(dst, a, b[0], w.Rows, p, i, rows, cols, load, alpha, s)
			}
		}
	}
}

// block returns columns [k, k+cols) of a panel as float32 [cols][16].
func (l *level) block(f int, panel []byte, k, cols, slot int, s *Scratch) *float32 {
	if l.decode[f] == nil {
		return (*float32)(unsafe.Pointer(&panel[k*64]))
	}
	s.block = grow(&s.block, 2*blockCols*Lanes)
	b := &s.block[slot*blockCols*Lanes]
	at := 0
	switch f {
	case f32:
		at = k * 64
	case bf16:
		at = k * 32
	case fp4:
		at = k / 16 * fp4Block
	}
	l.decode[f](b, &panel[at], cols)
	return b
}

// edgeTile is a tile of the last panel when that has fewer rows than lanes.
func (l *level) edgeTile(dst []float32, a, b *float32, width, p, i, rows, cols, load int, alpha float32, s *Scratch) {
	n := width - p*Lanes
	for r := range rows {
		s.edgeAt[r] = int64(r) * Lanes * 4
		if load == 1 {
			copy(s.edge[r*Lanes:r*Lanes+n], dst[int(s.y[i+r])/4+p*Lanes:])
		}
	}
	l.tile[rows-1](&s.edge[0], &s.edgeAt[0], a, &s.x[i], b, 64, cols, load, alpha)
	for r := range rows {
		copy(dst[int(s.y[i+r])/4+p*Lanes:], s.edge[r*Lanes:r*Lanes+n])
	}
}
