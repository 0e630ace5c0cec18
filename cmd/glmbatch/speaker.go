package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// speaker says on standard error what a person or a log wants to know while a command
// runs: lines on a terminal, lines with the time elsewhere, or JSON records.
type speaker struct {
	w     io.Writer
	quiet bool // only warnings and errors
	tty   bool // lines and a bar for a person
	log   *slog.Logger
}

// The formats of --log-format.
const (
	logText = "text"
	logJSON = "json"
)

// newSpeaker returns what a command speaks with that has no log: lines without the time.
func newSpeaker(w io.Writer) *speaker {
	s := &speaker{w: w, tty: isTerminal(w)}
	s.log = slog.New(&lineHandler{w: w, level: slog.LevelInfo})
	return s
}

// newLog returns what a job speaks with.
func newLog(w io.Writer, quiet bool, format string) *speaker {
	s := &speaker{w: w, quiet: quiet, tty: format != logJSON && isTerminal(w)}
	level := slog.LevelInfo
	if quiet {
		level = slog.LevelWarn
	}
	if format == logJSON {
		s.log = slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
	} else {
		s.log = slog.New(&lineHandler{w: w, level: level, timed: !s.tty})
	}
	return s
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// line says something.
func (s *speaker) line(format string, args ...any) { s.log.Info(fmt.Sprintf(format, args...)) }

// note says something that is said also where nothing else is.
func (s *speaker) note(format string, args ...any) { s.log.Warn(fmt.Sprintf(format, args...)) }

// record says something that has figures: an event's name and fields for a program.
func (s *speaker) record(event, text string, fields ...any) {
	s.log.Info(text, append([]any{"event", event}, fields...)...)
}

// fail says how the program ends.
func (s *speaker) fail(text string, code int) {
	s.log.Error(text, "event", "end", "exit_code", code)
}

// lineHandler writes a record's message alone, a line each: its fields are in it.
type lineHandler struct {
	w     io.Writer
	level slog.Level
	timed bool
	mu    sync.Mutex
}

// Enabled implements slog.Handler.
func (h *lineHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level }

// Handle implements slog.Handler.
func (h *lineHandler) Handle(_ context.Context, r slog.Record) error {
	text := oneLine(r.Message)
	if r.Level >= slog.LevelError {
		text = "glmbatch: " + text
	}
	if h.timed {
		text = r.Time.Format(time.RFC3339) + " " + text
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := h.w.Write([]byte(text + "\n")) // one write a line
	return err
}

// WithAttrs and WithGroup implement slog.Handler; fields are not shown.
func (h *lineHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h *lineHandler) WithGroup(string) slog.Handler      { return h }
