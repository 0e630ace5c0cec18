package importer

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"glmbatch/datasets"
	"glmbatch/replay/timeline"
)

// finish turns what was read into rows: check, align, place, class, emit.
func (t *trace) finish(emit func([]datasets.Span) error) (*Summary, error) {
	if err := t.makeRanks(); err != nil {
		return nil, err
	}
	t.sort()
	if err := t.gate(); err != nil {
		return nil, err
	}
	if err := t.align(); err != nil {
		return nil, err
	}
	t.place()
	return t.emit(emit)
}

// makeRanks gives every record its rank. A torch file is one rank; of a report
// with several processes every (process, device) is one.
func (t *trace) makeRanks() error {
	if t.byDevice {
		t.ranksOfDevices()
		return nil
	}
	order := make([]int32, len(t.procs))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(t.procs[a].rank, t.procs[b].rank) })
	place := make([]int32, len(order))
	for k, p := range order {
		if k > 0 && t.procs[p].rank == t.procs[order[k-1]].rank {
			return refuse("%s and %s are both of rank %d; say --rank N to number files in the order given", t.procs[order[k-1]].file, t.procs[p].file, t.procs[p].rank)
		}
		place[p] = int32(k)
		t.ranks = append(t.ranks, rank{number: t.procs[p].rank, proc: p, device: -1})
	}
	t.each(func(_ int32, r *record) { r.rank = place[r.proc] })
	return nil
}

// ranksOfDevices numbers the (process, device) pairs that have GPU work.
func (t *trace) ranksOfDevices() {
	type key struct{ proc, device int32 }
	index := map[key]int32{}
	var keys []key
	t.each(func(_ int32, r *record) {
		k := key{r.proc, t.lanes[r.lane].device}
		if _, ok := index[k]; r.kind.onDevice() && !ok {
			index[k] = 0
			keys = append(keys, k)
		}
	})
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(t.procs[a.proc].number, t.procs[b.proc].number), cmp.Compare(t.procs[a.proc].pid, t.procs[b.proc].pid), cmp.Compare(a.device, b.device))
	})
	first := map[int32]int32{}
	for i, k := range keys {
		index[k] = int32(i)
		t.ranks = append(t.ranks, rank{number: t.options.Rank + int32(i), proc: k.proc, device: k.device})
		if _, ok := first[k.proc]; !ok {
			first[k.proc] = int32(i)
			t.procs[k.proc].rank = t.options.Rank + int32(i)
		}
	}
	several := map[int32]bool{}
	for _, r := range t.ranks {
		several[r.proc] = several[r.proc] || t.ranks[first[r.proc]].device != r.device
	}
	type call struct {
		proc        int32
		correlation int64
	}
	of := map[call]int32{}
	t.each(func(_ int32, r *record) {
		if r.kind.onDevice() {
			r.rank = index[key{r.proc, t.lanes[r.lane].device}]
			if c := (call{r.proc, r.correlation}); several[r.proc] {
				if _, ok := of[c]; !ok {
					of[c] = r.rank
				}
			}
		}
	})
	t.each(func(_ int32, r *record) {
		if r.kind.onDevice() {
			return
		}
		if k, ok := first[r.proc]; ok {
			r.rank = k
		}
		if k, ok := of[call{r.proc, r.correlation}]; ok {
			r.rank = k
		}
	})
}

// sort orders the records by start, the longer one first.
func (t *trace) sort() {
	t.order = t.order[:0]
	t.each(func(i int32, _ *record) { t.order = append(t.order, i) })
	slices.SortFunc(t.order, func(a, b int32) int {
		x, y := t.at(a), t.at(b)
		switch {
		case x.start != y.start:
			return compare(x.start, y.start)
		case x.end != y.end:
			return compare(y.end, x.end)
		}
		return int(a) - int(b)
	})
}

// class returns the class of a device record from its name, and the rule.
func (t *trace) class(r *record) (string, int) {
	switch r.kind {
	case isMemcpy:
		return memcpyClass(t.names.list[r.name].text), 0
	case isMemset:
		return "memset", 0
	case isKernel:
		n := &t.names.list[r.name]
		if n.rule == -2 {
			class, rule := Classify(n.text)
			n.rule, n.class = int32(rule), class
		}
		return n.class, int(n.rule)
	}
	return timeline.ClassHost, 0
}

// batchRows is how many rows go to emit at once.
const batchRows = 4096

// emit writes the rows in order of start.
func (t *trace) emit(f func([]datasets.Span) error) (*Summary, error) {
	s := &Summary{Steps: len(t.steps), EpochNS: math.MaxInt64}
	rankRows := make([]RankSummary, len(t.ranks))
	busyRank := make([]busy, len(t.ranks))
	var busyAll busy
	var none RankSummary // of processes without GPU work
	for i, r := range t.ranks {
		rankRows[i] = RankSummary{Rank: r.number, File: t.procs[r.proc].file, firstStart: math.MaxInt64, lastEnd: math.MinInt64}
		busyRank[i].until = math.MinInt64
	}
	busyAll.until = math.MinInt64
	envelopes := t.envelopes()
	for _, i := range t.order {
		if r := t.at(i); r.kind != isNothing {
			s.EpochNS = r.start
			break
		}
	}
	if len(envelopes) > 0 {
		s.EpochNS = min(s.EpochNS, envelopes[0].start)
	}
	b := rowMaker{t: t, epoch: s.EpochNS, pools: t.findPools(), evidence: map[int]string{}}
	b.lanes()
	classes := map[string]*ClassSummary{}
	unknown := map[uint32]*NameSummary{}
	batch := make([]datasets.Span, 0, batchRows)
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		s.Rows += int64(len(batch))
		err := f(batch)
		batch = batch[:0]
		return err
	}
	put := func() *datasets.Span {
		batch = batch[:len(batch)+1]
		return &batch[len(batch)-1]
	}
	for _, i := range t.order {
		r := t.at(i)
		if r.kind == isNothing {
			continue
		}
		for len(envelopes) > 0 && envelopes[0].start <= r.start {
			b.envelope(put(), envelopes[0])
			envelopes = envelopes[1:]
			if len(batch) == batchRows {
				if err := flush(); err != nil {
					return nil, err
				}
			}
		}
		row := put()
		b.row(row, r)
		k := &none
		if r.rank >= 0 {
			k = &rankRows[r.rank]
		}
		switch r.kind {
		case isKernel:
			k.Kernels++
			k.KernelNS += r.end - r.start
			if row.Class == unclassified {
				n := unknown[r.name]
				if n == nil {
					n = &NameSummary{Kernel: row.Kernel}
					unknown[r.name] = n
				}
				n.Rows++
				n.NS += r.end - r.start
			}
		case isMemcpy:
			k.Memcpy++
		case isMemset:
			k.Memset++
		case isAPI:
			k.Calls++
		}
		if r.kind.onDevice() {
			busyRank[r.rank].add(r.start, r.end)
			busyAll.add(r.start, r.end)
			k.firstStart, k.lastEnd = min(k.firstStart, r.start), max(k.lastEnd, r.end)
			c := classes[row.Class]
			if c == nil {
				c = &ClassSummary{Class: row.Class}
				classes[row.Class] = c
			}
			c.Rows++
			c.NS += r.end - r.start
		}
		if len(batch) == batchRows {
			if err := flush(); err != nil {
				return nil, err
			}
		}
	}
	for _, w := range envelopes {
		if len(batch) == batchRows {
			if err := flush(); err != nil {
				return nil, err
			}
		}
		b.envelope(put(), w)
	}
	if err := flush(); err != nil {
		return nil, err
	}
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	for i := range rankRows {
		k := &rankRows[i]
		k.UnionNS = busyRank[i].ns
		if k.lastEnd >= k.firstStart {
			k.SpanNS = k.lastEnd - k.firstStart
			first, last = min(first, k.firstStart), max(last, k.lastEnd)
		}
	}
	s.Ranks, s.UnionNS = rankRows, busyAll.ns
	if last >= first {
		s.SpanNS = last - first
	}
	s.finish(classes, unknown)
	t.notePools(b.pools)
	t.noteOverhead()
	t.noteClasses(s)
	s.Findings = t.findings
	return s, nil
}

// envelope is a step's window on the host.
type envelope struct {
	start, end int64
	step       int64
	rank       int32
	name       uint32
}

// envelopes returns the step windows on the host, in order of start, one for
// each rank of their process.
func (t *trace) envelopes() []envelope {
	var out []envelope
	for i, w := range t.windows {
		if w.gpu || t.stepOf == nil || t.stepOf[i] < 0 {
			continue
		}
		for _, r := range t.ranks {
			if r.proc == w.proc {
				out = append(out, envelope{w.start, w.end, t.steps[t.stepOf[i]].number, r.number, w.name})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b envelope) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.rank, b.rank))
	})
	return out
}

// rowMaker turns records into rows.
type rowMaker struct {
	t        *trace
	epoch    int64
	pools    map[castKey]poolCast
	laneName []string
	evidence map[int]string // by rule
}

// lanes names the lanes: streams by device only where a process has several.
func (b *rowMaker) lanes() {
	t := b.t
	devices := map[int32]map[int32]bool{}
	t.each(func(_ int32, r *record) {
		if r.kind.onDevice() {
			if devices[r.rank] == nil {
				devices[r.rank] = map[int32]bool{}
			}
			devices[r.rank][t.lanes[r.lane].device] = true
		}
	})
	several := false
	for _, d := range devices {
		several = several || len(d) > 1
	}
	for _, l := range t.lanes {
		name := "host " + strconv.FormatInt(l.id, 10)
		switch {
		case l.device < 0 && l.id < 0:
			name = "host overhead"
		case l.device >= 0 && several:
			name = fmt.Sprintf("gpu %d stream %d", l.device, l.id)
		case l.device >= 0:
			name = "stream " + strconv.FormatInt(l.id, 10)
		}
		b.laneName = append(b.laneName, name)
	}
}

func (b *rowMaker) envelope(row *datasets.Span, e envelope) {
	*row = datasets.Span{
		Step: e.step, Rank: e.rank, Lane: "host step", Call: -1, Layer: -1, Kernel: b.t.names.list[e.name].text,
		Class: timeline.ClassHost, StartNS: e.start - b.epoch, EndNS: e.end - b.epoch, Evidence: timeline.RoleStep,
	}
}

func (b *rowMaker) row(row *datasets.Span, r *record) {
	t := b.t
	class, rule := t.class(r)
	*row = datasets.Span{
		Step: -1, Rank: t.rankNumber(r), Lane: b.laneName[r.lane], Call: -1, Layer: int32(r.layer),
		Kernel: t.names.list[r.name].text, Class: class, StartNS: r.start - b.epoch, EndNS: r.end - b.epoch,
		Correlation: max(r.correlation, 0), Graph: r.node,
	}
	if r.step >= 0 {
		row.Step = t.steps[r.step].number
	}
	s := t.shapes[r.shape]
	row.GridX, row.GridY, row.GridZ = s.grid[0], s.grid[1], s.grid[2]
	row.BlockX, row.BlockY, row.BlockZ = s.block[0], s.block[1], s.block[2]
	switch r.kind {
	case isAPI:
		row.Evidence = [...]string{roleAPI: timeline.RoleAPI, roleLaunch: timeline.RoleLaunch, roleSync: timeline.RoleSync}[r.role]
	case isOverhead:
		row.Evidence = timeline.RoleOverhead
	case isMemcpy:
		row.Evidence = "memcpy"
		row.Bytes = r.bytes
		if class == "memcpy.d2d" && r.bytes <= math.MaxInt64/2 {
			row.Bytes = 2 * r.bytes
		}
	case isMemset:
		row.Evidence = "memset"
		row.Bytes = r.bytes
	case isKernel:
		row.Evidence = b.ruleEvidence(rule)
		b.copy(row, r, class, rule)
	}
}

// rankNumber returns a record's rank; -1: its process has no GPU work.
func (t *trace) rankNumber(r *record) int32 {
	if r.rank < 0 {
		return -1
	}
	return t.ranks[r.rank].number
}

// ruleEvidence is "rule N", or empty for an unclassified kernel.
func (b *rowMaker) ruleEvidence(rule int) string {
	if rule == 0 {
		return ""
	}
	e, ok := b.evidence[rule]
	if !ok {
		e = "rule " + strconv.Itoa(rule)
		b.evidence[rule] = e
	}
	return e
}

// copy fills in what the launch grid says of copies and casts.
func (b *rowMaker) copy(row *datasets.Span, r *record, class string, rule int) {
	if class != "copy.cast" && class != "copy.layout" {
		return
	}
	size, ok := b.t.names.copySize(r.name)
	if !ok {
		return
	}
	numel, _ := size.values(b.t.shapes[r.shape])
	if p, ok := b.pools[castKey{r.name, r.shape}]; ok {
		numel = p.numel
		row.Class, row.Slots, row.K = "kv.cast", p.slots, int32(p.width)
		row.Evidence = b.ruleEvidence(rule) + "; " + p.evidence
	}
	row.Bytes = size.bytes(numel)
}

// noteClasses reports the time without a class, and casts of the pool.
func (t *trace) noteClasses(s *Summary) {
	if len(s.Unclassified) > 0 {
		ns, rows := int64(0), int64(0)
		for _, n := range s.Unclassified {
			ns, rows = ns+n.NS, rows+n.Rows
		}
		t.find("unclassified", severityNote, -1, rows, "%.2f %% of the kernels' time has a class; %d ns in %d kernels have none, most in %s (import --unclassified prints rules to fill in)",
			100*s.Covered(), ns, rows, brief(s.Unclassified[0].Kernel))
	}
}

// noteOverhead reports what the profiler itself took.
func (t *trace) noteOverhead() {
	ns, n := int64(0), int64(0)
	t.each(func(_ int32, r *record) {
		if r.kind == isOverhead {
			ns, n = ns+r.end-r.start, n+1
		}
	})
	if n > 0 {
		t.find("profiler_overhead", severityNote, -1, n, "the profiler itself took %d ns of host time: gaps under it are not the program's", ns)
	}
}

// memcpyClass tells the direction from "Memcpy DtoH (Device -> Pageable)".
func memcpyClass(name string) string {
	for _, d := range []struct{ piece, class string }{
		{"DtoD", "memcpy.d2d"}, {"HtoD", "memcpy.h2d"}, {"DtoH", "memcpy.d2h"}, {"PtoP", "memcpy.p2p"}, {"HtoH", "memcpy.h2h"},
	} {
		if strings.Contains(name, d.piece) {
			return d.class
		}
	}
	return "memcpy"
}
