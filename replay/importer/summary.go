package importer

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"

	"glmbatch/datasets"
)

// Summary is what an import found.
type Summary struct {
	EpochNS  int64 // the trace's clock at the timeline's time 0
	Rows     int64
	Steps    int
	Device   string // name of the first GPU, "": the trace does not tell
	Ranks    []RankSummary
	UnionNS  int64 // time in which any device was busy
	SpanNS   int64 // first start to last end of device rows, of all ranks
	Classes  []ClassSummary
	Findings []datasets.Finding
	Periods  []datasets.Period // of each step and rank, and of the time between steps

	Unclassified []NameSummary // kernels that no rule matched, longest first
}

// RankSummary counts the rows of one rank. The sums are of what was kept.
type RankSummary struct {
	Rank                    int32
	File                    string
	Kernels, Memcpy, Memset int64
	Calls                   int64 // API calls
	KernelNS                int64 // sum of kernels' times
	UnionNS                 int64 // time in which the device was busy
	SpanNS                  int64 // first start to last end of device rows
	firstStart, lastEnd     int64
}

// ClassSummary is the time of one class, summed over its rows.
type ClassSummary struct {
	Class string
	Rows  int64
	NS    int64
}

// NameSummary is the time of one kernel's name.
type NameSummary struct {
	Kernel string
	Rows   int64
	NS     int64
}

// Covered returns the share of the kernels' time that has a class.
func (s *Summary) Covered() float64 {
	all, without := int64(0), int64(0)
	for _, r := range s.Ranks {
		all += r.KernelNS
	}
	for _, n := range s.Unclassified {
		without += n.NS
	}
	if all == 0 {
		return 0
	}
	return 1 - float64(without)/float64(all)
}

// Stubs writes a rule for each unclassified kernel, ready to be filled in for
// [ReadRules].
func (s *Summary) Stubs(w io.Writer) error {
	for _, n := range s.Unclassified {
		if _, err := fmt.Fprintf(w, "# %d ns in %d launches of %s\n?\t%s\n", n.NS, n.Rows, brief(n.Kernel),
			stubPattern(n.Kernel)); err != nil {
			return err
		}
	}
	return nil
}

var words = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)

// stubPattern proposes a pattern: the function's own name, without namespaces,
// template arguments and parameters.
func stubPattern(kernel string) string {
	head := strings.TrimPrefix(strings.ReplaceAll(kernel, "(anonymous namespace)::", ""), "void ")
	if i := strings.IndexAny(head, "<("); i > 0 {
		head = head[:i]
	}
	if i := strings.LastIndex(head, "::"); i >= 0 {
		head = head[i+2:]
	}
	if w := words.FindString(head); w != "" {
		head = w
	}
	return regexp.QuoteMeta(head)
}

// busy measures the union of intervals that come in order of start.
type busy struct{ until, ns int64 }

func (b *busy) add(start, end int64) {
	if start > b.until {
		b.until = start
	}
	if end > b.until {
		b.ns += end - b.until
		b.until = end
	}
}

// tally sums rows up as they are made.
type tally struct {
	t       *trace
	ranks   []RankSummary
	busy    []busy // of each rank
	busyAll busy
	classes map[string]*ClassSummary
	unknown map[uint32]*NameSummary // unclassified kernels by name
	nobody  RankSummary             // of processes without GPU work
}

func newTally(t *trace) *tally {
	y := &tally{t: t, busyAll: busy{until: math.MinInt64}, classes: map[string]*ClassSummary{},
		unknown: map[uint32]*NameSummary{}}
	for _, r := range t.ranks {
		y.ranks = append(y.ranks, RankSummary{Rank: r.number, File: t.procs[r.proc].file, firstStart: math.MaxInt64,
			lastEnd: math.MinInt64})
		y.busy = append(y.busy, busy{until: math.MinInt64})
	}
	return y
}

// add counts a record and its row; records come in order of start.
func (y *tally) add(r *record, row *datasets.Span) {
	k := &y.nobody
	if r.rank >= 0 {
		k = &y.ranks[r.rank]
	}
	ns := r.end - r.start
	switch r.kind {
	case isKernel:
		k.Kernels++
		k.KernelNS += ns
		if row.Class == unclassified {
			n := y.unknown[r.name]
			if n == nil {
				n = &NameSummary{Kernel: row.Kernel}
				y.unknown[r.name] = n
			}
			n.Rows, n.NS = n.Rows+1, n.NS+ns
		}
	case isMemcpy:
		k.Memcpy++
	case isMemset:
		k.Memset++
	case isAPI:
		k.Calls++
	}
	if !r.kind.onDevice() {
		return
	}
	y.busy[r.rank].add(r.start, r.end)
	y.busyAll.add(r.start, r.end)
	k.firstStart, k.lastEnd = min(k.firstStart, r.start), max(k.lastEnd, r.end)
	c := y.classes[row.Class]
	if c == nil {
		c = &ClassSummary{Class: row.Class}
		y.classes[row.Class] = c
	}
	c.Rows, c.NS = c.Rows+1, c.NS+ns
}

func (y *tally) summary() *Summary {
	s := &Summary{Ranks: y.ranks, UnionNS: y.busyAll.ns}
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	for i := range s.Ranks {
		k := &s.Ranks[i]
		k.UnionNS = y.busy[i].ns
		if k.lastEnd >= k.firstStart {
			k.SpanNS = k.lastEnd - k.firstStart
			first, last = min(first, k.firstStart), max(last, k.lastEnd)
		}
	}
	if last >= first {
		s.SpanNS = last - first
	}
	for _, c := range y.classes {
		s.Classes = append(s.Classes, *c)
	}
	slices.SortFunc(s.Classes, func(a, b ClassSummary) int {
		return cmp.Or(cmp.Compare(b.NS, a.NS), cmp.Compare(a.Class, b.Class))
	})
	for _, n := range y.unknown {
		s.Unclassified = append(s.Unclassified, *n)
	}
	slices.SortFunc(s.Unclassified, func(a, b NameSummary) int {
		return cmp.Or(cmp.Compare(b.NS, a.NS), cmp.Compare(a.Kernel, b.Kernel))
	})
	return s
}
