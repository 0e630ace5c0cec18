package pipeline

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"

	"glmbatch/datasets"
	"glmbatch/pipeline/chat"
)

// The keys of an output file's metadata.
const (
	keyRun  = "glmbatch.run_id"
	keyFrom = "glmbatch.from_row" // the first input row of the file
	keyTo   = "glmbatch.to_row"   // the input row after its last

	keyCounts = "glmbatch.counts" // its rows' share of the job's counts, as JSON
	keyEarly  = "glmbatch.early"  // the job ended before the file was full: it will be replaced
)

// sink writes finished rows to numbered files. A row's samples are in one file.
type sink struct {
	o      *Options
	schema *datasets.Output
	text   Text
	cols   *columns
	dir    string
	runID  string
	count  *Counts

	next  int   // number of the next file
	at    int64 // input row after the last written
	open  *datasets.Part
	print *datasets.Printer // nil: rows are only written
	part  tally             // of the open file

	rows  []any // the structs of one output row, as schema has them
	res   datasets.Result
	ids   datasets.TokenIDs
	logs  datasets.Logprobs
	given datasets.PromptLogprobs
	cut   datasets.Cut

	calls datasets.ToolCalls
}

// newSchema is the output's schema by the options.
func newSchema(in *datasets.Input, o *Options, cols *columns) (*datasets.Output, error) {
	rows := []any{datasets.Result{}}
	if o.truncates() {
		rows = append(rows, datasets.Cut{})
	}
	if o.TokenIDs {
		rows = append(rows, datasets.TokenIDs{})
	}
	if o.Logprobs {
		rows = append(rows, datasets.Logprobs{})
	}
	if o.PromptLogprobs {
		rows = append(rows, datasets.PromptLogprobs{})
	}
	if cols.hasTools() {
		rows = append(rows, datasets.ToolCalls{})
	}
	return datasets.NewOutput(in, o.Names, rows...)
}

// write writes a row with all its samples, and finishes the file when it is full.
func (s *sink) write(r *row) error {
	if s.open == nil {
		if err := s.begin(); err != nil {
			return err
		}
	}
	if err := s.row(r); err != nil {
		return err
	}
	s.at = r.record.Index + 1
	if s.open.Rows >= int64(s.o.PartRows) {
		return s.finish()
	}
	return nil
}

func (s *sink) begin() (err error) {
	path := filepath.Join(s.dir, datasets.PartName(s.next, datasets.Parquet))
	s.open, err = s.schema.Create(path, map[string]string{keyRun: s.runID, keyFrom: strconv.FormatInt(s.at, 10)})
	s.part = tally{}
	return err
}

func (s *sink) finish() error {
	p := s.open
	s.open = nil
	counts, err := json.Marshal(&s.part)
	if err != nil {
		return err
	}
	p.Set(keyTo, strconv.FormatInt(s.at, 10))
	p.Set(keyCounts, string(counts))
	s.next++
	return p.Close()
}

// close finishes the open file, and what is printed. A job without rows has one file
// without rows.
func (s *sink) close() error {
	if s.print != nil {
		if err := printed(s.print.Close()); err != nil {
			return err
		}
	}
	if s.open == nil && s.next == 0 {
		if err := s.begin(); err != nil {
			return err
		}
	}
	if s.open == nil {
		return nil
	}
	return s.finish()
}

// closeEarly finishes the open file with the rows it has, for who wants to look: when
// the job goes on, a whole file takes its place.
func (s *sink) closeEarly() error {
	if err := s.flush(); err != nil {
		return err
	}
	if s.open == nil {
		return nil
	}
	s.open.Set(keyEarly, "true")
	return s.finish()
}

func (s *sink) abort() {
	if s.open != nil {
		s.open.Abort()
		s.open = nil
	}
}

func (s *sink) row(r *row) error {
	s.part.row(r)
	for _, w := range r.written {
		if err := s.again(r, w); err != nil {
			return err
		}
	}
	if r.written != nil {
		return nil
	}
	if r.err == nil && len(r.samples) == 0 {
		return fmt.Errorf("row %d has neither a response nor an error", r.record.Index)
	}
	if r.err != nil {
		code, text := r.err.code, r.err.text
		s.res = datasets.Result{FinishReason: reasonError, ErrorCode: &code, Error: &text,
			PromptTokens: int32(r.given()),
			Seed:         SampleSeed(s.o.Seed, r.record.Index, 0, r.params.Seed)}
		s.ids, s.logs = datasets.TokenIDs{}, datasets.Logprobs{}
		s.given, s.calls = datasets.PromptLogprobs{}, datasets.ToolCalls{}
		return s.put(r)
	}
	for _, sm := range r.samples {
		s.fill(sm)
		if err := s.put(r); err != nil {
			return err
		}
	}
	return nil
}

// again writes an output row that was in a file.
func (s *sink) again(r *row, w *saved) error {
	var out writtenResult
	if err := json.Unmarshal([]byte(w.text), &out); err != nil {
		return fmt.Errorf("row %d: %w", r.record.Index, errSaved)
	}
	s.res = datasets.Result{Response: out.Response, Reasoning: out.Reasoning, FinishReason: string(w.reason),
		PromptTokens:     int32(w.given),
		CompletionTokens: int32(w.made), Error: out.Error, SampleIndex: int32(w.index), Seed: out.Seed}
	if w.code != "" {
		s.res.ErrorCode = &w.code
	}
	s.calls = datasets.ToolCalls{Calls: out.Calls, Note: out.Note}
	s.res.StopReason = named(w.by)
	s.ids.IDs, s.logs.Chosen, s.logs.Top = w.tokens, w.chosen, w.top
	s.given = datasets.PromptLogprobs{Chosen: w.prompt.chosen, Top: w.prompt.top}
	s.spellAll()
	if out.Response != nil {
		s.check(*out.Response, r.record)
	}
	r.cut = w.cut
	return s.put(r)
}

// fill makes the structs of a good row's output row.
func (s *sink) fill(sm *sample) {
	text := ""
	if sm.text != nil {
		text = string(sm.text.text)
	} else if sm.row.tools != nil {
		text = s.text.decodeCalls(sm.tokens)
	} else {
		text = s.text.Tokenizer.Decode(sm.tokens, true)
	}
	reasoning, response := chat.SplitReasoning(text, sm.row.open)
	if s.calls = (datasets.ToolCalls{}); sm.row.tools != nil {
		response = s.split(response, sm)
	}
	s.res = datasets.Result{Response: &response, FinishReason: string(sm.reason), PromptTokens: int32(sm.row.given()),
		CompletionTokens: int32(len(sm.tokens)), SampleIndex: int32(sm.index), Seed: sm.seed}
	if reasoning != "" {
		s.res.Reasoning = &reasoning
	}
	s.res.StopReason = named(sm.by)
	s.ids.IDs, s.logs.Chosen, s.logs.Top = sm.tokens, sm.chosen, sm.top
	s.given = datasets.PromptLogprobs{Chosen: sm.prompt.chosen, Top: sm.prompt.top}
	s.spellAll()
	s.check(response, sm.row.record)
}

// split takes the calls of tools out of a response.
func (s *sink) split(response string, sm *sample) string {
	said, calls, err := chat.SplitToolCalls(response, sm.row.tools)
	if err != nil {
		note := oneLine(err)
		s.calls.Note = &note
	}
	if len(calls) > 0 {
		text := chat.OpenAI(calls, fmt.Sprintf("%d_%d", sm.row.record.Index, sm.index))
		s.calls.Calls = &text
	}
	return said
}

// check compares a response with the right answer.
func (s *sink) check(response string, rec datasets.Record) {
	c := s.cols.check
	if c == nil {
		return
	}
	if right, ok := c.right(response, rec); ok {
		var t tally
		t.check(c.groupOf(rec), right)
		s.part.add(&t)
		s.count.add(&t)
	}
}

// spellAll gives the tokens of log-probabilities their text.
func (s *sink) spellAll() {
	s.spell(s.logs.Chosen)
	s.spell(s.given.Chosen)
	for _, lists := range [][][]datasets.TokenLogprob{s.logs.Top, s.given.Top} {
		for _, top := range lists {
			s.spell(top)
		}
	}
}

// named is a value of stop_reason: null where nothing is named.
func named(by string) *string {
	if by == "" {
		return nil
	}
	return &by
}

// spell gives tokens their text.
func (s *sink) spell(list []datasets.TokenLogprob) {
	for i := range list {
		list[i].Token = s.text.Tokenizer.Decode([]int32{list[i].ID}, false)
	}
}

func (s *sink) put(r *row) error {
	s.res.RowIndex, s.res.RunID = r.record.Index, s.runID
	s.cut.Tokens = int32(r.cut)
	s.rows = append(s.rows[:0], &s.res)
	if s.o.truncates() {
		s.rows = append(s.rows, &s.cut)
	}
	if s.o.TokenIDs {
		s.rows = append(s.rows, &s.ids)
	}
	if s.o.Logprobs {
		s.rows = append(s.rows, &s.logs)
	}
	if s.o.PromptLogprobs {
		s.rows = append(s.rows, &s.given)
	}
	if s.cols.hasTools() {
		s.rows = append(s.rows, &s.calls)
	}
	if err := s.open.Write(r.record, s.rows...); err != nil || s.print == nil {
		return err
	}
	return printed(s.print.Write(r.record, s.rows...))
}

// reprint prints the files that earlier runs wrote.
func (s *sink) reprint() error {
	if s.print == nil {
		return nil
	}
	for n := range s.next {
		if err := s.print.File(filepath.Join(s.dir, datasets.PartName(n, datasets.Parquet))); err != nil {
			return printed(err)
		}
	}
	return printed(s.print.Flush())
}

// flush prints what is held.
func (s *sink) flush() error {
	if s.print == nil {
		return nil
	}
	return printed(s.print.Flush())
}

func printed(err error) error {
	if err != nil {
		err = fmt.Errorf("printing rows: %w", err)
	}
	return err
}
