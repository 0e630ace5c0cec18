package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"

	"glmbatch/datasets"
	"glmbatch/datasets/demo"
	"glmbatch/engine"
	"glmbatch/engine/checkpoint"
	"glmbatch/engine/fit"
	"glmbatch/engine/glm5"
	"glmbatch/kernels"
	"glmbatch/kernels/ranks"
	"glmbatch/pipeline"
	"glmbatch/pipeline/chat"
	"glmbatch/units"
)

// What the engine's limits are where flags are 0.
const (
	defaultSeqs   = 64
	defaultTokens = 65536
)

// knownRows is how many rows the engine knows at once: it finds the prefixes that they
// share, and begins with those whose answers are long.
const knownRows = 1 << 14

// lessForRun are the options with which a run takes less memory.
const lessForRun = "a smaller --kv-tokens, --max-batch-tokens or --max-seqs, --kv-cache fp8"

const activationsUsage = "inputs of products: f32: as they are (on a GPU two BF16 values, 16 bits); bf16: rounded first, " +
	"as engines that compute in BF16 do, faster with many rows"

const latentEpsUsage = "epsilon of q_a_layernorm and kv_a_layernorm (default: config.json's latent_norm_eps, else " +
	"1e-6 as transformers has it; vLLM, SGLang and llama.cpp take rms_norm_eps)"

func checkLatentEps(eps float32) error {
	if eps >= 0 && eps < 1 { // NaN is not
		return nil
	}
	return fmt.Errorf("--latent-norm-eps %g is not between 0 and 1", eps)
}

// openedModel is a checkpoint whose headers and small files have been read.
type openedModel struct {
	ck         *checkpoint.Checkpoint
	config     glm5.Config
	isDemo     bool
	text       pipeline.Text
	textFrom   pipeline.TextOptions
	textHash   string
	generation pipeline.Generation
	group      *ranks.Group // once loaded
	rounded    []glm5.Rounding
	seats      int // once loaded: sequences that run at once
	pages      int // once loaded: of the caches

	// See fit.
	fits     *fit.Fit
	kvTokens int64
	context  int
}

// The small files of a checkpoint that the pipeline reads.
var textFiles = []string{"tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json"}

func (r *runFlags) openModel() (*openedModel, error) {
	m := &openedModel{isDemo: r.model == "" || isDemo(r.model)}
	var err error
	files := map[string][]byte{}
	if m.isDemo {
		files = demo.Files()
		if m.ck, err = checkpoint.FromFiles(files); err == nil {
			m.config, err = glm5.ParseConfig(m.ck.Config())
		}
	} else if m.ck, m.config, err = openModel(r.model); err == nil {
		files, err = readTextFiles(m.ck.Dir)
	}
	if err == nil {
		err = m.config.CheckTP(r.tp)
	}
	if err == nil {
		o := glm5.Options{Act: glm5.Act(r.act)}
		speculates(&o, r.drafts, 1)
		if cover := m.config.Cover(m.ck); o.MTP && !cover.HasMTP {
			err = fmt.Errorf("--speculate %s: the checkpoint has no prediction layer; ngram:%d needs none", r.speculate,
				r.drafts.Drafts)
		} else {
			err = m.config.Check(m.ck, o)
		}
	}
	if err == nil {
		m.textFrom, err = r.textOptions()
	}
	if err == nil {
		m.text, err = pipeline.LoadText(files, m.textFrom)
	}
	if err == nil {
		m.generation, err = pipeline.ParseGeneration(files["generation_config.json"])
	}
	if err != nil {
		if r.model != "" {
			err = fmt.Errorf("model %s: %w", r.model, err)
		}
		return nil, withCode(exitInput, errors.Join(err, m.close()))
	}
	m.text.Guides = m.guides()
	h := sha256.New()
	for _, name := range append(slices.Clone(textFiles), furtherFiles(files)...) {
		fmt.Fprintf(h, "%s %d\n", name, len(files[name]))
		h.Write(files[name])
	}
	m.textHash = "sha256:" + hex.EncodeToString(h.Sum(nil))
	return m, nil
}

// furtherFiles are the names of those that most checkpoints do not have.
func furtherFiles(files map[string][]byte) []string {
	var names []string
	for name := range files {
		if slices.Contains(chat.Files, name) && !slices.Contains(textFiles, name) || path.Dir(name) == chat.Folder {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// readTextFiles reads those that a folder has, or the demo checkpoint by its name.
func readTextFiles(dir string) (map[string][]byte, error) {
	if isDemo(dir) {
		return demo.Files(), nil
	}
	files := map[string][]byte{}
	names := append(slices.Clone(textFiles), chat.Files...)
	templates, err := filepath.Glob(filepath.Join(dir, chat.Folder, "*.jinja"))
	if err != nil {
		return nil, err
	}
	for _, name := range templates {
		names = append(names, chat.Folder+"/"+filepath.Base(name))
	}
	for _, name := range names {
		data, err := checkpoint.ReadSide(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err == nil {
			files[name] = data
		}
	}
	return files, nil
}

func (m *openedModel) close() error {
	var errs []error
	m.text.Guides.Close()
	if m.group != nil {
		errs = append(errs, m.group.Close())
	}
	if m.ck != nil {
		errs = append(errs, m.ck.Close())
	}
	return errors.Join(errs...)
}

// fit sees to it that the model fits where it is to run, before anything is loaded, and
// says how many tokens its caches get and how many positions a sequence: the model's, or
// what the caches hold if that is less.
func (m *openedModel) fit(r *runFlags) error {
	name := cmp.Or(r.model, demoName)
	m.fits = r.fitOf(m)
	f := m.fits
	m.kvTokens = int64(r.kvTokens / f.Caches)
	if f.Unknown { // what does not fit is seen when it is loaded
		m.kvTokens = cmp.Or(m.kvTokens, int64(max(m.config.MaxPositions, defaultTokens)))
	} else if !f.Fits {
		return withCode(exitDevice, fmt.Errorf("%s does not fit: %s: %s", name, f.Fault, f.Remedy()))
	}
	if m.kvTokens == 0 {
		m.kvTokens = f.Usual(r.modelOptions(m).MaxSeqs)
	}
	if f.Memory > 0 && m.kvTokens > f.Tokens {
		return withCode(exitDevice, fmt.Errorf("%s of %s tokens (--kv-tokens) take %s on %s, which has room for %s "+
			"tokens: it has %s free, of which %s are left alone, and weights and steps of %d ranks take %s: try a "+
			"smaller --kv-tokens, or leave it out; glmbatch doctor says what fits",
			cachesOf(f), units.Digits(m.kvTokens), units.Bytes(m.kvTokens*f.PerToken), f.Where, units.Digits(f.Tokens),
			units.Bytes(f.Memory), units.Bytes(f.Reserve), f.Ranks, units.Bytes(f.Taken)))
	}
	if r.kvTokens > 0 {
		m.context = min(m.config.MaxPositions, int(m.kvTokens)/kernels.PageTokens*kernels.PageTokens)
	} else {
		m.context = f.Positions(m.kvTokens)
		// What was free when the job began has decided it: other programs do not now.
		was, from := r.begun()
		if int64(was) > m.kvTokens && from != "" {
			return withCode(exitDevice,
				fmt.Errorf("sequences have room for %s tokens in the shard at %s, and for %s on this machine, which "+
					"has less memory: rows would differ; run all shards with --kv-tokens %d (and --overwrite), or "+
					"this one on a machine like that one's",
					units.Digits(int64(was)), from, units.Digits(int64(m.context)), m.context))
		}
		if was > 0 && int64(was) <= m.kvTokens {
			m.context = min(was, m.config.MaxPositions)
		}
	}
	return nil
}

// begun is how many positions a sequence has in the job that is in the folder of --out
// already, or in other shards of it, then with the folder of one; 0: nothing is there.
func (r *runFlags) begun() (context int, from string) {
	if r.overwrite {
		return 0, ""
	}
	if was := pipeline.ContextOf(r.jobDir()); was > 0 || r.rows.Shards <= 1 {
		return was, ""
	}
	if r.remoteDir != "" {
		return r.others.context, r.others.from
	}
	others, err := datasets.Shards(r.out)
	if err != nil {
		return 0, "" // the run says so when it opens its own
	}
	for _, s := range others {
		dir := filepath.Join(r.out, s.Dir())
		if was := pipeline.ContextOf(dir); was > 0 && s.Of == r.rows.Shards {
			return was, dir
		}
	}
	return 0, ""
}

// scoredRows is how many rows of logits a step has at most where prompts want them: each
// takes as much memory as the vocabulary has logits, twice.
const scoredRows = 512

func (r *runFlags) modelOptions(m *openedModel) glm5.Options {
	o := glm5.Options{Layout: glm5.Layout(r.layout), Shards: r.tp, KVCache: kernels.Format(r.kvCache),
		Act: glm5.Act(r.act), Dense: kernels.Format(r.dense), Activations: kernels.Format(r.activations),
		LatentEps: r.latentEps, Tokens: min(m.text.Tokenizer.VocabSize(), m.config.Vocab)}
	limits(&o, r.device.resolved(), r.maxBatchTokens, r.maxSeqs)
	if r.rows.PromptLogprobs {
		o.MaxLogits = max(o.MaxSeqs, min(o.MaxRows, scoredRows))
	}
	speculates(&o, r.drafts, o.MaxSeqs)
	o.Context = m.context
	o.Pages = int((m.kvTokens + kernels.PageTokens - 1) / kernels.PageTokens)
	return o
}

// load takes the weights to the ranks and makes the engine, which counts what its
// steps do in work.
func (m *openedModel) load(ctx context.Context, r *runFlags, rec *pipeline.Recorder, folder *pipeline.Folder,
	manifest *pipeline.Manifest, work *work) (*engine.Engine, error) {
	g, err := r.device.open(r.tp)
	if err != nil {
		return nil, err
	}
	m.group = g
	model, err := glm5.Load(ctx, m.ck, g, r.modelOptions(m))
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, pipeline.ErrInterrupted
	case errors.Is(err, kernels.ErrMemory), errors.Is(err, kernels.ErrDevice):
		return nil, deviceError(err, lessForRun)
	default:
		return nil, withCode(exitInput, err)
	}
	m.rounded = model.Rounding()
	m.seats, m.pages = model.Homes()*min(model.Options().MaxSeqs, model.Options().MaxRows),
		model.Homes()*model.Options().Pages
	onTrace := func(t kernels.Trace) {
		if c := g.Info().Clock; c > 0 {
			manifest.SetDevice("clock_ns", fmt.Sprint(c)) // it grows
		}
		rec.OnTrace(t)
	}
	o := engine.Options{Speculate: r.drafts, NoSharing: r.sharing == "off", Trace: rec.Trace(), OnTrace: onTrace,
		OnLaunch: folder.Aboard().OnLaunch, OnStep: func(i engine.StepInfo) {
			work.add(&i)
			r.metrics.onStep(i)
			rec.OnStep(i)
		}}
	if err := r.capture.attach(folder, manifest, &o, model); err != nil {
		return nil, withCode(exitInput, err)
	}
	return engine.New(model, o)
}

// manifest is what the folder will say of the job.
func (m *openedModel) manifest(r *runFlags, plan *pipeline.Plan, args []string) (*pipeline.Manifest, error) {
	hash, err := m.ck.Hash()
	if err != nil {
		return nil, withCode(exitInput, err)
	}
	name := cmp.Or(r.modelURL, r.model)
	if m.isDemo {
		name = demoName
	}
	settings := plan.Settings()
	settings["--kv-cache"], settings["--act"] = r.kvCache, r.act
	r.templateSettings(settings, m.textFrom)
	if r.dense != "bf16" { // without it a job is the same as before there was the flag
		settings["--dense-weights"] = r.dense
	}
	if r.activations != "f32" {
		settings["--activations"] = r.activations
	}
	if r.layout == string(glm5.Throughput) && r.tp > 1 {
		settings["--layout"] = r.layout
	}
	if r.latentEps != 0 {
		settings["--latent-norm-eps"] = fmt.Sprint(r.latentEps)
	}
	return &pipeline.Manifest{
		FromRow: plan.From, ToRow: plan.To,
		Settings: settings, Input: plan.Files(), Arguments: append([]string{}, os.Args[1:]...),
		Model:   pipeline.ModelInfo{Name: name, Hash: hash, Text: m.textHash, Ranks: r.tp, Device: r.device.resolved()},
		Program: versions(),
		Device:  map[string]string{"os": runtime.GOOS, "arch": runtime.GOARCH, "cpus": fmt.Sprint(runtime.NumCPU())},
	}, nil
}

// rounding is what rounding weights has cost, for the manifest.
func (m *openedModel) rounding() map[string]float64 {
	of := map[string]float64{}
	for _, r := range m.rounded {
		of[string(r.Part)] = r.Error
	}
	return of
}

// describeDevice adds what the device says of itself, once it is open.
func (m *openedModel) describeDevice(to map[string]string) {
	info := m.group.Info()
	to["kind"], to["name"], to["detail"] = info.Kind, info.Name, info.Detail
	to["memory_bytes"], to["threads"] = fmt.Sprint(info.Memory), fmt.Sprint(info.Threads)
}

// versions says what program this is.
func versions() map[string]string {
	v := map[string]string{"go": runtime.Version()}
	if b, ok := debug.ReadBuildInfo(); ok {
		v["glmbatch"] = b.Main.Version
		for _, s := range b.Settings {
			if s.Key == "vcs.revision" || s.Key == "vcs.modified" {
				v[s.Key] = s.Value
			}
		}
	}
	return v
}
