package importer

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"glmbatch/datasets"
	"glmbatch/replay/attribute"
	"glmbatch/replay/timeline"
)

// The causes of idle time, found by another road: a moment is looked at alone, and
// asked of all events what the device does then and what it will do next.
type moments struct {
	device, launches, calls, overhead []datasets.Span // by start
}

func momentsOf(rows []datasets.Span, rank int32) *moments {
	m := &moments{}
	for _, r := range rows {
		switch {
		case r.Rank != rank:
		case !timeline.IsHost(r.Lane):
			m.device = append(m.device, r)
		case r.Evidence == timeline.RoleOverhead:
			m.overhead = append(m.overhead, r)
		case r.Evidence == timeline.RoleLaunch || r.Evidence == timeline.RoleSync || r.Evidence == timeline.RoleAPI:
			m.calls = append(m.calls, r)
			if r.Correlation > 0 {
				m.launches = append(m.launches, r)
			}
		}
	}
	return m
}

// launch is the earliest call of a correlation.
func (m *moments) launch(correlation int64) *datasets.Span {
	i := slices.IndexFunc(m.launches, func(l datasets.Span) bool { return l.Correlation == correlation })
	if correlation <= 0 || i < 0 {
		return nil
	}
	return &m.launches[i]
}

// waits reports whether a call waits for the device.
func (m *moments) waits(c *datasets.Span) bool {
	if c.Evidence == timeline.RoleSync {
		return true
	}
	l := m.launch(c.Correlation)
	return l != nil && *l == *c && slices.ContainsFunc(m.device, func(d datasets.Span) bool {
		return d.Correlation == c.Correlation && strings.HasPrefix(d.Class, "memcpy") &&
			(c.EndNS >= d.EndNS && c.StartNS <= d.StartNS || strings.Contains(c.Kernel, "emcpy") &&
				!strings.Contains(c.Kernel, "Async"))
	})
}

// held reports whether a launch stands behind a call that makes a stream wait for an
// event, with no launch between.
func (m *moments) held(l *datasets.Span) bool {
	before := ""
	for i := range m.calls {
		c := &m.calls[i]
		if c.StartNS >= l.StartNS {
			break
		}
		if c.Lane == l.Lane && (c.Evidence == timeline.RoleLaunch || strings.Contains(c.Kernel, "StreamWaitEvent")) {
			before = c.Kernel
		}
	}
	return strings.Contains(before, "StreamWaitEvent")
}

func holds(r *datasets.Span, at int64) bool { return r.StartNS <= at && at < r.EndNS }

// cause says what the device waits for at a moment; "": it works.
func (m *moments) cause(at int64) string {
	began, next := int64(math.MinInt64), int64(math.MaxInt64)
	for i := range m.device {
		d := &m.device[i]
		if holds(d, at) {
			return ""
		}
		if d.StartNS > at {
			next = min(next, d.StartNS)
		} else {
			began = max(began, d.EndNS)
		}
	}
	for i := range m.overhead {
		if holds(&m.overhead[i], at) {
			return "profiler"
		}
	}
	waiting := func(lane string) bool {
		return slices.ContainsFunc(m.calls, func(c datasets.Span) bool {
			return c.Lane == lane && holds(&c, at) &&
				m.waits(&c)
		})
	}
	var ender, by *datasets.Span
	for i := range m.device {
		d := &m.device[i]
		if d.EndNS == began && d.StartNS <= at && by == nil { // the first of those that end last
			by = d
		}
		if d.StartNS != next {
			continue
		}
		l := m.launch(d.Correlation)
		if ender == nil || l != nil && (m.launch(ender.Correlation) == nil ||
			l.EndNS < m.launch(ender.Correlation).EndNS) {
			ender = d
		}
	}
	if ender == nil { // nothing more comes
		l := m.launch(by.Correlation)
		switch {
		case l == nil:
			return "unknown"
		case waiting(l.Lane):
			return "wait"
		}
		return "host"
	}
	l := m.launch(ender.Correlation)
	launched := int64(math.MinInt64)
	if l != nil {
		launched = l.EndNS
		if at < launched {
			if waiting(l.Lane) {
				return "wait"
			}
			return "launch"
		}
	} else if by == nil || ender.Correlation <= 0 || by.Correlation != ender.Correlation {
		return "unknown"
	}
	if l != nil && launched <= began && m.held(l) {
		return "dependency"
	}
	free := int64(math.MinInt64)
	for i := range m.device {
		if d := &m.device[i]; d.Lane == ender.Lane && d.StartNS <= at {
			free = max(free, d.EndNS)
		}
	}
	if by != nil && by.Lane != ender.Lane && launched < began && free < began {
		return "dependency"
	}
	return "queue"
}

type failer interface {
	Helper()
	Errorf(string, ...any)
}

// checkIdle compares the periods of an import, and the ledgers made of them, with
// what the moments say. A trace may hold no more than a few thousand events.
func checkIdle(t failer, s *Summary, rows []datasets.Span) {
	t.Helper()
	type place struct {
		step  int64
		rank  int32
		cause string
	}
	diff := map[place]int64{} // what the moments say less what the import says
	wall := map[place]int64{}
	for _, rank := range s.Ranks {
		m := momentsOf(rows, rank.Rank)
		var bounds []int64
		for _, list := range [][]datasets.Span{m.device, m.calls, m.overhead} {
			for _, r := range list {
				bounds = append(bounds, r.StartNS, r.EndNS)
			}
		}
		lo, hi := m.device[0].StartNS, int64(math.MinInt64)
		for _, d := range m.device {
			hi = max(hi, d.EndNS)
		}
		for _, p := range s.Periods {
			if p.Rank != rank.Rank {
				continue
			}
			for cause, ns := range p.Idle {
				diff[place{p.Step, p.Rank, cause}] -= ns
			}
			if p.Step >= 0 {
				lo, hi = min(lo, p.Start), max(hi, p.End)
				bounds = append(bounds, p.Start, p.End)
				wall[place{p.Step, p.Rank, ""}] = p.End - p.Start
			}
		}
		slices.Sort(bounds)
		bounds = slices.Compact(bounds)
		for i, at := range bounds[:len(bounds)-1] {
			c := ""
			if at >= lo && at < hi {
				c = m.cause(at)
			}
			if c == "" {
				continue
			}
			between := true
			for _, p := range s.Periods {
				if p.Rank == rank.Rank && p.Start <= at && at < p.End {
					diff[place{p.Step, p.Rank, c}] += bounds[i+1] - at
					between = false
				}
			}
			if between {
				diff[place{-1, rank.Rank, c}] += bounds[i+1] - at
			}
		}
	}
	for k, ns := range diff {
		if ns != 0 {
			t.Errorf("step %d, rank %d: idle by %s is %d ns too little", k.step, k.rank, k.cause, ns)
		}
	}
	var names datasets.Names
	steps := timeline.Events(rows, &names)
	a := attribute.New(&names, attribute.Options{Periods: s.Periods})
	for step, events := range steps {
		for _, l := range a.Step(step, events) {
			if w := wall[place{step, l.Rank, ""}]; l.Wall != w || sumOf(&l) != w {
				t.Errorf("step %d, rank %d: wall %d, sum %d, want %d", step, l.Rank, l.Wall, sumOf(&l), w)
			}
			i := slices.IndexFunc(s.Periods, func(p datasets.Period) bool { return p.Step == step && p.Rank == l.Rank })
			idle := s.Periods[i].Idle
			for cause, e := range map[string]attribute.Entry{"profiler": attribute.Profiler, "launch": attribute.Launch,
				"wait":       attribute.Wait,
				"dependency": attribute.Dependency, "queue": attribute.Queue, "host": attribute.Host,
				"unknown": attribute.Unexplained} {
				if l.Other[e] != idle[cause] {
					t.Errorf("step %d, rank %d: %d ns of %s in the ledger, want %d", step, l.Rank, l.Other[e], cause,
						idle[cause])
				}
			}
		}
	}
}

// randomTrace is a host that launches on three streams, waits, copies and runs
// ahead, in steps or not.
func randomTrace(t *rapid.T) *traceText {
	tt := &traceText{}
	now, correlation := int64(5000), int64(0)
	free := [3]int64{}
	short := rapid.Int64Range(0, 40)
	annotated := rapid.Bool().Draw(t, "annotated")
	for step := range rapid.IntRange(1, 4).Draw(t, "steps") {
		from := now
		for range rapid.IntRange(1, 6).Draw(t, "ops") {
			now += short.Draw(t, "pause")
			length := 1 + short.Draw(t, "length")
			stream := rapid.IntRange(0, 2).Draw(t, "stream")
			kernel := func(cat string, least int64) (end int64) {
				start := max(now, free[stream], least) + short.Draw(t, "queue")
				end = start + 1 + 2*short.Draw(t, "work")
				free[stream] = end
				tt.raw(fmt.Sprintf(`{"ph": "X", "cat": "%s", "name": "Memcpy DtoH", "pid": 0, "tid": %d, "ts": %s, "dur": %s, "args": {"device": 0, "stream": %d, "correlation": %d, "bytes": 8}}`,
					cat, stream, micros(start), micros(end-start), stream, correlation))
				return end
			}
			switch rapid.SampledFrom([]string{"launch", "launch", "launch", "graph", "copy", "sync", "lost", "overhead",
				"event"}).Draw(t, "op") {
			case "launch":
				correlation++
				tt.launch("cudaLaunchKernel", now, length, correlation)
				kernel("kernel", 0)
			case "graph":
				correlation++
				tt.launch("cudaGraphLaunch", now, length, correlation)
				for range 3 {
					stream = (stream + 1) % 3
					kernel("kernel", 0)
				}
			case "copy":
				correlation++
				end := kernel("gpu_memcpy", 0)
				length = max(length, end-now)
				tt.launch("hipMemcpyWithStream", now, length, correlation)
			case "sync":
				length = max(length, free[stream]-now)
				tt.launch("cudaStreamSynchronize", now, length, 0)
			case "event":
				tt.launch(rapid.SampledFrom([]string{"cudaStreamWaitEvent", "hipStreamWaitEvent"}).Draw(t, "wait"), now,
					length, 0)
			case "lost":
				correlation++
				kernel("kernel", 0)
			case "overhead":
				tt.raw(fmt.Sprintf(`{"ph": "X", "cat": "overhead", "name": "flush", "pid": 9, "tid": 9, "ts": %s, "dur": %s, "args": {}}`, micros(now), micros(length)))
			}
			now += length
		}
		now += short.Draw(t, "tail")
		if annotated {
			tt.step(fmt.Sprintf("ProfilerStep#%d", step), from, max(1, now-from))
		}
	}
	return tt
}

func TestIdleOfRandomTraces(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		tt := randomTrace(t)
		sum, rows, err := importText(dir, tt.String())
		if err != nil {
			t.Skip(err)
		}
		checkIdle(t, sum, rows)
	})
}

func TestIdleOfRealTraces(t *testing.T) {
	for _, name := range []string{"cast-graph", "fused-graph", "cast-eager"} {
		t.Run(name, func(t *testing.T) {
			s, rows := importTorch(t, Options{}, "testdata/"+name+".json.gz")
			checkIdle(t, s, rows)
		})
	}
}

// TestIdleOfPublicTraces has figures that were also computed from the files by a
// program that shares nothing with this one.
func TestIdleOfPublicTraces(t *testing.T) {
	for _, c := range []struct {
		file                  string
		idle, launch, unknown int64 // launch with what the host waited
	}{
		{"torch-h100-eager-casts.json.gz", 4005532, 1491239, 727643},
		{"torch-mi300-vllm-decode-graph.json.gz", 25473, 0, 0},
		{"torch-b200-tp8-rank0-vllm-mxfp4.json.gz", 75816381, 71357567, 0},
		{"torch-a100-rank0-sampled.json.gz", 682633000, 286002000, 0},
		{"torch-a100-rank1-sampled.json.gz", 658543000, 324463000, 0},
		{"nsys-2xh100.sqlite", 13005231, 3347659, 3753929},
	} {
		t.Run(c.file, func(t *testing.T) {
			var s *Summary
			var rows []datasets.Span
			if strings.HasSuffix(c.file, ".sqlite") {
				s, rows = importNsys(t, public(t, c.file))
			} else {
				s, rows = importTorch(t, Options{}, public(t, c.file))
			}
			checkIdle(t, s, rows)
			all, of := int64(0), map[string]int64{}
			for _, p := range s.Periods {
				for cause, ns := range p.Idle {
					all, of[cause] = all+ns, of[cause]+ns
				}
			}
			if all != c.idle || of["launch"]+of["wait"] != c.launch || of["unknown"] != c.unknown {
				t.Errorf("idle %d, launch %d, unknown %d; want %d, %d, %d", all, of["launch"]+of["wait"], of["unknown"],
					c.idle, c.launch, c.unknown)
			}
		})
	}
}

// importText imports one trace from its text.
func importText(dir, text string) (s *Summary, rows []datasets.Span, err error) {
	path := filepath.Join(dir, "trace.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return nil, nil, err
	}
	s, err = Torch([]string{path}, Options{}, func(r []datasets.Span) error {
		rows = append(rows, r...)
		return nil
	})
	return s, rows, err
}

// TestEventWaits holds that work which was launched behind a wait for an event is held
// by that, and that work launched without one merely queues.
func TestEventWaits(t *testing.T) {
	for _, c := range []struct {
		call  string
		cause string
	}{{"cudaStreamWaitEvent", "dependency"}, {"hipStreamWaitEvent", "dependency"}, {"cuStreamWaitEvent", "dependency"},
		{"cudaEventRecord", "queue"}} {
		tt := &traceText{}
		tt.launch("cudaLaunchKernel", 100*us, 5*us, 1)
		tt.launch(c.call, 106*us, 2*us, 0)
		tt.launch("cudaLaunchKernel", 110*us, 5*us, 2)
		tt.kernel("nvjet_tst_64x8", 120*us, 100*us, 7, 1)
		tt.kernel("nvjet_tst_64x8", 400*us, 100*us, 7, 2)
		sum, rows, err := importText(t.TempDir(), tt.String())
		if err != nil {
			t.Fatal(err)
		}
		checkIdle(t, sum, rows)
		if got := sum.Periods[1].Idle[c.cause]; got != 180*us {
			t.Errorf("%s: %d ns of %s, want %d: %+v", c.call, got, c.cause, 180*us, sum.Periods)
		}
	}
}

// TestHostRunsAhead holds that a step lasts as long as its work where the host is
// steps ahead, and that nothing is then called idle.
func TestHostRunsAhead(t *testing.T) {
	tt := &traceText{}
	const steps, kernels, work = 6, 50, 60 * us
	start := int64(1010 * us)
	for i := range int64(steps) {
		from := 1000*us + i*1000*us
		tt.step(fmt.Sprintf("ProfilerStep#%d", i), from, 990*us)
		for k := range int64(kernels) {
			tt.launch("cudaLaunchKernel", from+2*us+k*19*us, 5*us, 1+i*kernels+k)
			tt.kernel("nvjet_tst_64x8", start, work, 7, 1+i*kernels+k)
			start += work
		}
	}
	sum, rows, err := importText(t.TempDir(), tt.String())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range sum.Periods {
		if len(p.Idle) > 0 || p.Step >= 0 && p.End-p.Start != kernels*work {
			t.Errorf("%+v", p)
		}
	}
	checkIdle(t, sum, rows)
}

// sumOf adds up all entries of a ledger.
func sumOf(l *attribute.Ledger) int64 {
	var ns int64
	for _, v := range l.Self {
		ns += v
	}
	for _, v := range l.Other {
		ns += v
	}
	return ns
}
