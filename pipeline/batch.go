package pipeline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/zeebo/xxh3"

	"glmbatch/datasets"
	"glmbatch/pipeline/chat"
)

// batchColumns are the columns of OpenAI's batch requests: what the keys of each line
// are.
type batchColumns struct {
	id, method, url, body datasets.Field
}

// batchNames are their names. An input with all of them, and none that was named for
// prompts, is one of batch requests.
var batchNames = []string{"custom_id", "method", "url", "body"}

// batchURL is the only one that requests may have.
const batchURL = "/v1/chat/completions"

// findBatch returns nil for other inputs.
func findBatch(in *datasets.Input, o *Options) (*batchColumns, error) {
	if o.PromptColumn != "" || o.MessagesColumn != "" {
		return nil, nil
	}
	b := &batchColumns{}
	for i, to := range []*datasets.Field{&b.id, &b.method, &b.url, &b.body} {
		f, ok := in.Lookup(batchNames[i])
		if !ok {
			return nil, nil
		}
		if f.Shape != datasets.Text && (i < 3 || f.Shape != datasets.Struct) {
			return nil,
				fmt.Errorf("%s: column %q is %s, which no batch request has; name the column of prompts with "+
					"--prompt-column", in.Paths(), f.Name, f.Type())
		}
		*to = f
	}
	if o.Raw {
		return nil, errors.New("batch requests have messages: --raw takes text")
	}
	return b, b.ids(in)
}

// ids reports the first line whose custom_id is missing, or another line's too. Two ids
// of the same hash are read as the same: of a million lines that is one in a hundred
// million batches.
func (b *batchColumns) ids(in *datasets.Input) error {
	lines := map[uint64]int64{}
	return in.Each(func(rec datasets.Record) error {
		id, ok, err := b.id.Text(rec)
		line := rec.Index + 1
		if err != nil || !ok || len(id) == 0 {
			return fmt.Errorf("%s: line %d: missing_required_parameter: there is no custom_id", in.Paths(), line)
		}
		hash := xxh3.Hash(id)
		if first, ok := lines[hash]; ok {
			return fmt.Errorf("%s: line %d: duplicate_custom_id: %s is that of line %d too", in.Paths(), line,
				short(id), first)
		}
		lines[hash] = line
		return nil
	})
}

// request reads a row's line. Its error is the row's.
func (b *batchColumns) request(rec datasets.Record) (map[string]json.RawMessage, *rowError) {
	line := rec.Index + 1
	if method, _, err := b.method.Text(rec); err != nil || string(method) != "POST" {
		return nil, badRow(BadRequest, "line %d: invalid_method: %s is not POST", line, short(method))
	}
	if url, _, err := b.url.Text(rec); err != nil || string(url) != batchURL {
		return nil, badRow(BadRequest, "line %d: invalid_url: %s is not %s", line, short(url), batchURL)
	}
	body, ok, bad := jsonOf(b.body, rec)
	if bad != nil {
		return nil, bad
	}
	var fields map[string]json.RawMessage
	if !ok || json.Unmarshal(body, &fields) != nil {
		return nil, badRow(BadRequest, "line %d: invalid_request: the body is not a JSON object", line)
	}
	return fields, nil
}

// batchContent are the fields of a body that are no sampling parameters.
var batchContent = []string{"messages", "tools", "reasoning_effort", "chat_template_kwargs"}

// params are a body's sampling parameters.
func batchParams(fields map[string]json.RawMessage) []byte {
	left := map[string]json.RawMessage{}
	for name, v := range fields {
		left[name] = v
	}
	for _, name := range batchContent {
		delete(left, name)
	}
	text, err := json.Marshal(left)
	if err != nil {
		return nil // it was read as JSON
	}
	return text
}

// fill takes what a body gives the template.
func batchInput(fields map[string]json.RawMessage, in *chat.Input) *rowError {
	in.Messages = fields["messages"]
	if b := bytes.TrimLeft(in.Messages, " \t\r\n"); len(b) == 0 || b[0] != '[' {
		return badRow(BadMessages, "the body's messages are not a JSON list")
	}
	if tools := fields["tools"]; len(tools) > 0 && string(tools) != "null" &&
		string(fields["tool_choice"]) != `"none"` {
		in.Tools = tools // with none, no call is to be made: the model is not told of them
	}
	args := map[string]json.RawMessage{}
	for name, v := range in.Kwargs {
		args[name] = v
	}
	if v := fields["chat_template_kwargs"]; len(v) > 0 && string(v) != "null" {
		if json.Unmarshal(v, &args) != nil {
			return badRow(BadParams, "chat_template_kwargs is not a JSON object")
		}
	}
	if v := fields["reasoning_effort"]; len(v) > 0 && string(v) != "null" {
		args["reasoning_effort"] = v
	}
	in.Kwargs = args
	return nil
}
