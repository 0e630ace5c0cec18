package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"glmbatch/datasets"
	"glmbatch/datasets/datasetstest"
	"glmbatch/replay/report"
)

// imported turns one of the importer's traces into a timeline file.
func imported(t *testing.T, name string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), name+".parquet")
	var stdout, stderr bytes.Buffer
	trace := filepath.Join("..", "..", "replay", "importer", "testdata", name+".json.gz")
	if code := run(t.Context(), []string{"import", "torch", trace, "--out", out}, &stdout, &stderr); code != exitOK {
		t.Fatalf("import %s: exit %d: %s", name, code, stderr.String())
	}
	return out
}

// ends runs the program and returns all that it printed; it must end with code.
func ends(t *testing.T, code int, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if got := run(t.Context(), args, &stdout, &stderr); got != code {
		t.Fatalf("%q: exit %d, want %d: %s", args, got, code, stderr.String())
	}
	return stdout.String() + stderr.String()
}

// The fault that all this exists for is found in one command, in a graph and
// eager, and not found where it is not.
func TestReportFindsTheCacheCast(t *testing.T) {
	for _, c := range []struct {
		trace       string
		first       string // code of the first finding, of what takes most time
		cast        bool
		launchBound bool
		least, most float64 // share of the device span in kv.cast
	}{
		{"cast-graph", "kv.cast", true, false, 0.70, 0.80},
		{"cast-eager", "launch-bound", true, true, 0.15, 0.30},
		{"fused-graph", "idle", false, false, 0, 0},
		{"fused-eager", "launch-bound", false, true, 0, 0},
	} {
		t.Run(c.trace, func(t *testing.T) {
			var d struct {
				Wall    int64            `json:"wall_ns"`
				Ledger  map[string]int64 `json:"ledger"`
				Classes []struct {
					Class string
					Calls int64
					Share float64
				}
				Findings []report.Finding
			}
			file := imported(t, c.trace)
			for _, step := range []string{"-1", "0", "1", "2"} {
				if err := json.Unmarshal([]byte(ends(t, exitOK, "report", file, "--format", "json", "--step", step)),
					&d); err != nil {
					t.Fatal(err)
				}
				var sum int64
				for _, ns := range d.Ledger {
					sum += ns
				}
				if sum != d.Wall {
					t.Errorf("step %s: the ledger adds up to %d of %d ns", step, sum, d.Wall)
				}
				if got := d.Classes[0].Class == "kv.cast"; got != c.cast {
					t.Errorf("step %s: the first class is %s", step, d.Classes[0].Class)
				}
				if s := d.Classes[0].Share; c.cast && (s < c.least || s > c.most) {
					t.Errorf("step %s: kv.cast has a share of %g", step, s)
				}
				if step != "-1" {
					continue
				}
				launchBound := false
				for _, f := range d.Findings {
					launchBound = launchBound || f.Code == "launch-bound"
					if f.Code == "kv.cast" && !strings.Contains(f.Text, "494,976 slots") {
						t.Errorf("the pool is not named: %s", f.Text)
					}
				}
				if d.Findings[0].Code != c.first || launchBound != c.launchBound {
					t.Errorf("findings: %+v", d.Findings)
				}
			}
		})
	}
}

// Rows by operator add up to the kernels' time, and what no operator launched is a row.
func TestReportByOperator(t *testing.T) {
	for _, c := range []struct {
		trace, first string
	}{{"cast-eager", "aten::copy_"}, {"cast-graph", "no operator"}} {
		file := imported(t, c.trace)
		for _, by := range []string{"operator", "module", "frame"} {
			type row struct {
				Label string
				Calls int64
				Total int64 `json:"total_ns"`
			}
			var d struct {
				GPU     int64 `json:"gpu_ns"`
				Classes []row
				Kinds   []struct{ Rows []row }
			}
			if err := json.Unmarshal([]byte(ends(t, exitOK, "report", file, "--format", "json", "--by", by)),
				&d); err != nil {
				t.Fatal(err)
			}
			var calls, sum, wantCalls int64
			for _, r := range d.Kinds[0].Rows {
				calls, sum = calls+r.Calls, sum+r.Total
			}
			for _, r := range d.Classes {
				wantCalls += r.Calls
			}
			if sum != d.GPU || calls != wantCalls {
				t.Errorf("%s by %s: %d calls of %d ns, want %d of %d", c.trace, by, calls, sum, wantCalls, d.GPU)
			}
			want := "no " + by
			if by == "operator" {
				want = c.first
			}
			if got := d.Kinds[0].Rows[0].Label; got != want {
				t.Errorf("%s by %s: the first row is %q, want %q", c.trace, by, got, want)
			}
		}
	}
	if text := ends(t, exitOK, "report", imported(t, "cast-eager"), "--by",
		"operator"); !strings.Contains(text, "aten::bmm") {
		t.Errorf("no operator: %s", text)
	}
}

func TestDiffNamesTheCacheCast(t *testing.T) {
	a, b := imported(t, "cast-graph"), imported(t, "fused-graph")
	text := ends(t, exitOK, "diff", a, b)
	first, _, _ := strings.Cut(text, "\n\n")
	first = strings.Join(strings.Fields(first), " ")
	if !strings.Contains(first, "shorter in B") || !strings.Contains(first, "kv.cast makes 5.140 ms of it") {
		t.Errorf("the first line is %q", first)
	}
	if text := ends(t, exitOK, "diff", a, a); !strings.Contains(text, "wall is the same in A and B") {
		t.Errorf("a timeline differs from itself: %s", text)
	}
}

func TestReportCommands(t *testing.T) {
	file := imported(t, "cast-graph")
	dir := t.TempDir()
	for _, f := range report.Formats {
		if out := ends(t, exitOK, "report", file, "--format", f.Name, "--by", "kernel", "--machine",
			"h200"); len(out) < 200 {
			t.Errorf("%s: %s", f.Name, out)
		}
	}
	for _, v := range report.Viewers {
		out := filepath.Join(dir, v.Name)
		ends(t, exitOK, "export", v.Name, file, "--out", out, "--steps", "1..2")
		if info, err := os.Stat(out); err != nil || info.Size() < 10_000 {
			t.Errorf("%s: %v", v.Name, err)
		}
	}
	page := filepath.Join(dir, "page.html")
	ends(t, exitOK, "report", file, "--html", page)
	if b, err := os.ReadFile(page); err != nil || !bytes.Contains(b, []byte("kv.cast")) {
		t.Errorf("the page: %v", err)
	}
	notOne := filepath.Join(dir, "rows.parquet")
	w, err := datasets.Create[datasets.Step](notOne, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"no such file", []string{"report", filepath.Join(dir, "none")}},
		{`no column "rank"`, []string{"report", notOne}},
		{"group by", []string{"report", file, "--by", "colour"}},
		{`--format "poem"`, []string{"report", file, "--format", "poem"}},
		{`--kind "odd"`, []string{"report", file, "--kind", "odd"}},
		{"no machine", []string{"report", file, "--machine", "abacus"}},
		{"no device spans in step", []string{"report", file, "--step", "77"}},
		{"two timelines", []string{"diff", file}},
		{"--steps takes", []string{"export", "chrome", file, "--out", page, "--steps", "3..1"}},
		{"needs --out", []string{"export", "chrome", file}},
		{"perfetto or chrome", []string{"export", "poem", file}},
	} {
		if out := ends(t, exitInput, c.args...); !strings.Contains(out, c.want) || strings.Count(out, "\n") != 1 {
			t.Errorf("%q: %q, want one line with %q", c.args, out, c.want)
		}
	}
}

// On a real run the ledger of every step closes to the wall time of the steps
// table, on every rank.
func TestLedgerClosesOnARun(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	ends(t, exitOK, "run", "--demo", "--limit", "3", "--max-tokens", "5", "--tp", "2", "--timeline", "all",
		"--quiet", "--out", out)
	steps, err := datasetstest.ReadAll[datasets.Step](filepath.Join(out, "steps"))
	if err != nil || len(steps) < 3 {
		t.Fatalf("%d steps, %v", len(steps), err)
	}
	for _, s := range steps {
		var d struct {
			Wall    int64            `json:"wall_ns"`
			Ranks   int64            `json:"ranks"`
			Shared  bool             `json:"shared"`
			Ledger  map[string]int64 `json:"ledger"`
			Classes []struct {
				Class string
				Self  int64 `json:"self_ns"`
				Bytes int64
			}
			Kinds []struct{ Kind string }
		}
		if err := json.Unmarshal([]byte(ends(t, exitOK, "report", out, "--format", "json", "--step",
			strconv.FormatInt(s.Step, 10))), &d); err != nil {
			t.Fatal(err)
		}
		var sum, bytes int64
		for _, ns := range d.Ledger {
			sum += ns
		}
		for _, c := range d.Classes {
			bytes += c.Bytes
		}
		if sum != d.Wall || d.Wall != d.Ranks*s.WallNS || d.Ranks != 2 || !d.Shared ||
			d.Kinds[0].Kind != s.Kind || bytes == 0 {
			t.Errorf("step %d: the ledger adds up to %d, wall %d, %d ranks; the steps table has %d ns, %s", s.Step, sum,
				d.Wall, d.Ranks, s.WallNS, s.Kind)
		}
	}
}
