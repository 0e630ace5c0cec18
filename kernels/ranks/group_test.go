package ranks

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"glmbatch/kernels"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a device that records what it is asked.
type fake struct {
	rank   int
	next   uint32
	loaded string
	memory []byte
	runs   int
	waits  int
	fail   error
	closed bool
}

func (f *fake) Alloc(n int64, _ kernels.Sharing) (kernels.Buffer, error) {
	f.next++
	f.memory = make([]byte, n)
	return kernels.Buffer{Index: f.next, Len: n}, f.fail
}

func (f *fake) Load(w kernels.Weights, s kernels.Sharing) (kernels.Buffer, error) {
	f.loaded = w.Name
	return f.Alloc(8, s)
}

func (f *fake) Upload(_ kernels.Buffer, src []byte) error {
	copy(f.memory, src)
	return f.fail
}

func (f *fake) Download(dst []byte, _ kernels.Buffer) error {
	copy(dst, f.memory)
	return f.fail
}

func (f *fake) Start(_ []kernels.Call, spans []kernels.Span, want kernels.Fetch) error {
	f.runs++
	for i := range spans {
		spans[i].Start = int64(f.rank)
	}
	copy(want.To, f.memory)
	return f.fail
}

func (f *fake) Wait() error { f.waits++; return f.fail }

func (f *fake) Info() kernels.Info { return kernels.Info{Kind: "fake"} }
func (f *fake) Close() error       { f.closed = true; return f.fail }

func fakes(t *testing.T, n int, o Options) (*Group, []*fake) {
	t.Helper()
	var fs []*fake
	var ds []kernels.Device
	for r := range n {
		fs = append(fs, &fake{rank: r})
		ds = append(ds, fs[r])
	}
	g, err := New(ds, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g, fs
}

func TestGroup(t *testing.T) {
	for _, lock := range []bool{false, true} {
		g, fs := fakes(t, 4, Options{Lock: lock})
		b, err := g.Load(kernels.Sharded, func(rank int) kernels.Weights {
			return kernels.Weights{Name: fmt.Sprint("w", rank)}
		})
		if err != nil || b.Index != 1 || b.Len != 8 {
			t.Errorf("Load: %+v, %v", b, err)
		}
		spans := [][]kernels.Span{make([]kernels.Span, 1), make([]kernels.Span, 1), make([]kernels.Span, 1),
			make([]kernels.Span, 1)}
		if err := errors.Join(g.Upload(b, []byte{9}), g.UploadTo(2, b, []byte{7}),
			g.Run(make([]kernels.Call, 1), spans), g.Run(nil, nil)); err != nil {
			t.Error(err)
		}
		for r, f := range fs {
			got := make([]byte, 1)
			if err := g.Download(r, got, b); err != nil {
				t.Error(err)
			}
			want := []byte{9}
			if r == 2 {
				want = []byte{7}
			}
			if !slices.Equal(got, want) || f.loaded != fmt.Sprint("w", r) || f.runs != 2 || f.waits != 2 ||
				spans[r][0].Start != int64(r) {
				t.Errorf("rank %d has %v: %+v, spans %+v", r, got, f, spans[r])
			}
		}
		if err := g.Close(); err != nil || !fs[3].closed {
			t.Errorf("Close: %v", err)
		}
		if err := errors.Join(g.Close()); err != nil {
			t.Errorf("closing again: %v", err)
		}
		if g.Run(nil, nil) == nil || g.Upload(b, nil) == nil || g.Download(0, nil, b) == nil {
			t.Error("a closed group works")
		}
	}
}

// Lists that nobody waits for have landed before devices close, unless one failed.
func TestCloseWaits(t *testing.T) {
	for _, c := range []struct {
		fail  bool
		waits int
	}{{false, 2}, {true, 0}} {
		g, fs := fakes(t, 2, Options{})
		for range 2 {
			if err := g.Start(nil, nil, kernels.Fetch{}); err != nil {
				t.Fatal(err)
			}
		}
		if c.fail {
			fs[1].fail = errors.New("broken")
			if g.Start(nil, nil, kernels.Fetch{}) == nil {
				t.Error("a list started on a broken rank")
			}
			fs[1].fail = nil
		}
		if err := g.Close(); err != nil || fs[0].waits != c.waits || fs[1].waits != c.waits {
			t.Errorf("%+v: waited for %d and %d lists, %v", c, fs[0].waits, fs[1].waits, err)
		}
	}
}

func TestErrors(t *testing.T) {
	if _, err := New(nil, Options{}); err == nil {
		t.Error("a group of no devices")
	}
	g, fs := fakes(t, 3, Options{})
	broken := errors.New("broken")
	fs[1].fail, fs[2].fail = broken, errors.New("also broken")
	_, err := g.Alloc(8, kernels.Sharded)
	for _, err := range []error{err, g.Run(nil, nil), g.Upload(kernels.Buffer{}, nil),
		g.Download(1, nil, kernels.Buffer{})} {
		if !errors.Is(err, broken) || !strings.Contains(err.Error(), "rank 1") {
			t.Errorf("error %v, want that of rank 1", err)
		}
	}
	// What ended a rank because of another's error does not hide that.
	fs[0].fail = fmt.Errorf("%w: %w", kernels.ErrPeer, broken)
	if err := g.Run(nil, nil); !errors.Is(err, broken) || errors.Is(err, kernels.ErrPeer) ||
		!strings.Contains(err.Error(), "rank 1") {
		t.Errorf("error %v, want that of rank 1", err)
	}
	fs[1].fail, fs[2].fail = nil, nil
	if err := g.Run(nil, nil); !errors.Is(err, kernels.ErrPeer) || !strings.Contains(err.Error(), "rank 0") {
		t.Errorf("error %v, want that of rank 0", err)
	}
	fs[0].fail, fs[1].fail = nil, broken
	if g.Download(3, nil, kernels.Buffer{}) == nil || g.Run(nil, make([][]kernels.Span, 2)) == nil {
		t.Error("a rank that is none, or spans for too few, are accepted")
	}
	fs[1].fail, fs[2].fail = nil, nil
	fs[2].next++ // this rank has made an allocation of its own
	if _, err := g.Alloc(8, kernels.Sharded); !errors.Is(err, kernels.ErrDevice) ||
		!strings.Contains(err.Error(), "rank 2") {
		t.Errorf("indexes that differ: %v", err)
	}
}

// landing is a device that says when its last list ended.
type landing struct {
	fake
	at int64
}

func (l *landing) Landed() int64 { return l.at }

// The group's list has landed when the last rank's has; now, if one does not tell.
func TestLanded(t *testing.T) {
	g, err := New([]kernels.Device{&landing{at: 7}, &landing{at: 9}, &landing{at: 8}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if at := g.Landed(); at != 9 {
		t.Errorf("landed at %d", at)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	silent, _ := fakes(t, 2, Options{})
	if before, at := kernels.Now(), silent.Landed(); at < before || at > kernels.Now() {
		t.Errorf("landed at %d, after %d", at, before)
	}
}
