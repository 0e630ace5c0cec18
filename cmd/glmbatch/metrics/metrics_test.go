package metrics

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"glmbatch/engine"
	"glmbatch/kernels"
	"glmbatch/pipeline"
	"glmbatch/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// example is a job that has ended, so that it has a value of each metric.
func example() *Job {
	c := &pipeline.Counts{}
	c.Rows.Store(7)
	c.Samples.Store(9)
	c.PromptTokens.Store(100)
	c.CompletionTokens.Store(30)
	c.SyncedTo.Store(time.Now().Add(-3 * time.Second).UnixNano())
	j := New(Options{RunID: "r", Shard: "0/2", Model: "demo", Device: "cpu", Version: "v1", Started: time.Unix(1e9, 0),
		Rows: 10, Pages: 64, Counts: c,
		GPU: func() *telemetry.GPU {
			return &telemetry.GPU{Count: 2, Watts: 700, Joules: 1e6, Clock: 1980, Celsius: 60, Memory: 1 << 36,
				Throttle: []string{"power cap"}}
		}})
	for _, kind := range []string{"prefill", "decode", "decode"} {
		j.OnStep(engine.StepInfo{Kind: kind, Sequences: 3, Waiting: 2, Tokens: 5, Pages: 4, Preempted: 1,
			Times: kernels.Times{Wall: kernels.Interval{End: 2_000_000}}})
	}
	return j
}

// TestTable: each metric of the table has values with its labels, named as Prometheus
// wants them, and there are no others.
func TestTable(t *testing.T) {
	j := example()
	values := j.values(time.Now())
	ended := example()
	ended.End(75, time.Now())
	for name, v := range ended.values(time.Now()) {
		values[name] = v
	}
	values[rowErrors] = []value{{1, []string{"prompt"}}} // which counts has from rows alone
	for _, m := range Table {
		if m.Name != stepSeconds && len(values[m.Name]) == 0 {
			t.Errorf("%s has no value", m.Name)
		}
		for _, v := range values[m.Name] {
			if len(v.labels) != len(m.Labels) {
				t.Errorf("%s: labels %v of %v", m.Name, v.labels, m.Labels)
			}
		}
		delete(values, m.Name)
	}
	for name := range values {
		t.Errorf("%s is not in the table", name)
	}
	problems, err := testutil.CollectAndLint(ended)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// scrape reads what a server answers.
func scrape(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	http.DefaultClient.CloseIdleConnections()
	return resp.StatusCode, string(body)
}

func TestServe(t *testing.T) {
	s, err := example().Serve("localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	code, text := scrape(t, s.URL)
	for _, want := range []string{
		`glmbatch_rows_total{run_id="r",shard="0/2"} 7`,
		`glmbatch_tokens_total{kind="completion",run_id="r",shard="0/2"} 30`,
		`glmbatch_step_duration_seconds_count{kind="decode",run_id="r",shard="0/2"} 2`,
		`glmbatch_computed_tokens_total{run_id="r",shard="0/2"} 15`,
		`glmbatch_sequences{run_id="r",shard="0/2",state="waiting"} 2`,
		"go_goroutines ",
	} {
		if code != http.StatusOK || !strings.Contains(text, want+"\n") && !strings.Contains(text, want) {
			t.Errorf("%d: no %s", code, want)
		}
	}
	if code, _ := scrape(t, strings.TrimSuffix(s.URL, "metrics")); code != http.StatusNotFound {
		t.Errorf("another path: %d", code)
	}
	if _, err := example().Serve(strings.TrimSuffix(strings.TrimPrefix(s.URL, "http://"), "/metrics")); err == nil {
		t.Error("an address is listened to twice")
	}
}

// TestFile: the file is whole whenever it is read, and has the job's end.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "job.prom")
	j := example()
	f, err := j.Write(path)
	if err != nil {
		t.Fatal(err)
	}
	read := func() string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if s := read(); !strings.Contains(s, "glmbatch_rows_total{") || strings.Contains(s, "go_") ||
		strings.Contains(s, exitCode) {
		t.Errorf("at first: %s", s)
	}
	j.End(75, time.Now())
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if s := read(); !strings.Contains(s, exitCode+`{run_id="r",shard="0/2"} 75`) {
		t.Errorf("at last: %s", s)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left: %v, %v", entries, err)
	}
	if _, err := j.Write(filepath.Join(dir, "none", "job.prom")); err == nil {
		t.Error("a folder that is not there is written to")
	}
}

func TestAddress(t *testing.T) {
	for s, want := range map[string]string{"9400": "localhost:9400", ":9400": "localhost:9400",
		"0.0.0.0:9400": "0.0.0.0:9400", "[::1]:0": "[::1]:0", "a:b:c": "", "": "", "x": "", "99999": ""} {
		if got, err := Address(s); got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v", s, got, err)
		}
	}
}

var _ prometheus.Collector = (*Job)(nil)
