package pipeline

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"glmbatch/datasets"
)

// StatusKilled is what a job is that ended without a word: its process is gone.
const StatusKilled = "killed"

// StatusSilent is what a job is whose process is on another machine and has not said
// anything for long.
const StatusSilent = "silent"

// silence is how long a running job may say nothing: it does every few seconds.
const silence = time.Minute

// Status is how far the job of a folder is. Reading it disturbs no run.
type Status struct {
	Dir     string         `json:"dir"`
	Shard   string         `json:"shard,omitempty"` // i/N
	State   string         `json:"state"`           // a manifest's status, killed, silent, or missing
	Holder  string         `json:"holder,omitempty"`
	RunID   string         `json:"run_id,omitempty"`
	Started time.Time      `json:"started,omitzero"`
	Updated time.Time      `json:"updated,omitzero"`
	Runs    int            `json:"runs"`
	Model   ModelInfo      `json:"model"`
	Counts  StatusCounts   `json:"counts"`
	Engine  ManifestEngine `json:"engine"`
	Error   string         `json:"error,omitempty"`
	Rate    float64        `json:"tokens_per_second"` // through the model, over the last steps; 0: unknown
	Window  float64        `json:"rate_seconds"`      // that the rate is over
	Left    *float64       `json:"seconds_left"`      // estimated from rows like those done; nil: unknown
	Steps   []StatusStep   `json:"steps,omitempty"`   // the last
	Shards  []Status       `json:"shards,omitempty"`
}

// StatusCounts are a manifest's, but for rows that nobody knows of yet.
type StatusCounts struct {
	InputRows *int64 `json:"input_rows"` // nil: a shard that has not begun has not said how many are its
	ManifestCounts
}

// set takes a manifest's counts.
func (c *StatusCounts) set(m ManifestCounts) { *c = StatusCounts{&m.InputRows, m} }

// Begun is how many shards have begun.
func (s *Status) Begun() (n int) {
	for i := range s.Shards {
		if s.Shards[i].State != StatusMissing {
			n++
		}
	}
	return n
}

// StatusStep is one of the last steps.
type StatusStep struct {
	Step      int64  `json:"step"`
	Kind      string `json:"kind"`
	Sequences int32  `json:"sequences"`
	Tokens    int32  `json:"tokens"`
	StartNS   int64  `json:"start_ns"`
	WallNS    int64  `json:"wall_ns"`
}

// StatusMissing is a shard that has not begun.
const StatusMissing = "missing"

// ReadStatus reads the folder of a job, or of its shards.
func ReadStatus(out string, now time.Time) (*Status, error) {
	if _, err := os.Stat(out); err != nil {
		return nil, fmt.Errorf("%s: no such folder", out)
	}
	m, err := readManifest(out)
	if err != nil {
		return nil, err
	}
	if m != nil {
		s := &Status{Dir: out}
		return s, s.fill(m, now)
	}
	shards, err := datasets.Shards(out)
	if err != nil {
		return nil, err
	}
	if len(shards) == 0 {
		return nil, fmt.Errorf("%s has no %s: it is no output folder of glmbatch", out, datasets.ManifestFile)
	}
	return shardStatus(out, shards, now)
}

// shardStatus sums the shards', those that have not begun among them.
func shardStatus(out string, shards []datasets.Shard, now time.Time) (*Status, error) {
	s := &Status{Dir: out, State: StatusComplete}
	of, left := shards[0].Of, 0.0
	known := true // how long those that run will take
	var counts ManifestCounts
	for i := range of {
		shard := datasets.Shard{Index: i, Of: of}
		one := Status{Dir: filepath.Join(out, shard.Dir()), Shard: shard.String(), State: StatusMissing}
		m, err := readManifest(one.Dir)
		if err != nil {
			return nil, err
		}
		if m != nil {
			if err := one.fill(m, now); err != nil {
				return nil, err
			}
		}
		s.State = worst(s.State, one.State)
		s.RunID, s.Runs = cmp.Or(s.RunID, one.RunID), s.Runs+one.Runs
		counts.add(&one.Counts.ManifestCounts)
		s.Engine.add(&one.Engine)
		if one.State == StatusRunning {
			s.Rate += one.Rate
		}
		switch {
		case one.State == StatusComplete:
		case one.State == StatusRunning && one.Left != nil:
			left = max(left, *one.Left)
		default:
			known = false
		}
		if !one.Started.IsZero() && (s.Started.IsZero() || one.Started.Before(s.Started)) {
			s.Started = one.Started
		}
		if one.Updated.After(s.Updated) {
			s.Updated = one.Updated
		}
		s.Shards = append(s.Shards, one)
	}
	s.Counts.set(counts)
	if s.Begun() < of {
		s.Counts.InputRows = nil
	}
	if known {
		s.Left = &left
	}
	return s, nil
}

// worst is the state of two shards together: what needs somebody comes first.
func worst(a, b string) string {
	order := []string{StatusFailed, StatusKilled, StatusSilent, StatusInterrupted, StatusRunning, StatusMissing,
		StatusComplete}
	return order[min(slices.Index(order, a), slices.Index(order, b))]
}

// fill takes a manifest, the lock and the last steps.
func (s *Status) fill(m *Manifest, now time.Time) error {
	s.State, s.RunID, s.Started, s.Updated, s.Runs = m.Status, m.RunID, m.Started, m.Updated, m.Runs
	s.Engine, s.Error, s.Model = m.Engine, m.Error, m.Model
	s.Counts.set(m.Counts)
	if s.State == StatusRunning {
		s.State, s.Holder = running(s.Dir, m.Updated, now)
	}
	if s.State == StatusComplete {
		if _, err := os.Stat(filepath.Join(s.Dir, datasets.SuccessFile)); err != nil {
			s.State = StatusKilled // before its last word
		}
	} else if err := s.count(m); err != nil && s.Error == "" {
		s.Error = oneLine(err)
	}
	if err := s.lastSteps(); err != nil {
		return err
	}
	s.estimate()
	return nil
}

// count counts what parts and journal have, of which the manifest only says what was
// there some seconds ago: a killed job has said nothing of the rest.
func (s *Status) count(m *Manifest) error {
	has, err := savedIn(s.Dir, m)
	if err != nil {
		return err
	}
	c := has.counts(m.ToRow - m.FromRow)
	if c.Rows < s.Counts.Rows { // it has written files since they were looked at
		return nil
	}
	if c.Checked < s.Counts.Checked {
		c.Checked, c.Correct, c.Groups = s.Counts.Checked, s.Counts.Correct, s.Counts.Groups
	}
	s.Counts.set(c)
	return nil
}

// savedIn counts the rows that a folder has, which a job may be writing.
func savedIn(dir string, m *Manifest) (t tally, err error) {
	next := int64(-1)
	for tries := 0; ; tries++ {
		f := &Folder{Dir: dir, NextRow: m.FromRow, manifest: m}
		names, _, err := listParts(filepath.Join(dir, datasets.OutputsDir))
		if err == nil {
			err = f.follow(names)
		}
		if errors.Is(err, os.ErrNotExist) && tries < 100 { // one was replaced
			continue
		}
		if err != nil {
			return t, err
		}
		if f.NextRow == next { // what is in no part now was in none when the journal was read
			t.add(&f.tally)
			return t, nil
		}
		j, err := lookJournal(dir, m.RunID, f.NextRow)
		if err != nil {
			return t, err
		}
		t, next = j.tally, f.NextRow
	}
}

// running says whether a job whose manifest says that it runs does, and who has it.
func running(dir string, updated, now time.Time) (state, who string) {
	var o owner
	data, err := os.ReadFile(filepath.Join(dir, datasets.LockFile))
	if err == nil && json.Unmarshal(data, &o) == nil && o.PID > 0 {
		who = fmt.Sprintf("process %d on %q since %s", o.PID, o.Host, o.Started.Format(time.RFC3339))
	}
	host, err := os.Hostname()
	switch {
	case err == nil && o.PID > 0 && o.Host == host && !alive(o.PID):
		return StatusKilled, who
	case err == nil && o.PID > 0 && o.Host == host:
		return StatusRunning, who
	case now.Sub(updated) > silence:
		return StatusSilent, who
	}
	return StatusRunning, who
}

// What is read of a job's steps.
const (
	statusFiles = 8
	statusSteps = 512
)

// lastSteps reads the steps of the last files.
func (s *Status) lastSteps() error {
	dir := filepath.Join(s.Dir, datasets.StepsDir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	}
	var names []string
	for _, e := range entries { // unfinished ones are somebody's
		if len(e.Name()) > 0 && e.Name()[0] != '.' {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	for _, name := range names[max(0, len(names)-statusFiles):] {
		err := datasets.Read(filepath.Join(dir, name), func(rows []datasets.Step) error {
			for _, r := range rows {
				s.Steps = append(s.Steps, StatusStep{r.Step, r.Kind, r.Sequences, r.Tokens, r.StartNS, r.WallNS})
			}
			if n := len(s.Steps) - statusSteps; n > 0 {
				s.Steps = slices.Delete(s.Steps, 0, n)
			}
			return nil
		})
		if errors.Is(err, os.ErrNotExist) { // replaced since it was listed
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// estimate is from the last steps and the rows that are done.
func (s *Status) estimate() {
	if s.State == StatusComplete {
		s.Left = new(float64)
	}
	if len(s.Steps) == 0 {
		return
	}
	first, last := s.Steps[0], s.Steps[len(s.Steps)-1]
	var tokens int64
	for _, step := range s.Steps {
		tokens += int64(step.Tokens)
	}
	s.Window = float64(last.StartNS+last.WallNS-first.StartNS) / 1e9
	if s.Window <= 0 {
		return
	}
	s.Rate = float64(tokens) / s.Window
	c := &s.Counts
	if left := c.ManifestCounts.InputRows - c.Rows; s.State != StatusComplete && left > 0 && c.Rows > 0 {
		each := float64(c.PromptTokens+c.CompletionTokens) / float64(c.Rows)
		seconds := each * float64(left) / s.Rate
		s.Left = &seconds
	}
}
