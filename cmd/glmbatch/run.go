package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"glmbatch/datasets"
	"glmbatch/datasets/demo"
	"glmbatch/engine/glm5"
	"glmbatch/kernels"
	"glmbatch/pipeline"
	"glmbatch/telemetry"
	"glmbatch/units"
)

func newRunCommand() *cobra.Command {
	var r runFlags
	c := &cobra.Command{
		Use:   "run PROMPTS... --out DIR",
		Short: "Run the prompts of Parquet files and write responses, steps and timelines",
		Long: `run reads prompts from Parquet files, folders and globs, from files of JSON lines
or CSV (.jsonl, .ndjson, .csv, also with .gz or .zst), or JSON lines, CSV or Arrow IPC
from standard input (-), runs them through the model, and writes to the folder of --out:

  outputs/         the input's columns as they are, then response, reasoning,
                   finish_reason, prompt_tokens, completion_tokens, error_code,
                   error, row_index, sample_index, seed, run_id
  steps/           a row for each step of the engine
  captures/        steps for glmbatch replay, with --capture
  timeline/        a row for each kernel call on each rank, of the recorded steps
  _manifest.json   arguments, settings, input, model, device, counts, status
  _SUCCESS         written last

Prompts come from the column messages (a list of structs, or JSON text), else
prompt, text or question, with system and tools if there are such columns. A row
may have parameters of its own in one column sampling_params (a struct, or JSON
text), or in the columns that --param-columns names. Without that flag, columns
called like a parameter (temperature, max_tokens, response_format and others, all
of which docs/parameters.md has) are taken if all values look like one and no flag
says otherwise; those of a job's output are not. What neither a row nor a flag
says comes from the checkpoint's generation_config.json. The columns
that are read are printed first. A column chat_template_kwargs (a struct, or JSON
text) has variables of the chat template, such as reasoning_effort. An input with the
columns custom_id, method, url and body is one of OpenAI's batch requests: see
docs/formats.md.

Rows come out in input order, n for each. A row that cannot be run has error_code
and error, and one output row. The same command on a folder that is not complete
goes on where it ended. Without PROMPTS and --model, --demo runs 1,000 prompts on
a tiny checkpoint, both part of the program.
` + exitHelp,
		Example: `  glmbatch run --demo --out out
  glmbatch run prompts.parquet --model models/GLM-5-NVFP4 --out out --max-tokens 512
  grep urgent tickets.jsonl | glmbatch run - --stdout jsonl > answers.jsonl
  glmbatch run batch.jsonl --model models/GLM-5-NVFP4 --out out --save answers.jsonl
  glmbatch run prompts.parquet --chat-template-kwargs '{"reasoning_effort": "high"}' --show-prompt 0
  glmbatch run 'data/*.parquet' --model models/GLM-5-NVFP4 --out out --dry-run

  # score texts and generate nothing
  glmbatch run texts.parquet --out scores --raw --max-tokens 0 --prompt-logprobs 2
  # a judge, by the tokens of its labels (glmbatch model tokenize says their ids)
  glmbatch run pairs.parquet --out verdicts --max-tokens 1 --logprob-token-ids 9693,2152
  # responses that are valid by a JSON schema
  glmbatch run letters.parquet --out fields --json-schema fields.json`,
		RunE: func(c *cobra.Command, args []string) error {
			return runRun(c, &r, args)
		},
	}
	r.add(c.Flags())
	return c
}

// runRun is the command: look at everything that can be wrong, load the model, run.
func runRun(c *cobra.Command, r *runFlags, args []string) error {
	ctx, f, stdout, stderr := c.Context(), c.Flags(), c.OutOrStdout(), c.ErrOrStderr()
	if err := r.check(args); err != nil {
		return err
	}
	in, err := r.openInput(args, c.InOrStdin())
	if err != nil {
		return withCode(exitInput, err)
	}
	defer in.Close()
	say := newLog(stderr, r.quiet, r.logFormat)
	endingOf(ctx).speaks(say)
	if err := r.localModel(ctx, say); err != nil {
		return err
	}
	m, err := r.openModel()
	if err != nil {
		return err
	}
	defer m.close()
	r.rows.Params, r.rows.EndTokens = m.generation.Params, m.generation.EOS
	if err := r.setParams(f, &r.rows.Params); err != nil {
		return withCode(exitInput, err)
	}
	if i := slices.IndexFunc(r.stopTokens, func(id int32) bool { return id < 0 || int(id) >= m.config.Vocab }); i >= 0 {
		return withCode(exitInput, fmt.Errorf("--stop-token-ids: the vocabulary has no token %d: ids are 0 to %d",
			r.stopTokens[i], m.config.Vocab-1))
	}
	r.rows.Logprobs = r.rows.Params.Logprobs > 0 || len(r.rows.Params.Labels) > 0
	r.rows.PromptLogprobs = r.rows.Params.PromptLogprobs > 0
	var remote *remoteOut
	if r.showPrompt < 0 && !r.dryRun { // what has begun there says how long sequences may be
		if remote, err = r.openRemote(ctx); err != nil {
			return withCode(exitInput, err)
		}
	}
	if r.showPrompt < 0 {
		if err = r.chooseLayout(m, in.Rows, say); err == nil {
			err = m.fit(r)
		}
	} else {
		m.context = m.config.MaxPositions
		if r.kvTokens > 0 {
			m.context = min(m.context, r.kvTokens/kernels.PageTokens*kernels.PageTokens)
		}
	}
	if err != nil {
		return err
	}
	r.rows.Context = m.context
	r.rows.InFlight = max(knownRows, 2*r.maxSeqs)
	r.rows.Window = 2 * r.rows.InFlight
	plan, err := pipeline.NewPlan(in, r.rows)
	if err == nil {
		err = plan.Check(m.text)
	}
	if err != nil {
		return withCode(exitInput, err)
	}
	if plan.Options.PromptLogprobs && !r.rows.PromptLogprobs {
		plan.Notes = append(plan.Notes,
			"rows ask for prompt_logprobs: with --prompt-logprobs their prompts are computed in larger pieces")
	}
	for _, note := range plan.Notes {
		say.note("note: %s", note)
	}
	if m.isDemo {
		say.line("the demo checkpoint in this program answers; it knows only the demo's tasks")
	}
	if r.shardFrom != "" {
		say.line("shard %d of %d, from %s", r.rows.Shard, r.rows.Shards, r.shardFrom)
	}
	if r.showPrompt >= 0 {
		return r.show(ctx, stdout, plan, m, say)
	}
	if r.dryRun {
		return dryRun(ctx, stdout, r, plan, m)
	}
	outlivePipes()
	if r.passing = r.out == ""; r.passing { // the rows go to standard output alone
		temp, err := datasets.NewTemporary()
		if err != nil {
			return err
		}
		defer temp.Remove()
		r.out = filepath.Join(temp.Dir, "job")
	}
	err = r.run(ctx, args, plan, m, say, stdout, remote)
	if code := codeOf(err); code == exitOK || code == exitRowErrors {
		err = errors.Join(r.saveRows(stdout, plan.IsBatch()), err)
	}
	return errors.Join(err, remote.finish(ctx))
}

// streamArg stands for standard input.
const streamArg = "-"

func (r *runFlags) openInput(args []string, stdin io.Reader) (*datasets.Input, error) {
	if r.demo {
		if r.rows.Check == "" {
			r.rows.Check = "expected"
		}
		return datasets.OpenBytes("demo prompts", demo.Prompts())
	}
	if slices.Contains(args, streamArg) {
		return datasets.OpenStream(stdin, "standard input")
	}
	args = resultsOf(args)
	paths, err := datasets.Expand(args)
	if err != nil {
		return nil, err
	}
	if paths, err = r.withoutOwn(args, paths); err != nil {
		return nil, err
	}
	switch lines := slices.IndexFunc(paths, datasets.IsLines); {
	case lines < 0:
		return datasets.Open(paths)
	case slices.ContainsFunc(paths, func(p string) bool { return !datasets.IsLines(p) }):
		return nil, fmt.Errorf("%s has JSON lines or CSV, other files have not: run them apart", paths[lines])
	}
	return datasets.OpenLines(paths)
}

func (r *runFlags) run(ctx context.Context, args []string, plan *pipeline.Plan, m *openedModel, say *speaker,
	stdout io.Writer, remote *remoteOut) (err error) {
	manifest, err := m.manifest(r, plan, args)
	if err != nil {
		return err
	}
	if err := r.checkShards(); errors.Is(err, errMerged) {
		say.line("nothing to do: %v", err)
		return nil
	} else if err != nil {
		return err
	}
	folder, err := pipeline.OpenFolder(r.jobDir(), manifest,
		pipeline.FolderOptions{Overwrite: r.overwrite, Retry: r.retryErrors, NoLock: r.noLock})
	var complete *pipeline.CompleteError
	switch {
	case errors.As(err, &complete):
		say.line("nothing to do: %v: %s rows, %s of them with errors", err, units.Digits(complete.Counts.Rows),
			units.Digits(complete.Counts.Errors))
		return r.rowErrors(complete.Counts.Errors)
	case err != nil:
		return r.refused(err)
	}
	defer folder.Close()
	say.line("columns read: %s", strings.Join(plan.Taken, ", "))
	if folder.Resumed {
		say.line("going on in %s, which has %s of %s rows", folder.Dir, units.Digits(folder.Done()),
			units.Digits(plan.To-plan.From))
	}
	if alone, failed := folder.Suspects(); alone+failed > 0 {
		say.line("%s rows were in a step that failed: they run alone, after the others; %s were in two, and have an "+
			"error", units.Digits(int64(alone)), units.Digits(int64(failed)))
	}
	if folder.Finished() { // all but the last words of the manifest
		job := &pipeline.Job{Plan: plan, Folder: folder, Counts: &pipeline.Counts{}}
		return r.outcome(job.Counts, job.Finish())
	}
	m.text.SetNow(manifest.Started.Local())                // of all runs of the job
	origin := int64(manifest.Started.Sub(kernels.Epoch())) // of the first run of the job
	watch, unwatch, noGPU := r.device.sampler(r.tp)
	defer unwatch()
	if noGPU != "" {
		manifest.SetDevice("energy", "not measured: "+noGPU)
	}
	r.capture.since = watch.Since
	recorderOptions := r.recorderOptions(folder, origin)
	recorderOptions.GPU = func() *telemetry.GPU { return watch.Latest().GPU }
	recorderOptions.Now = func() *telemetry.GPU { return watch.Read().GPU }
	recorder := pipeline.NewRecorder(recorderOptions)
	defer r.capture.close(say)
	if !m.isDemo {
		say.line("loading %s: ranks %d, device %s", r.model, r.tp, r.device.resolved())
	}
	end := endingOf(ctx)
	job := &pipeline.Job{Plan: plan, Text: m.text, Recorder: recorder, Folder: folder, Counts: &pipeline.Counts{},
		Stop: pipeline.Stop{Grace: r.grace, Hurry: end.hurry}}
	if r.stdout == datasets.Arrow || r.stdout == datasets.Lines { // the other formats need all rows
		if job.Print, err = plan.Printer(stdout, r.stdout); err != nil {
			return withCode(exitInput, job.End(err))
		}
		r.printed = true
	}
	if plan.Guided() {
		m.text.Guides.Begin(ctx)
	}
	var work work
	if job.Engine, err = m.load(ctx, r, recorder, folder, manifest, &work); err != nil {
		return r.outcome(job.Counts, job.End(err))
	}
	if err := remote.begin(ctx, r.overwrite); err != nil {
		return withCode(exitOutput, job.End(err))
	}
	m.describeDevice(manifest.Device)
	if manifest.Rounding = m.rounding(); len(manifest.Rounding) > 0 {
		say.line("weights rounded to FP8: %s", glm5.RoundingText(m.rounded))
	}
	if err := r.metrics.start(say, r, manifest, m.pages, job.Counts, recorderOptions.GPU); err != nil {
		return withCode(exitOutput, job.End(err))
	}
	defer func() { r.metrics.stop(say, codeOf(err)) }()
	progress := say.start(job.Counts, &work, plan.To-plan.From, folder.Done())
	progress.seats, progress.pages = m.seats, m.pages
	ctx, cancel := r.until(ctx)
	defer cancel()
	end.allow(r.grace + r.device.stepTimeout + timeToSave)
	err = job.Run(ctx)
	progress.stop()
	r.capture.close(say)
	if err == nil || errors.Is(err, pipeline.ErrInterrupted) {
		if !r.passing {
			remember(folder.Dir, manifest)
		}
		progress.summary(r, err)
	}
	return r.outcome(job.Counts, err)
}

func (r *runFlags) recorderOptions(f *pipeline.Folder, origin int64) pipeline.RecorderOptions {
	o := f.Recorder
	o.Policy, _ = r.policy()
	o.Format, o.Origin = r.timelineFormat, origin
	return o
}

// timeToSave is how long a job that was told to stop may take after the last step.
const timeToSave = 30 * time.Second

// refused gives the error of a folder that was not opened its exit code.
func (r *runFlags) refused(err error) error {
	switch {
	case errors.Is(err, pipeline.ErrLocked):
		return withCode(exitLocked, err)
	case errors.Is(err, pipeline.ErrOutput):
		return withCode(exitOutput, err)
	}
	return withCode(exitInput, err)
}

// outcome gives a job's end its exit code.
func (r *runFlags) outcome(c *pipeline.Counts, err error) error {
	again := "run the same command again to go on"
	if r.overwrite {
		again = "run the same command without --overwrite to go on"
	}
	if r.passing {
		again = "nothing is kept of a job without --out"
	}
	var known coded
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, syscall.ENOSPC):
		return withCode(exitOutput, fmt.Errorf("%s is on a full disk: make room and %s (%w)", r.out, again, err))
	case errors.Is(err, pipeline.ErrOutput):
		return withCode(exitOutput, fmt.Errorf("%w; %s rows are saved: %s", err, units.Digits(c.Rows.Load()), again))
	case errors.Is(err, pipeline.ErrInterrupted):
		return withCode(exitInterrupted, fmt.Errorf("%w after %s rows; %s", err, units.Digits(c.Rows.Load()), again))
	case errors.Is(err, kernels.ErrDevice), errors.Is(err, kernels.ErrMemory):
		return deviceError(err, lessForRun)
	case errors.Is(err, pipeline.ErrInput):
		return withCode(exitMidway, fmt.Errorf("%w; %s rows are saved", err, units.Digits(c.Rows.Load())))
	case err != nil:
		return err
	}
	return r.rowErrors(c.Errors.Load())
}

// rowErrors is the error of a job that is complete, but for more errors than are allowed.
func (r *runFlags) rowErrors(n int64) error {
	if n <= r.maxErrors {
		return nil
	}
	where := "error_code and error"
	if !r.passing {
		where += " in " + r.jobDir()
	}
	return withCode(exitRowErrors, fmt.Errorf("%s rows have errors, more than --max-errors %d: see %s", units.Digits(n),
		r.maxErrors, where))
}
