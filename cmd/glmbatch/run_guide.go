package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/pflag"

	"glmbatch/pipeline"
	"glmbatch/pipeline/guide"
)

// guideFlags say what the responses of rows follow that do not say it themselves.
type guideFlags struct {
	schema, grammar string // files
	object          bool
	regex           string
	choice          []string
}

// mostGuide bounds the files of schemas and grammars.
const mostGuide = 1 << 20

// set applies the flags that were given, of which there is one at most.
func (g *guideFlags) set(f *pflag.FlagSet, p *pipeline.Params) error {
	given := ""
	file := func(path string) (string, error) {
		f, err := os.Open(path)
		if err != nil {
			return "", err
		}
		defer f.Close()
		data, err := io.ReadAll(io.LimitReader(f, mostGuide+1)) // it may be a pipe, or have no end
		if err == nil && len(data) > mostGuide {
			err = fmt.Errorf("%s has more than %d bytes", path, mostGuide)
		}
		return string(data), err
	}
	for _, flag := range []struct {
		name, param string
		value       func() (any, error)
	}{
		{"json-schema", "guided_json", func() (any, error) { return file(g.schema) }},
		{"json-object", "response_format", func() (any, error) {
			return map[string]string{"type": objectOr(g.object)}, nil
		}},
		{"regex", "guided_regex", func() (any, error) { return g.regex, nil }},
		{"choice", "guided_choice", func() (any, error) { return g.choice, nil }},
		{"grammar", "guided_grammar", func() (any, error) { return file(g.grammar) }},
	} {
		if !f.Changed(flag.name) {
			continue
		}
		if given != "" {
			return fmt.Errorf("--%s and --%s exclude each other: a response follows one", given, flag.name)
		}
		given = flag.name
		v, err := flag.value()
		var text json.RawMessage
		if err == nil {
			text, err = json.Marshal(v)
		}
		if err == nil {
			err = p.Set(flag.param, text)
		}
		if err != nil {
			return fmt.Errorf("--%s: %w", flag.name, err)
		}
	}
	return nil
}

func objectOr(object bool) string {
	if object {
		return "json_object"
	}
	return "text"
}

// guides make what the rows' responses are guided by.
func (m *openedModel) guides() *pipeline.Guides {
	return &pipeline.Guides{New: func(ctx context.Context) (*guide.Guides, error) {
		o := guide.Options{Ends: slices.Concat(m.config.EOS, m.generation.EOS), Tokens: m.config.Vocab,
			Cache: guideCache()}
		return guide.New(ctx, m.text.Tokenizer, o)
	}}
}

// guideCache is where the compiled module of guides is kept; "": nowhere.
func guideCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "glmbatch", "guide")
}
