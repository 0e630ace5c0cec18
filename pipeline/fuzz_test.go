package pipeline

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"glmbatch/datasets"
)

// FuzzJob runs the rows of any bytes, Parquet or JSON lines, through a job: it refuses
// them before it begins, stops at rows that cannot be read, or writes every row.
func FuzzJob(f *testing.F) {
	for _, text := range []string{
		`{"prompt":"a","temperature":0.5,"n":2,"stop":["x"]}` + "\n" + `{"prompt":null}`,
		`{"messages":[{"role":"user","content":"hi"}],"tools":"[]","sampling_params":{"max_tokens":2}}`,
		`{"prompt":"a","system":"b","chat_template_kwargs":{"enable_thinking":false},"seed":7}`,
	} {
		f.Add([]byte(text))
	}
	dir := f.TempDir()
	small := newJob(f, linesOf(f, `{"prompt":"a","n":2}`, `{"prompt":null,"n":1}`), Options{},
		&stub{vocab: 2000, length: 4}, dir)
	if err := small.Run(f.Context()); err != nil {
		f.Fatal(err)
	}
	table, err := os.ReadFile(filepath.Join(dir, datasets.OutputsDir, "part-00000.parquet"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(table)
	demo := demoText(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		in, err := datasets.OpenBytes("x", data)
		if err != nil {
			if in, err = datasets.OpenStream(strings.NewReader(string(data)), "x"); err != nil {
				return
			}
		}
		defer in.Close()
		if in.Rows > 64 {
			return
		}
		plan, err := NewPlan(in, Options{Context: 200})
		if err != nil || plan.Check(demo) != nil {
			return
		}
		folder, err := OpenFolder(t.TempDir(), &Manifest{Settings: plan.Settings(), Input: in.Files, FromRow: plan.From,
			ToRow: plan.To}, FolderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer folder.Close()
		job := &Job{Plan: plan, Text: demo, Engine: &stub{vocab: 2000, length: 4}, Folder: folder, Counts: &Counts{}}
		switch err := job.Run(t.Context()); {
		case errors.Is(err, ErrInput): // a row that is damaged
		case err != nil:
			t.Error(err)
		case job.Counts.Rows.Load() != in.Rows:
			t.Errorf("%d of %d rows are done", job.Counts.Rows.Load(), in.Rows)
		}
	})
}
