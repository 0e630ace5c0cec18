package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// recordTrace is a trace that this project recorded: three decode steps under a graph.
const recordTrace = "../../replay/importer/testdata/cast-graph.json.gz"

// profiled is an SGLang server of one rank that writes recordTrace.
func profiled(t *testing.T) *httptest.Server {
	trace, err := os.ReadFile(recordTrace)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/models":
			fmt.Fprint(w, `{"data": [{"id": "glm-5"}]}`)
		case "/server_info":
			fmt.Fprint(w, `{"version": "0.5.9", "tp_size": 1}`)
		case "/v1/completions":
			for r.Context().Err() == nil {
				fmt.Fprint(w, "data: {}\n\n")
				w.(http.Flusher).Flush()
				time.Sleep(time.Millisecond)
			}
		case "/start_profile":
			var body struct {
				Dir string `json:"output_dir"`
			}
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil || os.MkdirAll(body.Dir, 0o700) != nil ||
				os.WriteFile(filepath.Join(body.Dir, "1.5-TP-0.trace.json.gz"), trace, 0o600) != nil {
				http.Error(w, "cannot write", http.StatusInternalServerError)
			}
		}
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func TestRecordServer(t *testing.T) {
	s := profiled(t)
	out := filepath.Join(t.TempDir(), "rec")
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"record", "--url", s.URL, "--out", out, "--requests", "2"}, &stdout,
		&stderr); code != exitOK {
		t.Fatalf("exit %d: %s", code, stderr.String())
	}
	for _, want := range []string{"kv.cast", "next: "} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("no %q in\n%s", want, stdout.String())
		}
	}
	if code := run(t.Context(), []string{"record", "--url", s.URL, "--out", out}, &stdout, &stderr); code != exitInput {
		t.Errorf("a second recording into the folder: exit %d, want %d", code, exitInput)
	}
}

func TestRecordArguments(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, args := range [][]string{{"record"}, {"record", "--url", "http://127.0.0.1:1", "--", "true"},
		{"record", "--url", "localhost"}, {"record", "--out", t.TempDir(), "--", "true"}} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), args, &stdout, &stderr); code != exitInput || stderr.Len() == 0 {
			t.Errorf("%q: exit %d and %q", args, code, stderr.String())
		}
	}
}

// A stand-in for nsys: it runs the command, then writes what it is told to export.
const fakeNsys = `#!/bin/sh
case "$1" in
profile) shift 6; "$@"; echo recorded > "$NSYS_OUT/profile.nsys-rep" ;;
export) cp "$NSYS_SQLITE" "$NSYS_OUT/profile.sqlite" ;;
esac
`

// TestRecordInterrupted holds that an interrupt ends the command and what it runs within
// a second.
func TestRecordInterrupted(t *testing.T) {
	bin, out := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "nsys"), []byte(fakeNsys), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	started := filepath.Join(out, "started")
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(started); err == nil {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	var stdout, stderr bytes.Buffer
	code := run(ctx, []string{"record", "--out", filepath.Join(out, "rec"), "--", "sh", "-c",
		`trap "" INT; echo > ` + started + `; sleep 60`}, &stdout, &stderr)
	if code != exitInterrupted {
		t.Errorf("exit %d, want %d: %s", code, exitInterrupted, stderr.String())
	}
}
