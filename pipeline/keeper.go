package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"glmbatch/datasets"
	"glmbatch/engine"
	"glmbatch/kernels"
	"glmbatch/pipeline/journal"
)

// finished is what ended since the last time: samples of rows with several, as soon
// as each is there, and rows of which all is there, in any order.
type finished struct {
	samples []*sample
	rows    []*row
	failed  []attempt // rows of a step that failed
}

// windowBytes bounds the rows in memory whose turn has not come, besides Options.Window.
const windowBytes = 256 << 20

var errChanged = fmt.Errorf("%w: it is not what it was when the row was run", ErrInput)

func (f *finished) empty() bool { return len(f.samples)+len(f.rows)+len(f.failed) == 0 }

// keeper saves what is finished at once, in the journal, and hands rows to the sink
// in input order. Rows whose turn has not come are held in memory as long as they are
// within the window; of those beyond it only their place in the journal is known, and
// they are read back from the input and the journal.
type keeper struct {
	o       *Options
	text    Text
	prep    *preparer
	in      *datasets.Input
	to      int64
	sink    *sink
	journal *journal.Journal
	saved   *recovery
	count   *Counts
	clock   *hostClock
	undone  map[int64]bool // rows of earlier runs that are not counted as theirs any more

	whole atomic.Bool // nothing more is missing when done is closed
	ring  []*row      // finished rows, from sink.at on, by index modulo its length
	bytes int         // of them
	again *datasets.Reader
	batch []datasets.Record
	rec   saved
	buf   []byte

	began int64   // the journal's end when this run began
	asked []asked // of syncs that are not done
}

// take saves what is finished and writes what is due.
func (k *keeper) take(f finished) error {
	defer k.clock.add(phaseWrite, kernels.Now())
	for _, s := range f.samples {
		if err := k.saveSample(s); err != nil {
			return err
		}
	}
	for _, a := range f.failed {
		k.rec = *a.saved()
		if _, err := k.append(a.row); err != nil {
			return err
		}
	}
	for _, r := range f.rows {
		place, err := k.saveRow(r)
		if err != nil {
			return err
		}
		if err := k.undo(r.record.Index); err != nil {
			return err
		}
		k.count.Rows.Add(1)
		var t tally
		t.row(r)
		k.count.add(&t)
		k.count.RunRows.Add(1)
		k.count.RunPrompt.Add(t.PromptTokens)
		k.count.RunCompletion.Add(t.CompletionTokens)
		k.hold(r, place)
	}
	return k.writeHeld()
}

// saveSample appends a sample of a row with several to the journal, behind the others.
func (k *keeper) saveSample(s *sample) error {
	if s.saved || s.reason == engine.Failed { // it would fail again
		return nil
	}
	row := s.row.record.Index
	p := k.saved.partial[row]
	if p == nil {
		p = &partialRow{}
		k.saved.partial[row] = p
	}
	at, err := k.appendSample(s, p.last)
	p.last = at
	return err
}

func (k *keeper) appendSample(s *sample, before int64) (int64, error) {
	r := s.row
	k.rec = saved{kind: savedSample, identity: r.identity, before: before, given: r.given(), cut: r.cut, index: s.index,
		of:     r.params.N,
		reason: s.reason, tokens: s.tokens, chosen: s.chosen, top: s.top, prompt: s.prompt, by: s.by}
	return k.append(r.record.Index)
}

// saveRow appends what the journal has not of a row, and returns its place.
func (k *keeper) saveRow(r *row) (place int64, err error) {
	row := r.record.Index
	var p *partialRow
	if len(k.saved.partial) > 0 {
		p = k.saved.partial[row]
		delete(k.saved.partial, row)
	}
	switch {
	case r.err != nil && r.identity == 0:
		k.rec = saved{kind: savedBad, cut: r.cut, code: r.err.code}
		_, err := k.append(row)
		return noPlace, err
	case r.err != nil:
		k.rec = saved{kind: savedError, identity: r.identity, given: r.given(), cut: r.cut, code: r.err.code,
			text: r.err.text}
		return k.append(row)
	case len(r.samples) == 0:
		return 0, fmt.Errorf("row %d has neither a response nor an error", row)
	case len(r.samples) > 1:
		return p.last, nil
	}
	return k.appendSample(r.samples[0], 0)
}

func (k *keeper) append(row int64) (int64, error) {
	k.buf = k.rec.append(k.buf[:0])
	return k.journal.Append(row, k.buf)
}

// undo takes a row out of the counts that an earlier run finished as another request.
func (k *keeper) undo(row int64) error {
	if k.saved.done.get(row) == 0 || k.undone[row] {
		return nil
	}
	if k.undone == nil {
		k.undone = map[int64]bool{}
	}
	k.undone[row] = true
	var t tally
	place := k.saved.places.get(row)
	if place == noPlace { // it could not be run, and now it can
		return fmt.Errorf("row %d: %w", row, errChanged)
	}
	if err := k.saved.forget(place, &t); err != nil {
		return err
	}
	k.count.Rows.Add(-1)
	k.count.add(&t)
	return nil
}

// hold keeps a row until its turn, in memory if there is room.
func (k *keeper) hold(r *row, place int64) {
	ahead := r.record.Index - k.sink.at
	if n := r.bytes(); ahead < int64(len(k.ring)) && (ahead == 0 || k.bytes+n <= windowBytes) {
		k.ring[r.record.Index%int64(len(k.ring))] = r
		k.bytes += n
		return
	}
	k.saved.places.set(r.record.Index, place)
}

// writeHeld writes the rows in memory whose turn it is.
func (k *keeper) writeHeld() error {
	for {
		slot := &k.ring[k.sink.at%int64(len(k.ring))]
		r := *slot
		if r == nil {
			return nil
		}
		*slot = nil
		k.bytes -= r.bytes()
		if err := k.write(r); err != nil {
			return err
		}
	}
}

func (k *keeper) write(r *row) error {
	parts := k.sink.next
	if err := k.sink.write(r); err != nil {
		return err
	}
	k.saved.places.passed(k.sink.at)
	if k.sink.next > parts {
		return k.journal.Trim(k.sink.at)
	}
	return nil
}

// behind reports whether the row whose turn it is has to be read back.
func (k *keeper) behind() bool { return k.saved.places.get(k.sink.at) != 0 }

// catchUp writes up to n rows that have to be read back.
func (k *keeper) catchUp(n int) error {
	for ; n > 0 && k.behind(); n-- {
		at := k.sink.at
		r, err := k.readBack(at, k.saved.places.get(at))
		if err != nil {
			return err
		}
		if r == nil {
			if k.saved.done.get(at) == 0 || k.undone[at] { // this run had it
				return fmt.Errorf("row %d: %w", at, errChanged)
			}
			err := k.undo(at) // it was another request: the row is run again
			k.saved.places.set(at, 0)
			return err
		}
		k.saved.places.set(at, 0)
		if err := k.write(r); err != nil {
			return err
		}
		if err := k.writeHeld(); err != nil {
			return err
		}
	}
	return nil
}

// readBack makes a finished row again; nil: what the journal has is of another request.
func (k *keeper) readBack(index, place int64) (*row, error) {
	rec, err := k.record(index)
	if err != nil {
		return nil, err
	}
	if k.saved.done.get(index) == writtenIdentity && !k.undone[index] {
		return k.written(rec, place)
	}
	r := k.prep.row(context.Background(), rec) // a job that is stopped still writes what it has; the guide was judged
	if (place == noPlace) != (r.err != nil) {
		return nil, nil
	}
	if r.err != nil {
		return r, nil
	}
	samples := map[int]*sample{}
	for at := place; at != 0; {
		data, err := k.journal.Read(at)
		if err != nil {
			return nil, err
		}
		s, err := parseSaved(data)
		if err != nil {
			return nil, err
		}
		at = s.before
		if s.identity != r.identity {
			continue
		}
		if s.kind == savedError {
			r.err = &rowError{s.code, s.text}
			return r, nil
		}
		if samples[s.index] == nil && s.index < r.params.N {
			samples[s.index] = s.sample(r, k.text, k.seed(r, s.index))
		}
	}
	for i := range r.params.N {
		if samples[i] == nil {
			return nil, nil
		}
		r.samples = append(r.samples, samples[i])
	}
	return r, nil
}

// written is a row whose output rows were in a file.
func (k *keeper) written(rec datasets.Record, place int64) (*row, error) {
	r := &row{record: rec}
	for at := place; at > 0; {
		data, err := k.journal.Read(at)
		if err != nil {
			return nil, err
		}
		s, err := parseSaved(data)
		if err != nil {
			return nil, err
		}
		if at = s.before; s.kind == savedOutput && len(r.written) < s.of {
			r.written = append(r.written, s)
		}
	}
	slices.Reverse(r.written)
	return r, nil
}

func (k *keeper) seed(r *row, sample int) int64 {
	return SampleSeed(k.o.Seed, r.record.Index, sample, r.params.Seed)
}

// record reads an input row. Calls mostly follow the order of the rows.
func (k *keeper) record(index int64) (datasets.Record, error) {
	const gap = 4096 // rows that are rather read than sought
	if k.again == nil || index < k.nextAgain() || index > k.nextAgain()+gap {
		k.closeAgain()
		k.again = k.in.Reader(index, k.to)
	}
	for {
		for len(k.batch) > 0 && k.batch[0].Index < index {
			k.batch = k.batch[1:]
		}
		if len(k.batch) > 0 {
			return k.batch[0], nil
		}
		var err error
		if k.batch, err = k.again.Read(); err != nil {
			return datasets.Record{}, fmt.Errorf("%w: reading row %d again: %w", ErrInput, index, err)
		}
	}
}

// nextAgain is the first row that can be had without seeking.
func (k *keeper) nextAgain() int64 {
	if len(k.batch) > 0 {
		return k.batch[0].Index
	}
	return k.again.Next()
}

func (k *keeper) closeAgain() {
	if k.again != nil {
		_ = k.again.Close() // it was only read
	}
	k.again, k.batch = nil, nil
}

// close writes what can be written and finishes the last part. Where rows are
// missing, the part says so, and the journal has its rows still.
func (k *keeper) close() error {
	defer k.closeAgain()
	if k.sink.at >= k.to {
		return k.sink.close()
	}
	return k.sink.closeEarly()
}

// asked is how far the journal was when a sync was asked for.
type asked struct {
	end int64
	at  int64 // Unix time in ns
}

// synced brings the counts up to date with what the disk has by now.
func (k *keeper) synced(now time.Time) {
	done := k.journal.Synced()
	for len(k.asked) > 0 && k.asked[0].end <= done {
		k.count.SyncedTo.Store(k.asked[0].at)
		k.asked = k.asked[1:]
	}
	if k.asked = append(k.asked, asked{k.journal.End(), now.UnixNano()}); len(k.asked) > maxAsked {
		k.asked = k.asked[:maxAsked] // the disk is far behind: the oldest says how far
	}
	k.count.JournalBytes.Store(k.journal.End() - k.began)
}

const maxAsked = 64

// writing keeps what is finished until there is no more. On an error it says so by
// closing dead, and takes no more.
func (k *keeper) writing(done <-chan finished, dead chan<- struct{}, tick func() error) (err error) {
	defer func() {
		if err != nil {
			k.sink.abort()
			close(dead)
		}
	}()
	ticker := time.NewTicker(syncEvery(k.o.SyncInterval))
	defer ticker.Stop()
	if err := k.sink.reprint(); err != nil {
		return err
	}
	always := make(chan struct{})
	close(always)
	for open := true; open || k.whole.Load() && k.behind(); {
		var more <-chan struct{}
		if k.behind() {
			more = always
		}
		select {
		case f, ok := <-done:
			if !ok {
				open, done = false, nil
				continue
			}
			err = k.take(f)
		case <-more:
			err = k.catchUp(256)
		case <-ticker.C:
			if err = errors.Join(k.journal.Sync(), k.sink.flush()); err == nil {
				k.synced(time.Now())
				err = tick()
			}
		}
		if err != nil {
			return err
		}
	}
	return k.close()
}
