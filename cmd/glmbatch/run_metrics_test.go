package main

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// watched calls f once with the address of the metrics, when it is said.
type watched struct {
	bytes.Buffer
	once sync.Once
	f    func(url string)
}

var metricsAt = regexp.MustCompile(`metrics at (http://\S+/metrics)`)

func (w *watched) Write(b []byte) (int, error) {
	n, err := w.Buffer.Write(b)
	if m := metricsAt.FindSubmatch(w.Bytes()); m != nil {
		w.once.Do(func() { w.f(string(m[1])) })
	}
	return n, err
}

// TestRunMetrics: a job answers while it runs, and its file has how it ended.
func TestRunMetrics(t *testing.T) {
	file := filepath.Join(t.TempDir(), "job.prom")
	scraped := ""
	errs := &watched{f: func(url string) {
		resp, err := http.Get(url)
		if err != nil {
			t.Error(err)
			return
		}
		defer http.DefaultClient.CloseIdleConnections()
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if scraped = string(b); err != nil {
			t.Error(err)
		}
	}}
	args := []string{"run", "--demo", "--limit", "6", "--max-tokens", "4", "--tp", "2", "--kv-tokens", "4096", "--out",
		filepath.Join(t.TempDir(), "out"),
		"--metrics-file", file, "--metrics-addr", "0"}
	if code := run(t.Context(), args, io.Discard, errs); code != exitOK {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	if !strings.Contains(scraped, "glmbatch_job_rows{") || strings.Contains(scraped, "glmbatch_job_exit_code{") {
		t.Errorf("while it ran: %.400s", scraped)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`glmbatch_rows_total\{.*\} 6\n`, `glmbatch_job_exit_code\{.*\} 0\n`,
		`glmbatch_kv_pages\{.*\} 64\n`, `glmbatch_step_duration_seconds_count\{.*\} [1-9]`} {
		if !regexp.MustCompile(want).Match(b) {
			t.Errorf("at the end there is no %s:\n%s", want, b)
		}
	}
	for _, c := range []struct{ flag, value, says string }{
		{"--metrics-file", "job.txt", "end in .prom"},
		{"--metrics-file", filepath.Join(file, "none", "job.prom"), "--metrics-file: no file can be written"},
		{"--metrics-addr", "nowhere", "no port"},
	} {
		if code, _, errs := glmbatch("run", "--demo", "--out", filepath.Join(t.TempDir(), "x"), c.flag,
			c.value); code != exitInput || !strings.Contains(errs, c.says) {
			t.Errorf("%s %s: exit code %d, %s", c.flag, c.value, code, errs)
		}
	}
}
