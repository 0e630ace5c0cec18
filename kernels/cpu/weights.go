package cpu

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"sync"

	"glmbatch/kernels"
	"glmbatch/kernels/cpu/simd"
)

// maxDim bounds every dimension of a weight: products of two stay far from
// overflow, and no model comes near it.
const maxDim = 1 << 28

// matrix is one packed matrix. The halves of a merged NVFP4 matrix (gate, up)
// may have scales of their own; then up is a weight by itself and follows w.
type matrix struct {
	w, up simd.Weight // up.Rows 0: none
	scale float32     // of FP8, whose values are packed as BF16; else 1
}

func (m *matrix) panels() int { return m.w.Panels() + m.up.Panels() }

// multiply computes the outputs of panels [lo, hi) for n rows of x.
func (m *matrix) multiply(dst, x simd.Rows, n, lo, hi int, s *simd.Scratch) {
	first := m.w.Panels()
	if a, b := lo, min(hi, first); a < b {
		simd.Gemm(dst, x, n, m.w, a, b, s)
	}
	if a, b := max(lo, first), hi; a < b {
		dst.Data = dst.Data[m.w.Rows:]
		simd.Gemm(dst, x, n, m.up, a-first, b-first, s)
	}
}

// outputs returns the columns that panels [lo, hi) compute.
func (m *matrix) outputs(lo, hi int) (from, to int) { return m.column(lo), m.column(hi) }

func (m *matrix) column(panel int) int {
	if first := m.w.Panels(); panel >= first {
		return m.w.Rows + min((panel-first)*simd.Lanes, m.up.Rows)
	}
	return min(panel*simd.Lanes, m.w.Rows)
}

// span returns the panels that compute outputs [from, to).
func (m *matrix) span(from, to int) (lo, hi int) {
	if from >= m.w.Rows && m.up.Rows > 0 {
		lo, hi = m.whole(from-m.w.Rows), m.cover(to-m.w.Rows)
		return lo + m.w.Panels(), hi + m.w.Panels()
	}
	if to > m.w.Rows {
		return m.whole(from), m.w.Panels() + m.cover(to-m.w.Rows)
	}
	return m.whole(from), m.cover(to)
}

func (m *matrix) whole(row int) int { return row / simd.Lanes }
func (m *matrix) cover(row int) int { return (row + simd.Lanes - 1) / simd.Lanes }

func checkWeights(w kernels.Weights) error {
	switch {
	case w.Count < 1 || w.Rows < 1 || w.Cols < 1 || w.Count > maxDim || w.Rows > maxDim || w.Cols > maxDim:
		return fmt.Errorf("cpu: loading %s: %d matrices [%d, %d]: sizes must be positive and at most %d", w.Name,
			w.Count, w.Rows, w.Cols, maxDim)
	case w.Read == nil:
		return fmt.Errorf("cpu: loading %s: no Read", w.Name)
	case w.Use == kernels.Gather && w.Format != kernels.F32 && w.Format != kernels.BF16:
		return fmt.Errorf("cpu: loading %s: rows of a %s table cannot be looked up; use f32 or bf16", w.Name, w.Format)
	case matrixBytes(w) == 0:
		return fmt.Errorf("cpu: loading %s: no layout for %s [%d, %d]", w.Name, w.Format, w.Rows, w.Cols)
	case matrixBytes(w) > 1<<46/int64(w.Count):
		return fmt.Errorf("cpu: loading %s: %w: %d matrices of %d bytes", w.Name, kernels.ErrMemory, w.Count,
			matrixBytes(w))
	}
	return nil
}

// matrixBytes returns the bytes of one matrix as it is kept, 0 where it cannot be.
func matrixBytes(w kernels.Weights) int64 {
	switch {
	case w.Use == kernels.Gather:
		return kernels.WeightBytes(w.Format, int64(w.Rows), int64(w.Cols))
	case w.Format == kernels.FP8:
		return simd.PackedBytes(kernels.BF16, w.Rows, w.Cols)
	case w.Format == kernels.FP4 && w.Rows%2 == 0: // room for two halves with scales of their own
		return max(simd.PackedBytes(w.Format, w.Rows, w.Cols), 2*simd.PackedBytes(w.Format, w.Rows/2, w.Cols))
	}
	return simd.PackedBytes(w.Format, w.Rows, w.Cols)
}

func packedBytes(w kernels.Weights) int64 { return int64(w.Count) * matrixBytes(w) }

// pack reads w's matrices one after the other into dst, while those that were
// read before are laid out on as many threads.
func pack(dst []byte, w kernels.Weights, threads int) ([]matrix, error) {
	if w.Use == kernels.Gather {
		return nil, copyTables(dst, w)
	}
	var (
		wg      sync.WaitGroup
		reading sync.Mutex // guards what follows
		next    int
		first   error
		ms      = make([]matrix, w.Count)
		size    = matrixBytes(w)
	)
	// Few large matrices are cut, each by threads of its own.
	each := max(1, threads/w.Count)
	for range min(threads, w.Count) {
		wg.Go(func() {
			for {
				reading.Lock()
				i := next
				if i == w.Count || first != nil {
					reading.Unlock()
					return
				}
				next++
				m, err := w.Read(i, nil)
				first = err
				reading.Unlock()
				if err != nil {
					return
				}
				if ms[i], err = packMatrix(dst[int64(i)*size:int64(i+1)*size], w, m, each); err != nil {
					reading.Lock()
					first = fmt.Errorf("matrix %d: %w", i, err)
					reading.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return ms, first
}

// copyTables copies matrices whose rows are looked up.
func copyTables(dst []byte, w kernels.Weights) error {
	for i := range w.Count {
		m, err := w.Read(i, nil)
		if err != nil {
			return err
		}
		if n := len(dst) / w.Count; len(m.Data) != n {
			return fmt.Errorf("matrix %d has %d bytes, wants %d", i, len(m.Data), n)
		}
		copy(dst[i*len(m.Data):], m.Data)
	}
	return nil
}

func packMatrix(dst []byte, w kernels.Weights, m kernels.Matrix, threads int) (matrix, error) {
	switch {
	case w.Format == kernels.FP8:
		if len(m.Data) != w.Rows*w.Cols {
			return matrix{}, fmt.Errorf("has %d bytes of values, wants %d", len(m.Data), w.Rows*w.Cols)
		}
		p, err := packPart(dst, kernels.BF16, w.Rows, w.Cols, kernels.Matrix{Data: wide(m.Data)}, threads)
		return matrix{w: p, scale: m.Global}, err
	case w.Format == kernels.FP4 && m.GlobalUp != 0 && m.GlobalUp != m.Global:
		return packHalves(dst, w, m, threads)
	}
	p, err := packPart(dst, w.Format, w.Rows, w.Cols, m, threads)
	return matrix{w: p, scale: 1}, err
}

func packHalves(dst []byte, w kernels.Weights, m kernels.Matrix, threads int) (matrix, error) {
	rows := w.Rows / 2
	if w.Rows%2 != 0 || len(m.Data)%2 != 0 || len(m.Scales)%2 != 0 {
		return matrix{}, fmt.Errorf("%d rows have no halves", w.Rows)
	}
	data, scales, n := len(m.Data)/2, len(m.Scales)/2, simd.PackedBytes(w.Format, rows, w.Cols)
	gate, err := packPart(dst[:n], w.Format, rows, w.Cols,
		kernels.Matrix{Data: m.Data[:data], Scales: m.Scales[:scales], Global: m.Global, Input: m.Input}, threads)
	if err != nil {
		return matrix{}, err
	}
	up, err := packPart(dst[n:], w.Format, rows, w.Cols, kernels.Matrix{Data: m.Data[data:], Scales: m.Scales[scales:],
		Global: m.GlobalUp, Input: m.Input}, threads)
	return matrix{w: gate, up: up, scale: 1}, err
}

// packPart packs one matrix, a range of its panels on each thread.
func packPart(dst []byte, f kernels.Format, rows, cols int, m kernels.Matrix, threads int) (simd.Weight, error) {
	w := simd.Weight{Format: f, Rows: rows, Cols: cols, Data: dst[:simd.PackedBytes(f, rows, cols)]}
	var wg sync.WaitGroup
	threads = min(threads, w.Panels())
	errs := make([]error, threads)
	for i := range threads {
		wg.Go(func() {
			errs[i] = simd.PackPanels(w.Data, f, rows, cols, m, i*w.Panels()/threads, (i+1)*w.Panels()/threads)
		})
	}
	wg.Wait()
	return w, cmp.Or(errs...)
}

// wide widens E4M3 codes to BF16, which holds all their values.
func wide(codes []byte) []byte {
	var table [256]uint16
	for c := range table {
		table[c] = toBF16(e4m3(byte(c)))
	}
	out := make([]byte, 2*len(codes))
	for i, c := range codes {
		binary.LittleEndian.PutUint16(out[2*i:], table[c])
	}
	return out
}
