package importer

import (
	"fmt"
	"slices"
)

// placer puts records into steps and layers by annotations.
type placer struct {
	t                              *trace
	hostSteps, hostLayers, gpuStep []segments
	gpuLayers                      []segments // each by proc
	family                         int8       // noMark: no step annotations
}

// place gives every record its step and layer and says in findings how.
func (t *trace) place() {
	if t.placedByExport() {
		return
	}
	p := placer{t: t, family: noMark}
	p.numberSteps()
	p.cutAll()
	p.records()
	switch {
	case p.family != noMark:
		t.noteStepFamily(p.family)
	case t.stepsByPeriod():
	default:
		t.steps = []step{{number: 0}}
		t.each(func(_ int32, r *record) { r.step = 0 })
		t.find("no_steps", severityNote, -1, 0, "no step annotations and no period in the kernels: the whole trace "+
			"is step 0")
	}
	t.layersByPeriod()
}

func (t *trace) noteStepFamily(family int8) {
	t.find("steps", severityNote, -1, int64(len(t.steps)), "steps by annotation %s", stepFamilies[family].name)
}

// numberSteps chooses the annotations that are steps and numbers them.
func (p *placer) numberSteps() {
	t := p.t
	t.stepOf = make([]int32, len(t.windows))
	for i := range t.stepOf {
		t.stepOf[i] = -1
	}
	best := int8(len(stepFamilies))
	for _, w := range t.windows {
		if w.family >= 0 {
			best = min(best, w.family)
		}
	}
	if int(best) == len(stepFamilies) {
		return
	}
	p.family = best
	for pr := range t.procs {
		p.numberOf(int32(pr))
	}
	// Steps in order of their numbers.
	order := make([]int32, len(t.steps))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return compare(t.steps[a].number, t.steps[b].number) })
	place := make([]int32, len(order))
	sorted := make([]step, len(order))
	for i, o := range order {
		place[o], sorted[i] = int32(i), t.steps[o]
	}
	t.steps = sorted
	for i, s := range t.stepOf {
		if s >= 0 {
			t.stepOf[i] = place[s]
		}
	}
}

// numberOf numbers the steps of one process: by the annotations' numbers where
// they are there and unique, else by order. GPU windows get the step of the host
// window of the same name and order.
func (p *placer) numberOf(pr int32) {
	t := p.t
	var host, gpu []int32
	for i := range t.windows {
		if w := &t.windows[i]; w.proc == pr && w.family == p.family {
			if w.gpu {
				gpu = append(gpu, int32(i))
			} else {
				host = append(host, int32(i))
			}
		}
	}
	byStart := func(a, b int32) int { return compare(t.windows[a].start, t.windows[b].start) }
	slices.SortStableFunc(host, byStart)
	slices.SortStableFunc(gpu, byStart)
	lead := host
	if len(host) == 0 {
		lead = gpu
	}
	numbered := true
	seen := map[int64]bool{}
	for _, i := range lead {
		n := t.windows[i].number
		numbered = numbered && n >= 0 && !seen[n]
		seen[n] = true
	}
	index := map[int64]int32{}
	for i, s := range t.steps {
		index[s.number] = int32(i)
	}
	byName := map[uint32][]int32{} // the steps of a name, in order
	for ordinal, i := range lead {
		w := &t.windows[i]
		number := int64(ordinal)
		if numbered {
			number = w.number
		}
		s, ok := index[number]
		if !ok {
			s = int32(len(t.steps))
			t.steps = append(t.steps, step{number: number, name: w.name})
			index[number] = s
		}
		t.stepOf[i] = s
		byName[w.name] = append(byName[w.name], s)
	}
	if len(host) == 0 {
		return
	}
	for _, i := range gpu {
		if left := byName[t.windows[i].name]; len(left) > 0 {
			t.stepOf[i], byName[t.windows[i].name] = left[0], left[1:]
		}
	}
}

// cutAll makes the segments of every process.
func (p *placer) cutAll() {
	t := p.t
	var lists [4][][]int32
	for k := range lists {
		lists[k] = make([][]int32, len(t.procs))
	}
	for i := range t.windows {
		w := &t.windows[i]
		k := 0
		switch {
		case t.stepOf[i] >= 0:
		case w.family == layerMark:
			k = 1
		default:
			continue
		}
		if w.gpu {
			k += 2
		}
		lists[k][w.proc] = append(lists[k][w.proc], int32(i))
	}
	for k, out := range []*[]segments{&p.hostSteps, &p.hostLayers, &p.gpuStep, &p.gpuLayers} {
		for _, l := range lists[k] {
			*out = append(*out, t.cut(l))
		}
	}
}

// records places every record: API calls by their time, device work by its
// launch's place, and work without a recorded launch by the annotation's window
// on the device.
func (p *placer) records() {
	t := p.t
	host := func(r *record) {
		if w := p.hostSteps[r.proc].at(r.start); w >= 0 {
			r.step = t.stepOf[w]
		}
		if w := p.hostLayers[r.proc].at(r.start); w >= 0 {
			r.layer = int16(t.windows[w].number)
			if r.kind == isAPI && r.correlation > 0 {
				at := t.sites[r.site]
				at.mark = t.windows[w].name
				r.site = t.site(at)
			}
		}
	}
	t.each(func(_ int32, r *record) {
		if !r.kind.onDevice() {
			host(r)
		}
	})
	t.each(func(_ int32, r *record) {
		if !r.kind.onDevice() {
			return
		}
		if l := t.launch(r); l != nil {
			r.step, r.layer = l.step, l.layer
		}
		if w := p.gpuStep[r.proc].at(r.start); r.step < 0 && w >= 0 {
			r.step = t.stepOf[w]
		}
		if w := p.gpuLayers[r.proc].at(r.start); r.layer < 0 && w >= 0 {
			r.layer = int16(t.windows[w].number)
		}
	})
}

// launch returns the API record that launched r, or nil.
func (t *trace) launch(r *record) *record {
	if i, ok := t.launchIndex(r); ok {
		return t.at(i)
	}
	return nil
}

// launchIndex is the index of the API record that launched r.
func (t *trace) launchIndex(r *record) (int32, bool) {
	if r.correlation <= 0 {
		return 0, false
	}
	i, ok := t.procs[r.proc].launches[r.correlation]
	return i, ok && t.at(i).kind != isNothing
}

// stepsByPeriod cuts a trace without annotations into steps: the kernels must
// repeat, and a repetition must itself hold repetitions (the layers). It reports
// whether that was so on every rank.
func (t *trace) stepsByPeriod() bool {
	type cut struct {
		kernels []int32
		period  period
	}
	var cuts []cut
	for r := range t.ranks {
		kernels := t.mainLane(t.order, int32(r))
		if len(kernels) > longestSequence {
			return false
		}
		s := t.sequence(kernels)
		p := findPeriod(s, 0.8)
		if p.repeats == 0 || len(findLayers(s[p.start:p.start+p.length])) == 0 {
			return false
		}
		cuts = append(cuts, cut{kernels, p})
	}
	if len(cuts) == 0 {
		return false
	}
	most := 0
	for _, c := range cuts {
		most = max(most, c.period.repeats)
	}
	for i := 0; i < most; i++ {
		t.steps = append(t.steps, step{number: int64(i)})
	}
	for r, c := range cuts {
		// Every record of the rank belongs to the repetition whose first kernel
		// came last, by launch where there is one, else by start.
		var starts, launches []int64
		for i := 0; i < c.period.repeats; i++ {
			k := t.at(c.kernels[c.period.start+i*c.period.length])
			starts = append(starts, k.start)
			at := k.start
			if l := t.launch(k); l != nil {
				at = l.start
			}
			launches = append(launches, at)
		}
		lastOne := t.at(c.kernels[c.period.start+c.period.covered()-1])
		end := lastOne.end
		for _, i := range t.order {
			rec := t.at(i)
			if rec.kind == isNothing || rec.rank != int32(r) {
				continue
			}
			by, at := starts, rec.start
			if !rec.kind.onDevice() {
				by = launches
			}
			k, found := slices.BinarySearch(by, at)
			if !found {
				k--
			}
			if k >= 0 && at < end {
				rec.step = int32(k)
			}
		}
		t.find("steps", severityNote, t.ranks[r].number, int64(c.period.repeats),
			"no step annotations: %d steps by the period of the kernels, %d kernels each", c.period.repeats,
			c.period.length)
	}
	return true
}

// find adds a finding.
func (t *trace) find(code, severity string, rank int32, count int64, format string, args ...any) {
	t.findings = append(t.findings, finding{Code: code, Severity: severity, Rank: rank, Count: count,
		Text: fmt.Sprintf(format, args...)})
}
