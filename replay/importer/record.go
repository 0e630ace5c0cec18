package importer

import "fmt"

// kind says what a record is.
type kind uint8

const (
	isNothing kind = iota
	isKernel
	isMemcpy
	isMemset
	isAPI      // a CUDA or HIP call
	isOverhead // of the profiler
	isHostMark // a user's annotation on the CPU
	isGPUMark  // the same, projected on the GPU
	isMeta     // the name of a process or thread
	isOp       // an operator of the CPU
	isPython   // a call of Python
)

func (k kind) onDevice() bool { return k == isKernel || k == isMemcpy || k == isMemset }

// record is one event in 72 bytes, without pointers. Names, lanes and launch
// shapes are indices into the tables of [trace].
type record struct {
	start, end  int64 // ns
	correlation int64
	node        int64 // graph node, 0: none
	bytes       int64 // of copies and memsets
	name        uint32
	lane        uint32
	shape       uint32
	site        uint32 // of a launch: index into trace.sites
	step        int32  // index into trace.steps, -1: none
	proc        int32  // index into trace.procs
	rank        int32  // index into trace.ranks
	layer       int16
	kind        kind
	role        role
}

// role of an API record.
type role uint8

const (
	roleAPI role = iota
	roleLaunch
	roleSync
)

// shape is a launch grid and its blocks.
type shape struct{ grid, block [3]int32 }

// lane is a queue of a device or a thread of the host.
type lane struct {
	device int32 // -1: host
	id     int64 // stream or thread
}

// window is a step or layer annotation.
type window struct {
	start, end int64
	number     int64 // of the annotation, -1: it has none
	name       uint32
	lane       uint32 // of the thread or stream
	proc       int32
	family     int8 // index into stepFamilies, or layerMark
	gpu        bool
	given      int32 // index into trace.given: the step that an export of ours says; -1: none
}

// proc is one process of a trace: a torch file, or a process of an nsys report.
type proc struct {
	file   string
	number int   // of the file
	rank   int32 // -1: unknown
	world  int32 // ranks of the job, 0: unknown
	pid    int64
	epoch  int64 // ns to add to the records' times for absolute ones; already added
	coarse bool  // no time has a fraction of a microsecond

	label     int32 // the rank that its label says, -1: none
	labelled  bool  // it has a label in a file of several processes
	exported  bool  // an export of ours: steps, classes and layers are what it says
	everyRank bool  // the host of all ranks, of an export of ours

	parts    counters
	launches map[int64]int32 // correlation -> index of the API record that begins first
}

// counters of what the reader met.
type counters struct {
	recovered, quarantined, badNumber, odd int64 // events
	firstRecovered, firstQuarantined       int64 // byte offsets
	truncatedAt                            int64 // byte offset, -1: whole
	truncation                             string
	commas                                 int64 // numbers with a decimal comma
	other                                  int64 // events of kinds that are of no use here
	legacy                                 int64 // GPU spans of the profiler before Kineto
}

// trace is everything that was read, from all files.
type trace struct {
	options  Options
	pids     pids // of the file that is read
	names    names
	rules    classifier
	shapes   []shape
	lanes    []lane
	shapeOf  map[shape]uint32
	laneOf   map[lane]uint32
	chunks   [][]record
	n        int
	windows  []window
	procs    []proc
	ranks    []rank
	steps    []step
	stepOf   []int32 // index into steps of each window, -1: it marks none
	order    []int32 // records by start
	findings []finding
	oneClock bool    // all processes were recorded by one clock
	byDevice bool    // a rank is a (process, device), not a file
	opaque   int64   // launches of graphs without their kernels
	given    []int64 // numbers of steps that exports of ours say
	givenAt  map[int64]int32
	device   string // name of the first GPU, "": unknown
	callers  callers
	hasSites bool // the trace has operators or calls of Python
	sites    []site
	siteOf   map[site]uint32
	purpose  []uint8 // of each record: index into purposes; nil: none has one
	purposes []purpose
}

// rank is a (process, device).
type rank struct {
	number int32
	proc   int32
	device int32 // -1: all devices of the process
}

// step of a rank-independent number.
type step struct {
	number int64
	name   uint32
}

func newTrace(o Options) *trace {
	return &trace{
		options: o.withDefaults(),
		rules:   newClassifier(o.Rules),
		sites:   []site{{}}, siteOf: map[site]uint32{{}: 0},
		shapes: []shape{{}}, shapeOf: map[shape]uint32{{}: 0},
		laneOf: map[lane]uint32{},
		names:  names{of: map[string]uint32{"": 0}, list: []name{{rule: -2}}}, // name 0 is none
	}
}

const chunkBits = 14

// add keeps r.
func (t *trace) add(r record) error {
	if t.n >= t.options.MaxRows {
		return fmt.Errorf("more than %d GPU activities and API calls; record fewer steps, or raise the limit on rows",
			t.options.MaxRows)
	}
	if t.n&(1<<chunkBits-1) == 0 {
		t.chunks = append(t.chunks, make([]record, 0, 1<<chunkBits))
	}
	last := len(t.chunks) - 1
	t.chunks[last] = append(t.chunks[last], r)
	t.n++
	return nil
}

// at returns the record of an index.
func (t *trace) at(i int32) *record { return &t.chunks[i>>chunkBits][i&(1<<chunkBits-1)] }

// each calls f for every record that was not taken out.
func (t *trace) each(f func(i int32, r *record)) {
	for c := range t.chunks {
		for k := range t.chunks[c] {
			if r := &t.chunks[c][k]; r.kind != isNothing {
				f(int32(c<<chunkBits|k), r)
			}
		}
	}
}

func (t *trace) shape(s shape) uint32 {
	i, ok := t.shapeOf[s]
	if !ok && len(t.shapes) < maxTable {
		i = uint32(len(t.shapes))
		t.shapes = append(t.shapes, s)
		t.shapeOf[s] = i
	}
	return i // a full table: shape 0, unknown
}

func (t *trace) lane(l lane) uint32 {
	i, ok := t.laneOf[l]
	if !ok {
		i = uint32(len(t.lanes))
		t.lanes = append(t.lanes, l)
		t.laneOf[l] = i
	}
	return i
}

// maxTable bounds the distinct names and shapes of a trace.
const maxTable = 1 << 22

// maxName bounds a name; longer ones are cut.
const maxName = 16 << 10

// names are the distinct names of a trace with what is known of each.
type names struct {
	of    map[string]uint32 // raw text -> index
	list  []name
	bytes int64
}

type name struct {
	text   string
	rule   int32 // number of the rule, -1: the kernel table, 0: none matched, -2: not looked up yet
	class  string
	copy   copySize
	sized  int8 // 0: copy was not looked up yet, 1: it holds, -1: the name has no size
	mark   mark
	marked bool // mark was looked up
}

// intern returns the index of a raw name; decode turns it into text and is
// called for new names only.
func (n *names) intern(raw []byte, decode func([]byte) string) uint32 {
	if len(raw) > maxName {
		raw = raw[:maxName]
	}
	if i, ok := n.of[string(raw)]; ok {
		return i
	}
	text := ""
	if n.bytes > 256<<20 || len(n.list) >= maxTable {
		text, raw = "(too many names)", []byte("(too many names)")
		if i, ok := n.of[string(raw)]; ok {
			return i
		}
	} else {
		text = decode(raw)
	}
	i := uint32(len(n.list))
	n.of[string(raw)] = i
	n.list = append(n.list, name{text: text, rule: -2})
	n.bytes += int64(len(raw) + len(text))
	return i
}
