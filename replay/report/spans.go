package report

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"math"
	"slices"

	"glmbatch/datasets"
	"glmbatch/replay/attribute"
	"glmbatch/replay/timeline"
)

// spanColumns are the spans of a page, by column. Packed, each column starts at a
// multiple of eight bytes, little-endian, in the order of the fields here.
type spanColumns struct {
	start, length []uint32 // in the step's unit, from the step's first span
	kernel        []uint32 // index into the page's kernels
	bytes, flops  []float32
	call          []int32
	lane          []uint16 // index into the page's lanes
	layer         []int16
}

func (c *spanColumns) pack() (string, error) {
	var raw bytes.Buffer
	for _, column := range []any{c.start, c.length, c.kernel, c.bytes, c.flops, c.call, c.lane, c.layer} {
		if err := binary.Write(&raw, binary.LittleEndian, column); err != nil {
			return "", err
		}
		raw.Write(make([]byte, (8-raw.Len()%8)%8))
	}
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := w.Write(raw.Bytes()); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(z.Bytes()), nil
}

type pageKernel struct {
	Name  string `json:"name"`
	Class string `json:"class"`
}

type pageLane struct {
	Rank int32  `json:"rank"`
	Name string `json:"name"`
}

type pageStep struct {
	Step  int64  `json:"step"`
	Kind  string `json:"kind"`
	Mark  string `json:"mark,omitempty"` // median, slowest
	Wall  int64  `json:"wall_ns"`
	First int    `json:"first"` // place of its spans
	Count int    `json:"count"`
	End   int64  `json:"end_ns"` // of its last span, in its unit
	Unit  int64  `json:"unit"`   // ns
}

// spanBook collects the spans of a page.
type spanBook struct {
	columns spanColumns
	kernels []pageKernel
	lanes   []pageLane
	steps   []pageStep
	wild    int // spans that were left out for their times

	kernelAt map[pageKernel]uint32
	laneAt   map[pageLane]uint16
}

// add takes in a step's rows, at most limit of them by start, and returns how
// many it left out. Ranks that share a machine are shown once.
// others are device rows of other steps, or of none, that ran in the step's time.
func (b *spanBook) add(info stepInfo, rows, others []timeline.Event, names *datasets.Names, shared bool,
	limit int) (left int) {
	t := &tracks{names: names}
	for i := range others {
		t.events = append(t.events, placed{Event: others[i], step: -1, other: true})
	}
	for i := range rows {
		e := &rows[i]
		switch {
		case e.End < e.Start:
			b.wild++
		case !(shared && e.Role == timeline.Device && e.Rank > 0):
			t.events = append(t.events, placed{Event: *e, step: info.Step})
		}
	}
	t.dropFar()
	b.wild += t.left
	if len(t.events) == 0 {
		return 0
	}
	t.place()
	if len(t.events) > limit {
		left = len(t.events) - limit
		t.events = t.events[:limit]
	}
	s := pageStep{Step: info.Step, Kind: info.Kind, Mark: info.mark, Wall: info.Wall, First: len(b.columns.start),
		Count: len(t.events), Unit: 1}
	end := t.start
	for i := range t.events {
		end = max(end, t.events[i].End)
	}
	for (end-t.start)/s.Unit > math.MaxUint32 {
		s.Unit *= 10
	}
	s.End = (end - t.start) / s.Unit
	for i := range t.events {
		b.span(t, &t.events[i], s.Unit)
	}
	b.steps = append(b.steps, s)
	return left
}

func (b *spanBook) span(t *tracks, e *placed, unit int64) {
	l := &t.lanes[e.lane]
	c := &b.columns
	c.start = append(c.start, uint32((e.Start-t.start)/unit))
	c.length = append(c.length, uint32((e.End-e.Start)/unit))
	class := t.names.Name(e.Class)
	if e.other {
		class = attribute.Elsewhere.String()
	}
	c.kernel = append(c.kernel, number(&b.kernels, &b.kernelAt, pageKernel{t.names.Name(e.Kernel), class}))
	c.bytes = append(c.bytes, float32(e.Bytes))
	c.flops = append(c.flops, float32(e.FLOPs))
	c.call = append(c.call, e.Call)
	c.lane = append(c.lane, number(&b.lanes, &b.laneAt, pageLane{l.rank, l.title()}))
	c.layer = append(c.layer, int16(min(max(e.Layer, -1), math.MaxInt16)))
}

// number returns the place of x in list, where it is put if it is new.
func number[T comparable, N uint16 | uint32](list *[]T, at *map[T]N, x T) N {
	if n, ok := (*at)[x]; ok {
		return n
	}
	if *at == nil {
		*at = map[T]N{}
	}
	n := N(len(*list))
	*list = append(*list, x)
	(*at)[x] = n
	return n
}

// sortLanes puts the lanes in the order in which they are shown: the host of all
// ranks, then rank by rank.
func (b *spanBook) sortLanes() {
	order := make([]int, len(b.lanes))
	for i := range order {
		order[i] = i
	}
	host := func(l pageLane) int {
		if timeline.IsHost(l.Name) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(order, func(i, j int) int {
		x, y := b.lanes[i], b.lanes[j]
		return cmp.Or(cmp.Compare(x.Rank, y.Rank), cmp.Compare(host(x), host(y)), natural(x.Name, y.Name))
	})
	lanes, to := make([]pageLane, len(order)), make([]uint16, len(order))
	for at, old := range order {
		lanes[at], to[old] = b.lanes[old], uint16(at)
	}
	b.lanes = lanes
	for i := range b.columns.lane {
		b.columns.lane[i] = to[b.columns.lane[i]]
	}
}
