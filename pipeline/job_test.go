package pipeline

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"glmbatch/datasets"
	"glmbatch/datasets/demo"
)

func demoInput(t testing.TB) *datasets.Input {
	t.Helper()
	in, err := datasets.OpenBytes("demo prompts", demo.Prompts())
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// newJob makes a job on a folder.
func newJob(t testing.TB, in *datasets.Input, o Options, e Engine, dir string) *Job {
	t.Helper()
	p, err := NewPlan(in, o)
	if err != nil {
		t.Fatal(err)
	}
	f, err := OpenFolder(dir, &Manifest{Settings: p.Settings(), Input: in.Files, FromRow: p.From, ToRow: p.To},
		FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return &Job{Plan: p, Text: demoText(t), Engine: e, Folder: f, Counts: &Counts{}}
}

// outRow is what tests compare of an output row.
type outRow struct {
	ID       string
	Response string
	Reason   string
	Code     string
	Error    string
	Row      int64
	Sample   int32
	Seed     int64
	Tokens   []int32
}

type outColumns struct {
	ID       *string `parquet:"id"`
	Response *string `parquet:"response"`
	Reason   string  `parquet:"finish_reason"`
	Code     *string `parquet:"error_code"`
	Error    *string `parquet:"error"`
	Row      int64   `parquet:"row_index"`
	Sample   int32   `parquet:"sample_index"`
	Seed     int64   `parquet:"seed"`
	Tokens   []int32 `parquet:"token_ids,list"`
}

func readOut(t testing.TB, dir string) []outRow {
	t.Helper()
	var all []outRow
	err := datasets.Read(filepath.Join(dir, datasets.OutputsDir), func(rows []outColumns) error {
		for _, r := range rows {
			o := outRow{Reason: r.Reason, Row: r.Row, Sample: r.Sample, Seed: r.Seed,
				Tokens: append([]int32(nil), r.Tokens...)}
			for _, p := range []struct {
				to   *string
				from *string
			}{{&o.ID, r.ID}, {&o.Response, r.Response}, {&o.Code, r.Code}, {&o.Error, r.Error}} {
				if p.from != nil {
					*p.to = *p.from
				}
			}
			all = append(all, o)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestRun(t *testing.T) {
	in := demoInput(t)
	o := Options{TokenIDs: true, InFlight: 7, Window: 50, PartRows: 300, Params: Params{N: 2}, Seed: 5}
	dir := t.TempDir()
	e := &stub{vocab: 2000, length: 9, shuffle: rand.New(rand.NewPCG(1, 2))}
	if err := newJob(t, in, o, e, dir).Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	rows := readOut(t, dir)
	if len(rows) != 2000 {
		t.Fatalf("%d rows, want 2,000", len(rows))
	}
	seeds := map[int64]bool{}
	for i, r := range rows {
		if r.Row != int64(i/2) || r.Sample != int32(i%2) || r.Code != "" || r.Reason != "length" || len(r.Tokens) == 0 {
			t.Fatalf("row %d is %+v", i, r)
		}
		seeds[r.Seed] = true
	}
	if len(seeds) != 2000 {
		t.Errorf("%d different seeds, want one a row", len(seeds))
	}
	if _, err := os.Stat(filepath.Join(dir, datasets.SuccessFile)); err != nil {
		t.Error(err)
	}

	// The same rows one at a time, in one part.
	again := t.TempDir()
	o.InFlight, o.Window, o.PartRows, o.Workers = 1, 1, 10_000, 1
	if err := newJob(t, in, o, &stub{vocab: 2000, length: 9}, again).Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(rows, readOut(t, again)); d != "" {
		t.Errorf("limits change the rows:\n%s", d[:min(len(d), 1000)])
	}

	// And as three shards.
	var shards []outRow
	for k := range 3 {
		dir := t.TempDir()
		o.Shard, o.Shards = k, 3
		if err := newJob(t, in, o, &stub{vocab: 2000, length: 9}, dir).Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		shards = append(shards, readOut(t, dir)...)
	}
	if d := cmp.Diff(rows, shards); d != "" {
		t.Errorf("sharding changes the rows:\n%s", d[:min(len(d), 1000)])
	}
}

// TestStopWithdraws: a job that is told to stop when the engine has all the rows that are
// left ends with those that have begun, and is not complete.
func TestStopWithdraws(t *testing.T) {
	in := demoInput(t)
	o := Options{TokenIDs: true, InFlight: 1 << 14, PartRows: 90, Seed: 5}
	whole := t.TempDir()
	if err := newJob(t, in, o, &stub{vocab: 2000, length: 9}, whole).Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	e := &stub{vocab: 2000, length: 9, seats: 7}
	e.onStep = func(int) {
		switch { // when all rows are here, and that there are no more is known
		case e.ending:
			cancel()
		case e.added == in.Rows:
			time.Sleep(20 * time.Millisecond)
			e.ending = true
		}
	}
	j := newJob(t, in, o, e, dir)
	j.Stop.Grace = time.Hour
	if err := j.Run(ctx); !errors.Is(err, ErrInterrupted) {
		t.Fatalf("the job ended with %v", err)
	}
	j.Folder.Close()
	m, err := readManifest(dir)
	if err != nil || m.Status != StatusInterrupted || m.Counts.Rows == 0 || m.Counts.Rows >= in.Rows {
		t.Fatalf("manifest %+v, %v", m, err)
	}
	if err := newJob(t, in, o, &stub{vocab: 2000, length: 9}, dir).Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(readOut(t, whole), readOut(t, dir)); d != "" {
		t.Errorf("stopping changes the rows:\n%s", d[:min(len(d), 1000)])
	}
}

// TestResume interrupts a job again and again, and kills it in between.
func TestResume(t *testing.T) {
	in := demoInput(t)
	o := Options{TokenIDs: true, InFlight: 11, PartRows: 90, Seed: 5}
	whole := t.TempDir()
	if err := newJob(t, in, o, &stub{vocab: 2000, length: 9}, whole).Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	runs := 0
	for ; ; runs++ {
		if runs > 40 {
			t.Fatal("no end")
		}
		ctx, cancel := context.WithCancel(context.Background())
		e := &stub{vocab: 2000, length: 9, shuffle: rand.New(rand.NewPCG(uint64(runs), 3)), onStep: func(step int) {
			if step == 60 {
				cancel()
			}
		}}
		j := newJob(t, in, o, e, dir)
		err := j.Run(ctx)
		cancel()
		j.Folder.Close()
		if err == nil {
			break
		}
		if !errors.Is(err, ErrInterrupted) {
			t.Fatal(err)
		}
		m, err := readManifest(dir)
		if err != nil || m.Status != StatusInterrupted {
			t.Fatalf("manifest %+v, %v", m, err)
		}
		// A kill leaves an unfinished file and a manifest that says running.
		if err := os.WriteFile(filepath.Join(dir, datasets.OutputsDir, ".part-00099.parquet.tmp"), []byte("torn"),
			0o666); err != nil {
			t.Fatal(err)
		}
	}
	if runs < 3 {
		t.Fatalf("only %d interruptions: the test tests nothing", runs)
	}
	if d := cmp.Diff(readOut(t, whole), readOut(t, dir)); d != "" {
		t.Errorf("resuming changes the rows:\n%s", d[:min(len(d), 1000)])
	}

	p, err := NewPlan(in, o)
	if err != nil {
		t.Fatal(err)
	}
	m := func() *Manifest { return &Manifest{Settings: p.Settings(), Input: in.Files} }
	var complete *CompleteError
	if _, err := OpenFolder(dir, m(), FolderOptions{}); !errors.As(err, &complete) || complete.Counts.Rows != in.Rows {
		t.Errorf("a complete folder is taken again: %v", err)
	}
	f, err := OpenFolder(dir, m(), FolderOptions{Overwrite: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFolder(dir, m(), FolderOptions{Overwrite: true}); !errors.Is(err, ErrLocked) {
		t.Errorf("a locked folder is taken: %v", err)
	}
	f.Close()
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "thesis.doc"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFolder(foreign, m(), FolderOptions{Overwrite: true}); !errors.Is(err, ErrFolder) {
		t.Errorf("a folder with other files is taken: %v", err)
	}
}
