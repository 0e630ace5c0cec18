package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"glmbatch/datasets"
	"glmbatch/engine"
	"glmbatch/engine/glm5"
	"glmbatch/kernels"
	"glmbatch/pipeline"
	"glmbatch/stores"
)

// runFlags are the options of glmbatch run that are not a row's parameters.
type runFlags struct {
	stdout, save   string
	spreadsheet    bool       // CSV is for one
	printed        bool       // rows went to standard output while the job ran
	out, model     string     // folders, or URLs of object stores
	modelURL       string     // where model was fetched from; "": it is a folder
	work           string     // folder for what is at URLs; "": in the user's cache
	remoteDir      string     // where a job with a URL for out works; "": out is a folder
	others         begunShard // another shard of the job at a URL
	demo           bool
	tp             int
	layout         string
	device         deviceFlags
	kvCache, act   string
	dense          string
	activations    string
	latentEps      float32
	maxBatchTokens int
	maxSeqs        int
	kvTokens       int
	sharing        string // on or off
	speculate      string
	drafts         engine.Speculation // what it says
	thinking       string
	template       string
	templateArgs   string
	sanitize       bool
	showPrompt     int64
	shard          string
	shardFrom      string // the variable that says which shard this is; "": none
	timeline       string
	timelineFormat string
	capture        captureFlags
	overwrite      bool
	retryErrors    bool
	passing        bool // the job's folder is removed at the end
	dryRun         bool
	like           string // folder of a job that a dry run estimates from
	quiet          bool
	logFormat      string
	maxErrors      int64
	grace          time.Duration
	deadline       string
	stopAt         time.Time // by deadline; the zero time: never
	noLock         bool
	metrics        metricsFlags
	stop           []string
	stopTokens     []int32
	guide          guideFlags
	badWords       []string
	allowedTokens  []int32
	labels         []int32
	rows           pipeline.Options
}

func (r *runFlags) add(f *pflag.FlagSet) {
	o := &r.rows
	f.SortFlags = false
	f.StringVarP(&r.out, "out", "o", "", "output `folder`, or a URL: s3://, gs://, azblob://")
	f.StringVar(&r.stdout, "stdout", "",
		"print all rows to standard output, in the input's order, as `format` arrow (IPC stream) or jsonl as they "+
			"are done, as csv or openai at the end; then --out may be left out")
	f.StringVar(&r.save, "save", "",
		"at the end, write all rows to this `file` too: .jsonl or .csv, also with .gz or .zst; batch requests' "+
			"answers as OpenAI has them, errors apart")
	f.BoolVar(&r.spreadsheet, "csv-for-spreadsheet", false,
		"in CSV, an apostrophe before texts that a spreadsheet would run as formulas (=, +, -, @)")
	f.StringVarP(&r.model, "model", "m", "", "checkpoint `folder`, or a URL (default: the demo checkpoint)")
	f.StringVar(&r.work, "work-dir", "",
		"`folder` of this machine for jobs and checkpoints at URLs (default: in the user's cache folder)")
	f.BoolVar(&r.demo, "demo", false, "run the demo prompts on the demo checkpoint")
	f.BoolVar(&r.overwrite, "overwrite", false, "start anew if the folder has a job's output")
	f.BoolVar(&r.retryErrors, "retry-errors", false,
		"run again the rows whose error may pass (docs/output.md says which), also those of a complete job")
	f.BoolVar(&r.dryRun, "dry-run", false,
		"count rows and tokens, check model and memory, estimate steps, time and energy; run nothing")
	f.StringVar(&r.like, "like", "",
		"`folder` of a job of the same model, for the estimates of --dry-run (default: the last such job on this "+
			"machine)")
	f.BoolVarP(&r.quiet, "quiet", "q", false, "no progress and no summary; notes on columns and errors are said")
	f.StringVar(&r.logFormat, "log-format", logText,
		"what is said on standard error as text (with the time, if that is no terminal) or json, a record a line")
	f.Int64Var(&r.maxErrors, "max-errors", 0, "rows with errors that still end with exit code 0")
	f.DurationVar(&r.grace, "grace", 20*time.Second,
		"when told to stop (SIGTERM, SIGINT, SIGUSR1, --deadline): how long rows that have begun may go on")
	f.StringVar(&r.deadline, "deadline", "",
		"stop at a `time` of day, 06:00 say, or after a while, 4h say, as by a signal")
	f.DurationVar(&o.SyncInterval, "sync-interval", 2*time.Second, "the most finished work that a crash may cost")
	f.BoolVar(&r.noLock, "no-lock", false,
		"the file system of --out has no locks: you see to it that no other run has the folder")
	r.metrics.add(f)
	heading(f, "Job")

	f.StringVar(&o.PromptColumn, "prompt-column", "", "column of prompts")
	f.StringVar(&o.MessagesColumn, "messages-column", "", "column of messages as JSON text")
	f.StringVar(&o.SystemColumn, "system-column", "",
		"column of system messages (default: system, if there is one; none: leave it as data)")
	f.StringVar(&o.ToolsColumn, "tools-column", "",
		"column of tools (default: tools, if there is one; none: leave it as data)")
	f.StringVar(&o.System, "system", "", "system message of rows that have none")
	f.BoolVar(&o.Raw, "raw", false, "prompts go to the model as they are, without the chat template")
	f.StringVar(&r.template, "chat-template", "",
		"`file` of a chat template instead of the checkpoint's, or the name of one of its templates")
	f.StringVar(&r.templateArgs, "chat-template-kwargs", "",
		"variables of the chat template, as a `JSON` object; a row's own are in a column chat_template_kwargs")
	f.BoolVar(&o.Continue, "continue-final-message", false,
		"where the last message is the assistant's, go on with it instead of answering it")
	f.BoolVar(&r.sanitize, "sanitize-control-tokens", false,
		"special tokens in messages, tools and variables are text, not tokens")
	f.Int64Var(&r.showPrompt, "show-prompt", -1,
		"print what the model would be given for this input `row`, from 0; run nothing")
	f.Lookup("show-prompt").DefValue = "0" // there is none: of numbers, help leaves 0 out
	f.StringVar(&r.thinking, "thinking", "auto", "on, off, or auto: as the chat template has it")
	f.StringVar(&o.OnOverlong, "on-overlong", pipeline.OverlongError,
		"prompts that do not fit: error, or truncate, truncate-middle, truncate-tail (cut the first, middle or last "+
			"tokens of what messages say, not the system message)")
	f.StringSliceVar(&o.ParamColumns, "param-columns", nil,
		"columns of sampling parameters, by `names` with commas between, or as PARAMETER=COLUMN (default: those that "+
			"are called and look like one; none: leave them as data)")
	f.BoolVar(&o.IgnoreRowParams, "ignore-row-params", false,
		"columns of parameters, and sampling_params, are only data")
	f.Int64Var(&o.Limit, "limit", 0, "only the first rows (0: all)")
	f.StringVar(&r.shard, "shard", "",
		"i/N: only the i-th of N equal parts of the rows, from 0, into a folder of its own in --out; see glmbatch "+
			"merge (default: a Slurm array's task, a Kubernetes Indexed Job's pod)")
	f.StringVar(&o.Names.Response, "response-column", "", "`name` of the column of responses (default: response)")
	f.StringVar(&o.Names.Prefix, "prefix", "",
		"`text` before the names of all columns of results (default: none, or glm_ if the input has one of them)")
	f.StringVar(&o.Check, "check", "",
		"column of right answers (text, numbers, true or false, dates): count responses that are equal")
	f.StringVar(&o.CheckBy, "check-by", "", "column whose values they are counted by too")
	heading(f, "Rows and prompts")

	f.Float64("temperature", 0, "0: the likeliest token always")
	f.Float64("top-p", 1, "only the likeliest tokens that together have this probability")
	f.Int("top-k", 0, "only the likeliest tokens, so many (0: all)")
	f.Float64("min-p", 0, "only tokens at least this likely, relative to the likeliest")
	f.Float64("repetition-penalty", 1, "divides the logits of tokens that were there")
	f.Float64("presence-penalty", 0, "taken from the logits of tokens that the response has already, from -2 to 2")
	f.Float64("frequency-penalty", 0, "likewise, for each time that it has them")
	f.Int("max-tokens", 0,
		"most tokens of a response (default: up to the context's end; given as 0: none, for --prompt-logprobs)")
	f.Int("min-tokens", 0, "no end of a response before it has so many tokens")
	f.Int("thinking-token-budget", -1, "after so many tokens of thinking, </think> is forced (-1: no bound)")
	f.Int("n", 1, "responses to each row")
	f.Int64Var(&o.Seed, "seed", 0, "of the run; each row and sample has its own from it")
	f.StringArrayVar(&r.stop, "stop", nil, "end the response before this `text` (repeatable)")
	f.Int32SliceVar(&r.stopTokens, "stop-token-ids", nil,
		"end the response at these tokens, by `ids` with commas between")
	f.Lookup("stop-token-ids").DefValue = "" // not the text of an empty list
	f.Bool("ignore-eos", false, "the model's end tokens do not end the response")
	f.Bool("include-stop-str-in-output", false, "the stop text is part of the response")
	f.String("logit-bias", "", "what logits of tokens gain, a `JSON` object of ids and numbers from -100 to 100")
	f.Int32SliceVar(&r.allowedTokens, "allowed-token-ids", nil, "no tokens but these, by `ids` with commas between")
	f.StringArrayVar(&r.badWords, "bad-words", nil, "this `text` never comes (repeatable)")
	f.Int("logprobs", 0,
		"write columns logprobs and top_logprobs, with so many alternatives (given as 0: only the token's own)")
	f.Int32SliceVar(&r.labels, "logprob-token-ids", nil,
		"put the log-probabilities of these tokens into top_logprobs, whatever their rank, by `ids` with commas between")
	f.Int("prompt-logprobs", 0,
		"write columns prompt_logprobs and prompt_top_logprobs, with so many alternatives (given as 0: only the "+
			"token's own)")
	for _, name := range []string{"allowed-token-ids", "logprob-token-ids"} {
		f.Lookup(name).DefValue = "" // not the text of an empty list
	}
	f.StringVar(&r.guide.schema, "json-schema", "",
		"responses are JSON that is valid by the JSON schema in this `file`")
	f.BoolVar(&r.guide.object, "json-object", false, "responses are JSON objects")
	f.StringVar(&r.guide.regex, "regex", "", "responses match this regular `expression` from start to end")
	f.StringArrayVar(&r.guide.choice, "choice", nil, "responses are one of these `texts` (repeatable)")
	f.StringVar(&r.guide.grammar, "grammar", "",
		"responses follow the grammar in this `file`: Lark's, or EBNF with ::=")
	f.BoolVar(&o.TokenIDs, "token-ids", false, "write a column token_ids")
	heading(f, "Sampling, for rows that do not say")

	f.IntVar(&r.tp, "tp", 8, "ranks that share the model: 1, 2, 4 or 8")
	f.StringVar(&r.layout, "layout", string(glm5.Latency), layoutUsage+
		", without --capture and of --speculate with ngram:N only; auto: by the job")
	r.device.add(f)
	f.StringVar(&r.kvCache, "kv-cache", "bf16", "format of the caches: bf16, fp8 or f32")
	f.StringVar(&r.act, "act", "w4a16", "inputs of NVFP4 experts: w4a16, w4a4 or int8")
	f.StringVar(&r.dense, "dense-weights", "bf16",
		"bf16: as the checkpoint has them; fp8: round BF16 weights of attention, shared experts and dense layers at "+
			"load")
	f.StringVar(&r.activations, "activations", "f32", activationsUsage)
	f.Float32Var(&r.latentEps, "latent-norm-eps", 0, latentEpsUsage)
	f.IntVar(&r.maxBatchTokens, "max-batch-tokens", 0,
		"tokens of a step (default 512, on GPUs 2048; in the throughput layout there 1024 on each rank)")
	f.IntVar(&r.maxSeqs, "max-seqs", 0,
		"sequences that run at once (default 64; in the throughput layout 64 on each rank)")
	f.IntVar(&r.kvTokens, "kv-tokens", 0,
		"tokens in the caches (default: what fits beside the weights, see glmbatch doctor; on the CPU half of that)")
	f.StringVar(&r.sharing, "prefix-sharing", "on",
		"on: what prompts begin with in common is computed once; off: by each row. The outputs have the same bits")
	f.StringVar(&r.speculate, "speculate", "off", speculateUsage)
	heading(f, "Engine")
	f.StringVar(&r.timeline, "timeline", "auto",
		"steps to record call by call: off, all, every=N, or auto: all of a short job, else of each kind 100 to 200, "+
			"evenly spread")
	f.StringVar(&r.timelineFormat, "timeline-format", datasets.Parquet,
		"format of steps and timeline: parquet or arrow")
	r.capture.add(f)
	heading(f, "Timeline and captures")
}

// paramFlags are the flags of rows' parameters, by the parameter's name.
var paramFlags = []string{"temperature", "top_p", "top_k", "min_p", "repetition_penalty", "max_tokens", "n", "stop",
	"stop_token_ids", "ignore_eos", "logprobs",
	"presence_penalty", "frequency_penalty", "min_tokens", "thinking_token_budget", "include_stop_str_in_output",
	"logit_bias", "allowed_token_ids", "bad_words", "logprob_token_ids", "prompt_logprobs"}

// lists are the values of flags that are no text of JSON.
func (r *runFlags) lists() map[string]any {
	return map[string]any{"stop": r.stop, "stop_token_ids": r.stopTokens, "bad_words": r.badWords,
		"allowed_token_ids": r.allowedTokens, "logprob_token_ids": r.labels}
}

// setParams applies the flags that were given.
func (r *runFlags) setParams(f *pflag.FlagSet, p *pipeline.Params) error {
	var errs []error
	if f.Changed("seed") {
		r.rows.Given = append(r.rows.Given, "seed")
	}
	for _, name := range paramFlags {
		flag := strings.ReplaceAll(name, "_", "-")
		if !f.Changed(flag) {
			continue
		}
		r.rows.Given = append(r.rows.Given, name)
		value := json.RawMessage(f.Lookup(flag).Value.String())
		var err error
		if list, ok := r.lists()[name]; ok {
			value, err = json.Marshal(list)
		}
		if err == nil {
			err = p.Set(name, value)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", flag, err))
		}
	}
	errs = append(errs, r.guide.set(f, p))
	return errors.Join(errs...)
}

// leastContext is the smallest cache that --kv-tokens may ask for: it is given in pages.
const leastContext = kernels.PageTokens

// check reports what is wrong with the flags themselves.
func (r *runFlags) check(args []string) error {
	var errs []error
	usage := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	switch {
	case r.demo && len(args) > 0:
		usage("--demo brings its own prompts; leave %s out, or leave --demo out to run them on the demo checkpoint",
			args[0])
	case r.demo && r.model != "":
		usage("--demo brings its own checkpoint; give prompts for --model %s", r.model)
	case len(args) > 1 && slices.Contains(args, streamArg):
		usage("- is standard input, and then there are no other prompts")
	case !r.demo && len(args) == 0:
		usage("no prompts: name Parquet files, folders or globs, or try --demo")
	}
	if r.retryErrors && r.overwrite {
		usage("--retry-errors goes on with a job, --overwrite starts it anew: choose one")
	}
	if r.stdout != "" {
		errs = append(errs, oneOf("stdout", r.stdout, stdoutFormats...))
	}
	if r.save != "" {
		_, err := saveAs(r.save, false)
		errs = append(errs, err)
	}
	if r.out == "" && !r.dryRun && r.showPrompt < 0 && r.stdout == "" {
		usage("--out DIR is missing")
	}
	for flag, path := range map[string]*string{"out": &r.out, "model": &r.model} {
		local, err := datasets.LocalPath(*path)
		if *path = local; err != nil {
			usage("--%s %w", flag, err)
		} else if scheme := datasets.Scheme(*path); scheme != "" && !stores.IsURL(*path) {
			usage("--%s %s: %s:// is not one of %s, file", flag, *path, scheme, strings.Join(stores.Schemes, ", "))
		}
	}
	errs = append(errs, checkTP(r.tp), inRange("kv-tokens", r.kvTokens, 0, 1<<31),
		inRange("max-seqs", r.maxSeqs, 0, 1<<16),
		inRange("max-batch-tokens", r.maxBatchTokens, 0, 1<<20), inRange("max-errors", r.maxErrors, 0, math.MaxInt64),
		inRange("grace", r.grace, 0, 24*time.Hour),
		inRange("sync-interval", r.rows.SyncInterval, time.Millisecond, time.Hour))
	errs = append(errs, r.device.validate(), oneOf("layout", r.layout, append([]string{autoLayout}, layouts...)...),
		oneOf("kv-cache", r.kvCache, "bf16", "fp8", "f32"),
		oneOf("act", r.act, "w4a16", "w4a4", "int8"), oneOf("dense-weights", r.dense, "bf16", "fp8"),
		oneOf("activations", r.activations, "f32", "bf16"), checkLatentEps(r.latentEps),
		oneOf("log-format", r.logFormat, logText, logJSON), oneOf("timeline-format", r.timelineFormat, datasets.Parquet,
			datasets.Arrow), oneOf("thinking", r.thinking, "auto", "on", "off"),
		oneOf("prefix-sharing", r.sharing, "on", "off"))
	if err := r.checkTemplate(); err != nil {
		errs = append(errs, err)
	}
	if r.thinking != "auto" {
		on := r.thinking == "on"
		r.rows.Thinking = &on
	}
	var err error
	if r.stopAt, err = deadline(r.deadline, time.Now()); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, r.metrics.check())
	if _, err := r.policy(); err != nil {
		errs = append(errs, err)
	}
	if _, err := r.capture.options(); err != nil {
		errs = append(errs, err)
	}
	if r.drafts, err = speculation(r.speculate); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, r.checkApart())
	shard, from, err := chooseShard(r.shard, os.Getenv)
	if err != nil {
		errs = append(errs, err)
	}
	r.rows.Shard, r.rows.Shards, r.shardFrom = shard.Index, shard.Of, from
	return withCode(exitInput, errors.Join(errs...))
}

// policy says which steps are recorded.
func (r *runFlags) policy() (p pipeline.Policy, err error) {
	switch n, every := strings.CutPrefix(r.timeline, "every="); {
	case r.timeline == "off":
		return pipeline.Policy{}, nil
	case r.timeline == "all":
		return pipeline.Policy{Every: 1}, nil
	case r.timeline == "auto":
		return pipeline.Policy{Sample: true}, nil
	case every:
		if k, err := strconv.ParseInt(n, 10, 64); err == nil && k > 0 {
			return pipeline.Policy{Every: k}, nil
		}
	}
	return p, fmt.Errorf("--timeline %q: it must be off, all, every=N or auto", r.timeline)
}
