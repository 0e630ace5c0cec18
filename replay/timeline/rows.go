package timeline

import (
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

// Phases are what the driving thread did in a step: schedule, upload, launch,
// wait and sample, from the times at which the step began, at which its list, its
// upload and its run were done, and at which it ended. While calls run the thread
// has no phase: launch ends when the first starts on any rank, wait begins when
// the last has ended on all. Without spans neither is known. A step that was
// launched ahead has no launch, and none has a sample that ends as it ran.
func Phases(begin, scheduled, uploaded, ran, end int64, spans [][]kernels.Span) []HostSpan {
	host := []HostSpan{{Name: "schedule", Start: begin, End: scheduled}, {Name: "upload", Start: scheduled, End: uploaded}}
	first, last := ran, uploaded
	for _, rank := range spans {
		for _, s := range rank {
			if s.End > s.Start {
				first, last = min(first, s.Start), max(last, s.End)
			}
		}
	}
	if first < last {
		if first > uploaded {
			host = append(host, HostSpan{Name: "launch", Start: uploaded, End: first})
		}
		host = append(host, HostSpan{Name: "wait", Start: min(last, ran), End: ran})
	}
	if end > ran {
		host = append(host, HostSpan{Name: "sample", Start: ran, End: end})
	}
	return host
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
		r.Lane, r.Class = LaneCopies, string(kernels.Copy)
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
