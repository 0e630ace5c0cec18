package pipeline

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"glmbatch/datasets"
	"glmbatch/pipeline/guide"
)

// paramColumn is one parameter's own column.
type paramColumn struct {
	field datasets.Field
	param *param
}

// findParams finds the columns of parameters: the one that has them all, and those
// that a flag names or, without the flag, that are called like a parameter and look
// like one.
func (c *columns) findParams(in *datasets.Input, o *Options) error {
	if o.IgnoreRowParams {
		return nil
	}
	for _, name := range paramNames {
		f, ok := in.Lookup(name)
		if !ok {
			continue
		}
		if !slices.Contains([]datasets.Shape{datasets.Struct, datasets.Text, datasets.Null}, f.Shape) {
			return fmt.Errorf("%s: column %q is %s: parameters are a struct or JSON text; --ignore-row-params leaves "+
				"it as data", in.Paths(), name, f.Type())
		}
		c.params = &f
		break
	}
	var guessed []paramColumn
	var err error
	if len(o.ParamColumns) > 0 {
		err = c.namedParams(in, o.ParamColumns)
	} else {
		guessed, err = c.guessedParams(in)
	}
	if err != nil {
		return err
	}
	return c.look(in, o, guessed)
}

// namedParams takes the columns of --param-columns.
func (c *columns) namedParams(in *datasets.Input, names []string) error {
	if len(names) == 1 && names[0] == NoColumn {
		return nil
	}
	for _, text := range names {
		name, column, _ := strings.Cut(text, "=")
		column = cmp.Or(column, name)
		p := findParam(name)
		if p == nil || p.column == nil {
			return fmt.Errorf("--param-columns %s: a column can have the parameters %s; one of another name is given "+
				"as PARAMETER=COLUMN", text, paramsOfColumns())
		}
		f, ok := in.Lookup(column)
		switch {
		case !ok:
			return noColumn(in, column)
		case !slices.Contains(p.column, f.Shape):
			return fmt.Errorf("%s: column %q is %s, which cannot be %s", in.Paths(), column, f.Type(), p.names[0])
		case slices.ContainsFunc(c.single, func(s paramColumn) bool { return s.param == p }):
			return fmt.Errorf("--param-columns names two columns for %s", p.names[0])
		}
		c.single = append(c.single, paramColumn{f, p})
	}
	return nil
}

func paramsOfColumns() string {
	var names []string
	for i := range params {
		if params[i].column != nil {
			names = append(names, params[i].names[0])
		}
	}
	return strings.Join(names, ", ")
}

// guessedParams finds columns that are called like a parameter. Those of a job's
// output are what that job ran with, not what the next is to run with.
func (c *columns) guessedParams(in *datasets.Input) ([]paramColumn, error) {
	var found []paramColumn
	var names []string
	var misfit error
	for i := range params {
		p := &params[i]
		if p.column == nil {
			continue
		}
		j := slices.IndexFunc(p.names, func(n string) bool {
			f, ok := in.Lookup(n)
			return ok && f.Shape != datasets.Null
		})
		if j < 0 {
			continue
		}
		f, _ := in.Lookup(p.names[j])
		names = append(names, f.Name)
		if !slices.Contains(p.column, f.Shape) && misfit == nil {
			misfit = fmt.Errorf("%s: column %q is %s, which cannot be the sampling parameter: --param-columns %s "+
				"leaves it as data", in.Paths(), f.Name, f.Type(), NoColumn)
		}
		found = append(found, paramColumn{f, p})
	}
	if why := answered(in); why != "" && len(found) > 0 {
		c.note("%s %s only data, as the input is a job's output (it has %s); --param-columns takes columns for "+
			"parameters", strings.Join(names, ", "), isAre(len(names)), why)
		return nil, nil
	}
	return found, misfit
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// answered says by what an input is known for the output of a job; "": it is not.
func answered(in *datasets.Input) string {
	if in.Metadata(keyRun) != "" {
		return "the mark " + keyRun
	}
	for _, name := range in.Names() {
		for _, ours := range []string{"response", "finish_reason", "completion_tokens", "error_code", "row_index",
			"sample_index"} {
			if name == ours || ours != "response" && strings.HasSuffix(name, "_"+ours) {
				return "a column " + name
			}
		}
	}
	return ""
}

// lookRows bounds the rows whose parameters are looked at before a job.
const lookRows = 100_000

// look reads the input's first rows, if what is in them decides something: whether
// guessed columns hold parameters, and whether rows ask for log-probabilities, which
// are columns of their own.
func (c *columns) look(in *datasets.Input, o *Options, guessed []paramColumn) error {
	asking := c.asking(guessed)
	done := func() bool { return o.Logprobs && o.PromptLogprobs || c.params == nil && len(asking) == 0 }
	if len(guessed) == 0 && done() {
		return nil
	}
	odd, some := make([]string, len(guessed)), make([]bool, len(guessed))
	r := in.Reader(0, lookRows)
	defer r.Close()
	for {
		records, err := r.Read()
		if err != nil { // the job itself says what is wrong with a file
			break
		}
		for _, rec := range records {
			for i, g := range guessed {
				if v, ok, _ := g.field.JSON(nil, rec); ok && odd[i] == "" {
					some[i] = true
					odd[i] = g.odd(v)
				}
			}
			if !done() {
				p := c.asks(rec, asking)
				o.Logprobs = o.Logprobs || p.wantsLogprobs()
				o.PromptLogprobs = o.PromptLogprobs || p.PromptLogprobs > 0
			}
		}
	}
	var all []string
	refused := map[string]string{} // what is said of columns that are not taken, by what would take them
	var flag *paramColumn          // of a flag too
	for i, g := range guessed {
		name, as := g.param.names[0], g.param.names[0]
		if g.field.Name != name {
			as += "=" + g.field.Name
		}
		switch {
		case !some[i]:
			continue
		case odd[i] != "":
			refused[as] = fmt.Sprintf("column %s is only data, in all rows: %s is no usual %s (%s)", g.field.Name,
				odd[i], name, g.param.within)
			continue
		case flag == nil && slices.Contains(o.Given, name):
			flag = &guessed[i]
		}
		c.single = append(c.single, g)
		all = append(all, as)
	}
	for _, as := range slices.Sorted(maps.Keys(refused)) { // the flag takes only what it names
		c.note("%s; --param-columns %s takes it, and a row whose value cannot be has an error", refused[as],
			strings.Join(append(all[:len(all):len(all)], as), ","))
	}
	if flag != nil {
		name := flag.param.names[0]
		return fmt.Errorf("%s: both column %q and --%s say %s: --param-columns %s takes the column, and the flag for "+
			"rows where it is null; --param-columns %s leaves it as data",
			in.Paths(), flag.field.Name, strings.ReplaceAll(name, "_", "-"), name, strings.Join(all, ","), NoColumn)
	}
	return nil
}

func (c *columns) note(format string, args ...any) {
	c.Notes = append(c.Notes, fmt.Sprintf(format, args...))
}

// odd returns the value if it is not one that the parameter usually has.
func (s paramColumn) odd(v []byte) string {
	if slices.Contains(guideNames, s.param.names[0]) { // nobody calls anything else so
		return ""
	}
	var p Params
	if s.set(&p, v) != nil || s.param.usual != nil && !s.param.usual(&p) {
		return short(v)
	}
	return ""
}

// set applies a column's value. Text that is a list in JSON is a list.
func (s paramColumn) set(p *Params, v []byte) error {
	if s.field.Shape == datasets.Struct {
		v = guide.Dense(v)
	}
	if s.field.Shape == datasets.Text && slices.Contains(s.param.column, datasets.List) {
		var text string
		if json.Unmarshal(v, &text) == nil && strings.HasPrefix(strings.TrimSpace(text), "[") &&
			json.Valid([]byte(text)) {
			v = bytes.TrimSpace([]byte(text))
		}
	}
	return s.param.set(p, v)
}

// wantsLogprobs reports whether the output needs the columns logprobs and top_logprobs.
func (p *Params) wantsLogprobs() bool { return p.Logprobs > 0 || len(p.Labels) > 0 }

// asking are the single columns that may ask for columns of the output.
func (c *columns) asking(guessed []paramColumn) (list []paramColumn) {
	for _, s := range slices.Concat(c.single, guessed) {
		if n := s.param.names[0]; n == "logprob_token_ids" || n == "prompt_logprobs" {
			list = append(list, s)
		}
	}
	return list
}

// asks returns what a row's parameters say of log-probabilities.
func (c *columns) asks(rec datasets.Record, single []paramColumn) (p Params) {
	if c.params != nil {
		v, ok, err := jsonOf(*c.params, rec)
		if err == nil && ok && bytes.Contains(v, []byte("logprob")) {
			if c.batch != nil {
				var fields map[string]json.RawMessage
				if json.Unmarshal(v, &fields) == nil {
					v = batchParams(fields)
				}
			}
			var all Params
			if all.SetJSON(v) == nil {
				p = all
			}
		}
	}
	for _, s := range single {
		if v, ok, _ := s.field.JSON(nil, rec); ok {
			var one Params
			if s.set(&one, v) == nil {
				p.Labels, p.PromptLogprobs = append(p.Labels, one.Labels...), max(p.PromptLogprobs, one.PromptLogprobs)
			}
		}
	}
	return p
}
