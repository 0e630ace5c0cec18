package pipeline

import (
	"path/filepath"
	"time"

	"glmbatch/pipeline/journal"
)

// recovery is the journal of a job and what it had of rows that no part has yet.
type recovery struct {
	journal *journal.Journal
	found   journal.Found
	places  rowPlaces             // of complete rows: the position of their last record
	done    rowPlaces             // of complete rows: their identity. It does not change any more
	rows    int64                 // complete rows
	partial map[int64]*partialRow // rows of which samples are missing
	samples map[int64][]*saved    // of them, what is there
}

// partialRow is a row of which the journal has some samples.
type partialRow struct {
	last     int64 // position of its last record
	identity uint64
	indexes  map[int]bool // nil: nobody asks
}

// recover opens the journal of a folder. Rows before from are in parts.
func recoverJournal(dir, runID string, from int64) (*recovery, error) {
	r := &recovery{partial: map[int64]*partialRow{}, samples: map[int64][]*saved{}}
	var err error
	r.journal, r.found, err = journal.Open(filepath.Join(dir, JournalDir), runID, journal.Options{}, func(rec journal.Record) error {
		if rec.Key < from {
			return nil
		}
		s, err := parseSaved(rec.Data)
		if err != nil {
			return err
		}
		r.add(rec.Key, rec.At, s)
		return nil
	})
	return r, err
}

func (r *recovery) add(row, at int64, s *saved) {
	p := r.partial[row]
	if s.kind == savedError || s.of == 1 {
		if p != nil {
			r.drop(row)
		}
		r.complete(row, at, s.identity)
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
		r.drop(row)
		r.complete(row, at, s.identity)
	}
}

func (r *recovery) complete(row, at int64, identity uint64) {
	if r.places.get(row) == 0 {
		r.rows++
	}
	r.places.set(row, at)
	r.done.set(row, int64(identity))
}

func (r *recovery) drop(row int64) {
	delete(r.partial, row)
	delete(r.samples, row)
}

// has reports whether a row that was prepared is complete in the journal.
func (r *recovery) has(w *row) bool {
	return w.identity != 0 && r.done.get(w.record.Index) == int64(w.identity)
}

// syncEvery is how often the journal is flushed and synced: what a crash costs is
// never older than the interval.
func syncEvery(interval time.Duration) time.Duration { return max(interval/2, time.Millisecond) }
