package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"glmbatch/datasets"
	"glmbatch/pipeline"
	"glmbatch/replay/report"
)

// rates are how fast a job of a model went on a machine: what a dry run estimates from.
type rates struct {
	From     string    `json:"from"` // the job's folder
	At       time.Time `json:"at"`
	Tokens   float64   `json:"tokens_per_second"` // through the model
	Lo, Hi   float64   // of the slowest and the fastest tenth of the job
	Response float64   `json:"response_tokens"` // of a response, in the mean
	Joules   *float64  `json:"joules_per_token"`
}

// rateParts is into how many parts of equal time a job is cut.
const rateParts = 10

// leastSteps is how many steps say something of the next job.
const leastSteps = 20

// ratesOf reads them from a job's folder. The error says why there are none.
func ratesOf(dir string, s *pipeline.Status) (*rates, error) {
	var steps []datasets.Step
	err := datasets.Read(filepath.Join(dir, "steps"), func(rows []datasets.Step) error {
		for _, row := range rows {
			steps = append(steps, datasets.Step{WallNS: row.WallNS, Tokens: row.Tokens})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(steps) < leastSteps {
		return nil, fmt.Errorf("%s has %d steps, too few to estimate from", dir, len(steps))
	}
	var wall, tokens int64
	for _, row := range steps {
		wall, tokens = wall+row.WallNS, tokens+int64(row.Tokens)
	}
	if wall <= 0 || tokens <= 0 {
		return nil, fmt.Errorf("%s has steps without time or tokens", dir)
	}
	r := &rates{From: dir, At: s.Updated, Tokens: 1e9 * float64(tokens) / float64(wall)}
	parts := partRates(steps, wall)
	r.Lo, r.Hi = min(r.Tokens, slices.Min(parts)), max(r.Tokens, slices.Max(parts))
	if n := s.Counts.Samples - s.Counts.Errors; n > 0 {
		r.Response = float64(s.Counts.CompletionTokens) / float64(n)
	}
	if t, err := report.ReadSteps(dir, "", nil); err == nil && t != nil && t.Energy != nil {
		r.Joules = &t.Energy.PerToken
	}
	return r, nil
}

// partRates are the tokens a second of a job's parts, which take the same time.
func partRates(steps []datasets.Step, wall int64) []float64 {
	parts := make([]float64, 0, rateParts)
	var ns, tokens int64
	for i, s := range steps {
		ns, tokens = ns+s.WallNS, tokens+int64(s.Tokens)
		if ns >= wall/rateParts || i == len(steps)-1 && ns > wall/(2*rateParts) {
			parts = append(parts, 1e9*float64(tokens)/float64(max(1, ns)))
			ns, tokens = 0, 0
		}
	}
	return parts
}

// estimate is how long a job takes and what it uses, with an interval: the lower end is
// for responses as long as those were and the fastest part of that job, the upper end for
// the longest that are allowed and the slowest part.
type estimate struct {
	Usual, Lo, Hi    time.Duration
	Joules, JLo, JHi float64 // 0: not known
}

func (r *rates) estimate(prompt, samples, most int64) estimate {
	usual := math.Min(float64(most), r.Response*float64(samples))
	span := func(tokens, rate float64) time.Duration { return time.Duration(tokens / rate * float64(time.Second)) }
	e := estimate{Usual: span(float64(prompt)+usual, r.Tokens), Lo: span(float64(prompt)+usual, r.Hi),
		Hi: span(float64(prompt+most), r.Lo)}
	if r.Joules != nil {
		e.Joules, e.JHi = *r.Joules*(float64(prompt)+usual), *r.Joules*float64(prompt+most)*r.Tokens/r.Lo
		e.JLo = e.Joules * r.Tokens / r.Hi
	}
	return e
}

// ratesFile is where the rates of the last job of a model are kept, as it was loaded on
// this machine.
func ratesFile(m *pipeline.Manifest) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	text, err := json.Marshal([]any{m.Model.Hash, m.Model.Device, m.Model.Ranks, m.Settings["--kv-cache"],
		m.Settings["--act"], m.Settings["--dense-weights"], m.Settings["--activations"], m.Settings["--layout"]})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return filepath.Join(dir, "glmbatch", fmt.Sprintf("rates-%x.json", sum[:8])), nil
}

// remember keeps a job's rates for dry runs. That it cannot is no matter.
func remember(dir string, m *pipeline.Manifest) {
	s, err := pipeline.ReadStatus(dir, time.Now())
	if err != nil {
		return
	}
	r, err := ratesOf(dir, s)
	if err != nil {
		return
	}
	if r.From, err = filepath.Abs(dir); err != nil {
		return
	}
	file, err := ratesFile(m)
	if err != nil || os.MkdirAll(filepath.Dir(file), 0o777) != nil {
		return
	}
	if text, err := json.Marshal(r); err == nil {
		_ = datasets.WriteFile(file, text)
	}
}

// remembered are the rates of a job like the one of a manifest: of the folder of --like,
// else of the last one on this machine; nil: there is none.
func (r *runFlags) remembered(m *pipeline.Manifest) (*rates, error) {
	if r.like != "" {
		s, err := pipeline.ReadStatus(r.like, time.Now())
		if err != nil {
			return nil, fmt.Errorf("--like: %w", err)
		}
		if s.Model.Hash != m.Model.Hash {
			return nil, fmt.Errorf("--like %s: it is a job of another model", r.like)
		}
		return ratesOf(r.like, s)
	}
	file, err := ratesFile(m)
	if err != nil {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var x rates
	if err != nil || json.Unmarshal(text, &x) != nil ||
		!(x.Lo > 0 && x.Tokens >= x.Lo && x.Hi >= x.Tokens && x.Response >= 0) {
		return nil, nil // it is only a memory
	}
	return &x, nil
}
