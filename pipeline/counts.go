package pipeline

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Counts are a job's totals, those of its earlier runs included. They are safe to
// read while it runs.
type Counts struct {
	Rows             atomic.Int64 // input rows that are done and saved
	Samples          atomic.Int64 // output rows, as all below
	Errors           atomic.Int64 // of them, with an error
	Truncated        atomic.Int64 // rows whose prompt was cut
	PromptTokens     atomic.Int64 // of each output row: n times a prompt's
	CompletionTokens atomic.Int64
	Checked          atomic.Int64 // responses compared with the expected answer
	Correct          atomic.Int64 // of them, equal

	// Of this run alone.
	RunRows, RunPrompt, RunCompletion atomic.Int64

	// Of the journal of this run: all that was finished by SyncedTo, as Unix time in ns,
	// is on the disk; 0: nothing was synced yet.
	SyncedTo, JournalBytes atomic.Int64

	mu     sync.Mutex
	codes  map[string]int64 // errors by code
	groups groups           // responses compared, by the value of --check-by
}

// tally is what some rows add to the totals. A part has its rows' in its metadata.
type tally struct {
	Rows             int64            `json:"rows"`
	Samples          int64            `json:"samples"`
	Errors           int64            `json:"errors"`
	Truncated        int64            `json:"truncated"`
	PromptTokens     int64            `json:"prompt_tokens"`
	CompletionTokens int64            `json:"completion_tokens"`
	Checked          int64            `json:"checked"`
	Correct          int64            `json:"correct"`
	Codes            map[string]int64 `json:"error_codes,omitempty"`
	Groups           groups           `json:"groups,omitempty"`
}

// check adds a response that was compared.
func (t *tally) check(group string, right bool) {
	n := Checked{Checked: 1}
	if right {
		n.Correct = 1
	}
	t.Checked += n.Checked
	t.Correct += n.Correct
	if group != "" {
		t.Groups = t.Groups.add(group, n)
	}
}

// row adds a finished row, without what its answers are compared with.
func (t *tally) row(r *row) {
	if r.written != nil {
		t.saved(r.written)
		return
	}
	t.Rows++
	if r.cut > 0 {
		t.Truncated++
	}
	if r.err != nil {
		t.Samples++
		t.Errors++
		if t.Codes == nil {
			t.Codes = map[string]int64{}
		}
		t.Codes[r.err.code]++
		t.PromptTokens += int64(r.given())
		return
	}
	t.Samples += int64(len(r.samples))
	t.PromptTokens += int64(len(r.samples) * r.given())
	for _, s := range r.samples {
		t.CompletionTokens += int64(len(s.tokens))
	}
}

// saved adds a complete row of the journal.
func (t *tally) saved(of []*saved) {
	t.Rows++
	if of[0].cut > 0 {
		t.Truncated++
	}
	for _, s := range of {
		t.Samples++
		t.PromptTokens += int64(s.given)
		if s.kind == savedOutput {
			t.CompletionTokens += int64(s.made)
		} else {
			t.CompletionTokens += int64(len(s.tokens))
		}
		if s.kind != savedSample && s.code != "" {
			t.Errors++
			if t.Codes == nil {
				t.Codes = map[string]int64{}
			}
			t.Codes[s.code]++
		}
	}
}

// subtract is the reverse of add, without groups.
func (t *tally) subtract(o *tally) {
	t.Rows -= o.Rows
	t.Samples -= o.Samples
	t.Errors -= o.Errors
	t.Truncated -= o.Truncated
	t.PromptTokens -= o.PromptTokens
	t.CompletionTokens -= o.CompletionTokens
	for code, n := range o.Codes {
		if t.Codes == nil {
			t.Codes = map[string]int64{}
		}
		t.Codes[code] -= n
		if t.Codes[code] == 0 {
			delete(t.Codes, code)
		}
	}
}

// counts are a manifest's of rows that are all saved.
func (t *tally) counts(inputRows int64) ManifestCounts {
	return ManifestCounts{InputRows: inputRows, Rows: t.Rows, Samples: t.Samples, Errors: t.Errors,
		Truncated:    t.Truncated,
		PromptTokens: t.PromptTokens, CompletionTokens: t.CompletionTokens, Checked: t.Checked, Correct: t.Correct,
		Codes: t.Codes, Groups: t.Groups}
}

func (t *tally) add(o *tally) {
	t.Rows += o.Rows
	t.Samples += o.Samples
	t.Errors += o.Errors
	t.Truncated += o.Truncated
	t.PromptTokens += o.PromptTokens
	t.CompletionTokens += o.CompletionTokens
	t.Checked += o.Checked
	t.Correct += o.Correct
	for _, group := range slices.Sorted(maps.Keys(o.Groups)) {
		t.Groups = t.Groups.add(group, o.Groups[group])
	}
	if t.Codes == nil && len(o.Codes) > 0 {
		t.Codes = map[string]int64{}
	}
	for code, n := range o.Codes {
		t.Codes[code] += n
	}
}

// add counts all of t but its rows, which are counted when they are saved.
func (c *Counts) add(t *tally) {
	c.Samples.Add(t.Samples)
	c.Errors.Add(t.Errors)
	c.Truncated.Add(t.Truncated)
	c.PromptTokens.Add(t.PromptTokens)
	c.CompletionTokens.Add(t.CompletionTokens)
	c.Checked.Add(t.Checked)
	c.Correct.Add(t.Correct)
	if len(t.Codes) == 0 && len(t.Groups) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, group := range slices.Sorted(maps.Keys(t.Groups)) {
		c.groups = c.groups.add(group, t.Groups[group])
	}
	if c.codes == nil {
		c.codes = map[string]int64{}
	}
	for code, n := range t.Codes {
		if c.codes[code] += n; c.codes[code] == 0 {
			delete(c.codes, code)
		}
	}
}

// Codes are the errors by code.
func (c *Counts) Codes() map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.codes)
}

// Groups are the responses compared, by the value of --check-by.
func (c *Counts) Groups() map[string]Checked {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.groups)
}
