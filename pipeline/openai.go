package pipeline

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"glmbatch/datasets"
)

// Output rows as OpenAI's batch output has them: a line for each request, with a
// chat.completion, and lines of requests that have an error in a file of their own.

// BatchInfo is what lines have from the job.
type BatchInfo struct {
	RunID   string
	Model   string // where a request names none
	Created int64  // Unix seconds
}

// IsBatch reports whether the input is one of OpenAI's batch requests.
func (p *Plan) IsBatch() bool { return p.cols.batch != nil }

// ReadBatchInfo is what a job's folder says for its lines.
func ReadBatchInfo(dir string) (i BatchInfo, err error) {
	m, err := readManifest(dir)
	if err == nil && m == nil {
		err = fmt.Errorf("%s has no %s: it is no output folder of glmbatch", dir, datasets.ManifestFile)
	}
	if err != nil {
		return i, err
	}
	return BatchInfo{m.RunID, m.Model.Name, m.Started.Unix()}, nil
}

// batchLine is a line of the output or the error file.
type batchLine struct {
	ID       string         `json:"id"`
	CustomID string         `json:"custom_id"`
	Response *batchResponse `json:"response"`
	Error    *batchError    `json:"error"`
}

type batchResponse struct {
	Status    int    `json:"status_code"`
	RequestID string `json:"request_id"`
	Body      any    `json:"body"`
}

type batchError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// badRequest is the body of a response to a request that cannot be run.
type badRequest struct {
	Error struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    string  `json:"code"`
	} `json:"error"`
}

type completion struct {
	ID      string             `json:"id"`
	Object  string             `json:"object"`
	Created int64              `json:"created"`
	Model   string             `json:"model"`
	Choices []completionChoice `json:"choices"`
	Usage   completionUsage    `json:"usage"`
	// as vLLM's server has them: null, then tokens by id
	Prompt []map[string]promptLogprob `json:"prompt_logprobs,omitempty"`
}

// promptLogprob is what the prompt's place gave a token.
type promptLogprob struct {
	Logprob logprob `json:"logprob"`
	Rank    *int32  `json:"rank"`
	Text    string  `json:"decoded_token"`
}

type completionChoice struct {
	Index    int                 `json:"index"`
	Message  completionMessage   `json:"message"`
	Logprobs *completionLogprobs `json:"logprobs"`
	Reason   string              `json:"finish_reason"`
	Stop     *string             `json:"stop_reason,omitempty"` // as vLLM's server has it, but always text
}

type completionMessage struct {
	Role      string          `json:"role"`
	Content   *string         `json:"content"`
	Reasoning string          `json:"reasoning_content,omitempty"`
	Refusal   *string         `json:"refusal"`
	Calls     json.RawMessage `json:"tool_calls,omitempty"`
}

type completionUsage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Total      int64 `json:"total_tokens"`
}

type completionLogprobs struct {
	Content []tokenLogprob `json:"content"`
	Refusal *string        `json:"refusal"`
}

type tokenLogprob struct {
	Token   string         `json:"token"`
	Logprob logprob        `json:"logprob"`
	Bytes   []int          `json:"bytes"`
	Top     []tokenLogprob `json:"top_logprobs,omitzero"` // alternatives have none
}

// answerless are errors of the engine, not of the request: their lines have no response.
var answerless = []string{ModelError, Crashed, StepFailed}

// WriteBatch writes the output rows of a job, which must be in the order of their rows,
// as lines of OpenAI's batch output: those with an error to errs. The error's codes are
// those of error_code.
func WriteBatch(in *datasets.Input, info BatchInfo, out, errs io.Writer) error {
	rows, err := newOutputRows(in)
	if err != nil {
		return err
	}
	defer rows.Close()
	b := &batchWriter{info: info, more: newWrittenFields(in), out: bufio.NewWriter(out), errs: bufio.NewWriter(errs)}
	if errs == out { // one stream has one buffer, or lines would be cut
		b.errs = b.out
	}
	for _, f := range []struct {
		name string
		to   **datasets.Field
	}{{"custom_id", &b.id}, {"body", &b.body}} {
		if c, ok := in.Lookup(f.name); ok && (c.Shape == datasets.Text || f.name == "body") {
			*f.to = &c
		}
	}
	for r := rows.next(); r != nil; r = rows.next() {
		if len(b.group) > 0 && b.group[0].row != r.row {
			if err := b.flush(); err != nil {
				return err
			}
		}
		b.group = append(b.group, r)
	}
	if rows.err != nil {
		return rows.err
	}
	if err := b.flush(); err != nil {
		return err
	}
	if err := b.out.Flush(); err != nil {
		return err
	}
	return b.errs.Flush()
}

type batchWriter struct {
	info      BatchInfo
	more      *writtenFields
	id, body  *datasets.Field // nil: rows have none
	out, errs *bufio.Writer
	group     []*outputRow // of one request
}

// flush writes the line of a request.
func (b *batchWriter) flush() error {
	if len(b.group) == 0 {
		return nil
	}
	first := b.group[0]
	line := batchLine{ID: fmt.Sprintf("batch_req_%s_%d", b.info.RunID, first.row),
		CustomID: fmt.Sprintf("row-%d", first.row)}
	if b.id != nil {
		if id, ok, err := b.id.Text(first.record); err == nil && ok {
			line.CustomID = string(id)
		}
	}
	to := b.out
	var err error
	if code := first.values[0]; code.ok {
		to, err = b.errs, b.failed(&line, first, code.text)
	} else {
		err = b.answered(&line)
	}
	if err != nil {
		return fmt.Errorf("row %d: %w", first.row, err)
	}
	b.group = b.group[:0]
	e := json.NewEncoder(to)
	e.SetEscapeHTML(false)
	return e.Encode(&line)
}

func (b *batchWriter) response(line *batchLine, status int, body any) {
	line.Response = &batchResponse{status, line.ID, body}
}

func (b *batchWriter) failed(line *batchLine, r *outputRow, code string) error {
	s, err := b.more.saved(r)
	if err != nil {
		return err
	}
	var res writtenResult
	if err := json.Unmarshal([]byte(s.text), &res); err != nil {
		return err
	}
	text := ""
	if res.Error != nil {
		text = *res.Error
	}
	if at := fmt.Sprintf("line %d: ", r.row+1); !strings.HasPrefix(text, at) {
		text = at + text
	}
	if slices.Contains(answerless, code) {
		line.Error = &batchError{code, text}
		return nil
	}
	var body badRequest
	body.Error.Message, body.Error.Type, body.Error.Code = text, "invalid_request_error", code
	b.response(line, 400, body)
	return nil
}

func (b *batchWriter) answered(line *batchLine) error {
	first := b.group[0]
	c := completion{ID: fmt.Sprintf("chatcmpl-%s-%d", b.info.RunID, first.row), Object: "chat.completion",
		Created: b.info.Created, Model: b.info.Model}
	if b.body != nil {
		var body struct {
			Model string `json:"model"`
		}
		if v, bad := b.bodyOf(first); !bad && json.Unmarshal(v, &body) == nil && body.Model != "" {
			c.Model = body.Model
		}
	}
	for i, r := range b.group {
		s, err := b.more.saved(r)
		if err != nil {
			return err
		}
		choice, err := b.choice(i, r, s)
		if err != nil {
			return err
		}
		c.Choices = append(c.Choices, choice)
		if i == 0 {
			if c.Prompt, err = b.prompt(r); err != nil {
				return err
			}
		}
		c.Usage.Prompt = int64(s.given)
		c.Usage.Completion += int64(s.made)
	}
	c.Usage.Total = c.Usage.Prompt + c.Usage.Completion
	b.response(line, 200, c)
	return nil
}

func (b *batchWriter) bodyOf(r *outputRow) (v []byte, bad bool) {
	v, ok, err := jsonOf(*b.body, r.record)
	return v, err != nil || !ok
}

func (b *batchWriter) choice(i int, r *outputRow, s *saved) (c completionChoice, err error) {
	var res writtenResult
	if err := json.Unmarshal([]byte(s.text), &res); err != nil {
		return c, err
	}
	c = completionChoice{Index: i, Message: completionMessage{Role: "assistant", Content: res.Response},
		Reason: string(s.reason), Stop: named(s.by)}
	if res.Reasoning != nil {
		c.Message.Reasoning = *res.Reasoning
	}
	if res.Calls != nil {
		c.Message.Calls = json.RawMessage(*res.Calls)
		if c.Reason == "stop" {
			c.Reason = "tool_calls"
		}
		if res.Response != nil && *res.Response == "" {
			c.Message.Content = nil
		}
	}
	var chosen []tokenLogprob
	var top [][]tokenLogprob
	if err := b.more.value(r, "logprobs", &chosen); err != nil || len(chosen) == 0 {
		return c, err
	}
	if err := b.more.value(r, "top_logprobs", &top); err != nil {
		return c, err
	}
	spell(chosen)
	for k := range chosen {
		chosen[k].Top = []tokenLogprob{}
		if k < len(top) && len(top[k]) > 0 {
			spell(top[k])
			chosen[k].Top = top[k]
		}
	}
	c.Logprobs = &completionLogprobs{Content: chosen}
	return c, nil
}

// prompt reads the prompt's log-probabilities.
func (b *batchWriter) prompt(r *outputRow) (list []map[string]promptLogprob, err error) {
	type given struct {
		ID int32 `json:"id"`
		tokenLogprob
		Rank *int32 `json:"rank"`
	}
	var chosen []given
	var top [][]given
	if err := errors.Join(b.more.value(r, "prompt_logprobs", &chosen),
		b.more.value(r, "prompt_top_logprobs", &top)); err != nil || len(chosen) == 0 {
		return nil, err
	}
	list = append(list, nil)
	for i := range chosen {
		place := map[string]promptLogprob{}
		all := chosen[i : i+1]
		if i < len(top) {
			all = slices.Concat(all, top[i])
		}
		for _, g := range all {
			place[strconv.Itoa(int(g.ID))] = promptLogprob{g.Logprob, g.Rank, g.Token}
		}
		list = append(list, place)
	}
	return list, nil
}

// spell gives tokens the bytes of their text.
func spell(list []tokenLogprob) {
	for i := range list {
		for _, b := range []byte(list[i].Token) {
			list[i].Bytes = append(list[i].Bytes, int(b))
		}
	}
}
