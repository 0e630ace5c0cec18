package timeline

import (
	"cmp"

	"glmbatch/datasets"
	"glmbatch/kernels"
)

// Rows appends the rows of one step to dst: its envelope, if its times are known, its
// host phases, each rank's copies and launches, and a row for each call and rank.
// Times count from origin, in ns of [kernels.Now].
//
// Bytes, wire bytes and FLOPs come from the kernel table, with the experts that
// were really touched. Where the ranks share memory and threads, the cost of a
// replicated call is on rank 0 only.
func Rows(dst []datasets.Span, t *kernels.Trace, origin int64) []datasets.Span {
	if t.Times.Wall.NS() > 0 {
		dst = append(dst, hostRow(t.Step, LaneHost, cmp.Or(t.Kind, KindUnknown), RoleStep, t.Times.Wall, origin))
	}
	dst = HostRows(dst, t.Step, phases(t), origin)
	for rank, list := range t.Asides {
		for _, a := range list {
			dst = append(dst, aside(t.Step, rank, a, origin))
		}
	}
	for rank, spans := range t.Spans {
		for i := range min(len(t.Calls), len(spans)) {
			dst = append(dst, row(t, rank, i, origin))
		}
	}
	return dst
}

// HostRows appends the rows of phases of the host; step is -1 for those that belong to
// no step.
func HostRows(dst []datasets.Span, step int64, host []HostSpan, origin int64) []datasets.Span {
	for _, h := range host {
		dst = append(dst, hostRow(step, cmp.Or(h.Lane, LaneHost), h.Name, "", h.Interval, origin))
	}
	return dst
}

func hostRow(step int64, lane, name, role string, at kernels.Interval, origin int64) datasets.Span {
	return datasets.Span{Step: step, Rank: -1, Lane: lane, Call: -1, Layer: -1, Kernel: name, Class: ClassHost,
		Evidence: role,
		StartNS:  at.Start - origin, EndNS: at.End - origin}
}

// aside is the row of what a rank did besides calls.
func aside(step int64, rank int, a kernels.Aside, origin int64) datasets.Span {
	r := hostRow(step, LaneLaunch, a.Name, "", kernels.Interval{Start: a.Start, End: a.End}, origin)
	if r.Rank = int32(rank); a.Name != kernels.AsideLaunch {
		r.Lane = LaneCopies
	}
	return r
}

func row(t *kernels.Trace, rank, i int, origin int64) datasets.Span {
	c, s := &t.Calls[i], t.Spans[rank][i]
	r := datasets.Span{
		Step: t.Step, Rank: int32(rank), Lane: LaneDevice, Call: int32(i), Layer: int32(c.Layer),
		Kernel:  string(c.Kernel),
		StartNS: s.Start - origin, EndNS: s.End - origin,
		Dims: datasets.Dims(c.Dims),
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
