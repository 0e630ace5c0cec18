package kernels

import "time"

// Name is a kernel's name: what it does, then the number format it reads.
// The same word stands in the table, in timelines, reports and CUDA symbols.
type Name string

// Dims are the sizes that a call's cost and shape follow from. Each row of
// [Table] says what they mean there; a dimension that a kernel lacks is 0.
type Dims struct {
	M      int32 // rows: tokens in the batch, or rows of logits
	N      int32 // outputs of a row
	K      int32 // inputs of a row
	Groups int32 // experts held by the rank's weights
	Heads  int32 // attention or indexer heads on this rank
	Rope   int32 // rotary values of a head
	TopK   int32 // experts a token, or positions selected; 0: all
	Ranks  int32 // ranks that take part
	Slots  int64 // distinct cache slots that the call reads
	Ctx    int64 // positions worked on, summed over rows
}

// Cost is the least work that a call of some [Dims] can do on one rank.
type Cost struct {
	HBM   int64 // bytes read and written in the rank's memory
	Wire  int64 // bytes received from other ranks
	FLOPs int64 // operations; a multiply-add counts as two
}

// Buffer names memory of a device, or a view into it. The index is the same on
// every rank, so one program serves all of them. The zero Buffer is "none".
type Buffer struct {
	Index  uint32 // 1, 2, … in order of allocation; 0: none
	Pitch  int32  // bytes from one row to the next; 0: rows are dense
	Offset int64  // bytes from the start of the allocation
	Len    int64  // bytes from Offset to the end of the view
}

// Slice returns the bytes [off, off+n) of b as a dense buffer.
func (b Buffer) Slice(off, n int64) Buffer {
	return Buffer{Index: b.Index, Offset: b.Offset + off, Len: n}
}

// Columns returns a view of n float32 columns from column col on, of rows that
// are stride columns wide.
func (b Buffer) Columns(col, n, stride int) Buffer {
	off := int64(col) * 4
	return Buffer{Index: b.Index, Pitch: int32(stride * 4), Offset: b.Offset + off, Len: b.Len - off}
}

// Call is one kernel on one rank's shard. Args and Scalars are in the order in
// which the kernel's row of [Table] names them.
type Call struct {
	Kernel     Name
	Layer      int16 // -1: before, between or after the layers
	Replicated bool  // every rank computes the same result from the same inputs
	Dims       Dims
	Args       []Buffer
	Scalars    [4]float32
}

// Span says when a call ran, in nanoseconds of [Now].
type Span struct {
	Start, End int64
	Groups     int32 // experts that really had tokens; 0 where none are grouped
	Lane       int8  // of the calls of a rank that run at once; 0: the first
}

// Aside is something that a device did for a list besides its calls, in
// nanoseconds of [Now].
type Aside struct {
	Name       string
	Start, End int64
}

// The names of asides.
const (
	AsideIn     = "copy in"  // inputs to the device, from the first copy's start to the last one's end
	AsideOut    = "copy out" // what was fetched, spans included
	AsideLaunch = "launch"   // on the host: of the list's graph, or of call after call
)

// Trace is one step as it ran: Spans[rank][i] belongs to Calls[i].
type Trace struct {
	Step   int64
	Kind   string // prefill, decode or mixed; "": unknown
	Times  Times
	Calls  []Call
	Spans  [][]Span
	Asides [][]Aside // of each rank; nil: devices tell none

	// Shared: the ranks take turns on one memory and one set of threads, as the
	// CPU device's do. A replicated call then ran once for all ranks.
	Shared bool
}

var base = time.Now()

// Now is the process's one clock: monotonic nanoseconds since its start. Host
// phases and device spans are on it alike.
func Now() int64 { return int64(time.Since(base)) }

// Epoch returns the wall time at which [Now] was zero.
func Epoch() time.Time { return base }
