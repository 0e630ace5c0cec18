package importer

import (
	"math"
	"regexp"
	"slices"
	"strconv"
)

// Exports of ours for trace viewers say of every event which step, layer and class
// it has. Read again, they are what they were: nothing is guessed from names.

// givenRule marks names whose class an export says.
const givenRule = -3

// givenStep is the place in trace.given of the step that an event of an export
// says, -1: none. ok: it says one, or that it has none.
func (t *trace) givenStep(who *pid, e *event) (i int32, ok bool) {
	if !who.exported || e.args.step == noStep {
		return -1, false
	}
	who.said = true
	if e.args.step < 0 {
		return -1, true
	}
	i, ok = t.givenAt[e.args.step]
	if !ok {
		if t.givenAt == nil {
			t.givenAt = map[int64]int32{}
		}
		i = int32(len(t.given))
		t.given = append(t.given, e.args.step)
		t.givenAt[e.args.step] = i
	}
	return i, true
}

// internClass is intern for a name with a class of its own.
func (n *names) internClass(raw, class []byte, odd *int64) uint32 {
	key := append(append(slices.Clone(raw[:min(len(raw), maxName)]), 0), class[:min(len(class), maxName)]...)
	known := len(n.list)
	i := n.intern(key[:min(len(key), maxName)], func([]byte) string { return text(raw, odd) })
	if int(i) == known {
		n.list[i].rule, n.list[i].class = givenRule, text(class, odd)
	}
	return i
}

var hostThread = regexp.MustCompile(`^host (\d{1,18})(?: \(overlap \d+\))?$`)

// threadNamed takes in what an export calls a thread, so that it keeps its number.
func (p *pid) threadNamed(tid int64, name []byte) {
	m := hostThread.FindSubmatch(name)
	if m == nil || len(p.threads) >= maxPids {
		return
	}
	if n, err := strconv.ParseInt(string(m[1]), 10, 64); err == nil {
		if p.threads == nil {
			p.threads = map[int64]int64{}
		}
		p.threads[tid] = n
	}
}

// placedByExport takes steps and layers as exports say, if all work comes from
// some; else it forgets what they said.
func (t *trace) placedByExport() bool {
	if !slices.ContainsFunc(t.procs, func(p proc) bool { return p.exported }) {
		return false
	}
	all := true
	t.each(func(_ int32, r *record) { all = all && (!r.kind.onDevice() || t.procs[r.proc].exported) })
	if !all {
		t.each(func(_ int32, r *record) {
			if t.procs[r.proc].exported {
				r.step, r.layer = -1, -1
			}
		})
		t.windows = slices.DeleteFunc(t.windows, func(w window) bool { return w.family == noMark })
		return false
	}
	order := make([]int32, len(t.given))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return compare(t.given[a], t.given[b]) })
	to := make([]int32, len(order))
	t.steps = make([]step, len(order))
	for i, g := range order {
		to[g], t.steps[i] = int32(i), step{number: t.given[g]}
	}
	t.each(func(_ int32, r *record) {
		if r.step >= 0 {
			r.step = to[r.step]
		}
	})
	t.stepOf = make([]int32, len(t.windows))
	for i := range t.windows {
		w := &t.windows[i]
		if t.stepOf[i] = -1; w.given >= 0 {
			t.stepOf[i] = to[w.given]
			t.steps[to[w.given]].name = w.name
		}
	}
	t.find("exported", severityNote, -1, int64(min(len(t.steps), math.MaxInt32)),
		"an export of glmbatch: steps, layers and classes are as it says")
	return true
}
