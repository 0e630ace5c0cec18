package telemetry

import (
	"sync"
	"sync/atomic"
	"time"
)

// Every is how often a [Sampler] reads, and EveryFirst while it is younger than Young: a
// job may be over after a second.
const (
	Every      = 250 * time.Millisecond
	EveryFirst = 25 * time.Millisecond
	Young      = 2 * time.Second
)

// kept is how many readings a sampler has: those of the last minute.
const kept = int(time.Minute/Every + Young/EveryFirst)

// Sampler reads again and again, in a goroutine of its own.
type Sampler struct {
	gpu    func() *GPU // nil: there is none
	latest atomic.Pointer[Reading]
	first  Reading
	quit   chan struct{}
	done   sync.WaitGroup

	mu   sync.Mutex
	past []Reading // the last, in order
}

// Start begins to read. gpu is called by one goroutine at a time, and may return nil.
func Start(gpu func() *GPU) *Sampler {
	s := &Sampler{gpu: gpu, quit: make(chan struct{})}
	s.first = s.Read()
	s.done.Go(func() {
		tick := time.NewTicker(EveryFirst)
		defer tick.Stop()
		for young := true; ; {
			select {
			case <-tick.C:
				if r := s.Read(); young && r.At.Sub(s.first.At) > Young {
					young = false
					tick.Reset(Every)
				}
			case <-s.quit:
				return
			}
		}
	})
	return s
}

// Read takes a reading now.
func (s *Sampler) Read() Reading {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := Reading{At: time.Now(), Host: readHost()}
	if s.gpu != nil {
		r.GPU = s.gpu()
	}
	if s.past = append(s.past, r); len(s.past) > kept {
		s.past = append(s.past[:0], s.past[len(s.past)-kept:]...)
	}
	s.latest.Store(&r)
	return r
}

// First is the reading that the sampler began with; Latest the last one so far.
func (s *Sampler) First() Reading   { return s.first }
func (s *Sampler) Latest() *Reading { return s.latest.Load() }

// Since says what the time from a moment until now was like, from the last reading
// before that moment on, or the oldest that is left.
func (s *Sampler) Since(at time.Time) Conditions {
	now := s.Read()
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.past[0]
	for _, r := range s.past {
		if r.At.After(at) {
			break
		}
		from = r
	}
	return Between(from, now)
}

// Close ends the reading.
func (s *Sampler) Close() {
	close(s.quit)
	s.done.Wait()
}
