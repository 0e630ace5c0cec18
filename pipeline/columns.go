package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"glmbatch/datasets"
)

// columns are where a job finds its rows' prompts and parameters.
type columns struct {
	batch    *batchColumns // nil: the input is not one of batch requests
	prompt   datasets.Field
	messages bool            // prompt holds messages: a list of structs, or JSON text
	system   *datasets.Field // text
	tools    *datasets.Field // a list of structs, or JSON text
	params   *datasets.Field // a struct, or JSON text
	args     *datasets.Field // variables of the chat template: a struct, or JSON text
	single   []paramColumn
	check    *checker // nil: nothing is compared
	Notes    []string // what a user may want to know of the choice
}

var (
	promptNames = []string{"prompt", "text", "question"}
	paramNames  = []string{"sampling_params", "generation_params"}
)

// NoColumn stands for no column where a flag names one: what would be found by its
// name is only data then.
const NoColumn = "none"

func findColumns(in *datasets.Input, o *Options) (*columns, error) {
	c := &columns{}
	var err error
	if c.batch, err = findBatch(in, o); err != nil {
		return nil, err
	}
	if c.batch != nil {
		c.prompt, c.messages = c.batch.body, true
		if c.check, err = findChecker(in, o); err != nil || o.IgnoreRowParams {
			return c, err
		}
		c.params = &c.batch.body
		return c, c.look(in, o, nil)
	}
	if err := c.findPrompt(in, o); err != nil {
		return nil, err
	}
	if c.system, err = optionalColumn(in, o.SystemColumn, "system", datasets.Text); err != nil {
		return nil, err
	}
	if c.tools, err = optionalColumn(in, o.ToolsColumn, "tools", datasets.Text, datasets.List); err != nil {
		return nil, err
	}
	if c.tools != nil && c.tools.Shape == datasets.List &&
		!slices.Contains([]datasets.Shape{datasets.Struct, datasets.Text, datasets.Null}, c.tools.Element()) {
		return nil, cannotWork(in, *c.tools, "--tools-column",
			"tools are structs or JSON text, or all are one JSON text")
	}
	if c.check, err = findChecker(in, o); err != nil {
		return nil, err
	}
	if c.args, err = templateArgsColumn(in, o); err != nil {
		return nil, err
	}
	return c, c.findParams(in, o)
}

// hasTools reports whether rows may have tools.
func (c *columns) hasTools() bool { return c.tools != nil || c.batch != nil }

// argsName is the column of a row's variables of the chat template.
const argsName = "chat_template_kwargs"

func templateArgsColumn(in *datasets.Input, o *Options) (*datasets.Field, error) {
	f, ok := in.Lookup(argsName)
	if !ok || o.IgnoreRowParams || o.Raw {
		return nil, nil
	}
	if !slices.Contains([]datasets.Shape{datasets.Struct, datasets.Text, datasets.Null}, f.Shape) {
		return nil,
			fmt.Errorf("%s: column %q is %s; variables of the chat template are a struct, or JSON text: "+
				"--ignore-row-params leaves them as data", in.Paths(), f.Name, f.Type())
	}
	return &f, nil
}

func (c *columns) findPrompt(in *datasets.Input, o *Options) error {
	name, messages := o.PromptColumn, false
	switch {
	case o.MessagesColumn != "":
		name, messages = o.MessagesColumn, true
	case name == "":
		names := append([]string{"messages"}, promptNames...)
		i := slices.IndexFunc(names, func(n string) bool { _, ok := in.Lookup(n); return ok })
		if i < 0 {
			return fmt.Errorf("%s: no column messages, %s; name one with --prompt-column. The columns are %s",
				in.Paths(), strings.Join(promptNames, ", "), in.ColumnNames())
		}
		name, messages = names[i], i == 0
	}
	f, ok := in.Lookup(name)
	if !ok {
		return noColumn(in, name)
	}
	switch f.Shape {
	case datasets.List:
		if e := f.Element(); e != datasets.Struct && e != datasets.Null {
			return fmt.Errorf("%s: column %q is %s; messages are structs with role and content: name another column "+
				"with --prompt-column", in.Paths(), name, f.Type())
		}
		messages = true
	case datasets.Text, datasets.Null:
	default:
		return fmt.Errorf("%s: column %q is %s; prompts are text or messages (a list of structs, or JSON text)",
			in.Paths(), name, f.Type())
	}
	c.prompt, c.messages = f, messages
	return nil
}

// optionalColumn finds a column that was named by flag, or one of the usual name.
func optionalColumn(in *datasets.Input, named, usual string, shapes ...datasets.Shape) (*datasets.Field, error) {
	name := cmp.Or(named, usual)
	f, ok := in.Lookup(name)
	switch {
	case !ok && (named == "" || named == NoColumn):
		return nil, nil
	case !ok:
		return nil, noColumn(in, name)
	case slices.Contains(shapes, f.Shape), f.Shape == datasets.Null:
		return &f, nil
	case named == "":
		return nil, cannotWork(in, f, "--"+usual+"-column", "it cannot be used for "+usual)
	}
	return nil, fmt.Errorf("%s: column %q is %s, which cannot be used here", in.Paths(), name, f.Type())
}

func noColumn(in *datasets.Input, name string) error {
	return fmt.Errorf("%s: no column %q; the columns are %s", in.Paths(), name, in.ColumnNames())
}

// cannotWork refuses a column that was found by its name.
func cannotWork(in *datasets.Input, f datasets.Field, flag, why string) error {
	return fmt.Errorf("%s: column %q is %s: %s; %s %s leaves it as data, or name another column with it", in.Paths(),
		f.Name, f.Type(), why, flag, NoColumn)
}

// Taken lists the columns that steer the rows, as "prompt", or "temperature from t".
func (c *columns) Taken() []string {
	if c.batch != nil {
		return []string{"batch requests from " + strings.Join(batchNames, ", ")}
	}
	what := "prompt"
	if c.messages {
		what = "messages"
	}
	list := []string{from(what, c.prompt.Name)}
	for _, o := range []struct {
		what  string
		field *datasets.Field
	}{{"system", c.system}, {"tools", c.tools}, {"parameters", c.params}, {argsName, c.args}} {
		if o.field != nil {
			list = append(list, from(o.what, o.field.Name))
		}
	}
	for _, s := range c.single {
		list = append(list, from(s.param.names[0], s.field.Name))
	}
	return list
}

func from(what, column string) string {
	if what == column {
		return what
	}
	return what + " from " + column
}
