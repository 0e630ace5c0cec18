package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"glmbatch/datasets"
)

// TestStatusOfKilled: a job that was killed before its manifest said anything, or that
// goes on, has saved what parts and journal have, counted as in the end. Looking at it
// changes nothing.
func TestStatusOfKilled(t *testing.T) {
	dir := t.TempDir()
	path := killRows(t, dir, 1500)
	want := map[int64]ManifestCounts{} // by rows
	look := func(out string) ManifestCounts {
		t.Helper()
		s, err := ReadStatus(out, time.Now())
		if err != nil || s.Error != "" {
			t.Fatal(s, err)
		}
		return s.Counts.ManifestCounts
	}
	run := func(out string, until int) error {
		in, err := datasets.Open([]string{path})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		e := &logged{stub: stub{vocab: 2000, length: 9}, seeds: map[int64]uint64{}}
		e.onStep = func(step int) {
			if step == until {
				cancel()
			}
		}
		o := killOptions()
		o.Check = ""
		j := newJob(t, in, o, e, out)
		defer j.Folder.Close()
		started, err := readManifest(out)
		if err != nil {
			t.Fatal(err)
		}
		if j.Folder.Resumed { // before its first word
			if have := look(out); have.Rows != j.Folder.Done() || have.Rows == 0 || have.Rows != started.Counts.Rows {
				t.Errorf("%+v, the folder has %d, the manifest %+v", have, j.Folder.Done(), started.Counts)
			}
		}
		err = j.Run(ctx)
		ended, merr := readManifest(out)
		if merr != nil {
			t.Fatal(merr)
		}
		want[ended.Counts.Rows] = ended.Counts
		if err != nil { // as a kill would have left it: with the manifest of the start
			if werr := started.write(out); werr != nil {
				t.Fatal(werr)
			}
			files := list(t, out)
			have := look(out)
			a, _ := json.Marshal(have)
			b, _ := json.Marshal(ended.Counts)
			if string(a) != string(b) {
				t.Errorf("the status has\n%s, the job had\n%s", a, b)
			}
			if after := list(t, out); after != files {
				t.Errorf("looking changed\n%s\n%s", files, after)
			}
		}
		return err
	}
	out := filepath.Join(dir, "out")
	runs := 0
	for until := 40; ; runs++ {
		if err := run(out, until); err == nil {
			break
		} else if !errors.Is(err, ErrInterrupted) || runs > 30 {
			t.Fatal(runs, err)
		}
		until += 40
	}
	if runs < 3 {
		t.Fatalf("%d runs: the test tests nothing", runs)
	}
	if have := look(out); have.Rows != 1500 || have.Errors == 0 || have.Codes[NullPrompt] == 0 {
		t.Errorf("in the end: %+v", have)
	}
	whole := filepath.Join(dir, "whole")
	if err := run(whole, -1); err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(look(out))
	b, _ := json.Marshal(look(whole))
	if string(a) != string(b) {
		t.Errorf("counts\n%s, of one run\n%s", a, b)
	}
}

// list is what a folder has, with sizes.
func list(t testing.TB, dir string) string {
	t.Helper()
	type entry struct {
		Path string
		Size int64
	}
	var all []entry
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil {
			all = append(all, entry{path, info.Size()})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
