package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"glmbatch/pipeline/guide"
)

// Guides makes the guides of a job when a row first asks for one: they take seconds and
// memory. It is safe for concurrent use.
type Guides struct {
	// New makes them. It may not be nil.
	New func(context.Context) (*guide.Guides, error)

	mu   sync.Mutex
	made *guide.Guides
	err  error
}

// errGuides: the guides do not work, whatever rows ask for. It ends the job: the rows are
// right, and are to be run where the guides work.
var errGuides = errors.New("responses cannot be guided")

var errGuidesClosed = errors.New("the guides are closed")

// get returns them. That a caller was stopped is its own end, and not remembered.
func (g *Guides) get(ctx context.Context) (*guide.Guides, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.made == nil && g.err == nil {
		made, err := g.New(ctx)
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		g.made, g.err = made, err
	}
	return g.made, g.err
}

// Begin makes them beside what else is to be done before the first row, such as loading
// weights. What fails is said to the row that asks.
func (g *Guides) Begin(ctx context.Context) { go func() { _, _ = g.get(ctx) }() }

// guidedLook is how many rows Guided looks at.
const guidedLook = 64

// Guided reports whether rows are likely to ask for guides: all, a column, or one of the first.
func (p *Plan) Guided() bool {
	if p.Options.Params.GuidedBy != "" {
		return true
	}
	for _, c := range p.cols.single {
		if slices.Contains(guideNames, c.param.names[0]) {
			return true
		}
	}
	if p.cols.params == nil {
		return false
	}
	r := p.in.Reader(p.From, min(p.To, p.From+guidedLook))
	defer r.Close()
	for {
		records, err := r.Read()
		if err != nil { // the job itself says what is wrong with a file
			return false
		}
		for _, rec := range records {
			v, ok, err := jsonOf(*p.cols.params, rec)
			if err == nil && ok && slices.ContainsFunc(guideNames, func(name string) bool {
				return bytes.Contains(v, []byte(`"`+name+`"`))
			}) {
				return true
			}
		}
	}
}

// Close ends those that were made, after the job.
func (g *Guides) Close() {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.made != nil {
		g.made.Close()
	}
	g.made, g.err = nil, errGuidesClosed
}

// judge sees whether the guide of a row that was prepared can be followed; if not, that is
// the row's error. It is no part of preparing the row, as the bounds of time have a part in
// it: what was said once is in the journal, by the row's identity. The error is that of the
// guides themselves, and no row's.
func (p *preparer) judge(ctx context.Context, r *row) error {
	if r.err != nil || r.params.Guide.IsZero() {
		return nil
	}
	if p.text.Guides == nil {
		r.err = badRow(BadParams, "%s: there are no guides", r.params.GuidedBy)
		return nil
	}
	g, err := p.text.Guides.get(ctx)
	if err != nil {
		return r.unguided(err)
	}
	switch err := g.Check(r.params.Guide); {
	case errors.Is(err, guide.ErrMachine):
		return r.unguided(err)
	case err != nil:
		r.err = badRow(BadParams, "%s: %s", r.params.GuidedBy, oneLine(err))
	default:
		r.guides = g
	}
	if r.err != nil {
		return nil
	}
	if by := r.params.restrictions(0); len(by) > 0 {
		if err := g.Possible(r.params.Guide, r.open, r.params.limits()); err != nil {
			r.err = badRow(BadParams, "%s contradicts %s: %v", strings.Join(by, " with "), r.params.GuidedBy, err)
		}
	}
	return nil
}

// restrictions are the parameters that keep tokens from being chosen behind so many of the
// response.
func (p *Params) restrictions(tokens int) (names []string) {
	for _, k := range []struct {
		name string
		is   bool
	}{
		{"allowed_token_ids", p.Allowed != nil},
		{"bad_words", len(p.BadText) > 0},
		{"min_tokens", p.MinTokens > tokens},
	} {
		if k.is {
			names = append(names, k.name)
		}
	}
	return names
}

// limits are what the parameters leave to a guide.
func (p *Params) limits() guide.Limits {
	l := guide.Limits{Allowed: p.Allowed, Min: p.MinTokens, Held: p.StopTokens, Max: p.MaxTokens}
	for _, w := range p.BadWords {
		if len(w) == 1 {
			l.Never = append(l.Never, w[0])
		}
	}
	return l
}

// unguided is an error of the guides, as a row met it.
func (r *row) unguided(err error) error {
	return fmt.Errorf("row %d: %s: %w: %w; see to that, such as to memory, or run rows without it", r.record.Index,
		r.params.GuidedBy, errGuides, err)
}

// guideNames are the parameters that say what a response has to follow.
var guideNames = []string{"response_format", "structured_outputs", "guided_decoding", "guided_json", "guided_regex",
	"guided_choice", "guided_grammar"}

// oneGuide sees to it that one place, a row's parameters or its columns, has one of them.
type oneGuide struct{ name string }

// add returns where a parameter of the place is to be set: in p, or, where it leaves the
// guide of another one alone, in something that nobody looks at.
func (o *oneGuide) add(p *Params, name string, v json.RawMessage) (to *Params, err error) {
	switch {
	case !slices.Contains(guideNames, name):
	case name == "response_format" && isText(v): // no guide: it frees a row of what is said for all
		if o.name != "" {
			return &Params{}, nil
		}
	case o.name != "":
		return nil, fmt.Errorf("both %s and %s are given, and a response follows one", o.name, name)
	default:
		o.name = name
	}
	return p, nil
}

// isText reports whether a response format is of type text.
func isText(v json.RawMessage) bool {
	var f struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(textOf(v), &f) == nil && f.Type == "text"
}

// guideBy makes a setter of what a row is to follow.
func guideBy(name string, parse func(v json.RawMessage) (guide.Spec, error)) func(*Params, json.RawMessage) error {
	return func(p *Params, v json.RawMessage) error {
		s, err := parse(v)
		if err == nil {
			p.Guide, p.GuidedBy = s, name
		}
		return err
	}
}

// responseFormat reads OpenAI's.
func responseFormat(v json.RawMessage) (s guide.Spec, err error) {
	var f struct {
		Type   string `json:"type"`
		Schema *struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Schema      json.RawMessage `json:"schema"`
			Strict      *bool           `json:"strict"` // a schema is always followed
		} `json:"json_schema"`
	}
	if err := strictly(textOf(v), &f); err != nil {
		return s, err
	}
	switch f.Type {
	case "text":
		return s, nil
	case "json_object":
		return guide.NewObject(guide.Whitespace{}), nil
	case "json_schema":
		if f.Schema == nil || absent(f.Schema.Schema) {
			return s, errors.New("json_schema has no schema")
		}
		return guide.NewSchema(f.Schema.Schema, guide.Whitespace{})
	}
	return s, fmt.Errorf("type %q is not text, json_object or json_schema", f.Type)
}

// structuredOutputs reads vLLM's, and its guided_decoding, as it was called before.
func structuredOutputs(v json.RawMessage) (s guide.Spec, err error) {
	var f struct {
		JSON     json.RawMessage `json:"json"`
		Object   *bool           `json:"json_object"`
		Regex    json.RawMessage `json:"regex"`
		Choice   json.RawMessage `json:"choice"`
		Grammar  json.RawMessage `json:"grammar"`
		Tag      json.RawMessage `json:"structural_tag"`
		None     *bool           `json:"disable_any_whitespace"`
		Pattern  *string         `json:"whitespace_pattern"`
		Closed   *bool           `json:"disable_additional_properties"`
		Fallback *bool           `json:"disable_fallback"` // there is one way alone
		Backend  json.RawMessage `json:"backend"`          // likewise
		Was      json.RawMessage `json:"_backend"`
		Auto     *bool           `json:"_backend_was_auto"`
	}
	if err := strictly(textOf(v), &f); err != nil {
		return s, err
	}
	if f.Closed != nil && *f.Closed {
		return s, errors.New("disable_additional_properties is not supported: say additionalProperties in the schema")
	}
	w := guide.Whitespace{None: f.None != nil && *f.None}
	if f.Pattern != nil {
		w.Pattern = *f.Pattern
	}
	given := ""
	for _, k := range []struct {
		name string
		v    json.RawMessage
		read func(json.RawMessage) (guide.Spec, error)
	}{
		{"json", f.JSON, func(v json.RawMessage) (guide.Spec, error) { return guide.NewSchema(textOf(v), w) }},
		{"regex", f.Regex, guidedRegex}, {"choice", f.Choice, guidedChoice}, {"grammar", f.Grammar, guidedGrammar},
		{"structural_tag", f.Tag, func(json.RawMessage) (s guide.Spec, err error) {
			return s, errors.New("it is not supported")
		}},
	} {
		if absent(k.v) {
			continue
		}
		if given != "" {
			return s, fmt.Errorf("both %s and %s are given", given, k.name)
		}
		given = k.name
		if s, err = k.read(k.v); err != nil {
			return guide.Spec{}, fmt.Errorf("%s: %w", k.name, err)
		}
	}
	if f.Object != nil && *f.Object {
		if given != "" {
			return guide.Spec{}, fmt.Errorf("both %s and json_object are given", given)
		}
		s = guide.NewObject(w)
	}
	return s, nil
}

func guidedJSON(v json.RawMessage) (guide.Spec, error) {
	return guide.NewSchema(textOf(v), guide.Whitespace{})
}

func guidedRegex(v json.RawMessage) (s guide.Spec, err error) {
	var text string
	if json.Unmarshal(v, &text) != nil {
		return s, fmt.Errorf("%s is no text", short(v))
	}
	return guide.NewRegex(text)
}

func guidedGrammar(v json.RawMessage) (s guide.Spec, err error) {
	var text string
	if json.Unmarshal(v, &text) != nil {
		return s, fmt.Errorf("%s is no text", short(v))
	}
	return guide.NewGrammar(text)
}

func guidedChoice(v json.RawMessage) (s guide.Spec, err error) {
	var texts []string
	if json.Unmarshal(textOf(v), &texts) != nil {
		return s, fmt.Errorf("%s is no list of texts", short(v))
	}
	return guide.NewChoice(texts)
}

// textOf is a value, or what a text has as JSON.
func textOf(v json.RawMessage) json.RawMessage {
	var text string
	if json.Unmarshal(v, &text) == nil && !absent(v) {
		return json.RawMessage(text)
	}
	return v
}

func absent(v json.RawMessage) bool {
	v = bytes.TrimSpace(v)
	return len(v) == 0 || string(v) == "null"
}

// strictly reads an object that has no other fields than to has.
func strictly(v json.RawMessage, to any) error {
	d := json.NewDecoder(bytes.NewReader(v))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return fmt.Errorf("%s: %w", short(v), err)
	}
	if d.More() {
		return fmt.Errorf("%s is more than one value", short(v))
	}
	return nil
}
