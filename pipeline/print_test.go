package pipeline

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"glmbatch/datasets"
)

// TestPrint: rows are printed while the job runs, in the input's order, and by a job
// that goes on from the first row; they are those of the job's files.
func TestPrint(t *testing.T) {
	in := demoInput(t)
	o := Options{InFlight: 4, Window: 50, PartRows: 40, Limit: 90, SyncInterval: time.Millisecond, Seed: 3,
		TokenIDs: true}
	dir := t.TempDir()
	r, w := io.Pipe()
	first := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	e := &stub{vocab: 2000, length: 6, onStep: func(step int) {
		switch step {
		case 20:
			<-first // a row is printed before the job goes on
		case 65:
			cancel()
		}
	}}
	job := newJob(t, in, o, e, dir)
	var err error
	if job.Print, err = job.Plan.Printer(w, datasets.Lines); err != nil {
		t.Fatal(err)
	}
	printed := make(chan []byte)
	go func() {
		b := bufio.NewReader(r)
		line, _ := b.ReadBytes('\n')
		close(first)
		rest, _ := io.ReadAll(b)
		printed <- append(line, rest...)
	}()
	if err := job.Run(ctx); !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	w.Close()
	before := <-printed
	job.Folder.Close()

	job = newJob(t, in, o, &stub{vocab: 2000, length: 6}, dir)
	if job.Folder.NextPart == 0 {
		t.Fatal("no file was finished before the end")
	}
	var all bytes.Buffer
	if job.Print, err = job.Plan.Printer(&all, datasets.Lines); err != nil {
		t.Fatal(err)
	}
	if err := job.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(all.Bytes(), before) || len(before) == all.Len() {
		t.Errorf("what was printed before (%d bytes) does not begin what is printed then (%d bytes)",
			len(before), all.Len())
	}
	paths, err := datasets.Expand([]string{filepath.Join(dir, datasets.OutputsDir)})
	if err != nil {
		t.Fatal(err)
	}
	files, err := datasets.Open(paths)
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := files.WriteJSONLines(&want); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(all.Bytes(), want.Bytes()) {
		t.Errorf("printed were\n%.300s\nand the files have\n%.300s", all.Bytes(), want.Bytes())
	}
}

// TestPrintFails: who cannot be printed to ends the job, and what was done is saved.
func TestPrintFails(t *testing.T) {
	r, w := io.Pipe()
	r.Close()
	job := newJob(t, demoInput(t), Options{PartRows: 10, Limit: 50}, &stub{vocab: 2000, length: 6}, t.TempDir())
	var err error
	if job.Print, err = job.Plan.Printer(w, datasets.Lines); err != nil {
		t.Fatal(err)
	}
	if err := job.Run(t.Context()); !errors.Is(err, ErrOutput) || !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

// TestPrintNested: lists and objects of JSON lines are lists and objects again.
func TestPrintNested(t *testing.T) {
	job := newJob(t, linesOf(t, `{"prompt":"a","meta":{"tags": ["x", null], "n": 1}}`), Options{},
		&stub{vocab: 2000, length: 6}, t.TempDir())
	var out bytes.Buffer
	var err error
	if job.Print, err = job.Plan.Printer(&out, datasets.Lines); err != nil {
		t.Fatal(err)
	}
	if err := job.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := `{"prompt":"a","meta":{"tags":["x",null],"n":1},"response":`; !strings.HasPrefix(out.String(), want) {
		t.Errorf("%s, want %s", &out, want)
	}
}
