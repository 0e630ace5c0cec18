package record

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Recording is what was recorded.
type Recording struct {
	Engine  Engine
	Version string
	Model   string
	Files   []string // a trace of each rank
}

const (
	poll     = 100 * time.Millisecond
	stopping = 700 * time.Millisecond // for the profiler to be stopped after an interrupt
	settled  = 5                      // looks without a new file after which no more ranks are expected
)

// Window records some decode steps of a running server.
func Window(ctx context.Context, o Options) (rec *Recording, err error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	defer func() {
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("not done after %v: %w", o.Timeout, err)
		}
	}()
	s, err := find(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.client.CloseIdleConnections()
	if o.Ranks > 0 {
		s.ranks = o.Ranks
	}
	fmt.Fprintf(o.Log, "%s %s serves %s at %s\n", s.engine, s.version, s.model, s.url)
	files, err := watch(o.Traces)
	if err != nil {
		return nil, err
	}
	var l *load
	if o.Requests > 0 {
		l = s.decode(ctx, o.Requests, o.Warmup+20*o.Steps+256)
		defer l.stop()
		if err := l.until(ctx, o.Warmup); err != nil {
			return nil, err
		}
		fmt.Fprintf(o.Log, "%d sequences are decoding\n", o.Requests)
	}
	if err := s.start(ctx, &o); err != nil {
		if ctx.Err() != nil { // it may have started
			s.halt(ctx, &o)
		}
		return nil, err
	}
	found, err := s.steps(ctx, &o, l, files)
	if err != nil {
		s.halt(ctx, &o)
		return nil, err
	}
	return &Recording{Engine: s.engine, Version: s.version, Model: s.model, Files: found}, nil
}

// halt stops the profiler of a recording that came to nothing.
func (s *server) halt(ctx context.Context, o *Options) {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopping)
	defer cancel()
	if s.stop(last) == nil {
		fmt.Fprintln(o.Log, "the profiler is stopped")
	}
}

// steps waits until the steps are over and their traces are here.
func (s *server) steps(ctx context.Context, o *Options, l *load, files *traces) ([]string, error) {
	switch {
	case l != nil:
		began, err := l.least()
		if err == nil {
			err = l.until(ctx, began+o.Steps+1) // one more: the first may have been on its way
		}
		if err != nil {
			return nil, err
		}
	case s.engine == VLLM:
		if err := sleep(ctx, o.Window); err != nil {
			return nil, err
		}
	}
	if s.engine == VLLM { // SGLang counts the steps itself
		if err := s.stop(ctx); err != nil {
			return nil, err
		}
	}
	fmt.Fprintf(o.Log, "waiting for traces in %s\n", o.Traces)
	return s.wait(ctx, o, files)
}

// wait waits for the traces of all ranks.
func (s *server) wait(ctx context.Context, o *Options, files *traces) ([]string, error) {
	appear, quiet, before := time.Now().Add(o.Appear), 0, -1
	for {
		whole, all, err := files.look(ctx)
		if err != nil {
			return nil, err
		}
		if all != before || len(whole) < all {
			quiet = 0
		}
		quiet, before = quiet+1, all
		if all > 0 && len(whole) == all && (all >= s.ranks && s.ranks > 0 || s.ranks == 0 && quiet > settled) {
			return whole, nil
		}
		if len(whole) < max(1, s.ranks) && time.Now().After(appear) && quiet > settled {
			return nil, s.absent(o, len(whole), all)
		}
		if err := sleep(ctx, poll); err != nil {
			return nil, err
		}
	}
}

// absent says where traces are that did not come.
func (s *server) absent(o *Options, whole, all int) error {
	if all > 0 {
		return fmt.Errorf("%s: traces of %d of %d ranks came; the others are on the disks of the machines that run "+
			"them: copy them here, then run glmbatch import torch on all (or say --ranks %d)",
			o.Traces, whole, s.ranks, whole)
	}
	told := "was told to write"
	if s.engine == VLLM {
		told = "was perhaps started to write elsewhere than"
	}
	return fmt.Errorf("no trace came to %s: the server %s into that folder, which is on its own disk; if it runs on "+
		"another machine or in a container, share the folder, or copy the traces here and run glmbatch import torch "+
		"on them; otherwise %s",
		o.Traces, told, s.missing(o.Traces))
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
