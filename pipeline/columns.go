package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"glmbatch/datasets"
)

// columns are where a job finds its rows' prompts and parameters.
type columns struct {
	prompt   datasets.Field
	messages bool            // prompt holds messages: a list of structs, or JSON text
	system   *datasets.Field // text
	tools    *datasets.Field // a list of structs, or JSON text
	params   *datasets.Field // a struct, or JSON text
	single   []paramColumn
	check    *datasets.Field // expected answers
	Notes    []string        // what a user may want to know of the choice
}

// paramColumn is one parameter's own column.
type paramColumn struct {
	field datasets.Field
	param *param
}

var (
	promptNames = []string{"prompt", "text", "question"}
	paramNames  = []string{"sampling_params", "generation_params"}
)

func findColumns(in *datasets.Input, o *Options) (*columns, error) {
	c := &columns{}
	if err := c.findPrompt(in, o); err != nil {
		return nil, err
	}
	var err error
	if c.system, err = optionalColumn(in, o.SystemColumn, "system", datasets.Text); err != nil {
		return nil, err
	}
	if c.tools, err = optionalColumn(in, o.ToolsColumn, "tools", datasets.Text, datasets.List); err != nil {
		return nil, err
	}
	if o.Check != "" {
		if c.check, err = optionalColumn(in, o.Check, o.Check, datasets.Text); err != nil {
			return nil, err
		}
	}
	if o.IgnoreRowParams {
		return c, nil
	}
	for _, name := range paramNames {
		if f, ok := in.Lookup(name); ok && slices.Contains([]datasets.Shape{datasets.Struct, datasets.Text}, f.Shape) {
			c.params = &f
			break
		}
	}
	for i := range params {
		c.findParam(in, &params[i])
	}
	return c, nil
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
		messages = true
	case datasets.Text, datasets.Null:
	default:
		return fmt.Errorf("%s: column %q is %s; prompts are text or messages (a list of structs, or JSON text)", in.Paths(), name, f.Type())
	}
	c.prompt, c.messages = f, messages
	return nil
}

// optionalColumn finds a column that was named by flag, or one of the usual name
// if it has a fitting type.
func optionalColumn(in *datasets.Input, named, usual string, shapes ...datasets.Shape) (*datasets.Field, error) {
	name := named
	if name == "" {
		name = usual
	}
	f, ok := in.Lookup(name)
	switch {
	case !ok && named == "":
		return nil, nil
	case !ok:
		return nil, noColumn(in, name)
	case slices.Contains(shapes, f.Shape), f.Shape == datasets.Null:
		return &f, nil
	case named == "":
		return nil, nil
	}
	return nil, fmt.Errorf("%s: column %q is %s, which cannot be used here", in.Paths(), name, f.Type())
}

func noColumn(in *datasets.Input, name string) error {
	return fmt.Errorf("%s: no column %q; the columns are %s", in.Paths(), name, in.ColumnNames())
}

// findParam finds a parameter's own column, if it can have one.
func (c *columns) findParam(in *datasets.Input, p *param) {
	if p.column == nil {
		return
	}
	for _, name := range p.names {
		f, ok := in.Lookup(name)
		if !ok {
			continue
		}
		if slices.Contains(p.column, f.Shape) {
			c.single = append(c.single, paramColumn{f, p})
			return
		}
		c.Notes = append(c.Notes, fmt.Sprintf("column %q is %s, so it is not taken for a sampling parameter", name, f.Type()))
	}
}
