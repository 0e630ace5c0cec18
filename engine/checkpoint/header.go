package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"unicode"
	"unicode/utf8"
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
	Data  []byte // little-endian, row-major, where the file is in memory; see Bytes
	file  *file
	at    int64 // of the file: where the data begins
}

// Size returns the bytes of the data.
func (t *Tensor) Size() int64 { return int64(t.Len()) * sizes[t.DType] }

// Read fills b with the data from offset at on.
func (t *Tensor) Read(b []byte, at int64) error {
	if t.Data != nil || t.file.f == nil {
		copy(b, t.Data[at:])
		return nil
	}
	if err := t.file.read(b, t.at+at); err != nil {
		return fmt.Errorf("reading %s: %w", t.Name, err)
	}
	return nil
}

// Bytes returns the data: a view where the file is in memory, else what is read.
func (t *Tensor) Bytes() ([]byte, error) {
	if t.Data != nil || t.file.f == nil {
		return t.Data, nil
	}
	b := make([]byte, t.Size())
	return b, t.Read(b, 0)
}

// Len returns the number of values.
func (t *Tensor) Len() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// readHeader reads a safetensors file's header: 8 bytes of length, then a JSON
// object that long. The data comes after it.
func (f *file) readHeader() error {
	start := make([]byte, min(f.size, sniffed))
	if err := f.read(start, 0); err != nil {
		return err
	}
	if what := foreign(start); what != "" {
		return errors.New(what)
	}
	if f.size < 8 {
		return fmt.Errorf("not a safetensors file: it has %d bytes", f.size)
	}
	n := binary.LittleEndian.Uint64(start)
	switch {
	case n > maxHeader:
		return fmt.Errorf("not a safetensors file: its header would have %d bytes, at most %d are allowed", n,
			maxHeader)
	case n > uint64(f.size-8):
		return fmt.Errorf("truncated: the header has %d bytes, the file %d: download it again", n, f.size)
	}
	f.header = make([]byte, n)
	return f.read(f.header, 8)
}

// entries returns the entries of the file's header. They must cover the data in
// full and without overlap, as the format demands.
func (f *file) entries() (tensors []Tensor, err error) {
	base := 8 + int64(len(f.header))
	size := f.size - base
	spans, err := parseEntries(f.header)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(spans, func(x, y span) int {
		return cmp.Or(cmp.Compare(x.lo, y.lo), cmp.Compare(x.hi, y.hi), cmp.Compare(x.Name, y.Name))
	})
	tensors = make([]Tensor, 0, len(spans))
	var end int64
	for i := range spans {
		s := &spans[i]
		switch {
		case s.hi > size:
			return nil, fmt.Errorf("truncated: %s ends at byte %d of the data, the file has %d: download it again",
				s.Name, s.hi, size)
		case s.lo < end:
			return nil, fmt.Errorf("%s overlaps the tensor before it", s.Name)
		case s.lo > end:
			return nil, fmt.Errorf("%d bytes before %s belong to no tensor", s.lo-end, s.Name)
		}
		s.file, s.at, end = f, base+s.lo, s.hi
		if f.f == nil {
			s.Data = f.memory[base+s.lo : base+s.hi : base+s.hi]
		}
		tensors = append(tensors, s.Tensor)
	}
	if end != size {
		return nil, fmt.Errorf("%d bytes at the end belong to no tensor", size-end)
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
		if err := checkName(name); err != nil {
			return nil, fmt.Errorf("damaged header: %w", err)
		}
		if seen[name] {
			return nil, fmt.Errorf("the header has %q twice", name)
		}
		seen[name] = true
		if name == "__metadata__" {
			if err := skipMetadata(d); err != nil {
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

// skipMetadata reads an object of strings, and keeps none of it.
func skipMetadata(d *json.Decoder) error {
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return cmp.Or(err, errors.New("it is no object"))
	}
	for d.More() {
		for range 2 {
			t, err := d.Token()
			if err != nil {
				return err
			}
			if _, ok := t.(string); !ok {
				return errors.New("it has a value that is no string")
			}
		}
	}
	_, err := d.Token()
	return err
}

// checkName refuses names that no model has and that a terminal would take for
// more than letters.
func checkName(name string) error {
	if len(name) > maxName {
		return fmt.Errorf("a name has %d bytes", len(name))
	}
	for _, r := range name {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return fmt.Errorf("%+q is no name of a tensor", name)
		}
	}
	return nil
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
	s := span{Tensor: Tensor{Name: name, DType: e.DType, Shape: make([]int, len(e.Shape))}, lo: e.Offsets[0],
		hi: e.Offsets[1]}
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
