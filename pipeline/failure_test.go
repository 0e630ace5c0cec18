package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"glmbatch/datasets"
	"glmbatch/engine"
	"glmbatch/kernels"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// failing is an engine whose device breaks after some steps.
type failing struct {
	stub
	after int
}

func (f *failing) Step() ([]engine.Token, error) {
	if f.steps == f.after {
		return nil, kernels.ErrDevice
	}
	return f.stub.Step()
}

// TestDeviceFails: what was complete is kept, and the job can go on.
func TestDeviceFails(t *testing.T) {
	in := demoInput(t)
	o := Options{TokenIDs: true, InFlight: 32, PartRows: 100}
	dir := t.TempDir()
	j := newJob(t, in, o, &failing{stub: stub{vocab: 2000, length: 9}, after: 100}, dir)
	if err := j.Run(context.Background()); !errors.Is(err, kernels.ErrDevice) {
		t.Fatalf("the error is %v", err)
	}
	j.Folder.Close()
	m, err := readManifest(dir)
	if err != nil || m.Status != StatusFailed || m.Error == "" {
		t.Errorf("manifest %+v, %v", m, err)
	}
	kept := len(readOut(t, dir))
	if kept == 0 || kept == 1000 {
		t.Errorf("%d rows kept", kept)
	}
	j = newJob(t, in, o, &stub{vocab: 2000, length: 9}, dir)
	if done := j.Folder.Done(); done < int64(kept) {
		t.Errorf("%d rows are done after %d were written", done, kept)
	}
	if err := j.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := len(readOut(t, dir)); n != 1000 {
		t.Errorf("%d rows in the end", n)
	}
}

// TestDiskFails: a writer that cannot write ends the job with the reason.
func TestDiskFails(t *testing.T) {
	dir := t.TempDir()
	j := newJob(t, demoInput(t), Options{InFlight: 8}, &stub{vocab: 2000, length: 9}, dir)
	// where a folder should be
	if err := os.WriteFile(filepath.Join(dir, datasets.OutputsDir), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := j.Run(context.Background()); err == nil || errors.Is(err, errWriter) {
		t.Errorf("the error is %v", err)
	}
}

// TestCause: that the writer stopped does not hide why else a job ends.
func TestCause(t *testing.T) {
	step := fmt.Errorf("step 5: %w: %w", kernels.ErrDevice, errors.New("it is lost"))
	disk := errors.New("no space")
	err := cause(errors.Join(step, errWriter), nil, disk)
	if !errors.Is(err, kernels.ErrDevice) || !errors.Is(err, ErrOutput) || !errors.Is(err, disk) ||
		errors.Is(err, errWriter) || !strings.Contains(err.Error(), step.Error()) {
		t.Errorf("the device and the disk: %v", err)
	}
	if err := cause(errWriter, nil, disk); errors.Is(err, errWriter) || !errors.Is(err, ErrOutput) {
		t.Errorf("the disk alone: %v", err)
	}
	if err := cause(errors.Join(step, nil), nil, nil); !errors.Is(err, kernels.ErrDevice) || errors.Is(err, ErrOutput) {
		t.Errorf("the device alone: %v", err)
	}
}

// TestInputFails: damage in the middle of the input ends the job; the rows before
// it are kept.
func TestInputFails(t *testing.T) {
	path := benchInput(t, t.TempDir(), 120_000) // three row groups
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	clear(data[len(data)/2 : len(data)/2+20_000])
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	in, err := datasets.Open([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	j := newJob(t, in, Options{Raw: true}, &stub{vocab: 2000, length: 2}, dir)
	if err := j.Run(context.Background()); err == nil {
		t.Fatal("no error")
	}
	if n := j.Counts.Rows.Load(); n == 0 || n >= 120_000 {
		t.Errorf("%d rows kept", n)
	}
}
