package pipeline

import (
	"path/filepath"
	"time"

	"glmbatch/datasets"
	"glmbatch/pipeline/journal"
)

// recovery is the journal of a job and what it had of rows that no part has yet.
type recovery struct {
	journal *journal.Journal
	found   journal.Found
	places  rowPlaces             // of complete rows: the position of their last record
	done    rowPlaces             // of complete rows: their identity. It does not change any more
	tally   tally                 // of complete rows, but for what answers are compared with
	twice   []int64               // places of rows that are complete again, as another request
	partial map[int64]*partialRow // rows of which samples are missing
	samples map[int64][]*saved    // of them, what is there

	attempts map[int64]*attempts // of rows that are not complete
	failed   map[int64]*saved    // complete rows whose error may pass
}

// partialRow is a row of which the journal has some samples.
type partialRow struct {
	last     int64 // position of its last record
	identity uint64
	indexes  map[int]bool // nil: nobody asks
}

// recoverJournal opens the journal of a folder. Rows before from are in parts.
func recoverJournal(dir, runID string, from int64) (*recovery, error) {
	r := newRecovery()
	var err error
	r.journal, r.found, err = journal.Open(filepath.Join(dir, datasets.JournalDir), runID,
		journal.Options{}, r.take(from))
	for _, at := range r.twice {
		if err == nil {
			err = r.forget(at, &r.tally)
		}
	}
	r.twice = nil
	if err == nil {
		err = r.blameCrash(filepath.Join(dir, datasets.JournalDir))
	}
	return r, err
}

// suspects are the rows that run alone, and those that have an error instead.
func (r *recovery) suspects() (alone, failed int) {
	for _, a := range r.attempts {
		if a.n < mostAttempts {
			alone++
		} else {
			failed++
		}
	}
	return alone, failed
}

// lookJournal is what the journal of a folder has, which another process may be writing.
func lookJournal(dir, runID string, from int64) (*recovery, error) {
	r := newRecovery()
	return r, journal.Look(filepath.Join(dir, datasets.JournalDir), runID, r.take(from))
}

func newRecovery() *recovery {
	return &recovery{partial: map[int64]*partialRow{}, samples: map[int64][]*saved{}, attempts: map[int64]*attempts{},
		failed: map[int64]*saved{}}
}

// take returns what takes the journal's records.
func (r *recovery) take(from int64) func(journal.Record) error {
	return func(rec journal.Record) error {
		if rec.Key < from {
			return nil
		}
		s, err := parseSaved(rec.Data)
		if err == nil {
			r.add(rec.Key, rec.At, s)
		}
		return err
	}
}

func (r *recovery) add(row, at int64, s *saved) {
	switch s.kind {
	case savedAttempt:
		r.tried(row, s.before, s)
		return
	case savedRetry:
		r.again(row, s)
		return
	}
	p := r.partial[row]
	if !s.answer() || s.of == 1 {
		if p != nil {
			r.drop(row)
		}
		if s.kind == savedBad {
			at, s.identity = noPlace, badIdentity
		}
		r.complete(row, at, s.identity, []*saved{s})
		return
	}
	if p == nil || p.identity != s.identity {
		p = &partialRow{identity: s.identity, indexes: map[int]bool{}}
		r.partial[row], r.samples[row] = p, nil
	}
	p.last = at
	if !p.indexes[s.index] {
		p.indexes[s.index] = true
		r.samples[row] = append(r.samples[row], s)
	}
	if len(p.indexes) == s.of {
		all := r.samples[row]
		r.drop(row)
		r.complete(row, at, s.identity, all)
	}
}

func (r *recovery) complete(row, at int64, identity uint64, of []*saved) {
	if old := r.places.get(row); old > 0 {
		r.twice = append(r.twice, old)
	}
	r.tally.saved(of)
	delete(r.attempts, row)
	delete(r.failed, row)
	if len(of) == 1 && of[0].kind == savedError && mayPass(of[0].code) {
		r.failed[row] = of[0]
	}
	r.places.set(row, at)
	r.done.set(row, int64(identity))
}

// again takes a row that has an error for one that was not run.
func (r *recovery) again(row int64, s *saved) {
	delete(r.attempts, row)
	if r.places.get(row) == 0 {
		return
	}
	var was tally
	was.saved([]*saved{{kind: savedError, given: s.given, cut: s.cut, code: s.code}})
	r.tally.subtract(&was)
	r.places.set(row, 0)
	r.done.set(row, 0)
	delete(r.failed, row)
}

// forget takes a row whose last record is at a place out of t.
func (r *recovery) forget(place int64, t *tally) error {
	var all []*saved
	for at := place; at > 0; {
		data, err := r.journal.Read(at)
		if err != nil {
			return err
		}
		s, err := parseSaved(data)
		if err != nil {
			return err
		}
		if at = s.before; len(all) == 0 || s.identity == all[0].identity {
			all = append(all, s)
		}
	}
	if len(all) > 0 {
		var was tally
		was.saved(all)
		t.subtract(&was)
	}
	return nil
}

func (r *recovery) drop(row int64) {
	delete(r.partial, row)
	delete(r.samples, row)
}

// has reports whether a row that was prepared is complete in the journal.
func (r *recovery) has(w *row) bool {
	identity := w.identity
	if identity == 0 {
		identity = badIdentity
	}
	done := r.done.get(w.record.Index)
	return done == int64(identity) || done == writtenIdentity
}

// syncEvery is how often the journal is flushed and synced: what a crash costs is
// never older than the interval.
func syncEvery(interval time.Duration) time.Duration { return max(interval/2, time.Millisecond) }
