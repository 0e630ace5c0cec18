package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"glmbatch/datasets"
)

// What a job's status can be.
const (
	StatusRunning     = "running" // or killed
	StatusInterrupted = "interrupted"
	StatusFailed      = "failed"
	StatusComplete    = "complete"
)

const manifestVersion = 1

// Manifest is _manifest.json: what the folder's rows were made from and how.
type Manifest struct {
	Version   int               `json:"version"`
	RunID     string            `json:"run_id"` // of Settings, Input and Model: the same job has the same
	Status    string            `json:"status"`
	Started   time.Time         `json:"started"`
	Updated   time.Time         `json:"updated"`
	Runs      int               `json:"runs"`      // 1, and one more for each resume
	Arguments []string          `json:"arguments"` // of the last run
	Settings  map[string]string `json:"settings"`  // all that decides the rows, defaults too
	Input     []datasets.File   `json:"input"`
	Model     ModelInfo         `json:"model"`
	Program   map[string]string `json:"program"` // versions
	Device    map[string]string `json:"device"`
	// Rounding is what rounding weights at load has changed, by part of the model:
	// |rounded - stored| / |stored|, Frobenius norms. nil: nothing was rounded.
	Rounding map[string]float64 `json:"weight_rounding,omitempty"`
	// FromRow and ToRow are the input rows that the job is about: to is behind the last.
	FromRow int64          `json:"from_row"`
	ToRow   int64          `json:"to_row"`
	Engine  ManifestEngine `json:"engine"`
	Counts  ManifestCounts `json:"counts"`
	Error   string         `json:"error,omitempty"`

	guard *sync.Mutex // of Device, which grows while the job runs; nil: the job has not begun
}

// OtherJob says in what the job of a folder differs from that of m; "": in nothing, or
// the folder has none.
func OtherJob(dir string, m *Manifest) (string, error) {
	old, err := readManifest(dir)
	if old == nil || err != nil {
		return "", err
	}
	c := *m
	c.Version, c.RunID = manifestVersion, runID(m)
	return c.differs(old), nil
}

// ContextOf is how many positions a sequence has in the job of a folder; 0: it has none.
func ContextOf(dir string) int {
	old, err := readManifest(dir)
	if old == nil || err != nil {
		return 0
	}
	return old.context()
}

// SettingOf is a setting of the job of a folder; there: the folder has one.
func SettingOf(dir, name string) (value string, there bool) {
	old, err := readManifest(dir)
	if old == nil || err != nil {
		return "", false
	}
	return old.Settings[name], true
}

func (m *Manifest) context() int {
	n, _ := strconv.Atoi(m.Settings["context"])
	return n
}

// SetDevice says something of the device.
func (m *Manifest) SetDevice(key, value string) {
	if m.guard != nil {
		m.guard.Lock()
		defer m.guard.Unlock()
	}
	m.Device[key] = value
}

// ModelInfo identifies a checkpoint.
type ModelInfo struct {
	Name   string `json:"name"`
	Hash   string `json:"hash"`      // of configuration and weights
	Text   string `json:"text_hash"` // of tokenizer, template and generation defaults
	Ranks  int    `json:"ranks"`
	Device string `json:"device"` // its kind: tokens may differ between kinds
}

// ManifestCounts are a job's totals.
type ManifestCounts struct {
	InputRows        int64 `json:"input_rows"`
	Rows             int64 `json:"rows"`    // input rows that are done and saved
	Samples          int64 `json:"samples"` // output rows, those of earlier runs included, as all below
	Errors           int64 `json:"errors"`
	Truncated        int64 `json:"truncated"`
	PromptTokens     int64 `json:"prompt_tokens"`
	CompletionTokens int64 `json:"completion_tokens"`
	Checked          int64 `json:"checked"`
	Correct          int64 `json:"correct"`

	Codes  map[string]int64   `json:"error_codes,omitempty"` // errors by code
	Groups map[string]Checked `json:"groups,omitempty"`      // of checked and correct, by the value of --check-by
}

// ManifestEngine is what the engine did for them, in all runs: it depends on how often
// the job was interrupted, and on limits.
type ManifestEngine struct {
	Steps       int64 `json:"steps"`
	Preemptions int64 `json:"preemptions"`
	Shared      int64 `json:"shared_prompt_tokens"` // not computed, as rows with the same prefix had

	// What the GPUs used, by their meters while steps ran, and for each token of output
	// rows, prompts' too; null: not measured, as without a GPU.
	Joules   *float64 `json:"joules"`
	PerToken *float64 `json:"joules_per_token"`
}

// add sums what runs did, but not what the GPUs used.
func (e *ManifestEngine) add(o *ManifestEngine) {
	e.Steps += o.Steps
	e.Preemptions += o.Preemptions
	e.Shared += o.Shared
}

func (c *Counts) snapshot(inputRows int64) ManifestCounts {
	return ManifestCounts{InputRows: inputRows, Rows: c.Rows.Load(), Samples: c.Samples.Load(), Errors: c.Errors.Load(),
		Truncated:    c.Truncated.Load(),
		PromptTokens: c.PromptTokens.Load(), CompletionTokens: c.CompletionTokens.Load(), Checked: c.Checked.Load(),
		Correct: c.Correct.Load(), Codes: c.Codes(), Groups: c.Groups()}
}

// runID hashes what decides the rows: not paths and times, which a copy changes,
// nor the shard: all shards of a job are one run.
func runID(m *Manifest) string {
	h := sha256.New()
	e := json.NewEncoder(h)
	for _, k := range slices.Sorted(maps.Keys(m.Settings)) {
		if k != settingShard {
			_ = e.Encode([]string{k, m.Settings[k]}) // a hash takes everything
		}
	}
	for _, f := range m.Input {
		_ = e.Encode([]any{f.Size, f.Rows, f.Footer, f.Content})
	}
	_ = e.Encode([]any{m.Model.Hash, m.Model.Text, m.Model.Ranks, m.Model.Device})
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// otherFile is the first of as many files that has not the same bytes; nil: all have.
func otherFile(files, old []datasets.File) *datasets.File {
	for i := range files {
		f, o := &files[i], &old[i]
		if f.Size != o.Size || f.Rows != o.Rows || f.Footer != o.Footer || f.Content != o.Content {
			return f
		}
	}
	return nil
}

// differs says in what another job's manifest is not this one's: in all flags that are others,
// else in the first thing that is; "": in nothing.
func (m *Manifest) differs(old *Manifest) string {
	var flags, others []string
	keys := maps.Clone(m.Settings)
	maps.Copy(keys, old.Settings)
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		was, is := setting(old.Settings, k), setting(m.Settings, k)
		switch what := fmt.Sprintf("%s was %s and is %s", k, was, is); {
		case was == is:
		case strings.HasPrefix(k, "--"):
			flags = append(flags, what)
		default:
			others = append(others, what)
		}
	}
	was, is := old.Model, m.Model // whatever their folders are called
	if was.Ranks != is.Ranks {
		flags = append(flags, fmt.Sprintf("--tp was %d and is %d", was.Ranks, is.Ranks))
	}
	if was.Device != is.Device {
		flags = append(flags, fmt.Sprintf("--device was %s and is %s", was.Device, is.Device))
	}
	f := (*datasets.File)(nil)
	if len(old.Input) == len(m.Input) {
		f = otherFile(m.Input, old.Input)
	}
	switch {
	case len(flags) > 0:
		return strings.Join(flags, ", ")
	case len(others) > 0:
		return others[0]
	case len(old.Input) != len(m.Input):
		return fmt.Sprintf("it had %d input files and has %d", len(old.Input), len(m.Input))
	case f != nil:
		return fmt.Sprintf("input file %s has changed", f.Path)
	case was.Hash != is.Hash || was.Text != is.Text:
		return fmt.Sprintf("the model was %s and is %s, with other files", was.Name, is.Name)
	case old.RunID != m.RunID:
		return "its settings differ"
	}
	return ""
}

// setting is the value of a setting. Those that came after others are not there where they
// are as if there were no such flag.
func setting(of map[string]string, key string) string {
	if v, ok := of[key]; ok {
		return strconv.Quote(v)
	}
	return "left out"
}

func readManifest(dir string) (*Manifest, error) {
	path := filepath.Join(dir, datasets.ManifestFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m := &Manifest{}
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if m.Version != manifestVersion {
		return nil, fmt.Errorf("%s: version %d, this program knows %d", path, m.Version, manifestVersion)
	}
	return m, nil
}

// later is now, or just after a time, where the clock was set back since.
func later(than time.Time) time.Time {
	now := time.Now().UTC().Truncate(time.Millisecond)
	if next := than.Add(time.Millisecond); now.Before(next) {
		return next
	}
	return now
}

func (m *Manifest) write(dir string) error {
	if m.guard != nil {
		m.guard.Lock()
		defer m.guard.Unlock()
	}
	m.Updated = later(m.Updated)
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return datasets.WriteFile(filepath.Join(dir, datasets.ManifestFile), append(data, '\n'))
}
