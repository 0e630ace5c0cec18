package datasets

import (
	"bytes"
	"errors"
	"fmt"
	"glmbatch/golden"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func someCapture() []Capture {
	return []Capture{
		{Part: CaptureHeader, Call: -1, Layer: -1, Data: []byte(`{"step": 7}`), Args: []int64{}, Scalars: []float32{},
			Hash: []byte{}},
		{Part: CaptureCall, Name: "rms_norm", Layer: 2, Replicated: true, Dims: Dims{M: 3, K: 256},
			Args: []int64{1, 0, 0, 64, 2, 8, 16, 128}, Scalars: []float32{1e-5}, Hash: []byte{}, Data: []byte{}},
		{Part: CapturePage, Name: "latent", Call: -1, Layer: 1, Index: 9, Args: []int64{}, Scalars: []float32{},
			Hash: []byte{}, Data: bytes.Repeat([]byte{1, 2, 3}, 500)},
		{Part: CaptureOutput, Name: "logits", Call: 4, Layer: -1, Rank: 3, Args: []int64{}, Scalars: []float32{},
			Hash: bytes.Repeat([]byte{7}, 32), Data: []byte{9}},
	}
}

func TestCaptureRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "captures", "step-00000007.arrow")
	want := someCapture()
	if err := WriteCapture(path, want); err != nil {
		t.Fatal(err)
	}
	got, err := ReadCapture(path)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, wrote %+v", got, want)
	}
}

// Every byte of a capture that means something is under a seal or is checked.
func TestCaptureDamaged(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.arrow")
	if err := WriteCapture(path, someCapture()); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, err := ReadCapture(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for at := 0; at < len(whole); at += 5 {
		b := bytes.Clone(whole)
		b[at] ^= 0x10
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		got, err := ReadCapture(path)
		switch {
		case err == nil && !reflect.DeepEqual(got, want):
			t.Fatalf("byte %d changed the rows unnoticed", at)
		case err != nil && !errors.Is(err, ErrFile):
			t.Fatalf("byte %d: %v is not marked", at, err)
		case err != nil:
			refused++
		}
	}
	if refused < len(whole)/20 {
		t.Errorf("only %d of %d flipped bytes were refused", refused, len(whole)/5)
	}
	at := bytes.Index(whole, bytes.Repeat([]byte{1, 2, 3}, 20))
	b := bytes.Clone(whole)
	b[at+30]++
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadCapture(path); !errors.Is(err, ErrSeal) ||
		!strings.Contains(err.Error(), "page latent 9 of layer 1") {
		t.Errorf("a changed page: %v", err)
	}
}

func FuzzReadCapture(f *testing.F) {
	path := filepath.Join(f.TempDir(), "a.arrow")
	if err := WriteCapture(path, someCapture()); err != nil {
		f.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Add([]byte("ARROW1\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "a.arrow")
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadCapture(path); err != nil && !errors.Is(err, ErrFile) {
			t.Errorf("%v is not marked", err)
		}
	})
}

func TestCaptureSchema(t *testing.T) {
	cols, err := arrowColumns(reflect.TypeFor[Capture]())
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintln(&b, CaptureFormat)
	for _, c := range cols {
		fmt.Fprintln(&b, "arrow", c.field)
	}
	golden.Check(t, "capture.txt", b.String())
}
