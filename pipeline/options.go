package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"glmbatch/datasets"
)

// Options say what to make of the rows. The zero value is usable.
type Options struct {
	PromptColumn    string                     // "": the first of messages, prompt, text, question
	MessagesColumn  string                     // like PromptColumn, but the text is JSON
	SystemColumn    string                     // "": system, if there is one; NoColumn: none
	ToolsColumn     string                     // "": tools, if there is one; NoColumn: none
	System          string                     // system message of rows that have none
	Raw             bool                       // prompts are the model's input as they are, without the chat template
	Thinking        *bool                      // nil: as the template has it
	Continue        bool                       // an assistant's message at the end is continued, not answered
	TemplateArgs    map[string]json.RawMessage // other variables of the chat template
	OnOverlong      string                     // "": OverlongError
	Params          Params                     // of rows that do not say otherwise
	IgnoreRowParams bool                       // columns with parameters are data, not parameters
	// columns of single parameters, as PARAMETER or PARAMETER=COLUMN; nil: those that look like one; NoColumn: none
	ParamColumns []string
	Given        []string // parameters that the user gave for all rows
	Seed         int64    // of the run
	EndTokens    []int32

	Limit         int64 // rows; 0: all
	Shard, Shards int   // this is shard Shard (from 0) of Shards; 0 of 0: all
	TokenIDs      bool  // a column token_ids
	Logprobs      bool  // columns logprobs and top_logprobs

	PromptLogprobs bool            // columns prompt_logprobs and prompt_top_logprobs
	Names          datasets.Naming // of the columns of results
	Check          string          // column of right answers to count matches with; "": none
	CheckBy        string          // column whose values the matches are counted by; "": none

	Context  int // positions of a sequence that the engine can hold
	InFlight int // sequences given to the engine at once; 0: 128
	Window   int // finished rows held in memory until those before them are; 0: 16 times InFlight
	Workers  int // that tokenize; 0: one a processor
	PartRows int // rows of an output file; 0: 50,000

	SyncInterval time.Duration // the most finished work that a crash costs; 0: 2 s
}

func (o Options) withDefaults() Options {
	set := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	set(&o.InFlight, 128)
	set(&o.Window, 16*o.InFlight)
	set(&o.Workers, runtime.GOMAXPROCS(0))
	set(&o.PartRows, 50_000)
	set(&o.Context, 1<<30)
	set(&o.Shards, 1)
	if o.SyncInterval == 0 {
		o.SyncInterval = 2 * time.Second
	}
	if o.OnOverlong == "" {
		o.OnOverlong = OverlongError
	}
	if o.Params.N == 0 {
		o.Params.N = 1
	}
	return o
}

// Validate reports every fault.
func (o Options) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.OnOverlong != "" && !slices.Contains(overlongs, o.OnOverlong) {
		fault("--on-overlong %q is not %s", o.OnOverlong, strings.Join(overlongs, ", "))
	}
	if o.PromptColumn != "" && o.MessagesColumn != "" {
		fault("--prompt-column and --messages-column exclude each other")
	}
	if !utf8.ValidString(o.System) {
		fault("--system is not valid UTF-8")
	}
	if err := o.Names.Validate(); err != nil {
		errs = append(errs, err)
	}
	if o.Limit < 0 {
		fault("--limit %d is negative", o.Limit)
	}
	if o.Shards < 0 || o.Shard < 0 || o.Shard >= max(o.Shards, 1) {
		fault("--shard %d/%d: the first number must be less than the second", o.Shard, o.Shards)
	}
	for _, f := range []struct {
		name  string
		value int
	}{{"InFlight", o.InFlight}, {"Window", o.Window}, {"Workers", o.Workers}, {"PartRows", o.PartRows},
		{"Context", o.Context}} {
		if f.value < 0 {
			fault("%s %d is negative", f.name, f.value)
		}
	}
	return errors.Join(errs...)
}

// rows returns the range of input rows that the job is about.
func (o Options) rows(all int64) (from, to int64) {
	if o.Limit > 0 {
		all = min(all, o.Limit)
	}
	n, k := int64(max(o.Shards, 1)), int64(o.Shard)
	return all/n*k + min(k, all%n), all/n*(k+1) + min(k+1, all%n)
}
