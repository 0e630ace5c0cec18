package replay

import (
	"fmt"
	"strings"

	"glmbatch/engine/glm5"
	"glmbatch/kernels"
	"glmbatch/telemetry"
)

// Capture is one step with all that it takes to run it again but the weights.
type Capture struct {
	Header
	File       string // it was read from; "": none
	Calls      []kernels.Call
	Buffers    []Buffer
	Batch      glm5.Batch
	Tables     []Table
	Seen       []Seen
	Allowed    []Seen // tokens that a sequence may have
	Counts     []Generated
	Pages      []Pages
	Selections []Output // what calls chose: experts, their weights, positions
	Outputs    []Output
	Spans      [][]kernels.Span  // [rank][call], of the job's own step
	Asides     [][]kernels.Aside // of each rank; nil: the device told none
}

// Header says where a capture comes from and what it needs.
type Header struct {
	Step      int64             `json:"step"`
	Kind      string            `json:"kind"` // prefill, decode or mixed
	Sequences int               `json:"sequences"`
	Model     string            `json:"model"` // folder, or "demo"
	Hash      string            `json:"model_hash"`
	Device    kernels.Info      `json:"device"`
	Ranks     int               `json:"ranks"`
	Versions  map[string]string `json:"versions"`
	Options   glm5.Options      `json:"options"`       // that the model was loaded with
	Long      int               `json:"long,omitzero"` // of files of earlier versions: it follows from the rows
	KV        string            `json:"kv"`            // exact or seeded
	Seed      uint64            `json:"seed"`          // of seeded entries
	PageRuns  []PageRun         `json:"page_runs"`
	Detail    string            `json:"outputs"` // none, hash or data of each call

	Times kernels.Times `json:"times"` // of the job's own step

	// Rows of the input whose step was captured before it ran, and did not end: it has no
	// outputs, choices and spans.
	Rows []int64 `json:"rows,omitempty"`

	// What the machine was like while the step ran; nil: nobody knows.
	Conditions *telemetry.Conditions `json:"conditions,omitempty"`
}

// Unended reports whether the step was captured before it ran.
func (h *Header) Unended() bool { return len(h.Rows) > 0 }

// unendedText says what the capture of a step is that did not end.
func (h *Header) unendedText() string {
	return fmt.Sprintf("step %d, %s, of input row %s, which did not end in its job", h.Step, h.Kind,
		strings.Trim(fmt.Sprint(h.Rows), "[]"))
}

// What a capture has of the caches.
const (
	KVExact  = "exact"
	KVSeeded = "seeded"
)

// What a capture has of the calls between routing and sampling.
const (
	DetailNone = "none"
	DetailHash = "hash" // the SHA-256 of what each call left
	DetailData = "data" // and the values
)

// PageRun is pages that follow each other in the caches.
type PageRun struct {
	First int32 `json:"first"`
	Count int32 `json:"count"`
}

// Buffer is an entry of the map of a device's memory.
type Buffer struct {
	Index uint32
	Name  string
	Layer int // -1: of no single layer
	Bytes int64
}

// Table is the pages of one sequence, in order.
type Table struct {
	Seat  int32
	Pages []int32
}

// Seen is the tokens that a sequence has had.
type Seen struct {
	Seat  int32
	Words []uint64
}

// Generated is how often a sequence has generated each token.
type Generated struct {
	Seat   int32
	Values []uint16
}

// Pages are the entries of a run of pages in one cache of one layer.
type Pages struct {
	Cache string // a region of the model
	Layer int
	Run   PageRun
	Data  []byte
}

// Output is what a call left in one of its arguments on one rank.
type Output struct {
	Call  int
	Arg   string
	Layer int
	Rank  int
	Hash  []byte // SHA-256 of the values, rows dense
	Data  []byte // the values; nil: only the hash was kept
}

// what names an output for people.
func (o *Output) what(calls []kernels.Call) string {
	s := fmt.Sprintf("%s of call %d", o.Arg, o.Call)
	if o.Call < len(calls) {
		s += ", " + string(calls[o.Call].Kernel)
	}
	if o.Layer >= 0 {
		s += fmt.Sprintf(" of layer %d", o.Layer)
	}
	if o.Rank > 0 {
		s += fmt.Sprintf(" on rank %d", o.Rank)
	}
	return s
}

// cloneCalls copies a list with its arguments.
func cloneCalls(calls []kernels.Call) []kernels.Call {
	out := make([]kernels.Call, len(calls))
	n := 0
	for i := range calls {
		n += len(calls[i].Args)
	}
	args := make([]kernels.Buffer, 0, n)
	for i, c := range calls {
		at := len(args)
		args = append(args, c.Args...)
		c.Args = args[at:len(args):len(args)]
		out[i] = c
	}
	return out
}
