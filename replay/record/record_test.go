package record

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// fake is a server that speaks the profilers' protocols and writes traces late.
type fake struct {
	*httptest.Server
	engine Engine
	ranks  int
	off    bool   // started without a folder for traces
	mute   bool   // writes its traces to its own disk
	dir    string // vLLM's
	trace  []byte

	mu      sync.Mutex
	start   map[string]any
	started int
	stopped int
	writing sync.WaitGroup
	tokens  int
}

func newFake(t *testing.T, f *fake) *fake {
	t.Helper()
	if f.trace == nil {
		f.trace = []byte(`{"traceEvents": []}`)
	}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(func() {
		f.CloseClientConnections()
		f.Close()
		f.writing.Wait()
	})
	return f
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/v1/models":
		fmt.Fprint(w, `{"object": "list", "data": [{"id": "glm-5"}]}`)
	case r.URL.Path == "/get_server_info" && f.engine == SGLang:
		fmt.Fprintf(w, `{"version": "0.5.9", "tp_size": %d, "dp_size": 2, "enable_dp_attention": true, "pp_size": 1}`,
			f.ranks)
	case r.URL.Path == "/version" && f.engine == VLLM:
		fmt.Fprint(w, `{"version": "0.14.0"}`)
	case r.URL.Path == "/v1/completions" && r.Method == http.MethodPost:
		f.complete(w, r)
	case r.URL.Path == "/start_profile" && r.Method == http.MethodPost && !f.off:
		f.mu.Lock()
		defer f.mu.Unlock()
		f.started++
		if err := json.NewDecoder(r.Body).Decode(&f.start); err != nil {
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
			return
		}
		if dir, ok := f.start["output_dir"].(string); ok {
			f.writing.Go(func() { f.write(dir, "1700000000.5-TP-%d.trace.json.gz") })
		}
		fmt.Fprintln(w, "Start profiling.")
	case r.URL.Path == "/stop_profile" && r.Method == http.MethodPost && !f.off:
		f.mu.Lock()
		defer f.mu.Unlock()
		f.stopped++
		if f.engine == VLLM && f.stopped == 1 {
			f.write(f.dir, "node_rank%d.1700000000.pt.trace.json.gz")
			os.WriteFile(filepath.Join(f.dir, "node_1.async_llm.17.pt.trace.json.gz"), []byte("not a rank"), 0o600)
		}
	default:
		http.NotFound(w, r)
	}
}

func (f *fake) complete(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Model     string `json:"model"`
		MaxTokens int    `json:"max_tokens"`
		Stream    bool   `json:"stream"`
		IgnoreEOS bool   `json:"ignore_eos"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || !body.Stream || !body.IgnoreEOS ||
		body.Model != "glm-5" {
		http.Error(w, "not that", http.StatusBadRequest)
		return
	}
	for range body.MaxTokens {
		if _, err := fmt.Fprint(w, "data: {\"choices\": [{\"text\": \" one\"}]}\n\n"); err != nil ||
			r.Context().Err() != nil {
			return
		}
		w.(http.Flusher).Flush()
		f.mu.Lock()
		f.tokens++
		f.mu.Unlock()
		time.Sleep(200 * time.Microsecond)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// write writes the ranks' traces in pieces, as a profiler does.
func (f *fake) write(dir, form string) {
	if f.mute {
		return
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(f.trace)
	z.Close()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return
	}
	for rank := range f.ranks {
		file, err := os.Create(filepath.Join(dir, fmt.Sprintf(form, rank)))
		if err != nil {
			return
		}
		half := packed.Len() / 2
		file.Write(packed.Bytes()[:half])
		time.Sleep(20 * time.Millisecond)
		file.Write(packed.Bytes()[half:])
		file.Close()
	}
}

func TestWindow(t *testing.T) {
	for _, engine := range []Engine{SGLang, VLLM} {
		for _, requests := range []int{0, 3} {
			t.Run(fmt.Sprintf("%s/%d requests", engine, requests), func(t *testing.T) {
				dir := t.TempDir()
				if err := os.WriteFile(filepath.Join(dir, "old-TP-0.trace.json.gz"), []byte("of yesterday"),
					0o600); err != nil {
					t.Fatal(err)
				}
				f := newFake(t, &fake{engine: engine, ranks: 4, dir: dir})
				var log bytes.Buffer
				rec, err := Window(t.Context(), Options{URL: f.URL + "/", Traces: dir, Requests: requests, Warmup: 4,
					Window: 10 * time.Millisecond, Log: &log})
				if err != nil {
					t.Fatal(err)
				}
				if rec.Engine != engine || rec.Model != "glm-5" || len(rec.Files) != 4 {
					t.Errorf("recorded %+v, want 4 files of %s", rec, engine)
				}
				f.mu.Lock()
				defer f.mu.Unlock()
				if engine == SGLang && (f.start["num_steps"] != 5.0 || f.start["output_dir"] != dir ||
					f.start["with_stack"] != false || f.stopped != 0) {
					t.Errorf("SGLang was asked for %v and stopped %d times", f.start, f.stopped)
				}
				if engine == VLLM && (f.start["max_iterations"] != 5.0 || f.stopped != 1) {
					t.Errorf("vLLM was asked for %v and stopped %d times", f.start, f.stopped)
				}
				if requests > 0 && f.tokens < 3*(4+5) {
					t.Errorf("%d tokens were decoded, want %d", f.tokens, 3*(4+5))
				}
				if !strings.Contains(log.String(), "serves glm-5") {
					t.Errorf("log %q", log.String())
				}
			})
		}
	}
}

// TestWhatIsMissing holds what is said of servers that cannot be recorded.
func TestWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		name  string
		fake  *fake
		wants []string
	}{
		{"vLLM without a profiler", &fake{engine: VLLM, off: true},
			[]string{"--profiler-config", "VLLM_TORCH_PROFILER_DIR"}},
		{"SGLang behind a router", &fake{engine: SGLang, ranks: 2, off: true}, []string{"SGLANG_TORCH_PROFILER_DIR"}},
		{"traces on another disk", &fake{engine: SGLang, ranks: 2, mute: true}, []string{"own disk", "import torch"}},
		{"neither", &fake{engine: "other"}, []string{"neither SGLang", "nor vLLM"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t, c.fake)
			_, err := Window(t.Context(), Options{URL: f.URL, Traces: filepath.Join(t.TempDir(), "new"),
				Appear: time.Millisecond})
			for _, want := range c.wants {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %q in it", err, want)
				}
			}
		})
	}
	t.Run("ranks on other machines", func(t *testing.T) {
		f := newFake(t, &fake{engine: SGLang, ranks: 2})
		_, err := Window(t.Context(), Options{URL: f.URL, Traces: t.TempDir(), Ranks: 3, Appear: time.Millisecond})
		if err == nil || !strings.Contains(err.Error(), "2 of 3 ranks") {
			t.Errorf("%v, want 2 of 3 ranks", err)
		}
	})
	if _, err := Window(t.Context(), Options{URL: "localhost:1", Steps: -1}); err == nil ||
		!strings.Contains(err.Error(), "steps is -1") || !strings.Contains(err.Error(), "url") {
		t.Errorf("bad options: %v", err)
	}
	f := newFake(t, &fake{engine: SGLang})
	f.Close()
	if _, err := Window(t.Context(), Options{URL: f.URL}); err == nil {
		t.Error("a server that is not there was recorded")
	}
}

// TestInterrupt holds that the profiler is stopped when the recording is.
func TestInterrupt(t *testing.T) {
	for _, engine := range []Engine{SGLang, VLLM} {
		f := newFake(t, &fake{engine: engine, ranks: 1, mute: true, dir: t.TempDir()})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for {
				f.mu.Lock()
				started := f.started
				f.mu.Unlock()
				if started > 0 {
					cancel()
					return
				}
				time.Sleep(time.Millisecond)
			}
		}()
		_, err := Window(ctx, Options{URL: f.URL, Traces: t.TempDir(), Requests: 2, Steps: 10_000})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want an interrupt", engine, err)
		}
		f.mu.Lock()
		if f.stopped != 1 {
			t.Errorf("%s: the profiler was stopped %d times", engine, f.stopped)
		}
		f.mu.Unlock()
	}
}

// TestWhole holds which files are taken for whole.
func TestWhole(t *testing.T) {
	pack := func(s string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		io.WriteString(z, s)
		z.Close()
		return b.String()
	}
	long := pack(`{"traceEvents": [` + strings.Repeat("{},", 10_000) + `{}]}`)
	for _, c := range []struct {
		name, text string
		whole      bool
	}{
		{"a.json", `{"traceEvents": []}` + "\n", true}, {"a.json", `{"traceEvents": [`, false}, {"a.json", "", false},
		{"a.json", strings.Repeat(" ", 10_000) + "[]", true},
		{"a.json.gz", long, true}, {"a.json.gz", long[:len(long)-5], false}, {"a.json.gz", pack(`{"a": `),
			false}, {"a.json.gz", "{}", false},
	} {
		path := filepath.Join(t.TempDir(), c.name)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := isWhole(t.Context(), path); got != c.whole {
			t.Errorf("%s of %d bytes: whole is %v", c.name, len(c.text), got)
		}
	}
}
