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
	if err := t.check(); err != nil {
		return nil, &Refusal{err, t.findings}
	}
	t.place()
	t.findPurposes()
	return t.emit(emit)
}

// check makes ranks, and refuses traces that cannot be trusted.
func (t *trace) check() error {
	if err := t.gpuEvents(); err != nil {
		t.reading()
		return err
	}
	if err := t.makeRanks(); err != nil {
		t.reading()
		return err
	}
	t.sort()
	if err := t.gate(); err != nil {
		return err
	}
	return t.align()
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
			class, rule := t.rules.classify(n.text)
			n.rule, n.class = int32(rule), class
		}
		return n.class, int(n.rule)
	}
	return timeline.ClassHost, 0
}

// batchRows is how many rows go to emit at once.
const batchRows = 4096

// emit writes the rows in order of start and sums them up.
func (t *trace) emit(f func([]datasets.Span) error) (*Summary, error) {
	envelopes := t.envelopes()
	epoch := int64(math.MaxInt64)
	for _, i := range t.order {
		if r := t.at(i); r.kind != isNothing {
			epoch = r.start
			break
		}
	}
	if len(envelopes) > 0 {
		epoch = min(epoch, envelopes[0].start)
	}
	rows := rowMaker{t: t, epoch: epoch, pools: t.findPools(), evidence: map[int]string{}}
	rows.lanes()
	sums := newTally(t)
	out := batch{rows: make([]datasets.Span, 0, batchRows), emit: f}
	for _, i := range t.order {
		r := t.at(i)
		if r.kind == isNothing {
			continue
		}
		for ; len(envelopes) > 0 && envelopes[0].start <= r.start; envelopes = envelopes[1:] {
			rows.envelope(out.next(), envelopes[0])
		}
		row := out.next()
		rows.row(row, r)
		if t.purpose != nil && t.purpose[i] > 0 {
			c := &t.purposes[t.purpose[i]]
			row.Class, row.Evidence = c.class, row.Evidence+"; "+c.evidence
		}
		sums.add(r, row)
	}
	for _, e := range envelopes {
		rows.envelope(out.next(), e)
	}
	if err := out.flush(); err != nil {
		return nil, err
	}
	s := sums.summary()
	s.EpochNS, s.Rows, s.Steps, s.Device = epoch, out.total, len(t.steps), t.device
	s.Periods = t.periodsOf(epoch)
	t.notePools(rows.pools)
	t.noteOverhead()
	t.noteClasses(s)
	s.Findings = t.findings
	return s, nil
}

// batch hands rows on, some at a time.
type batch struct {
	rows  []datasets.Span
	emit  func([]datasets.Span) error
	total int64
	err   error // of emit; later rows go nowhere
}

// next returns the place of the next row.
func (b *batch) next() *datasets.Span {
	if len(b.rows) == cap(b.rows) {
		b.err = b.flush()
	}
	b.rows = b.rows[:len(b.rows)+1]
	return &b.rows[len(b.rows)-1]
}

func (b *batch) flush() error {
	if b.err == nil && len(b.rows) > 0 {
		b.total += int64(len(b.rows))
		b.err = b.emit(b.rows)
	}
	b.rows = b.rows[:0]
	return b.err
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
		if t.procs[w.proc].everyRank {
			out = append(out, envelope{w.start, w.end, t.steps[t.stepOf[i]].number, -1, w.name})
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
	if t.hasSites && r.kind.onDevice() {
		if l := t.launch(r); l != nil {
			at := t.sites[l.site]
			list := t.names.list
			row.Operator, row.Module, row.Frame = list[at.operator].text, list[at.module].text, list[at.frame].text
		}
	}
	switch r.kind {
	case isAPI:
		row.Evidence = [...]string{roleAPI: timeline.RoleAPI, roleLaunch: timeline.RoleLaunch,
			roleSync: timeline.RoleSync}[r.role]
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
		if rule == givenRule {
			row.Bytes = r.bytes
			break
		}
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

// ruleEvidence is "rule N", "kernel table", or empty for an unclassified kernel.
func (b *rowMaker) ruleEvidence(rule int) string {
	switch rule {
	case ownRule:
		return "kernel table"
	case givenRule:
		return "export"
	}
	if rule == 0 {
		return ""
	}
	e, ok := b.evidence[rule]
	if !ok {
		e = "rule " + strconv.Itoa(rule)
		if rule > len(Rules) {
			e = "user's rule " + strconv.Itoa(rule-len(Rules))
		}
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
		t.find("unclassified", severityNote, -1, rows,
			"%.2f %% of the kernels' time has a class; %s in %d kernels have none, most in %s (import "+
				"--unclassified prints rules to fill in)",
			100*s.Covered(), millis(ns), rows, brief(s.Unclassified[0].Kernel))
	}
}

// millis is a time for a person.
func millis(ns int64) string { return fmt.Sprintf("%.3f ms", float64(ns)/1e6) }

// noteOverhead reports what the profiler itself took.
func (t *trace) noteOverhead() {
	ns, n := int64(0), int64(0)
	t.each(func(_ int32, r *record) {
		if r.kind == isOverhead {
			ns, n = ns+r.end-r.start, n+1
		}
	})
	if n > 0 {
		t.find("profiler_overhead", severityNote, -1, n,
			"the profiler itself took %s of host time: gaps under it are not the program's", millis(ns))
	}
}

// memcpyClass tells the direction from "Memcpy DtoH (Device -> Pageable)".
func memcpyClass(name string) string {
	for _, d := range []struct{ piece, class string }{
		{"DtoD", "memcpy.d2d"}, {"HtoD", "memcpy.h2d"}, {"DtoH", "memcpy.d2h"}, {"PtoP", "memcpy.p2p"}, {"HtoH",
			"memcpy.h2h"},
	} {
		if strings.Contains(name, d.piece) {
			return d.class
		}
	}
	return "memcpy"
}
