package attribute

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"glmbatch/datasets"
	"glmbatch/replay/timeline"
)

// span is a row for tests: "class", or "host", "step", "launch" on a host lane.
func span(rank int32, lane, class string, start, end int64) datasets.Span {
	s := datasets.Span{Rank: rank, Lane: lane, Kernel: class, Class: class, Call: -1, Layer: -1, StartNS: start,
		EndNS: end}
	if timeline.IsHost(lane) {
		s.Class = timeline.ClassHost
		if class == "step" || class == "launch" {
			s.Evidence = class
		}
	}
	return s
}

func correlated(s datasets.Span, id int64) datasets.Span { s.Correlation = id; return s }

// attribute runs rows of step 0 and returns the ledgers and the only section.
func attribute(rows []datasets.Span, opt Options) ([]Ledger, Section, *Attribution) {
	var names datasets.Names
	steps := timeline.Events(rows, &names)
	a := New(&names, opt)
	ledgers := a.Step(0, steps[0])
	if s := a.Sections(); len(s) > 0 {
		return ledgers, s[0], a
	}
	return ledgers, Section{}, a
}

// entries is a section's ledger without its zeros.
func entries(s Section) map[string]int64 {
	m := map[string]int64{}
	for _, a := range s.Ledger {
		if a.NS != 0 {
			m[a.Name] += a.NS
		}
	}
	return m
}

func TestKnownAnswers(t *testing.T) {
	for _, c := range []struct {
		name string
		rows []datasets.Span
		want map[string]int64
	}{
		{"one after the other, with a launch gap and host phases", []datasets.Span{
			span(-1, "host", "step", 0, 1000), span(-1, "host", "schedule", 0, 90), span(-1, "host", "sample", 900,
				1000),
			span(0, "device", "norm", 100, 300), span(0, "device", "attn", 305, 900),
		}, map[string]int64{"norm": 200, "attn": 595, "gap.host": 190, "gap.launch": 5, "unexplained": 10}},
		{"two streams overlap", []datasets.Span{
			span(0, "stream 7", "attn", 0, 100), span(0, "stream 8", "gemm", 60, 150),
		}, map[string]int64{"attn": 60, "overlap": 40, "gemm": 50}},
		{"programmatic launch overlaps on one stream", []datasets.Span{
			span(0, "stream 7", "norm", 0, 100), span(0, "stream 7", "gemm", 90, 200), span(0, "stream 7", "gemm", 195,
				300),
		}, map[string]int64{"norm": 90, "overlap": 10, "gemm": 200}},
		{"one inside another", []datasets.Span{
			span(0, "stream 7", "attn", 0, 100), span(0, "stream 8", "copy", 20, 30),
		}, map[string]int64{"attn": 90, "overlap": 10}},
		{"a rank that is done waits for its peer", []datasets.Span{
			span(-1, "host", "step", 0, 500), span(0, "device", "gemm", 0, 200), span(1, "device", "gemm", 0, 500),
		}, map[string]int64{"gemm": 700, "gap.peers": 300}},
		{"kernels that are launched late", []datasets.Span{
			correlated(span(0, "host 9", "launch", 0, 50), 1), correlated(span(0, "host 9", "launch", 400_000, 400_050),
				2),
			correlated(span(0, "stream 7", "gemm", 60, 100), 1), correlated(span(0, "stream 7", "gemm", 400_060,
				400_100), 2),
		}, map[string]int64{"gemm": 80, "gap.launch": 399_950, "gap.queue": 10}},
		{"a long pause without a reason", []datasets.Span{
			span(0, "device", "gemm", 0, 100), span(0, "device", "gemm", 500_000, 500_100),
		}, map[string]int64{"gemm": 200, "unexplained": 499_900}},
		{"a launched kernel that waits on the device", []datasets.Span{
			correlated(span(0, "host 9", "launch", 0, 10), 1), correlated(span(0, "stream 7", "gemm", 20, 100), 1),
			correlated(span(0, "stream 7", "gemm", 600_000, 600_100), 1),
		}, map[string]int64{"gemm": 180, "gap.queue": 599_900}},
		{"device work after its envelope is the step's", []datasets.Span{
			span(0, "host step", "step", 0, 50), span(0, "stream 7", "gemm", 40, 300),
		}, map[string]int64{"gemm": 260, "unexplained": 40}},
		{"goroutines beside the step explain nothing", []datasets.Span{
			span(-1, "host", "step", 0, 100), span(-1, "host.read", "read", 0, 100), span(0, "device", "gemm", 50, 100),
		}, map[string]int64{"gemm": 50, "unexplained": 50}},
		{"a span that ends before it starts is left out", []datasets.Span{
			span(0, "device", "gemm", 0, 100), span(0, "device", "attn", 90, 20),
		}, map[string]int64{"gemm": 100}},
		{"empty spans take no time", []datasets.Span{
			span(0, "device", "gemm", 0, 100), span(0, "device", "attn", 50, 50),
		}, map[string]int64{"gemm": 100}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, s, _ := attribute(c.rows, Options{})
			if d := cmp.Diff(c.want, entries(s)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestSkewKnownAnswer(t *testing.T) {
	rows := []datasets.Span{
		span(0, "device", "comm", 100, 200), span(1, "device", "comm", 160, 200), span(2, "device", "comm", 130, 200),
		span(0, "device", "comm", 300, 340), span(1, "device", "comm", 310, 340), span(2, "device", "comm", 310, 350),
	}
	_, s, _ := attribute(rows, Options{})
	want := Comm{Waiting: 60 + 0 + 30 + 10, Transfer: 40 + 40 + 40 + 30 + 30 + 40, Ranks: []Skew{
		{Rank: 0, Collectives: 2, Waiting: 70}, {Rank: 1, Collectives: 2, Lag: 70, Last: 2}, {Rank: 2, Collectives: 2,
			Waiting: 30, Lag: 40},
	}}
	if d := cmp.Diff(want, s.Comm); d != "" {
		t.Error(d)
	}
	if total := class(s, "comm").Total; total != s.Comm.Waiting+s.Comm.Transfer {
		t.Errorf("waiting and transfer are %d of %d ns", s.Comm.Waiting+s.Comm.Transfer, total)
	}
	_, s, a := attribute(rows[:5], Options{})
	if s.Comm.Waiting != 0 || s.Comm.Unsplit == 0 || len(a.Warnings()) == 0 {
		t.Errorf("collectives that do not pair were split: %+v, %v", s.Comm, a.Warnings())
	}
}

func class(s Section, name string) Row {
	for _, r := range s.Classes {
		if r.Class == name {
			return r
		}
	}
	return Row{}
}

func TestMissingRankIsNamed(t *testing.T) {
	var names datasets.Names
	a := New(&names, Options{})
	for step := range int64(3) {
		rows := []datasets.Span{span(0, "device", "gemm", 0, 100), span(1, "device", "gemm", 0, 100)}
		if step == 1 {
			rows = rows[:1]
		}
		a.Step(step, timeline.Events(rows, &names)[0])
	}
	want := []string{"rank 1 has spans in 2 of 3 step steps"}
	if d := cmp.Diff(want, a.Warnings()); d != "" {
		t.Error(d)
	}
	if s := a.Sections()[0]; s.Wall != 500 || s.RankSteps != 5 || s.Ranks != 2 {
		t.Errorf("wall %d over %d pairs of %d ranks", s.Wall, s.RankSteps, s.Ranks)
	}
}

func drawRow(t *rapid.T) datasets.Span {
	s := span(rapid.Int32Range(-1, 3).Draw(t, "rank"),
		rapid.SampledFrom([]string{"device", "stream 7", "stream 8", "host", "host 9", "host.read"}).Draw(t, "lane"),
		rapid.SampledFrom([]string{"gemm", "attn", "comm", "comm.ar", "step", "launch"}).Draw(t, "class"),
		rapid.Int64Range(-200, 300).Draw(t, "start"), rapid.Int64Range(-200, 300).Draw(t, "end"))
	s.Correlation = rapid.Int64Range(0, 5).Draw(t, "correlation")
	s.Layer = rapid.Int32Range(-1, 2).Draw(t, "layer")
	return s
}

// The ledger closes on anything: overlap, nesting, empty, backward and far-off
// spans, ranks that lack rows; and the totals of the section are its ledgers'.
func TestLedgerCloses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(rapid.Custom(drawRow), 0, 30).Draw(t, "rows")
		by := rapid.SampledFrom(groupings).Draw(t, "by")
		gap := rapid.SampledFrom([]int64{0, 10, 50}).Draw(t, "launch gap")
		ledgers, s, _ := attribute(rows, Options{By: by, LaunchGap: gap})
		var wall, spans, calls int64
		for i := range ledgers {
			l := &ledgers[i]
			if sumOf(l) != l.Wall {
				t.Fatalf("rank %d: entries add up to %d of %d ns", l.Rank, sumOf(l), l.Wall)
			}
			for _, v := range append(l.Self, l.Other[:]...) {
				if v < 0 {
					t.Fatalf("rank %d has a negative entry: %+v", l.Rank, l)
				}
			}
			wall += l.Wall
			spans += l.Span
		}
		var sum int64
		for _, a := range s.Ledger {
			sum += a.NS
		}
		if sum != s.Wall || s.Wall != wall || s.Span != spans {
			t.Fatalf("section: ledger %d, wall %d, ledgers' walls %d", sum, s.Wall, wall)
		}
		for _, r := range rows {
			if !timeline.IsHost(r.Lane) && r.EndNS >= r.StartNS {
				calls++
			}
		}
		for _, list := range [][]Row{s.Classes, s.Rows} {
			n := calls
			for _, r := range list {
				n -= r.Calls
				if r.Self > r.Total {
					t.Fatalf("%s: self %d above the total %d", r.Label, r.Self, r.Total)
				}
			}
			if n != 0 {
				t.Fatalf("%d calls are missing", n)
			}
		}
	})
}

// Self time is what a look at every tick finds.
func TestSelfByTick(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(rapid.Custom(drawRow), 1, 12).Draw(t, "rows")
		_, s, _ := attribute(rows, Options{})
		want := map[string]int64{}
		for tick := int64(-200); tick < 300; tick++ {
			for rank := int32(-1); rank <= 3; rank++ {
				running := map[string]bool{}
				for _, r := range rows {
					if !timeline.IsHost(r.Lane) && r.Rank == rank && r.StartNS <= tick && tick < r.EndNS {
						running[r.Class] = true
					}
				}
				for class := range running {
					if len(running) == 1 {
						want[class]++
					}
				}
				if len(running) > 1 {
					want["overlap"]++
				}
			}
		}
		got := entries(s)
		for _, name := range []string{"gemm", "attn", "comm", "comm.ar", "step", "launch", "overlap"} {
			if got[name] != want[name] {
				t.Fatalf("%s: %d ns, want %d", name, got[name], want[name])
			}
		}
	})
}

// Adding rows of a host never changes what the devices did.
func TestHostRowsOnlyTypeGaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(rapid.Custom(drawRow), 1, 20).Draw(t, "rows")
		var device []datasets.Span
		for _, r := range rows {
			if !timeline.IsHost(r.Lane) {
				device = append(device, r)
			}
		}
		_, with, _ := attribute(rows, Options{})
		_, without, _ := attribute(device, Options{})
		if with.Span != without.Span {
			t.Fatalf("device span %d, without host rows %d", with.Span, without.Span)
		}
		for i, r := range without.Classes {
			if with.Classes[i].Self != r.Self || with.Classes[i].Label != r.Label {
				t.Fatalf("%s: self %d, without host rows %d", r.Label, with.Classes[i].Self, r.Self)
			}
		}
	})
}

// sumOf adds up all entries of a ledger.
func sumOf(l *Ledger) int64 {
	var ns int64
	for _, v := range l.Self {
		ns += v
	}
	for _, v := range l.Other {
		ns += v
	}
	return ns
}
