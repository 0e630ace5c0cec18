package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"glmbatch/pipeline"
)

// speaker prints what a person wants to know while a job runs; nothing when quiet.
type speaker struct {
	w     io.Writer
	quiet bool
	tty   bool
}

func newSpeaker(w io.Writer, quiet bool) *speaker {
	f, ok := w.(*os.File)
	return &speaker{w: w, quiet: quiet, tty: ok && term.IsTerminal(int(f.Fd()))}
}

func (s *speaker) line(format string, args ...any) {
	if !s.quiet {
		fmt.Fprintf(s.w, format+"\n", args...)
	}
}

// progress shows a running job: a bar on a terminal, a line every few seconds
// elsewhere.
type progress struct {
	say   *speaker
	count *pipeline.Counts
	rows  int64 // in all
	first int64 // rows that earlier runs did
	marks []mark
	began time.Time
	quit  chan struct{}
	ended chan struct{}
}

const (
	barEvery  = 200 * time.Millisecond
	lineEvery = 5 * time.Second
)

// start shows a job of which earlier runs did the first rows.
func (s *speaker) start(c *pipeline.Counts, rows, first int64) *progress {
	p := &progress{say: s, count: c, rows: rows, first: first, began: time.Now(), quit: make(chan struct{}), ended: make(chan struct{})}
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
			p.say.line("%s of %s rows, %s", digits(p.count.Rows.Load()), digits(p.rows), p.figures())
		case <-p.quit:
			return
		}
	}
}

func (p *progress) bar() {
	defer close(p.ended)
	bars := mpb.New(mpb.WithOutput(p.say.w), mpb.WithWidth(40))
	bar := bars.AddBar(p.rows,
		mpb.PrependDecorators(decor.CountersNoUnit("%d / %d rows")),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return p.figures() })))
	tick := time.NewTicker(barEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			bar.SetCurrent(p.count.Rows.Load())
		case <-p.quit:
			bar.SetCurrent(p.count.Rows.Load())
			bar.Abort(false)
			bars.Wait()
			return
		}
	}
}

// figures are tokens a second, the time left and errors. The time left goes by
// tokens: those that the rows to come will have, if they are like the rows done,
// at the rate of the last while.
func (p *progress) figures() string {
	now := time.Now()
	rows, tokens := p.count.Rows.Load(), p.count.PromptTokens.Load()+p.count.CompletionTokens.Load()
	if p.marks = append(p.marks, mark{now, tokens}); len(p.marks) > rateMarks {
		p.marks = p.marks[1:]
	}
	since := p.marks[0]
	if since.at.Equal(now) {
		since = mark{p.began, 0}
	}
	rate := float64(tokens-since.tokens) / now.Sub(since.at).Seconds()
	s := fmt.Sprintf("%s tok/s", digits(int64(rate)))
	if done := rows - p.first; done > 0 && rows < p.rows && rate > 0 {
		left := float64(tokens) / float64(done) * float64(p.rows-rows) / rate
		s += fmt.Sprintf(", %s left", (time.Duration(left) * time.Second).Round(time.Second))
	}
	if n := p.count.Errors.Load(); n > 0 {
		s += fmt.Sprintf(", %s errors", digits(n))
	}
	return s
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
	in, out := c.PromptTokens.Load(), c.CompletionTokens.Load()
	p.say.line("%s rows in %.1f s: %s prompt and %s completion tokens, %s and %s a second", digits(c.Rows.Load()-p.first), took.Seconds(),
		digits(in), digits(out), digits(int64(float64(in)/took.Seconds())), digits(int64(float64(out)/took.Seconds())))
	if n := c.Errors.Load(); n > 0 {
		p.say.line("%s rows have errors: see error_code and error", digits(n))
	}
	if n := c.Truncated.Load(); n > 0 {
		p.say.line("%s prompts were cut to fit: see truncated_tokens", digits(n))
	}
	if n := c.Checked.Load(); n > 0 {
		p.say.line("%s of %s responses equal column %s: %.1f %%", digits(c.Correct.Load()), digits(n), r.rows.Check, 100*float64(c.Correct.Load())/float64(n))
	}
	p.say.line("written to %s", r.out)
	if err == nil && r.timeline != "off" {
		p.say.line("next: glmbatch report %s", r.out)
	}
}
