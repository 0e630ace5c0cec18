package importer

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// mark is what an annotation's text says.
type mark struct {
	family int8 // index into stepFamilies, layerMark or noMark
	number int64
}

const (
	noMark    int8 = -1
	layerMark int8 = -2
)

// stepFamilies are the ways in which engines annotate a step, the finest first:
// a trace that has several of them is cut by the first.
var stepFamilies = []struct {
	name    string
	pattern *regexp.Regexp // its group, if any, is the step's number
}{
	{"decode_step.N", regexp.MustCompile(`^(?:decode|prefill|mixed|engine|model)?_?[sS]tep[ ._:#-]?(\d+)$`)},
	{"vLLM execute_*", regexp.MustCompile(`^execute_(?:\d+_)?(?:context|new)_.*generation_`)},
	{"SGLang step[*]", regexp.MustCompile(`^step\[`)},
	{"iteration N", regexp.MustCompile(`^(?i:iter(?:ation)?)[ ._:#-]?(\d+)$`)},
	{"ProfilerStep#N", regexp.MustCompile(`^ProfilerStep[#*](\d+)$`)},
}

// layerPattern finds the number of a layer: layer.3.moe, model.layers.3.mlp.
var layerPattern = regexp.MustCompile(`(?:^|[./ :])(?:layers?|h|blocks?)[._](\d{1,4})(?:[./ :]|$)`)

// mark returns what the name's text says, looked up once.
func (n *names) mark(id uint32) mark {
	e := &n.list[id]
	if !e.marked {
		e.marked = true
		e.mark = readMark(e.text)
	}
	return e.mark
}

// mayMark spares most annotations the patterns.
func mayMark(text string) bool {
	for _, piece := range []string{"tep", "execute_", "iter", "Iter", "ITER", "layer", "block", "h.", "h_"} {
		if strings.Contains(text, piece) {
			return true
		}
	}
	return false
}

func readMark(text string) mark {
	if len(text) > 512 || !mayMark(text) {
		return mark{family: noMark}
	}
	for i, f := range stepFamilies {
		if m := f.pattern.FindStringSubmatch(text); m != nil {
			out := mark{family: int8(i), number: -1}
			if len(m) > 1 {
				if v, err := strconv.ParseInt(m[1], 10, 64); err == nil {
					out.number = v
				}
			}
			return out
		}
	}
	if m := layerPattern.FindStringSubmatch(text); m != nil {
		v, err := strconv.ParseInt(m[1], 10, 16)
		if err == nil {
			return mark{family: layerMark, number: v}
		}
	}
	return mark{family: noMark}
}

// maxWindows bounds the annotations that are kept.
const maxWindows = 4 << 20

// addWindow keeps an annotation if it marks a step or a layer.
func (t *trace) addWindow(p int32, id uint32, gpu bool, start, end, thread int64, given int32) {
	m := t.names.mark(id)
	if m.family == noMark && given < 0 || end <= start || len(t.windows) >= maxWindows {
		return
	}
	t.windows = append(t.windows, window{
		start: start, end: end, number: m.number, name: id, proc: p,
		lane: t.lane(lane{device: -1, id: thread}), family: m.family, gpu: gpu, given: given,
	})
}

// segments are disjoint pieces of time, each with the innermost window there.
type segments struct {
	start  []int64
	window []int32 // index into trace.windows, -1: none
}

// cut makes segments of windows that nest or overlap: the one that began last
// wins.
func (t *trace) cut(windows []int32) segments {
	slices.SortStableFunc(windows, func(a, b int32) int {
		x, y := &t.windows[a], &t.windows[b]
		switch {
		case x.start != y.start:
			return compare(x.start, y.start)
		case x.end != y.end:
			return compare(y.end, x.end) // the longer one is outside
		}
		return 0
	})
	var s segments
	put := func(at int64, w int32) {
		if n := len(s.start); n > 0 && s.start[n-1] == at {
			s.window[n-1] = w
			return
		}
		s.start, s.window = append(s.start, at), append(s.window, w)
	}
	var open []int32 // the windows around the current moment, innermost last
	closeUntil := func(at int64) {
		for len(open) > 0 {
			top := open[len(open)-1]
			end := t.windows[top].end
			if end > at {
				return
			}
			open = open[:len(open)-1]
			for len(open) > 0 && t.windows[open[len(open)-1]].end <= end {
				open = open[:len(open)-1]
			}
			below := int32(-1)
			if len(open) > 0 {
				below = open[len(open)-1]
			}
			put(end, below)
		}
	}
	for _, w := range windows {
		closeUntil(t.windows[w].start)
		put(t.windows[w].start, w)
		open = append(open, w)
	}
	closeUntil(1<<63 - 1)
	return s
}

// at returns the window at a moment, -1: none.
func (s segments) at(ns int64) int32 {
	i, found := slices.BinarySearch(s.start, ns)
	if !found {
		i--
	}
	if i < 0 {
		return -1
	}
	return s.window[i]
}

func compare(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
