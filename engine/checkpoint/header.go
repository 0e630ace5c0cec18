package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
)

// Limits of a safetensors file. The first is the format's own.
const (
	maxHeader = 100_000_000
	maxDims   = 8
	maxName   = 1024
)

// Tensor is one entry of a safetensors file.
type Tensor struct {
	Name  string
	DType DType
	Shape []int  // no dimensions: a scalar
	Data  []byte // little-endian, row-major; a view of the file
	file  *file
}

// Len returns the number of values.
func (t *Tensor) Len() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// readHeader returns a safetensors file's header and data: 8 bytes of length, a
// JSON object that long, then the data. The header is read by calls; see file.read.
func readHeader(f *file) (header, data []byte, err error) {
	size := len(f.data)
	if size < 8 {
		return nil, nil, fmt.Errorf("not a safetensors file: it has %d bytes", size)
	}
	var length [8]byte
	if err := f.read(length[:], 0); err != nil {
		return nil, nil, err
	}
	n := binary.LittleEndian.Uint64(length[:])
	switch {
	case n > maxHeader:
		return nil, nil, fmt.Errorf("not a safetensors file: its header would have %d bytes, at most %d are allowed", n, maxHeader)
	case n > uint64(size-8):
		return nil, nil, fmt.Errorf("truncated: the header has %d bytes, the file %d: download it again", n, size)
	}
	header = make([]byte, n)
	if err := f.read(header, 8); err != nil {
		return nil, nil, err
	}
	return header, f.data[8+n:], nil
}

// parseHeader returns the entries of a header. They must cover the data in full
// and without overlap, as the format demands.
func parseHeader(header, data []byte) (tensors []Tensor, err error) {
	spans, err := parseEntries(header)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(spans, func(x, y span) int {
		return cmp.Or(cmp.Compare(x.lo, y.lo), cmp.Compare(x.hi, y.hi), cmp.Compare(x.Name, y.Name))
	})
	var end int64
	for i := range spans {
		s := &spans[i]
		switch {
		case s.hi > int64(len(data)):
			return nil, fmt.Errorf("truncated: %s ends at byte %d of the data, the file has %d: download it again", s.Name, s.hi, len(data))
		case s.lo < end:
			return nil, fmt.Errorf("%s overlaps the tensor before it", s.Name)
		case s.lo > end:
			return nil, fmt.Errorf("%d bytes before %s belong to no tensor", s.lo-end, s.Name)
		}
		s.Data = data[s.lo:s.hi:s.hi]
		end = s.hi
		tensors = append(tensors, s.Tensor)
	}
	if end != int64(len(data)) {
		return nil, fmt.Errorf("%d bytes at the end belong to no tensor", int64(len(data))-end)
	}
	return tensors, nil
}

type span struct {
	Tensor
	lo, hi int64
}

// parseEntries reads the header's JSON. encoding/json would let the last of two
// equal names win, so the outer object is read member by member.
func parseEntries(header []byte) ([]span, error) {
	d := json.NewDecoder(bytes.NewReader(header))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("not a safetensors file: its header is not a JSON object")
	}
	var spans []span
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("damaged header: %w", err)
		}
		name := t.(string) // a member's name: the decoder has checked
		if len(name) > maxName {
			return nil, fmt.Errorf("damaged header: a name has %d bytes", len(name))
		}
		if seen[name] {
			return nil, fmt.Errorf("the header has %q twice", name)
		}
		seen[name] = true
		if name == "__metadata__" {
			var m map[string]string
			if err := d.Decode(&m); err != nil {
				return nil, fmt.Errorf("damaged header: __metadata__: %w", err)
			}
			continue
		}
		var e entry
		if err := d.Decode(&e); err != nil {
			return nil, fmt.Errorf("damaged header: %s: %w", name, err)
		}
		s, err := e.span(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		spans = append(spans, s)
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("damaged header: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("damaged header: more than one JSON value")
	}
	return spans, nil
}

type entry struct {
	DType   DType   `json:"dtype"`
	Shape   []int64 `json:"shape"`
	Offsets []int64 `json:"data_offsets"`
}

func (e *entry) span(name string) (span, error) {
	size, ok := sizes[e.DType]
	if !ok {
		return span{}, fmt.Errorf("unknown dtype %q", e.DType)
	}
	if len(e.Shape) > maxDims {
		return span{}, fmt.Errorf("%d dimensions, at most %d are supported", len(e.Shape), maxDims)
	}
	if len(e.Offsets) != 2 {
		return span{}, fmt.Errorf("data_offsets has %d numbers, not 2", len(e.Offsets))
	}
	s := span{Tensor: Tensor{Name: name, DType: e.DType, Shape: make([]int, len(e.Shape))}, lo: e.Offsets[0], hi: e.Offsets[1]}
	bytes := size
	for i, d := range e.Shape {
		if d < 0 || d > math.MaxInt32 || d > 0 && bytes > math.MaxInt64/d {
			return span{}, fmt.Errorf("shape %v is too large", e.Shape)
		}
		bytes *= d
		s.Shape[i] = int(d)
	}
	if s.lo < 0 || s.hi < s.lo || s.hi-s.lo != bytes {
		return span{}, fmt.Errorf("%s %v takes %d bytes, data_offsets are %v", e.DType, e.Shape, bytes, e.Offsets)
	}
	return s, nil
}
