package kernels

// Format is a number format of weights or of cache entries.
type Format string

// The formats of checkpoints and caches.
const (
	F32  Format = "f32"
	BF16 Format = "bf16"
	FP8  Format = "fp8"  // E4M3 with float32 scales
	FP8B Format = "fp8b" // weights of E4M3 with a float32 scale for each ScaledColumns of a row
	FP4  Format = "fp4"  // NVFP4: E2M1 with an E4M3 scale per 16 and a float32 scale per tensor
	INT8 Format = "int8" // only of activations
)

// Sharing says whether the ranks' copies of a buffer differ.
type Sharing uint8

const (
	Sharded    Sharing = iota // each rank holds its own part
	Replicated                // every rank holds the same bytes; ranks that share memory keep one copy
)

// Use says how kernels will read a weight, so that a device can lay it out.
type Use uint8

const (
	Multiply  Use = iota // rows are multiplied with activations
	Gather               // single rows are looked up
	Multiply4            // rows of FP4 are multiplied with activations in 4 bits only
)

// Matrix is one weight [Rows, Cols] as a checkpoint stores it, row-major.
type Matrix struct {
	// F32: 4 bytes a value; BF16: 2; FP8, FP8B: an E4M3 code; FP4: two values a byte, the even column in the low nibble
	Data []byte
	// FP4: E4M3, [Rows, Cols/16]; FP8B: float32, [Rows, ScaleColumns(Cols)], a value is e4m3 * scale rounded to BF16
	Scales   []byte
	Global   float32 // FP4: a value is e2m1 * scale * Global; FP8: e4m3 * Global
	GlobalUp float32 // FP4: Global of the second half of the rows, the up of a merged gate|up; 0: it is Global too
	Input    float32 // FP4: the input scale for 4-bit activations; 0: none stored
}

// Alloc gives memory for the parts of a matrix that are not at hand in one piece:
// WeightBytes of the matrix at most, and the device's again once it has used the
// matrix. nil: memory is made.
type Alloc func(bytes int) []byte

// Bytes returns memory of some contents.
func (a Alloc) Bytes(n int) []byte {
	if a == nil {
		return make([]byte, n)
	}
	return a(n)
}

// Weights are Count matrices of one shape and format (experts or heads, else
// one), which a device packs into one buffer. Read is called once for each
// index, for several at once, and its result is not kept: a rank's share is streamed.
type Weights struct {
	Name       string // of the tensor, for errors
	Format     Format
	Use        Use
	Count      int
	Rows, Cols int
	Read       func(i int, a Alloc) (Matrix, error)
}

// Fetch is bytes to copy from a device at the end of a list. The zero Fetch is none.
type Fetch struct {
	From Buffer
	To   []byte // at most From's bytes
}

// MaxAhead is the most steps that are on their way at once, and MaxLists the most lists
// that may have been started and not been waited for: a step may be two.
const (
	MaxAhead = 2
	MaxLists = 2 * MaxAhead
)

// Device runs calls on one rank. Its methods are for one goroutine at a time.
//
// The n ranks of a group allocate in the same order and so get the same
// indexes. A device whose ranks work together (collectives, shared memory)
// needs all of them to start the same lists in the same order; one rank's error
// ends the list on all.
type Device interface {
	// Alloc reserves zeroed memory. Its error wraps ErrMemory when there is not enough.
	Alloc(bytes int64, s Sharing) (Buffer, error)
	// Load packs weights into a new buffer, in the layout of the device's kernels.
	Load(w Weights, s Sharing) (Buffer, error)
	// Upload and Download copy dense bytes; they are ordered with lists. src is
	// the caller's again when Upload returns.
	Upload(dst Buffer, src []byte) error
	Download(dst []byte, src Buffer) error
	// Start runs calls in order, after the lists started before, and then
	// fetches; it may return before they have ended. spans is nil (untimed) or as
	// long as calls. Spans and fetched bytes are there after the list's Wait.
	Start(calls []Call, spans []Span, f Fetch) error
	// Wait returns when the oldest list that was started and not waited for has ended.
	Wait() error
	// Info describes the device.
	Info() Info
	Close() error
}

// Info describes a device for manifests and reports.
type Info struct {
	Kind    string // "cpu" or "cuda"
	Name    string // as its maker calls it
	Detail  string // instruction set, compute capability, driver
	Memory  int64  // bytes; 0: unknown
	Threads int    // of the CPU device
	Shared  bool   // see Trace.Shared
	Beside  bool   // lists run beside the host: Start returns before they have ended
	Clock   int64  // ns: how far the device's times may be from kernels.Now so far; 0: they are Now's
}
