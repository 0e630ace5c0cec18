package pipeline

import (
	"errors"
	"time"

	"glmbatch/kernels"
)

// mostAttempts is how many steps may end badly with a row in them before the row has
// an error. After the first, rows run alone, so that no row has another's.
const mostAttempts = 2

// attempt is a step that ended badly with a row in it.
type attempt struct {
	onBoard
	event int64 // the same for all rows of the step
	code  string
	text  string
}

// blames reports whether an engine's error is that of a step, for which its rows may be
// the reason.
func blames(err error) bool {
	for _, kind := range []error{kernels.ErrDevice, kernels.ErrMemory, kernels.ErrKernel, kernels.ErrPeer} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// blame notes the rows of the step that failed.
func (f *flow) blame(err error) {
	event := time.Now().UnixNano()
	for _, r := range f.aboard.now {
		f.done.failed = append(f.done.failed, attempt{r, event, StepFailed, oneLine(err)})
	}
}

// suspect reports whether a row was in a step that ended badly: then it runs alone, when
// all others are done. One that was in two has an error instead.
func (f *flow) suspect(r *row) bool {
	a := f.attempts[r.record.Index]
	if a == nil || r.err != nil || a.identity != r.identity {
		return false
	}
	if a.n < mostAttempts {
		return true
	}
	r.err = badRow(a.code, "%s, in two attempts: %s", attemptTexts[a.code], a.text)
	if step := f.aboard.captured(r.record.Index); step != "" {
		r.err.text += "; its step is in " + step
	}
	return false
}

var attemptTexts = map[string]string{
	Crashed:    "the program crashed in a step with this row",
	StepFailed: "a step with this row failed",
}

// attempts are those that a row has behind it.
type attempts struct {
	identity uint64
	n        int
	last     int64 // event
	code     string
	text     string
}

// tried adds an attempt of a row.
func (r *recovery) tried(row, event int64, s *saved) {
	a := r.attempts[row]
	if a == nil || a.identity != s.identity {
		a = &attempts{identity: s.identity}
		r.attempts[row] = a
	}
	if a.n == 0 || a.last != event { // or it was noted twice, by a process that was killed then
		a.n++
	}
	a.last, a.code, a.text = event, s.code, s.text
}

// blameCrash notes the rows that were in a step when the process before crashed.
func (r *recovery) blameCrash(dir string) error {
	a := &Aboard{dir: dir}
	why, rows, seq, err := a.crashed()
	if err != nil || why == "" {
		return err
	}
	for _, w := range rows {
		if r.done.get(w.row) == int64(w.identity) {
			continue
		}
		s := attempt{w, int64(seq), Crashed, why}.saved()
		if _, err := r.journal.Append(w.row, s.append(nil)); err != nil {
			return err
		}
		r.tried(w.row, s.before, s)
	}
	return r.journal.Flush()
}

func (a attempt) saved() *saved {
	return &saved{kind: savedAttempt, identity: a.identity, before: a.event, code: a.code, text: a.text}
}
