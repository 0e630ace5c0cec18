package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"glmbatch/datasets"
	"glmbatch/engine"
	"glmbatch/pipeline/journal"
)

// Running rows again whose error may pass. Files of outputs from the first with such a
// row on go back into the journal, row by row, without those rows; then the job is one
// that was interrupted, and writes the files anew.

// writtenResult is what the journal has of an output row that was in a file, beside
// its tokens.
type writtenResult struct {
	Response  *string `json:"response,omitempty"`
	Reasoning *string `json:"reasoning,omitempty"`
	Error     *string `json:"error,omitempty"`
	Calls     *string `json:"tool_calls,omitempty"`
	Note      *string `json:"tool_calls_note,omitempty"`
	Seed      int64   `json:"seed"`
}

// retryParts takes the files back, f being ready to go on with a job whose parts were
// looked at. It changes nothing where no row's error may pass.
func (f *Folder) retryParts() error {
	dir := filepath.Join(f.Dir, datasets.OutputsDir)
	names, _, err := listParts(dir)
	if err != nil {
		return err
	}
	all := names
	names = names[:min(len(names), f.NextPart)] // behind them may be one that was not full
	first, at := -1, Folder{Dir: f.Dir, NextRow: f.first, manifest: f.manifest}
	for i := range names {
		before := at.tally
		next := at.NextRow
		if err := at.followOne(names, i); err != nil {
			return err
		}
		if at.tally.passing() > before.passing() {
			first = i
			f.tally, f.NextRow, f.NextPart = before, next, i
			break
		}
	}
	if first < 0 {
		return nil
	}
	if err := f.unwrite(dir, names[first:]); err != nil {
		return err
	}
	// What was complete is not any more; the files go last to first, so that those that
	// are left after a crash are the first of the job.
	if err := os.Remove(filepath.Join(f.Dir, datasets.SuccessFile)); noFile(err) != nil {
		return err
	}
	for _, name := range slices.Backward(all[first:]) {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// passing is how many errors may pass.
func (t *tally) passing() (n int64) {
	for code, k := range t.Codes {
		if mayPass(code) {
			n += k
		}
	}
	return n
}

// unwrite appends the rows of files to the journal, and waits until the disk has them.
func (f *Folder) unwrite(dir string, names []string) error {
	j, _, err := journal.Open(filepath.Join(f.Dir, datasets.JournalDir), f.manifest.RunID, journal.Options{},
		func(journal.Record) error {
			return nil
		})
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := unwrite(j, filepath.Join(dir, name)); err != nil {
			return errors.Join(err, j.Close())
		}
	}
	return j.Close()
}

func unwrite(j *journal.Journal, path string) error {
	in, err := datasets.Open([]string{path})
	if err != nil {
		return err
	}
	defer in.Close()
	rows, err := newOutputRows(in)
	if err != nil {
		return err
	}
	defer rows.Close()
	more := newWrittenFields(in)
	var of []*saved // the row at hand
	at := int64(-1)
	put := func() error {
		if len(of) == 1 && mayPass(of[0].code) {
			return nil
		}
		if s := of[:min(1, len(of))]; len(s) == 1 && s[0].code != "" { // the journal may have the error already
			again := &saved{kind: savedRetry, given: s[0].given, cut: s[0].cut, code: s[0].code}
			if _, err := j.Append(at, again.append(nil)); err != nil {
				return err
			}
		}
		before := int64(0)
		for _, s := range of {
			s.before, s.of = before, len(of)
			var err error
			if before, err = j.Append(at, s.append(nil)); err != nil {
				return err
			}
		}
		return nil
	}
	for r := rows.next(); r != nil; r = rows.next() {
		if r.row != at {
			if err := put(); err != nil {
				return err
			}
			at, of = r.row, nil
		}
		s, err := more.saved(r)
		if err != nil {
			return fmt.Errorf("%s: row %d: %w", path, r.row, err)
		}
		s.index = len(of)
		of = append(of, s)
	}
	return errors.Join(rows.err, put())
}

// writtenFields are the columns of results that compare does not read; those that a file
// lacks have no name.
type writtenFields struct {
	fields map[string]datasets.Field
}

func newWrittenFields(in *datasets.Input) *writtenFields {
	w := &writtenFields{map[string]datasets.Field{}}
	// Columns of results stand behind the input's, which may have their names where the job
	// did not write them.
	names := in.Names()
	names = names[max(0, slices.Index(names, in.ResultName("response"))):]
	for _, name := range []string{"error", "prompt_tokens", "completion_tokens", "seed", "truncated_tokens",
		"token_ids", "logprobs", "top_logprobs", "prompt_logprobs", "prompt_top_logprobs", "stop_reason", "tool_calls",
		"tool_calls_note"} {
		if f, ok := in.Lookup(in.ResultName(name)); ok && slices.Contains(names, f.Name) {
			w.fields[name] = f
		}
	}
	return w
}

// value reads a column's value; to is as it was where it is null or there is no column.
func (w *writtenFields) value(r *outputRow, name string, to any) error {
	f, ok := w.fields[name]
	if !ok {
		return nil
	}
	v, ok, err := f.JSON(nil, r.record)
	if err != nil || !ok {
		return err
	}
	if n, is := to.(*int64); is { // JSON text has large ones as text
		*n, err = strconv.ParseInt(plain(v), 10, 64)
		return err
	}
	return json.Unmarshal(v, to)
}

// saved is an output row as the journal has it.
func (w *writtenFields) saved(r *outputRow) (*saved, error) {
	s := &saved{kind: savedOutput, identity: writtenIdentity}
	s.code, s.reason = r.values[0].text, engine.Reason(r.values[1].text)
	var out writtenResult
	for i, to := range map[int]**string{2: &out.Reasoning, 3: &out.Response} {
		if v := r.values[i]; v.ok {
			*to = &v.text
		}
	}
	var err error
	for name, to := range map[string]any{"error": &out.Error, "tool_calls": &out.Calls, "tool_calls_note": &out.Note,
		"prompt_tokens": &s.given, "completion_tokens": &s.made, "seed": &out.Seed, "stop_reason": &s.by,
		"truncated_tokens": &s.cut, "token_ids": &s.tokens} {
		err = errors.Join(err, w.value(r, name, to))
	}
	var bad [2]error
	s.chosen, s.top, bad[0] = w.logprobs(r, "")
	s.prompt.chosen, s.prompt.top, bad[1] = w.logprobs(r, "prompt_")
	if err = errors.Join(err, bad[0], bad[1]); err != nil {
		return nil, err
	}
	text, err := json.Marshal(out)
	s.text = string(text)
	return s, err
}

// logprobs reads the two columns whose names begin so.
func (w *writtenFields) logprobs(r *outputRow, prefix string) ([]datasets.TokenLogprob,
	[][]datasets.TokenLogprob, error) {
	var chosen []writtenLogprob
	var lists [][]writtenLogprob
	err := errors.Join(w.value(r, prefix+"logprobs", &chosen), w.value(r, prefix+"top_logprobs", &lists))
	var top [][]datasets.TokenLogprob
	for _, list := range lists {
		top = append(top, logprobsOf(list))
	}
	return logprobsOf(chosen), top, err
}

type writtenLogprob struct {
	ID      int32   `json:"id"`
	Logprob logprob `json:"logprob"`
	Rank    *int32  `json:"rank"`
}

func logprobsOf(list []writtenLogprob) []datasets.TokenLogprob {
	var all []datasets.TokenLogprob
	for _, l := range list {
		all = append(all, datasets.TokenLogprob{ID: l.ID, Logprob: float32(l.Logprob), Rank: l.Rank})
	}
	return all
}

// retry lets the rows of the journal run again whose error may pass.
func (r *recovery) retry() error {
	for row, a := range r.attempts {
		if a.n >= mostAttempts { // it has no error yet, but would have
			r.failed[row] = &saved{}
		}
	}
	for _, row := range slices.Sorted(maps.Keys(r.failed)) {
		s := r.failed[row]
		again := &saved{kind: savedRetry, given: s.given, cut: s.cut, code: s.code}
		if _, err := r.journal.Append(row, again.append(nil)); err != nil {
			return err
		}
		r.add(row, 0, again)
	}
	return r.journal.Flush()
}
