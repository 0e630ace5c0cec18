package report

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"glmbatch/datasets"
	"glmbatch/kernels"
	"glmbatch/kernels/roofline"
	"glmbatch/replay/timeline"
)

// browser opens a page in a headless Chromium, if there is one, and returns the
// document after its scripts ran and what they wrote to the console.
func browser(t *testing.T, page, profile string, flags ...string) (dom string, console []string) {
	t.Helper()
	var chromium string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
		"headless_shell"} {
		if path, err := exec.LookPath(name); err == nil {
			chromium = path
			break
		}
	}
	if chromium == "" {
		t.Skip("no Chromium in PATH: the page is not opened")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	args := append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--user-data-dir=" +
			profile, "--enable-logging=stderr", "--virtual-time-budget=8000",
		"--window-size=1200,900"}, flags...)
	c := exec.CommandContext(ctx, chromium, append(args, "--dump-dom", "file://"+page)...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		t.Skipf("Chromium does not run here: %v", err)
	}
	for _, line := range strings.Split(errs.String(), "\n") {
		if strings.Contains(line, "CONSOLE") {
			console = append(console, line)
		}
	}
	return out.String(), console
}

// act is run in the page: it uses what a reader can use and says what came of it.
const act = `<script>
const until = (ok, then) => (ok() ? then() : setTimeout(() => until(ok, then), 20));
until(() => document.documentElement.dataset.ready, () => setTimeout(() => {
  const seen = {};
  const canvas = document.getElementById("timeline");
  seen.painted = Number(canvas.dataset.painted);
  for (const id of ["zoom-in", "zoom-in", "zoom-out", "later", "earlier", "zoom-all"]) document.getElementById(id).click();
  canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
  canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: -200, ctrlKey: true, bubbles: true, cancelable: true }));
  const box = canvas.getBoundingClientRect();
  for (let y = 30; y < box.height; y += 6) for (let x = 160; x < box.width; x += 40) {
    canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + x, clientY: box.top + y, pointerId: 1, bubbles: true }));
    if (!document.getElementById("tip").hidden) seen.tip = document.getElementById("tip").textContent;
  }
  const first = () => document.querySelector("#kernels tbody td").textContent;
  const head = document.querySelectorAll("#kernels th button");
  head[0].click(); seen.ascending = first(); head[0].click(); seen.descending = first();
  const find = document.getElementById("find");
  find.value = "mla"; find.dispatchEvent(new Event("input")); seen.found = document.querySelectorAll("#kernels tbody tr").length;
  find.value = ""; find.dispatchEvent(new Event("input"));
  seen.dots = document.querySelectorAll("#roofline circle").length;
  seen.isolated = document.querySelectorAll("#isolated circle").length;
  seen.job = document.querySelectorAll("#job-section path").length;
  seen.steps = document.getElementById("step").options.length;
  seen.ground = getComputedStyle(document.documentElement).backgroundColor;
  const buttons = [...document.querySelectorAll("#kinds button")];
  seen.kinds = {};
  for (const b of buttons) {
    b.click();
    const rows = {};
    for (const tr of document.querySelectorAll("#ledger tbody tr")) rows[tr.dataset.class || tr.dataset.entry] = [Number(tr.dataset.selfNs), tr.children[2].textContent];
    seen.kinds[b.textContent.split(" ")[0]] = rows;
  }
  document.documentElement.append(Object.assign(document.createElement("script"), { type: "application/json", id: "seen", textContent: JSON.stringify(seen).replace(/</g, "\\u003c") }));
}, 100));
</script>`

type seen struct {
	Painted               int
	Tip                   string
	Ascending, Descending string
	Found, Dots, Isolated int
	Job, Steps            int
	Ground                string
	Kinds                 map[string]map[string][2]any
}

var seenScript = regexp.MustCompile(`(?s)<script type="application/json" id="seen">(.*?)</script>`)

// opened writes a page with the script that uses it, and opens it.
func opened(t *testing.T, p *Page, flags ...string) seen {
	t.Helper()
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "page.html")
	if err := os.WriteFile(path, bytes.Replace(b.Bytes(), []byte("</body>"), []byte(act+"</body>"), 1),
		0o644); err != nil {
		t.Fatal(err)
	}
	dom, console := browser(t, path, filepath.Join(dir, "profile"), flags...)
	if len(console) > 0 {
		t.Errorf("the page wrote to the console: %s", strings.Join(console, "\n"))
	}
	m := seenScript.FindStringSubmatch(dom)
	if m == nil {
		t.Fatalf("the page's scripts did not come to an end; the document has %d bytes", len(dom))
	}
	var s seen
	if err := json.Unmarshal([]byte(m[1]), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// outFolder writes an output folder with a timeline and a steps table.
func outFolder(t *testing.T, rows []datasets.Span) string {
	t.Helper()
	out := t.TempDir()
	for _, dir := range []string{"timeline", "steps"} {
		if err := os.Mkdir(filepath.Join(out, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w, err := datasets.Create[datasets.Span](filepath.Join(out, "timeline", "part-00000.parquet"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	steps, err := datasets.Create[datasets.Step](filepath.Join(out, "steps", "part-00000.parquet"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Evidence == timeline.RoleStep {
			if err := steps.Write([]datasets.Step{{Step: r.Step, Kind: r.Kernel, Sequences: 4, Tokens: 8, Sampled: 4,
				StartNS: r.StartNS, WallNS: r.EndNS - r.StartNS}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := steps.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}

// A browser shows the page without a complaint, and the totals that it shows are
// those of the JSON form.
func TestPageInBrowser(t *testing.T) {
	h200, _ := roofline.Named("h200")
	rows := example(false)
	rows[len(rows)-1].Kernel = `</script><script>alert("kernel")</script>&lt;` // names are not markup
	p, err := Source{Path: outFolder(t, rows)}.Page(Options{Machine: &h200})
	if err != nil {
		t.Fatal(err)
	}
	p.Isolated = []Isolation{{Kind: kernels.Decode, Wall: 200_000, Rows: []IsolatedRow{{Label: "comm", InPlace: 34_000,
		Warm: 12_000, Cold: 14_000, Marginal: 30_000}, {Label: "attn", InPlace: 20_000, Warm: 18_000, Cold: 19_000,
		Bound: 2_000}}}}
	for _, theme := range []struct {
		name, ground string
		flags        []string
	}{
		{"light", "rgb(251, 251, 249)", []string{"--blink-settings=preferredColorScheme=1"}},
		{"dark", "rgb(22, 22, 20)", []string{"--blink-settings=preferredColorScheme=0"}},
	} {
		t.Run(theme.name, func(t *testing.T) {
			s := opened(t, p, theme.flags...)
			if s.Ground != theme.ground {
				t.Errorf("the ground is %s", s.Ground)
			}
			if s.Painted < 40 || s.Steps != 5 || s.Dots < 5 || s.Isolated != 4 || s.Job != 2 || s.Found != 1 {
				t.Errorf("shown: %+v", s)
			}
			if !strings.Contains(s.Tip, "duration") {
				t.Errorf("no span told what it is: %q", s.Tip)
			}
			if s.Ascending >= s.Descending {
				t.Errorf("the kernels are not sorted: %q, %q", s.Ascending, s.Descending)
			}
			d := p.Report.document()
			if len(s.Kinds) != len(d.Kinds) {
				t.Fatalf("%d kinds of steps are shown", len(s.Kinds))
			}
			for _, k := range d.Kinds {
				want := map[string]int64{"wall": k.Wall}
				for _, a := range k.Ledger {
					if a.NS != 0 {
						want[a.Name] = a.NS
					}
				}
				shown := s.Kinds[k.Kind]
				if len(shown) != len(want) {
					t.Errorf("%s: %d rows are shown, the ledger has %d", k.Kind, len(shown), len(want))
				}
				for name, ns := range want {
					row := shown[name]
					text := fmt.Sprintf("%.3f", float64(ns)/float64(k.RankSteps)/1e6)
					if row[0] != float64(ns) || row[1] != text {
						t.Errorf("%s %s: %v are shown, want %d ns as %q", k.Kind, name, row, ns, text)
					}
				}
			}
		})
	}
}

// A page takes 200,000 spans, and says what it left out.
func TestLargePage(t *testing.T) {
	var rows []datasets.Span
	one := example(false)
	for i := int64(0); len(rows) < maxPageSpans+50_000; i++ {
		for _, r := range one {
			r.Step += 6 * i
			r.StartNS += 3_000_000 * i
			r.EndNS += 3_000_000 * i
			rows = append(rows, r)
		}
	}
	p, err := Source{Path: writeRows(t, rows)}.Page(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(p.spans.columns.start); n > maxPageSpans || n < maxPageSpans-len(one) {
		t.Errorf("the page has %d spans", n)
	}
	marks := map[string]int{}
	for _, s := range p.spans.steps {
		marks[s.Kind+" "+s.Mark]++
	}
	if marks["decode median"] != 1 || marks["decode slowest"] != 1 || marks["prefill median"] != 1 {
		t.Errorf("chosen steps: %v", marks)
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 8<<20 {
		t.Errorf("the page has %d bytes", b.Len())
	}
	if s := opened(t, p); s.Painted == 0 || s.Steps < 100 {
		t.Errorf("shown: %+v", s)
	}
}

// One step larger than a page is cut, and the page says so.
func TestCutStep(t *testing.T) {
	rows := make([]datasets.Span, maxPageSpans+7)
	for i := range rows {
		rows[i] = kernel("norm", int64(i)*100, int64(i)*100+60)
	}
	p, err := Source{Path: writeRows(t, rows)}.Page(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.spans.columns.start) != maxPageSpans || !strings.Contains(p.note, "the last 7 spans") {
		t.Errorf("%d spans, %q", len(p.spans.columns.start), p.note)
	}
}

// The page asks for nothing from a network.
func TestPageIsSelfContained(t *testing.T) {
	var b bytes.Buffer
	p, err := Source{Path: writeRows(t, example(true))}.Page(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(b.String(), "http://www.w3.org/2000/svg", "") // a name, not an address
	if m := regexp.MustCompile(`(?i)https?://|@import|<link|\bsrc=|url\(`).FindString(text); m != "" {
		t.Errorf("the page refers to %q", m)
	}
	for _, mark := range []string{"/*STYLE*/", "/*SCRIPT*/", "/*REPORT*/", "/*PAGE*/", "/*SPANS*/"} {
		if strings.Contains(text, mark) {
			t.Errorf("%s was not filled in", mark)
		}
	}
	if n, err := strconv.Atoi(regexp.MustCompile(`"spans":(\d+)`).FindStringSubmatch(text)[1]); err != nil || n == 0 {
		t.Errorf("%d spans, %v", n, err)
	}
}

// The page of a step shows what ran in its time, also of other steps.
func TestPageHasOtherSteps(t *testing.T) {
	var rows []datasets.Span
	for step := range int64(3) {
		from := 100 + 10*step
		rows = append(rows, datasets.Span{Step: step, Lane: "host step", Kernel: fmt.Sprintf("decode_step.%d", step),
			Class: "host", Evidence: "step", Call: -1, Layer: -1, StartNS: from, EndNS: from + 10})
		k := kernel("gemm", 200+100*step, 300+100*step)
		k.Step = step
		rows = append(rows, k)
	}
	loose := kernel("norm", 150, 160)
	loose.Step = -1
	p, err := Source{Path: writeRows(t, append(rows, loose))}.Page(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{3, 4, 5} { // its two rows, the loose one, and the work before
		if got := p.spans.steps[i].Count; got != want {
			t.Errorf("step %d has %d spans, want %d", i, got, want)
		}
	}
	others := 0
	for _, k := range p.spans.columns.kernel {
		if p.spans.kernels[k].Class == "other steps" {
			others++
		}
	}
	if others != 6 {
		t.Errorf("%d spans of other steps", others)
	}
}
