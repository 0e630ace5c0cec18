package timeline

import (
	"slices"

	"glmbatch/datasets"
	"glmbatch/kernels"
)

// Step says what a trace's step was.
type Step struct {
	Kind       string // prefill, decode or mixed; "": unknown
	Start, End int64  // ns of [kernels.Now]; equal: no envelope row is written
	Origin     int64  // ns of [kernels.Now] at which the run began; rows count from it
}

// HostSpan is a phase of the host.
type HostSpan struct {
	Name       string // read, tokenize, schedule, upload, launch, wait, sample, detokenize, write
	Lane       string // "": [LaneHost]
	Start, End int64  // ns of [kernels.Now]
}

// HostTimes are when the driving thread ended what it does in a step, in order:
// ns of [kernels.Now].
type HostTimes struct {
	Begin, Scheduled, Uploaded int64
	Launched                   int64 // its list was started; Uploaded: not known apart
	Ran, End                   int64
}

// Phases are what the thread did: schedule, upload, launch, wait and sample.
// While calls run it has no phase: wait begins when the last has ended on all
// ranks, and where a list was over as soon as it was launched, launch ends when
// the first starts. Without spans the two are not told. What took no time is left
// out.
func (h HostTimes) Phases(spans [][]kernels.Span) []HostSpan {
	host := []HostSpan{{Name: "schedule", Start: h.Begin, End: h.Scheduled}, {Name: "upload", Start: h.Scheduled, End: h.Uploaded}}
	first, last := h.Ran, h.Uploaded
	for _, rank := range spans {
		for _, s := range rank {
			if s.End > s.Start {
				first, last = min(first, s.Start), max(last, s.End)
			}
		}
	}
	if first < last {
		launched := h.Launched
		if launched >= last || launched <= h.Uploaded {
			launched = max(h.Uploaded, first)
		}
		host = append(host, HostSpan{Name: "launch", Start: h.Uploaded, End: launched})
		host = append(host, HostSpan{Name: "wait", Start: max(launched, min(last, h.Ran)), End: h.Ran})
	}
	host = append(host, HostSpan{Name: "sample", Start: h.Ran, End: h.End})
	return slices.DeleteFunc(host, func(s HostSpan) bool { return s.End <= s.Start })
}

// Rows appends the rows of one step to dst: its envelope, its host phases, each
// rank's copies and launches, and a row for each call and rank. A trace without calls gives the host rows of step
// t.Step, which is -1 for phases that belong to no step.
//
// Bytes, wire bytes and FLOPs come from the kernel table, with the experts that
// were really touched. Where the ranks share memory and threads, the cost of a
// replicated call is on rank 0 only.
func Rows(dst []datasets.Span, t kernels.Trace, s Step, host []HostSpan) []datasets.Span {
	if s.End > s.Start {
		kind := s.Kind
		if kind == "" {
			kind = KindUnknown
		}
		dst = append(dst, hostRow(t.Step, LaneHost, kind, RoleStep, s.Start-s.Origin, s.End-s.Origin))
	}
	for _, h := range host {
		lane := h.Lane
		if lane == "" {
			lane = LaneHost
		}
		dst = append(dst, hostRow(t.Step, lane, h.Name, "", h.Start-s.Origin, h.End-s.Origin))
	}
	for rank, list := range t.Asides {
		for _, a := range list {
			dst = append(dst, aside(t.Step, rank, a, s.Origin))
		}
	}
	for rank, spans := range t.Spans {
		for i := range min(len(t.Calls), len(spans)) {
			dst = append(dst, row(&t, rank, i, s.Origin))
		}
	}
	return dst
}

func hostRow(step int64, lane, name, role string, start, end int64) datasets.Span {
	return datasets.Span{Step: step, Rank: -1, Lane: lane, Call: -1, Layer: -1, Kernel: name, Class: ClassHost, Evidence: role, StartNS: start, EndNS: end}
}

// aside is the row of what a rank did besides calls.
func aside(step int64, rank int, a kernels.Aside, origin int64) datasets.Span {
	r := hostRow(step, LaneLaunch, a.Name, "", a.Start-origin, a.End-origin)
	if r.Rank = int32(rank); a.Name != kernels.AsideLaunch {
		r.Lane = LaneCopies
	}
	return r
}

func row(t *kernels.Trace, rank, i int, origin int64) datasets.Span {
	c, s := &t.Calls[i], t.Spans[rank][i]
	r := datasets.Span{
		Step: t.Step, Rank: int32(rank), Lane: LaneDevice, Call: int32(i), Layer: int32(c.Layer), Kernel: string(c.Kernel),
		StartNS: s.Start - origin, EndNS: s.End - origin,
		M: c.Dims.M, N: c.Dims.N, K: c.Dims.K, Groups: c.Dims.Groups, Heads: c.Dims.Heads, TopK: c.Dims.TopK,
		Ranks: c.Dims.Ranks, Slots: c.Dims.Slots, Ctx: c.Dims.Ctx,
	}
	switch {
	case t.Shared:
		r.Lane = LaneShared
	case s.Lane > 0:
		r.Lane = laneBeside(s.Lane)
	}
	if s.Groups > 0 {
		r.Groups = s.Groups
	}
	if k := kernels.Lookup(c.Kernel); k != nil {
		r.Class = string(k.Class)
	}
	if t.Shared && c.Replicated && rank > 0 {
		return r
	}
	cost := c.Cost(s.Groups)
	r.Bytes, r.WireBytes, r.FLOPs = cost.HBM, cost.Wire, cost.FLOPs
	return r
}
