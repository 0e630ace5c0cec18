package stores

import (
	"context"
	"io"
	"os"
	"testing"

	"glmbatch/stores/storestest"
)

// TestQuiet: what S3's client thinks of connections that end is no line on standard error.
func TestQuiet(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr := os.Stderr
	os.Stderr = w
	said := make(chan []byte)
	go func() {
		b, _ := io.ReadAll(r) // until it is closed
		said <- b
	}()
	s := storestest.New(t)
	s.Faults = storestest.Faults{Reset: 0.5, Seed: 7}
	s.Put(t, "x", bytesOf(3*blockBytes, 1))
	ctx := context.Background()
	o, err := Open(ctx, s.URL("x"))
	for from := int64(0); err == nil && from < o.Size; from += blockBytes / 2 {
		_, err = o.ReadAt(make([]byte, 1000), from)
	}
	os.Stderr = stderr
	w.Close()
	if b := <-said; err != nil || len(b) > 0 || s.Injected() == 0 {
		t.Errorf("%v, %d faults; on standard error: %s", err, s.Injected(), b)
	}
}
