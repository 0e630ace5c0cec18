package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"glmbatch/pipeline"
	"glmbatch/units"
)

// progress shows a running job: a bar on a terminal, a line every few seconds
// elsewhere.
type progress struct {
	say   *speaker
	count *pipeline.Counts
	done  *work // of the engine
	rows  int64 // in all
	first int64 // rows that earlier runs did
	marks []mark
	last  float64 // rate when it was last asked for
	seats int     // of the engine
	pages int     // of its caches
	began time.Time
	quit  chan struct{}
	ended chan struct{}
}

const (
	barEvery  = 200 * time.Millisecond
	lineEvery = 5 * time.Second
	barWidth  = 24 // with the figures, less than a terminal of 80 columns with ^C before it
)

// start shows a job of which earlier runs did the first rows.
func (s *speaker) start(c *pipeline.Counts, done *work, rows, first int64) *progress {
	p := &progress{say: s, count: c, done: done, rows: rows, first: first, began: time.Now(), quit: make(chan struct{}),
		ended: make(chan struct{})}
	switch {
	case s.quiet:
		close(p.ended)
	case s.tty:
		go p.bar()
	default:
		go p.lines()
	}
	return p
}

func (p *progress) stop() {
	close(p.quit)
	<-p.ended
}

func (p *progress) lines() {
	defer close(p.ended)
	tick := time.NewTicker(lineEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.report()
		case <-p.quit:
			return
		}
	}
}

// report says how far the job is.
func (p *progress) report() {
	text := p.counted() + ", " + p.figures()
	p.say.record("progress", text, "rows", p.count.Rows.Load(), "of", p.rows, "tokens_per_second", int64(p.last),
		"seconds_left", int64(p.left().Seconds()), "errors", p.count.Errors.Load())
}

func (p *progress) bar() {
	defer close(p.ended)
	bars := mpb.New(mpb.WithOutput(p.say.w), mpb.WithWidth(barWidth))
	bar := bars.AddBar(p.rows, mpb.BarRemoveOnComplete(), // the summary takes its place
		mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return p.counted() })),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return p.figures() })))
	tick := time.NewTicker(barEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			bar.SetCurrent(p.count.Rows.Load())
		case <-p.quit:
			bar.Abort(true)
			bars.Wait()
			return
		}
	}
}

func (p *progress) counted() string {
	return fmt.Sprintf("%s of %s rows", units.Digits(p.count.Rows.Load()), units.Digits(p.rows))
}

// figures are tokens a second, the time left and errors.
func (p *progress) figures() string {
	s := fmt.Sprintf("%s tok/s", units.Digits(int64(p.rate(time.Now()))))
	if left := p.left(); left > 0 {
		s += fmt.Sprintf(", %s left", left)
	}
	if n := p.count.Errors.Load(); n > 0 {
		s += fmt.Sprintf(", %s errors", units.Digits(n))
	}
	return s
}

// rate is the tokens a second of the last while.
func (p *progress) rate(now time.Time) float64 {
	tokens := p.done.tokens()
	if p.marks = append(p.marks, mark{now, tokens}); len(p.marks) > rateMarks {
		p.marks = p.marks[1:]
	}
	since := p.marks[0]
	if since.at.Equal(now) {
		since = mark{p.began, 0}
	}
	p.last = float64(tokens-since.tokens) / max(now.Sub(since.at).Seconds(), 1e-3)
	return p.last
}

// left is the time for the tokens that the rows to come will have, if they are
// like the rows done, without those that went through the model already; 0: unknown.
func (p *progress) left() time.Duration {
	rows, written := p.count.Rows.Load(), p.count.RunPrompt.Load()+p.count.RunCompletion.Load()
	done := p.count.RunRows.Load()
	if done <= 0 || rows >= p.rows || p.last <= 0 {
		return 0
	}
	tokens := float64(written)/float64(done)*float64(p.rows-rows) - float64(max(0, p.done.tokens()-written))
	if tokens <= 0 {
		return 0
	}
	return time.Duration(min(1+tokens/p.last, 1e9)) * time.Second
}

// mark is how many tokens were done at a time.
type mark struct {
	at     time.Time
	tokens int64
}

const rateMarks = 20 // the last while: so many figures back

// summary says what came out and what to do next.
func (p *progress) summary(r *runFlags, err error) {
	c, took := p.count, time.Since(p.began)
	in, out := c.RunPrompt.Load(), c.RunCompletion.Load()
	p.say.record("summary", fmt.Sprintf("%s rows in %.1f s", units.Digits(c.RunRows.Load()), took.Seconds()), "rows",
		c.Rows.Load(), "run_rows", c.RunRows.Load(),
		"seconds", took.Seconds(), "prompt_tokens", in, "completion_tokens", out, "errors", c.Errors.Load(),
		"truncated", c.Truncated.Load(),
		"checked", c.Checked.Load(), "correct", c.Correct.Load(), "out", r.kept())
	f := p.done.figures(took.Seconds(), in, out, p.seats, p.pages)
	for _, line := range f.lines() {
		p.say.line("%s", line)
	}
	if n := c.Errors.Load(); n > 0 {
		p.say.line("%s rows have errors: see error_code and error", units.Digits(n))
	}
	if n := c.Truncated.Load(); n > 0 {
		p.say.line("%s prompts were cut to fit: see truncated_tokens", units.Digits(n))
	}
	if n := c.Checked.Load(); n > 0 {
		p.say.line("%s of %s responses equal column %s: %.1f %%", units.Digits(c.Correct.Load()), units.Digits(n),
			r.rows.Check, 100*float64(c.Correct.Load())/float64(n))
	}
	p.groups(r)
	if r.passing { // its folder is removed
		return
	}
	if r.remoteDir != "" {
		p.say.line("written to %s", oneLine(r.out))
	} else {
		p.say.line("written to %s", oneLine(r.jobDir()))
	}
	if r.rows.Shards > 1 && err == nil {
		p.say.line("next, when all %d shards are complete: %s merge %s", r.rows.Shards, callName(), r.out)
	}
	if err == nil && r.timeline != "off" && r.remoteDir == "" {
		p.say.line("next: %s report %s", callName(), r.jobDir())
	}
	if r.capture.written > 0 {
		p.say.line("next: %s replay %s", callName(), r.jobDir())
	}
}

// groupLines are the groups of --check-by that the summary has; the manifest has all.
const groupLines = 20

// kept is the folder that is there after the job; "": none.
func (r *runFlags) kept() string {
	if r.passing {
		return ""
	}
	return r.out
}

// groups says how many responses were right, group by group.
func (p *progress) groups(r *runFlags) {
	groups, column := p.count.Groups(), r.rows.CheckBy
	names := slices.Sorted(maps.Keys(groups))
	for i, name := range names {
		if i == groupLines {
			where := ": see _manifest.json"
			if r.passing {
				where = ""
			}
			p.say.line("  and %d more values of %s%s", len(names)-i, column, where)
			break
		}
		g := groups[name]
		p.say.line("  %s %s: %s of %s: %.1f %%", column, oneLine(name), units.Digits(g.Correct),
			units.Digits(g.Checked), 100*float64(g.Correct)/float64(g.Checked))
	}
}

// callName is how a person calls this program: as now, or by go run.
func callName() string {
	if exe, err := os.Executable(); err == nil && strings.Contains(exe, "go-build") &&
		filepath.Base(filepath.Dir(exe)) == "exe" {
		return "go run ./cmd/glmbatch"
	}
	return os.Args[0]
}
