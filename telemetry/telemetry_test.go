package telemetry

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBetween(t *testing.T) {
	at := time.Unix(1e9, 0)
	a := Reading{At: at, Host: Host{CPUs: 4, Own: time.Second, All: 10 * time.Second},
		GPU: &GPU{Count: 1, Watts: 300, Joules: 5000, Clock: 1200, Throttle: []string{"power cap"}}}
	b := Reading{At: at.Add(2 * time.Second), Host: Host{CPUs: 4, Own: 2 * time.Second, All: 15 * time.Second},
		GPU: &GPU{Count: 1, Watts: 700, Joules: 6000, Clock: 1980, Celsius: 70}}
	c := Between(a, b)
	if c.Seconds != 2 || c.CPUs != 4 || c.Own != 0.5 || c.Others != 2 {
		t.Errorf("%+v", c)
	}
	if g := c.GPU; g == nil || g.Joules != 1000 || g.Watts != 500 || g.Clock != 1200 || g.Celsius != 70 ||
		!slices.Equal(g.Throttle, []string{"power cap"}) {
		t.Errorf("%+v", c.GPU)
	}
	b.GPU, b.Host = nil, Host{}
	if c := Between(a, b); c.GPU != nil || c.CPUs != 0 {
		t.Errorf("of what nobody knows: %+v", c)
	}
	if c := Between(b, b); c.Seconds != 0 || c.GPU != nil {
		t.Errorf("of no time: %+v", c)
	}
}

func TestJoin(t *testing.T) {
	var g GPU
	g.Join(GPU{Watts: 300, Joules: 10, Clock: 1980, MemoryClock: 3200, Celsius: 50, Memory: 5,
		Throttle: []string{"power cap"}})
	g.Join(GPU{Watts: 200, Joules: 20, Clock: 1500, MemoryClock: 3200, Celsius: 40, Memory: 6,
		Throttle: []string{"clock setting", "power cap"}})
	want := GPU{Count: 2, Watts: 500, Joules: 30, Clock: 1500, MemoryClock: 3200, Celsius: 50, Memory: 11,
		Throttle: []string{"clock setting", "power cap"}}
	if g.Watts != want.Watts || g.Joules != want.Joules || g.Clock != want.Clock || g.Celsius != want.Celsius ||
		g.Memory != want.Memory || g.Count != 2 || !slices.Equal(g.Throttle, want.Throttle) {
		t.Errorf("%+v, want %+v", g, want)
	}
}

// TestSampler: what the sampler says of a while is from before its beginning to its end.
func TestSampler(t *testing.T) {
	n := 0.0
	s := Start(func() *GPU {
		n += 100
		return &GPU{Count: 1, Joules: n, Clock: 1000}
	})
	t.Cleanup(s.Close) // when the lock below is free again
	for range 3 {
		s.Read()
	}
	c := s.Since(time.Now())
	if c.GPU == nil || c.GPU.Joules < 100 || s.Latest().GPU == nil {
		t.Errorf("%+v", c)
	}
	if all := s.Since(time.Time{}); all.GPU.Joules < 400 {
		t.Errorf("from the first reading on: %+v", all)
	}
	if runtime.GOOS == "linux" && s.Latest().Host.CPUs < 1 {
		t.Errorf("no CPUs: %+v", s.Latest())
	}
	for range 2 * kept {
		s.Read()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.past) > kept {
		t.Errorf("%d readings are kept", len(s.past))
	}
}

// BenchmarkReading is what a reading costs beside the work, without what the GPUs' driver
// takes, and what a step pays for having the last one.
func BenchmarkReading(b *testing.B) {
	s := Start(func() *GPU { return &GPU{Count: 1, Joules: 1} })
	defer s.Close()
	b.Run("beside", func(b *testing.B) {
		for b.Loop() {
			s.Read()
		}
		share := 100 * b.Elapsed().Seconds() / float64(b.N) / Every.Seconds()
		b.ReportMetric(share, "%-of-a-CPU")
	})
	b.Run("step", func(b *testing.B) {
		for b.Loop() {
			if s.Latest().GPU == nil {
				b.Fatal("there is none")
			}
		}
	})
}
