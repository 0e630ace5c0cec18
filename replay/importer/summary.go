package importer

import (
	"fmt"
	"io"
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
	Ranks    []RankSummary
	UnionNS  int64 // time in which any device was busy
	SpanNS   int64 // first start to last end of device rows, of all ranks
	Classes  []ClassSummary
	Findings []datasets.Finding

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

// Stubs writes a rule for each unclassified kernel, ready to be put into the
// table of rules.
func (s *Summary) Stubs(w io.Writer) error {
	for _, n := range s.Unclassified {
		_, err := fmt.Fprintf(w, "\t{`%s`, \"\", []string{%q}}, // %d ns in %d launches\n", stubPattern(n.Kernel), brief(n.Kernel), n.NS, n.Rows)
		if err != nil {
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

func (s *Summary) finish(classes map[string]*ClassSummary, unknown map[uint32]*NameSummary) {
	for _, c := range classes {
		s.Classes = append(s.Classes, *c)
	}
	slices.SortFunc(s.Classes, func(a, b ClassSummary) int {
		if a.NS != b.NS {
			return compare(b.NS, a.NS)
		}
		return strings.Compare(a.Class, b.Class)
	})
	for _, n := range unknown {
		s.Unclassified = append(s.Unclassified, *n)
	}
	slices.SortFunc(s.Unclassified, func(a, b NameSummary) int {
		if a.NS != b.NS {
			return compare(b.NS, a.NS)
		}
		return strings.Compare(a.Kernel, b.Kernel)
	})
}
