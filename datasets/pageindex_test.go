package datasets

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// TestShortIndexer: bounds that are cut when they come are those that are cut at the end.
func TestShortIndexer(t *testing.T) {
	const limit = 16
	random := rand.New(rand.NewPCG(1, 2))
	whole := parquet.ByteArrayType.NewColumnIndexer(limit)
	short := ownPages{parquet.ByteArrayType}.NewColumnIndexer(limit)
	for range 500 {
		bound := func() parquet.Value {
			b := bytes.Repeat([]byte{[]byte{0, 'a', 0xff}[random.IntN(3)]}, random.IntN(2*limit+4))
			if len(b) > 0 && random.IntN(2) == 0 {
				b[random.IntN(len(b))] = byte(random.IntN(256))
			}
			if random.IntN(20) == 0 {
				return parquet.NullValue()
			}
			return parquet.ByteArrayValue(b)
		}
		low, high := bound(), bound()
		whole.IndexPage(5, 1, low.Clone(), high.Clone())
		short.IndexPage(5, 1, low, high)
	}
	if want, have := whole.ColumnIndex(), short.ColumnIndex(); !reflect.DeepEqual(want, have) {
		t.Errorf("%+v\nwant %+v", have, want)
	}
}

// TestLargeValuesAreLetGo: a file of large values does not stay in memory until its end.
func TestLargeValuesAreLetGo(t *testing.T) {
	type row struct {
		Data []byte `parquet:"data"`
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "in.parquet")
	random := rand.NewChaCha8([32]byte{3})
	rows := make([]row, 64)
	for i := range rows {
		rows[i].Data = make([]byte, 1<<20)
		_, _ = random.Read(rows[i].Data) // never fails
	}
	w, err := Create[row](path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	clear(rows)
	in, err := Open([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	out, err := NewOutput(in, Naming{}, Cut{})
	if err != nil {
		t.Fatal(err)
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	p, err := out.Create(filepath.Join(dir, "out.parquet"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := in.Each(func(rec Record) error { return p.Write(rec, Cut{}) }); err != nil {
		t.Fatal(err)
	}
	if kept := int64(heap()) - int64(before); kept > 150<<20 {
		t.Errorf("%d MiB are kept of 64", kept>>20)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "out.parquet")); err != nil || info.Size() < 64<<20 {
		t.Error(info, err)
	}
}
