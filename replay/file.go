package replay

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"glmbatch/datasets"
	"glmbatch/engine/glm5"
	"glmbatch/kernels"
)

// rows are the capture as its file has it.
func (c *Capture) rows() ([]datasets.Capture, error) {
	header, err := json.Marshal(c.Header)
	if err != nil {
		return nil, err
	}
	none := datasets.Capture{Call: -1, Layer: -1, Args: []int64{}, Scalars: []float32{}, Hash: []byte{}, Data: []byte{}}
	var rows []datasets.Capture
	add := func(part datasets.CapturePart, name string, f func(r *datasets.Capture)) {
		r := none
		r.Part, r.Name = part, name
		f(&r)
		rows = append(rows, r)
	}
	add(datasets.CaptureHeader, "", func(r *datasets.Capture) { r.Data = header })
	for i := range c.Calls {
		x := &c.Calls[i]
		add(datasets.CaptureCall, string(x.Kernel), func(r *datasets.Capture) { callRow(r, i, x) })
	}
	for _, b := range c.Buffers {
		add(datasets.CaptureBuffer, b.Name, func(r *datasets.Capture) {
			r.Index, r.Layer, r.Bytes = int64(b.Index), int32(b.Layer), b.Bytes
		})
	}
	input := func(name string, index int64, data []byte) {
		add(datasets.CaptureInput, name, func(r *datasets.Capture) { r.Index, r.Data = index, data })
	}
	for _, v := range lists(&c.Batch) {
		if !v.rare || len(*v.list) > 0 {
			input(v.name, 0, fromInts(*v.list))
		}
	}
	if b := &c.Batch; len(b.Next) > 0 {
		tips := []int32{int32(b.Drafts), int32(b.LongTips)}
		for _, t := range b.Tips {
			tips = append(tips, t.First, t.Rows)
		}
		input(tipsInput, 0, fromInts(tips))
	}
	input("params", 0, fromParams(c.Batch.Params))
	if b := fromSteering(c.Batch.Params); b != nil {
		input("steering", 0, b)
	}
	if b := fromAssumed(c.Batch.Params); b != nil {
		input("assumed", 0, b)
	}
	if len(c.Batch.Masks) > 0 {
		input("masks", 0, fromWords(c.Batch.Masks))
	}
	if len(c.Batch.Entries) > 0 {
		input("entries", 0, fromEntries(c.Batch.Entries))
	}
	for _, t := range c.Tables {
		input("pages", int64(t.Seat), fromInts(t.Pages))
	}
	for _, s := range c.Seen {
		input("seen", int64(s.Seat), fromWords(s.Words))
	}
	for _, s := range c.Allowed {
		input("allowed", int64(s.Seat), fromWords(s.Words))
	}
	for _, s := range c.Counts {
		input("counts", int64(s.Seat), fromShorts(s.Values))
	}
	for i := range c.Pages {
		p := &c.Pages[i]
		add(datasets.CapturePage, p.Cache, func(r *datasets.Capture) {
			r.Layer, r.Index, r.M, r.Data = int32(p.Layer), int64(p.Run.First), p.Run.Count, p.Data
		})
	}
	outputs := func(part datasets.CapturePart, list []Output) {
		for i := range list {
			o := &list[i]
			add(part, o.Arg, func(r *datasets.Capture) {
				r.Call, r.Layer, r.Rank, r.Hash = int32(o.Call), int32(o.Layer), int32(o.Rank), o.Hash
				r.Data, r.Bytes = append(r.Data, o.Data...), int64(len(o.Data))
			})
		}
	}
	outputs(datasets.CaptureSelection, c.Selections)
	outputs(datasets.CaptureOutput, c.Outputs)
	for rank := range c.Spans {
		for i, s := range c.Spans[rank] {
			add(datasets.CaptureSpan, string(c.Calls[i].Kernel), func(r *datasets.Capture) {
				r.Call, r.Layer, r.Rank = int32(i), int32(c.Calls[i].Layer), int32(rank)
				r.Index, r.StartNS, r.EndNS, r.M = int64(s.Groups), s.Start, s.End, int32(s.Lane)
			})
		}
	}
	for rank, list := range c.Asides {
		for _, a := range list {
			add(datasets.CaptureAside, a.Name, func(r *datasets.Capture) {
				r.Rank, r.StartNS, r.EndNS = int32(rank), a.Start, a.End
			})
		}
	}
	return rows, nil
}

// list is one of the batch's columns with its name in the file.
type list struct {
	name string
	list *[]int32
	rare bool // most steps do not have it
}

func callRow(r *datasets.Capture, i int, x *kernels.Call) {
	r.Call, r.Layer, r.Replicated = int32(i), int32(x.Layer), x.Replicated
	r.Dims = datasets.Dims(x.Dims)
	for _, a := range x.Args {
		r.Args = append(r.Args, int64(a.Index), int64(a.Pitch), a.Offset, a.Len)
	}
	r.Scalars = append(r.Scalars, x.Scalars[:]...)
}

// Load reads a capture. Its errors wrap datasets.ErrFile.
func Load(path string) (*Capture, error) {
	rows, err := datasets.ReadCapture(path)
	if err != nil {
		return nil, err
	}
	c := &Capture{File: path}
	if err := c.read(rows); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, datasets.ErrFile, err)
	}
	return c, nil
}

// maxRanks bounds what a header may say.
const maxRanks = 1024

func (c *Capture) read(rows []datasets.Capture) error {
	if len(rows) == 0 || rows[0].Part != datasets.CaptureHeader {
		return errors.New("a capture without a header")
	}
	var err error
	if c.Header, err = parseHeader(rows[0].Data); err != nil {
		return fmt.Errorf("header: %w", err)
	}
	if c.Ranks < 1 || c.Ranks > maxRanks {
		return fmt.Errorf("header: %d ranks", c.Ranks)
	}
	if c.KV != KVExact && c.KV != KVSeeded {
		return fmt.Errorf("header: cache entries %q", c.KV)
	}
	for i := range rows[1:] {
		r := &rows[1+i]
		if err := c.row(r); err != nil {
			return fmt.Errorf("row %d, %s: %w", 1+i, r.What(), err)
		}
	}
	return c.complete()
}

func (c *Capture) row(r *datasets.Capture) error {
	switch r.Part {
	case datasets.CaptureCall:
		return c.callOf(r)
	case datasets.CaptureBuffer:
		c.Buffers = append(c.Buffers, Buffer{uint32(r.Index), r.Name, int(r.Layer), r.Bytes})
		return nil
	case datasets.CaptureInput:
		return c.inputOf(r)
	case datasets.CapturePage:
		c.Pages = append(c.Pages, Pages{r.Name, int(r.Layer), PageRun{int32(r.Index), r.M}, r.Data})
		return nil
	case datasets.CaptureSelection, datasets.CaptureOutput:
		return c.outputOf(r)
	case datasets.CaptureSpan:
		if r.Rank < 0 || int(r.Rank) >= c.Ranks || int(r.Rank) > len(c.Spans) {
			return fmt.Errorf("rank %d of %d", r.Rank, c.Ranks)
		}
		if int(r.Rank) == len(c.Spans) {
			c.Spans = append(c.Spans, nil)
		}
		s := &c.Spans[r.Rank]
		if r.M < 0 || r.M > math.MaxInt8 {
			return fmt.Errorf("lane %d", r.M)
		}
		if int(r.Call) != len(*s) || len(*s) == len(c.Calls) {
			return fmt.Errorf("it is span %d of the rank", len(*s))
		}
		*s = append(*s, kernels.Span{Start: r.StartNS, End: r.EndNS, Groups: int32(r.Index), Lane: int8(r.M)})
		return nil
	case datasets.CaptureAside:
		if r.Rank < 0 || int(r.Rank) >= c.Ranks {
			return fmt.Errorf("rank %d of %d", r.Rank, c.Ranks)
		}
		for len(c.Asides) <= int(r.Rank) {
			c.Asides = append(c.Asides, nil)
		}
		c.Asides[r.Rank] = append(c.Asides[r.Rank], kernels.Aside{Name: r.Name, Start: r.StartNS, End: r.EndNS})
		return nil
	}
	return errors.New("no such part")
}

func (c *Capture) callOf(r *datasets.Capture) error {
	layer := r.Layer >= -1 && r.Layer <= math.MaxInt16
	if int(r.Call) != len(c.Calls) || len(r.Args)%4 != 0 || len(r.Scalars) != 4 || !layer {
		return fmt.Errorf("it is call %d, of layer %d, with %d numbers of arguments and %d scalars", len(c.Calls),
			r.Layer, len(r.Args), len(r.Scalars))
	}
	x := kernels.Call{Kernel: kernels.Name(r.Name), Layer: int16(r.Layer), Replicated: r.Replicated,
		Scalars: [4]float32(r.Scalars), Dims: kernels.Dims(r.Dims)}
	for a := range slices.Chunk(r.Args, 4) {
		x.Args = append(x.Args, kernels.Buffer{Index: uint32(a[0]), Pitch: int32(a[1]), Offset: a[2], Len: a[3]})
	}
	c.Calls = append(c.Calls, x)
	return nil
}

func (c *Capture) inputOf(r *datasets.Capture) error {
	width := map[string]int{"params": paramBytes, "steering": steerBytes, "seen": 8, "allowed": 8, "masks": 8,
		"entries": entryBytes, "counts": 2}[r.Name]
	if len(r.Data)%cmp.Or(width, 4) != 0 {
		return fmt.Errorf("%d bytes", len(r.Data))
	}
	seat := int32(r.Index)
	if r.Index < 0 || r.Index > math.MaxInt32 {
		return fmt.Errorf("row %d of a table", r.Index)
	}
	switch r.Name {
	case "params":
		c.Batch.Params = toParams(r.Data)
		return nil
	case "steering":
		return toSteering(c.Batch.Params, r.Data)
	case "assumed":
		return toAssumed(c.Batch.Params, ints(r.Data))
	case "masks":
		c.Batch.Masks = words(r.Data)
		return nil
	case "entries":
		c.Batch.Entries = toEntries(r.Data)
		return nil
	case "seen":
		c.Seen = append(c.Seen, Seen{seat, words(r.Data)})
		return nil
	case "allowed":
		c.Allowed = append(c.Allowed, Seen{seat, words(r.Data)})
		return nil
	case "counts":
		c.Counts = append(c.Counts, Generated{seat, shorts(r.Data)})
		return nil
	case tipsInput:
		return c.tipsOf(ints(r.Data))
	case "pages":
		c.Tables = append(c.Tables, Table{seat, ints(r.Data)})
		return nil
	}
	for _, v := range lists(&c.Batch) {
		if v.name == r.Name {
			*v.list = ints(r.Data)
			return nil
		}
	}
	return errors.New("no such input")
}

func (c *Capture) outputOf(r *datasets.Capture) error {
	if r.Call < 0 || int(r.Call) >= len(c.Calls) || r.Rank < 0 || int(r.Rank) >= c.Ranks || len(r.Hash) != sha256.Size {
		return fmt.Errorf("call %d of %d, rank %d of %d, a hash of %d bytes", r.Call, len(c.Calls), r.Rank, c.Ranks,
			len(r.Hash))
	}
	o := Output{Call: int(r.Call), Arg: r.Name, Layer: int(r.Layer), Rank: int(r.Rank), Hash: r.Hash}
	if r.Bytes > 0 {
		o.Data = r.Data
		if sum := sha256.Sum256(o.Data); !bytes.Equal(sum[:], o.Hash) {
			return errors.New("its values are not those of its hash")
		}
	}
	if r.Part == datasets.CaptureSelection {
		if o.Data == nil {
			return errors.New("a choice without its values")
		}
		c.Selections = append(c.Selections, o)
		return nil
	}
	c.Outputs = append(c.Outputs, o)
	return nil
}

// complete reports what a capture lacks to be run. What must fit the model is
// checked when it is there.
func (c *Capture) complete() error {
	var errs []error
	missing := func(ok bool, format string, a ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, a...))
		}
	}
	missing(len(c.Calls) > 0, "it has no calls")
	missing(len(c.Batch.Tokens) > 0, "it has no tokens")
	missing(len(c.Tables) > 0, "it has no page tables")
	missing(len(c.Outputs) > 0 || c.Unended(), "it has no outputs")
	missing(c.KV == KVSeeded || len(c.Pages) > 0, "it has no cache entries")
	missing(len(c.Spans) == 0 || len(c.Spans) == c.Ranks, "it has spans of %d ranks of %d", len(c.Spans), c.Ranks)
	for rank, s := range c.Spans {
		missing(len(s) == len(c.Calls), "rank %d has %d spans of %d calls", rank, len(s), len(c.Calls))
	}
	return errors.Join(errs...)
}

// tipsInput is how many drafts the prediction layer makes, the first tip at which it
// attends to a selection, and two numbers for each tip.
const tipsInput = "tips"

func (c *Capture) tipsOf(v []int32) error {
	if len(v) < 2 || len(v)%2 != 0 {
		return fmt.Errorf("%d numbers", len(v))
	}
	b := &c.Batch
	b.Drafts, b.LongTips, b.Tips = int(v[0]), int(v[1]), nil
	for i := 2; i < len(v); i += 2 {
		b.Tips = append(b.Tips, glm5.Tip{First: v[i], Rows: v[i+1]})
	}
	return nil
}

// lists are the batch's columns of int32.
func lists(b *glm5.Batch) []list {
	return []list{{"tokens", &b.Tokens, false}, {"pos", &b.Pos, false}, {"seq", &b.Seq, false},
		{"slots", &b.Slots, false}, {"logit_rows", &b.Logits, false},
		{"copies", &b.Copies, true}, {"next", &b.Next, true}}
}

// Values as files have them: little-endian.

func ints(b []byte) []int32 {
	v := make([]int32, len(b)/4)
	for i := range v {
		v[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v
}

func fromInts(v []int32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	return b
}

func words(b []byte) []uint64 {
	v := make([]uint64, len(b)/8)
	for i := range v {
		v[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return v
}

func fromWords(v []uint64) []byte {
	b := make([]byte, 0, 8*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	return b
}
