package report

import (
	"fmt"

	"glmbatch/replay/attribute"
)

// outsideName is what the work that belongs to no step is called.
const outsideName = "outside steps"

// gpuTime is the sum of the lengths of a section's device spans.
func gpuTime(s *attribute.Section) (calls, ns int64) {
	for i := range s.Classes {
		calls, ns = calls+s.Classes[i].Calls, ns+s.Classes[i].Total
	}
	return calls, ns
}

// allGPUTime is that of all sections and of what lies outside of steps: the GPU
// time of the timeline, where nothing was filtered.
func (r *Report) allGPUTime() int64 {
	all := r.Outside.NS
	for i := range r.Sections {
		_, ns := gpuTime(&r.Sections[i])
		all += ns
	}
	return all
}

// outside says how much work belongs to no step.
func (r *Report) outside() {
	if r.Outside.NS == 0 {
		return
	}
	part := share(r.Outside.NS, r.allGPUTime())
	f := Finding{"outside", "", fmt.Sprintf("%s of the GPU time lies outside of the annotated steps (%s ms in %s, "+
		"the largest part in %s): no table of steps has it",
		percent(part), ms(float64(r.Outside.NS)), times(float64(r.Outside.Calls)), r.Outside.Classes[0].Class)}
	if part >= mostOutside {
		r.Findings = append([]Finding{f}, r.Findings...)
		return
	}
	r.Findings = append(r.Findings, f)
}

// mostOutside is from what share on the steps are not what the timeline is about.
const mostOutside = 0.2

// gpuTimes is the table of the GPU time of all steps and of none.
func (r *Report) gpuTimes() table {
	t := table{head: []string{"GPU time, all ranks", "calls", "sum ms", "share"}}
	all, count := r.allGPUTime(), int64(0)
	add := func(name string, calls, ns int64) {
		count += calls
		t.add(name, thousands(calls), ms(float64(ns)), percentCell(share(ns, all)))
	}
	for i := range r.Sections {
		calls, ns := gpuTime(&r.Sections[i])
		add(r.Sections[i].Kind+" steps", calls, ns)
	}
	add(outsideName, r.Outside.Calls, r.Outside.NS)
	for _, c := range r.Outside.Classes {
		t.add("  "+c.Class, thousands(c.Calls), ms(float64(c.NS)), percentCell(share(c.NS, all)))
	}
	t.rule()
	t.add("all", thousands(count), ms(float64(all)), percentCell(1))
	return t
}
