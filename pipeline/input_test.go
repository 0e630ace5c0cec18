package pipeline

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"glmbatch/datasets"
)

// TestInputMoves: an input that vanishes, grows, is cut or is another while a job runs ends
// the job with ErrInput, or changes nothing; what it did is saved, another input is refused,
// and with the old one back the job goes on to the bytes of one that nobody disturbed.
func TestInputMoves(t *testing.T) {
	dir := t.TempDir()
	path := benchInput(t, dir, 15_000)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(benchInput(t, t.TempDir(), 15_001))
	if err != nil {
		t.Fatal(err)
	}
	run := func(out string, onStep func(int)) (*Job, error) {
		t.Helper()
		in, err := datasets.Open([]string{path})
		if err != nil {
			return nil, err
		}
		p, err := NewPlan(in, Options{Raw: true, InFlight: 32, Workers: 1, Window: 64})
		if err != nil {
			t.Fatal(err)
		}
		f, err := OpenFolder(out, &Manifest{Settings: p.Settings(), Input: in.Files, FromRow: p.From, ToRow: p.To},
			FolderOptions{})
		if err != nil {
			return nil, err
		}
		defer f.Close()
		e := &stub{vocab: 2000, length: 2, onStep: onStep}
		j := &Job{Plan: p, Text: sharedText(t), Engine: e, Folder: f, Counts: &Counts{}}
		return j, j.Run(context.Background())
	}
	whole := filepath.Join(dir, "whole")
	if _, err := run(whole, nil); err != nil {
		t.Fatal(err)
	}
	want, wantCounts := result(t, whole)
	ended := 0
	for name, c := range map[string]struct {
		change  func() error
		refused bool // a run with it is
	}{
		"vanished": {func() error { return os.Remove(path) }, true},
		"grown": {func() error {
			return os.WriteFile(path, append(append([]byte{}, data...), "more"...), 0o666)
		}, true},
		"cut":     {func() error { return os.Truncate(path, int64(len(data)/2)) }, true},
		"emptied": {func() error { return os.Truncate(path, 0) }, true},
		"another": {func() error { return os.WriteFile(path, other, 0o666) }, true},
		"replaced": {func() error {
			return errors.Join(os.WriteFile(path+".new", other, 0o666), os.Rename(path+".new", path))
		}, true},
		"as it was, later": {func() error {
			return errors.Join(os.WriteFile(path, data, 0o666),
				os.Chtimes(path, time.Now(), time.Now().Add(-time.Hour)))
		}, false},
	} {
		out := filepath.Join(dir, strings.Fields(name)[0])
		_, err := run(out, func(step int) {
			if step == 20 {
				if err := c.change(); err != nil {
					t.Fatal(err)
				}
			}
		})
		if err != nil && !errors.Is(err, ErrInput) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			ended++
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: more than a line: %v", name, err)
		}
		var complete *CompleteError
		if again, aerr := run(out, nil); c.refused && (aerr == nil || again != nil) && !errors.As(aerr, &complete) {
			t.Errorf("%s: it goes on with the other input: %v", name, aerr)
		}
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		if j, err := run(out, nil); err != nil && !errors.As(err, &complete) {
			t.Errorf("%s: then %v", name, err)
		} else if have, counts := result(t, out); !maps.Equal(have, want) || counts.Rows != wantCounts.Rows ||
			counts.CompletionTokens != wantCounts.CompletionTokens {
			t.Errorf("%s: then %+v, undisturbed %+v; %v", name, counts, wantCounts, j != nil)
		}
	}
	if ended == 0 {
		t.Error("no change was seen: the test tests nothing")
	}
}

// TestClockJumpsBack: a manifest is never older than it was, whatever the clock says, as
// the newer of two is taken for the job's.
func TestClockJumpsBack(t *testing.T) {
	dir := t.TempDir()
	m := &Manifest{Version: manifestVersion, Updated: time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)}
	before := m.Updated
	for range 3 {
		if err := m.write(dir); err != nil {
			t.Fatal(err)
		}
		have, err := readManifest(dir)
		if err != nil || !have.Updated.After(before) {
			t.Fatalf("%v after %v, %v", have.Updated, before, err)
		}
		before = have.Updated
	}
	in := demoInput(t)
	o := Options{InFlight: 8, Limit: 20}
	j := newJob(t, in, o, &stub{vocab: 2000, length: 9}, filepath.Join(dir, "job"))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := j.Run(ctx); !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	j.Folder.Close()
	m, err := readManifest(filepath.Join(dir, "job"))
	if err != nil {
		t.Fatal(err)
	}
	m.Updated = m.Updated.Add(24 * time.Hour) // by a clock that was set right since
	if err := m.write(filepath.Join(dir, "job")); err != nil {
		t.Fatal(err)
	}
	later := m.Updated
	j = newJob(t, in, o, &stub{vocab: 2000, length: 9}, filepath.Join(dir, "job"))
	if err := j.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if m, err = readManifest(filepath.Join(dir, "job")); err != nil || !m.Updated.After(later) {
		t.Errorf("%v is not after %v, %v", m.Updated, later, err)
	}
}
