package simd

// A quantised row has 24 bytes for 16 columns: 16 signed integers, the float32
// factor of the block and -12·(their sum) as an int32, which takes out the 12
// that is added to weights to make them unsigned.
const quantBlock = 24

// QuantBytes is the length of a quantised row of cols values, a multiple of 16.
func QuantBytes(cols int) int { return cols / 16 * quantBlock }

// QuantRows are quantised rows; row i is Data[Index[i]*Stride:], or
// Data[i*Stride:] if Index is nil. Stride is in bytes.
type QuantRows struct {
	Data   []byte
	Stride int
	Index  []int32
}

func (q QuantRows) offset(i, n int) int {
	if q.Index != nil {
		i = int(q.Index[i])
	}
	return checked(len(q.Data), i*q.Stride, n)
}

// QuantA4 makes E2M1 values of x, in multiples of 16, with an E4M3 factor for
// each 16: the factor is e4m3(max|x| / 6 / input), and a value is the nearest
// to x / (factor·input), ties to the even code. The integers are doubled values.
// A row with a value that is not finite gives unspecified numbers.
func QuantA4(dst []byte, x []float32, input float32) {
	n := len(x) / 16
	active.quantA4(dst[:n*quantBlock], x[:n*16], input)
}

// QuantA8 makes integers of -127..127 of x, in multiples of 16, with the factor
// max|x| / 127 for each 16; ties go to the even integer. Where the factor would
// be subnormal all are 0.
func QuantA8(dst []byte, x []float32) {
	n := len(x) / 16
	active.quantA8(dst[:n*quantBlock], x[:n*16])
}

// GemmA4 is [Gemm] of FP4 weights with activations of [QuantA4], whose input
// scale was w.Input().
func GemmA4(dst Rows, x QuantRows, m int, w Weight, lo, hi int, s *Scratch) {
	active.gemmQuant(dst, x, m, w, lo, hi, w.Input()*w.Global()/4, s)
}

// GemmA8 is [Gemm] of FP4 weights with activations of [QuantA8].
func GemmA8(dst Rows, x QuantRows, m int, w Weight, lo, hi int, s *Scratch) {
	active.gemmQuant(dst, x, m, w, lo, hi, w.Global()/2, s)
}

func (l *level) gemmQuant(dst Rows, x QuantRows, m int, w Weight, lo, hi int, alpha float32, s *Scratch) {
	if formatIndex(w.Format) != fp4 {
		panic("simd: integer activations need fp4 weights")
	}
	if m <= 0 || lo >= hi {
		return
	}
	width := min(hi*Lanes, w.Rows)
	s.x, s.y = grow(&s.x, m), grow(&s.y, m)
	for i := range m {
		s.x[i] = int64(x.offset(i, QuantBytes(w.Cols)))
		s.y[i] = 4 * int64(dst.offset(i, width))
	}
	rows := maxTile
	for l.quant[rows-1] == nil {
		rows--
	}
	for p := lo; p < hi; p++ {
		data := w.panel(p, 1)
		for i := 0; i < m; i += rows {
			n := min(rows, m-i)
			if (p+1)*Lanes <= w.Rows {
				l.quant[n-1](&dst.Data[p*Lanes], &s.y[i], &x.Data[0], &s.x[i], &data[0], w.Cols/16, alpha)
				continue
			}
			for r := range n {
				s.edgeAt[r] = int64(r) * Lanes * 4
			}
			l.quant[n-1](&s.edge[0], &s.edgeAt[0], &x.Data[0], &s.x[i], &data[0], w.Cols/16, alpha)
			for r := range n {
				copy(dst.Data[int(s.y[i+r])/4+p*Lanes:][:w.Rows-p*Lanes], s.edge[r*Lanes:])
			}
		}
	}
}
