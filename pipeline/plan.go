package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"glmbatch/datasets"
	"glmbatch/engine"
)

// Plan is a job whose options and columns have been checked against its input;
// no model is needed for that.
type Plan struct {
	Options  Options
	From, To int64    // input rows
	Notes    []string // what a user may want to know of the choice of columns
	Taken    []string // the columns that steer rows, as "system" or "temperature from t"

	in     *datasets.Input
	cols   *columns
	schema *datasets.Output
}

// NewPlan checks options and finds the columns.
func NewPlan(in *datasets.Input, o Options) (*Plan, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	cols, err := findColumns(in, &o)
	if err != nil {
		return nil, err
	}
	p := &Plan{Options: o, in: in, cols: cols, Notes: cols.Notes, Taken: cols.Taken()}
	if cols.check != nil { // it steers nothing
		p.Taken = append(p.Taken, from("right answers", cols.check.answers.Name))
	}
	if p.schema, err = newSchema(in, &o, cols); err != nil {
		return nil, err
	}
	if p.schema.Prefix != "" && o.Names.Prefix == "" {
		all := "all of these begin with " + p.schema.Prefix + ", as " + p.schema.Names[0]
		if o.Names.Response != "" { // as it was asked for
			all = "all of these but " + o.Names.Response + " begin with " + p.schema.Prefix
		}
		p.Notes = append(p.Notes, "the input has a column called like one of results, so "+all+
			"; --prefix and --response-column choose other names")
	}
	p.From, p.To = o.rows(in.Rows)
	return p, nil
}

// Files are the input's, with their fingerprints.
func (p *Plan) Files() []datasets.File { return p.in.Files }

// ErrNoTemplate: the checkpoint has no chat template and prompts are not raw.
var ErrNoTemplate = errors.New("the checkpoint has no chat template: give --raw to send prompts to the model as they " +
	"are")

// Check reports what keeps the plan from running with a model's text side.
func (p *Plan) Check(t Text) error {
	switch {
	case p.Options.Raw && p.cols.messages:
		return errors.New("--raw takes text, not messages: name a text column with --prompt-column")
	case !p.Options.Raw && t.Template == nil:
		return ErrNoTemplate
	}
	return nil
}

// Printer prints a job's rows as they are written; see [Job].
func (p *Plan) Printer(w io.Writer, format string) (*datasets.Printer, error) {
	return p.schema.Printer(w, format)
}

// Settings are all that decides the rows, for the manifest and for telling one
// job from another.
func (p *Plan) Settings() map[string]string {
	o := &p.Options
	s := map[string]string{
		"prompt column": p.cols.prompt.Name,
		"messages":      strconv.FormatBool(p.cols.messages),
		"--system":      o.System,
		"--raw":         strconv.FormatBool(o.Raw),
		"--on-overlong": o.OnOverlong,
		"--seed":        strconv.FormatInt(o.Seed, 10),
		"--limit":       strconv.FormatInt(o.Limit, 10),
		settingShard:    datasets.Shard{Index: o.Shard, Of: o.Shards}.String(),
		"--token-ids":   strconv.FormatBool(o.TokenIDs),
		"columns":       strings.Join(p.cols.Taken(), ", "),
		"results":       strings.Join(p.schema.Names, ", "),
		"context":       strconv.Itoa(o.Context),
	}
	for flag, f := range map[string]*datasets.Field{"system column": p.cols.system, "tools column": p.cols.tools,
		"parameters column": p.cols.params} {
		if f != nil {
			s[flag] = f.Name
		}
	}
	if o.Thinking != nil {
		s["--thinking"] = strconv.FormatBool(*o.Thinking)
	}
	if o.Continue {
		s["--continue-final-message"] = "true"
	}
	if o.Params.GuidedBy != "" {
		s[o.Params.GuidedBy] = fmt.Sprintf("%x",
			sha256.Sum256([]byte(fmt.Sprint(o.Params.Guide.Kind, o.Params.Guide.Text))))
	}
	if p.cols.args != nil {
		s["template arguments column"] = p.cols.args.Name
	}
	if len(o.TemplateArgs) > 0 {
		text, err := json.Marshal(o.TemplateArgs)
		if err != nil {
			panic(err) // Validate has looked at them
		}
		s["--chat-template-kwargs"] = string(text)
	}
	for name, v := range map[string]any{
		"--temperature": o.Params.Temperature, "--top-p": o.Params.TopP, "--top-k": o.Params.TopK,
		"--min-p":              o.Params.MinP,
		"--repetition-penalty": o.Params.Repetition, "--max-tokens": o.Params.MaxTokens, "--n": o.Params.N,
		"--stop":           o.Params.StopText,
		"--stop-token-ids": o.Params.StopTokens, "--ignore-eos": o.Params.IgnoreEOS,
		"--logprobs": o.Params.Logprobs - 1, "end tokens": o.EndTokens,
	} {
		text, err := json.Marshal(v)
		if err != nil {
			panic(err) // plain numbers, strings and lists
		}
		s[name] = string(text)
	}
	for flag, v := range o.Params.settings() {
		s[flag] = v
	}
	return s
}

// settings are the parameters that ask for something and that jobs of earlier versions
// could not have, as flags.
func (p *Params) settings() map[string]string {
	s := map[string]string{}
	for _, f := range []struct {
		flag  string
		asked bool
		value any
	}{
		{"--presence-penalty", p.Presence != 0, p.Presence}, {"--frequency-penalty", p.Frequency != 0, p.Frequency},
		{"--min-tokens", p.MinTokens > 0, p.MinTokens}, {"--logit-bias", len(p.Bias) > 0, p.Bias},
		{"--allowed-token-ids", p.Allowed != nil, p.Allowed},
		{"--bad-words", len(p.BadText) > 0, p.BadText}, {"--include-stop-str-in-output", p.IncludeStop, p.IncludeStop},
		{"--thinking-token-budget", p.ThinkTokens != nil, p.ThinkTokens},
		{"--logprob-token-ids", len(p.Labels) > 0, p.Labels},
		{"--prompt-logprobs", p.PromptLogprobs > 0, p.PromptLogprobs - 1}, {"prompt only", p.PromptOnly, true},
	} {
		if f.asked {
			text, err := json.Marshal(f.value)
			if err != nil {
				panic(err) // plain numbers, strings and lists
			}
			s[f.flag] = string(text)
		}
	}
	return s
}

// Prompt is what the model would be given for one input row.
type Prompt struct {
	Text   string // of the tokens
	Tokens int
	Cut    int // tokens that did not fit
}

// Prompt prepares one row without an engine.
func (p *Plan) Prompt(ctx context.Context, t Text, index int64) (Prompt, error) {
	if err := p.Check(t); err != nil {
		return Prompt{}, err
	}
	if index < 0 || index >= p.in.Rows {
		return Prompt{}, fmt.Errorf("there is no row %d: the input has %d, from 0", index, p.in.Rows)
	}
	reader := p.in.Reader(index, index+1)
	defer reader.Close()
	records, err := reader.Read()
	if err != nil {
		return Prompt{}, err
	}
	prep := &preparer{cols: p.cols, text: t, o: &p.Options}
	r := prep.row(ctx, records[0])
	if err := prep.judge(ctx, r); err != nil {
		return Prompt{}, err
	}
	if r.err != nil {
		return Prompt{}, fmt.Errorf("row %d: %s: %s", index, r.err.code, r.err.text)
	}
	return Prompt{t.Tokenizer.Decode(r.prompt, false), len(r.prompt), r.cut}, nil
}

// Estimate is what a dry run finds.
type Estimate struct {
	Rows, Errors    int64
	Samples         int64
	PromptTokens    int64 // of all samples
	SharedTokens    int64 // of them, those that need not be computed, as others have them
	MostTokens      int64 // of output, if every sample runs to max_tokens
	LongestPrompt   int
	LongestSequence int // prompt and max_tokens
	Codes           map[string]int64
}

// Estimate reads and tokenizes all rows, without an engine.
func (p *Plan) Estimate(ctx context.Context, t Text) (Estimate, error) {
	e := Estimate{Codes: map[string]int64{}}
	if err := p.Check(t); err != nil {
		return e, err
	}
	prep := &preparer{cols: p.cols, text: t, o: &p.Options}
	prefixes := engine.NewPrefixes(p.Options.InFlight)
	r := p.in.Reader(p.From, p.To)
	defer r.Close()
	for {
		records, err := r.Read()
		if err == io.EOF {
			return e, nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return e, err
		}
		for _, rec := range records {
			row := prep.row(ctx, rec)
			if err := prep.judge(ctx, row); err != nil {
				return e, err
			}
			e.Rows++
			if row.err != nil {
				e.Errors++
				e.Samples++
				e.Codes[row.err.code]++
				continue
			}
			n := int64(row.params.N)
			e.Samples += n
			e.PromptTokens += n * int64(len(row.prompt))
			for range n {
				e.SharedTokens += int64(prefixes.Add(row.prompt))
			}
			e.MostTokens += n * int64(row.params.MaxTokens)
			e.LongestPrompt = max(e.LongestPrompt, len(row.prompt))
			e.LongestSequence = max(e.LongestSequence, len(row.prompt)+row.params.MaxTokens)
		}
	}
}
