package datasets

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// CapturePart says what a row of a capture is.
type CapturePart string

// The parts of a capture, in the order of the file.
const (
	CaptureHeader    CapturePart = "header"    // one row: Data is JSON
	CaptureCall      CapturePart = "call"      // a row for each call, in order: all of the call's columns
	CaptureBuffer    CapturePart = "buffer"    // a row for each buffer: Name, Index, Bytes
	CaptureInput     CapturePart = "input"     // what was uploaded: Name, Data
	CapturePage      CapturePart = "page"      // a page of a cache: Name is the cache, Layer, Index the page, Data
	CaptureSelection CapturePart = "selection" // what a call chose: Name is its argument, Call, Layer, Data
	// what a call left: Name is its argument, Call, Layer, Rank, Hash, maybe Data
	CaptureOutput CapturePart = "output"
	// when a call ran: Call, Layer, Rank, Index (experts touched), M (lane), StartNS, EndNS
	CaptureSpan  CapturePart = "span"
	CaptureAside CapturePart = "aside" // what a rank did besides calls: Name, Rank, StartNS, EndNS
)

// Capture is a row of a captured step. Each part fills the columns that its
// comment names; the others are zero.
type Capture struct {
	Part CapturePart `arrow:"part"`
	Name string      `arrow:"name"` // kernel, input, cache or argument

	Call  int32 `arrow:"call"`  // place in the list; -1: none
	Layer int32 `arrow:"layer"` // -1: none
	Rank  int32 `arrow:"rank"`
	Index int64 `arrow:"index"` // of a buffer, page or group
	Bytes int64 `arrow:"bytes"`

	Replicated bool `arrow:"replicated"`
	Dims
	Args    []int64   `arrow:"args"` // four an argument: buffer (0: none), pitch, offset, length
	Scalars []float32 `arrow:"scalars"`

	StartNS int64 `arrow:"start_ns"`
	EndNS   int64 `arrow:"end_ns"`

	Hash []byte `arrow:"hash"` // SHA-256 of what a call left, on this rank
	Data []byte `arrow:"data"` // little-endian
	Seal []byte `arrow:"seal"` // SHA-256 of this row's other columns and of the seal before it
}

// ErrSeal marks a capture of which a row is not as it was written.
var ErrSeal = errors.New("damaged capture")

// captureBatch bounds a record batch, so that a file is written and read in
// pieces; a single row may be larger.
const captureBatch = 16 << 20

// WriteCapture writes a capture as an uncompressed Arrow IPC file, which has its
// name only when it is whole and on the disk. It fills in the rows' seals.
func WriteCapture(path string, rows []Capture) error {
	return writeCapture(path, rows, (*Aside).Commit)
}

// PlaceCapture is WriteCapture for a file that need not outlive the machine; see [Aside.Place].
func PlaceCapture(path string, rows []Capture) error { return writeCapture(path, rows, (*Aside).Place) }

func writeCapture(path string, rows []Capture, end func(*Aside) error) error {
	sealRows(rows)
	cols, err := arrowColumns(reflect.TypeFor[Capture]())
	if err != nil {
		return err
	}
	file, err := CreateAside(path)
	if err != nil {
		return err
	}
	fields := make([]arrow.Field, len(cols))
	for i, c := range cols {
		fields[i] = c.field
	}
	md := arrow.NewMetadata([]string{"format", "rows"}, []string{CaptureFormat, strconv.Itoa(len(rows))})
	schema := arrow.NewSchema(fields, &md)
	out, err := ipc.NewFileWriter(file.file, ipc.WithSchema(schema), ipc.WithAllocator(memory.NewGoAllocator()))
	for len(rows) > 0 && err == nil {
		n := 1
		for size := len(rows[0].Data); n < len(rows) && n < batchArrow && size+len(rows[n].Data) <= captureBatch; n++ {
			size += len(rows[n].Data)
		}
		err = writeCaptureBatch(out, schema, cols, rows[:n])
		rows = rows[n:]
	}
	if err == nil {
		err = out.Close()
	}
	if err != nil {
		file.Abort()
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return end(file)
}

// CaptureFormat is in the metadata of a capture's schema, beside the number of rows.
const CaptureFormat = "glmbatch.capture/1"

// IsCapture reports whether a file says that it is a capture.
func IsCapture(path string) bool {
	if !isArrow(path) {
		return false
	}
	file, err := openArrow(path)
	if err != nil {
		return false
	}
	defer file.Close()
	f, _ := file.Schema().Metadata().GetValue("format")
	return f == CaptureFormat
}

func writeCaptureBatch(out *ipc.FileWriter, schema *arrow.Schema, cols []arrowColumn, rows []Capture) error {
	b := array.NewRecordBuilder(memory.NewGoAllocator(), schema)
	defer b.Release()
	part := reflect.ValueOf(rows)
	for i, c := range cols {
		for r := range rows {
			if err := appendArrow(b.Field(i), part.Index(r).FieldByIndex(c.index)); err != nil {
				return fmt.Errorf("column %q: %w", c.field.Name, err)
			}
		}
	}
	rec := b.NewRecord()
	defer rec.Release()
	return out.Write(rec)
}

// ReadCapture reads a capture. Its error marks with ErrFile what cannot be read,
// and with ErrSeal too a row that is not as it was written, which it names. What
// it allocates is bounded by the file's size.
func ReadCapture(path string) ([]Capture, error) {
	file, err := openArrow(path)
	if err != nil {
		return nil, badFile(path, err)
	}
	defer file.Close()
	var rows []Capture
	err = guard(func() (err error) {
		rows, err = readCapture(file)
		return err
	})
	if err == nil {
		err = checkSeals(rows)
	}
	if err != nil {
		return nil, badFile(path, err)
	}
	return rows, nil
}

func readCapture(r arrowFile) ([]Capture, error) {
	cols, err := arrowColumns(reflect.TypeFor[Capture]())
	if err != nil {
		return nil, err
	}
	if f, _ := r.Schema().Metadata().GetValue("format"); f != CaptureFormat {
		return nil, fmt.Errorf("not a capture: its format is %q, not %q", f, CaptureFormat)
	}
	if !slices.EqualFunc(r.Schema().Fields(), cols, func(f arrow.Field, c arrowColumn) bool {
		return f.Name == c.field.Name && arrow.TypeEqual(f.Type, c.field.Type)
	}) {
		return nil, errors.New("not a capture: its columns are others")
	}
	var all []Capture
	for i := range r.NumRecords() {
		rec, err := r.Record(i)
		if err != nil {
			return nil, fmt.Errorf("record batch %d: %w", i, err)
		}
		for j, c := range rec.Columns() {
			if !ascending(c) {
				return nil, fmt.Errorf("record batch %d: column %q: values lie over each other", i, cols[j].field.Name)
			}
		}
		batch, err := arrowRows[Capture](nil, rec, cols)
		if err != nil {
			return nil, fmt.Errorf("record batch %d: %w", i, err)
		}
		all = append(all, batch...)
	}
	if n, _ := r.Schema().Metadata().GetValue("rows"); n != strconv.Itoa(len(all)) {
		return nil, fmt.Errorf("%w: it has %d rows of %q", ErrSeal, len(all), n)
	}
	return all, nil
}

// ascending reports whether the values of a column follow each other, so that
// copies of them take no more than the file does.
func ascending(c arrow.Array) bool {
	switch c := c.(type) {
	case *array.LargeBinary:
		o := c.ValueOffsets()
		return slices.IsSorted(o) && (len(o) == 0 || o[0] >= 0)
	case *array.String:
		for i := range c.Len() {
			if c.ValueOffset(i) < 0 || c.ValueOffset(i) > c.ValueOffset(i+1) {
				return false
			}
		}
	case *array.List:
		o := c.Offsets()
		return slices.IsSorted(o) && (len(o) == 0 || o[0] >= 0)
	}
	return true
}

// sealRows chains the rows by their seals.
func sealRows(rows []Capture) {
	var last []byte
	for i := range rows {
		rows[i].Seal = rows[i].seal(last)
		last = rows[i].Seal
	}
}

func checkSeals(rows []Capture) error {
	var last []byte
	for i := range rows {
		r := &rows[i]
		if !slices.Equal(r.Seal, r.seal(last)) {
			return fmt.Errorf("%w: row %d, %s, is not as it was written", ErrSeal, i, r.What())
		}
		last = r.Seal
	}
	return nil
}

// What names a row for messages.
func (r *Capture) What() string {
	s := string(r.Part)
	if r.Name != "" {
		s += " " + r.Name
	}
	switch r.Part {
	case CapturePage:
		return fmt.Sprintf("%s %d of layer %d", s, r.Index, r.Layer)
	case CaptureCall, CaptureSelection, CaptureOutput, CaptureSpan:
		s = fmt.Sprintf("%s of call %d", s, r.Call)
		if r.Layer >= 0 {
			s += fmt.Sprintf(", layer %d", r.Layer)
		}
	}
	return s
}

// seal is the row's SHA-256: of the seal before it and of each column but Seal,
// texts and lists behind their lengths.
func (r *Capture) seal(last []byte) []byte {
	h := sha256.New()
	var b []byte
	text := func(s []byte) {
		b = binary.LittleEndian.AppendUint64(b, uint64(len(s)))
		b = append(b, s...)
	}
	text(last)
	text([]byte(r.Part))
	text([]byte(r.Name))
	flag := int64(0)
	if r.Replicated {
		flag = 1
	}
	for _, v := range []int64{int64(r.Call), int64(r.Layer), int64(r.Rank), r.Index, r.Bytes, flag, int64(r.M),
		int64(r.N), int64(r.K), int64(r.Groups),
		int64(r.Heads), int64(r.Rope), int64(r.TopK), int64(r.Ranks), r.Slots, r.Ctx, r.StartNS, r.EndNS,
		int64(len(r.Args)), int64(len(r.Scalars))} {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	for _, v := range r.Args {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	for _, v := range r.Scalars {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	text(r.Hash)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(r.Data)))
	h.Write(b)
	h.Write(r.Data)
	return h.Sum(nil)
}
