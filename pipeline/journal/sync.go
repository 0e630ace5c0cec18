package journal

import (
	"os"
	"sync"
	"sync/atomic"
)

// syncer syncs files beside the goroutine that writes them.
type syncer struct {
	work chan syncWork
	end  sync.WaitGroup
	done atomic.Int64 // position up to which the disk keeps all

	mu  sync.Mutex
	err error
}

type syncWork struct {
	f    *os.File
	upTo int64
	last bool // the file is closed
}

func newSyncer(none bool) *syncer {
	s := &syncer{work: make(chan syncWork, 2)}
	s.end.Go(func() {
		for w := range s.work {
			var err error
			if !none {
				err = w.f.Sync()
			}
			if w.last {
				if cerr := w.f.Close(); err == nil {
					err = cerr
				}
			}
			if err == nil {
				s.done.Store(w.upTo)
				continue
			}
			s.mu.Lock()
			if s.err == nil {
				s.err = err
			}
			s.mu.Unlock()
		}
	})
	return s
}

// ask has a file synced, unless enough is asked already.
func (s *syncer) ask(f *os.File, upTo int64) {
	select {
	case s.work <- syncWork{f: f, upTo: upTo}:
	default:
	}
}

// retire has a file synced and closed.
func (s *syncer) retire(f *os.File, upTo int64) { s.work <- syncWork{f, upTo, true} }

func (s *syncer) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *syncer) close() {
	close(s.work)
	s.end.Wait()
}
