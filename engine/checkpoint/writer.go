package checkpoint

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
)

// Entry is a tensor to be written.
type Entry struct {
	Name  string
	DType DType
	Shape []int
}

// Size returns the entry's bytes.
func (e *Entry) Size() int64 {
	n := sizes[e.DType]
	for _, d := range e.Shape {
		n *= int64(d)
	}
	return n
}

// Writer writes a checkpoint of any size in little memory: headers first, then
// each tensor's bytes in any order. The folder is filled under another name
// beside its own and renamed by [Writer.Commit]: it is there whole or not at all.
// Write may be called from several goroutines.
type Writer struct {
	out, aside string
	shards     []*shard
	places     map[string]*place
}

type shard struct {
	name    string
	entries []Entry
	size    int64 // of the data
	f       *os.File
}

// place is where a tensor's bytes go.
type place struct {
	shard    *shard
	at, size int64
	written  atomic.Int64
}

const maxShards = 512 // files that are open at a time

// NewWriter makes the files of the folder out, which must not exist or be
// empty. A file has at most shardSize bytes of data, or one tensor.
func NewWriter(out string, entries []Entry, shardSize int64) (*Writer, error) {
	out = filepath.Clean(out)
	if list, err := os.ReadDir(out); err == nil && len(list) > 0 {
		return nil, fmt.Errorf("%s is there and not empty: remove it or give another folder", out)
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	w := &Writer{out: out, shards: plan(entries, shardSize), places: map[string]*place{}}
	if len(w.shards) > maxShards {
		return nil, fmt.Errorf("%d files of at most %d bytes: at most %d files are written, raise the shard size",
			len(w.shards), shardSize, maxShards)
	}
	parent := filepath.Dir(out)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, err
	}
	var need int64
	for _, s := range w.shards {
		need += s.size
	}
	if free, ok := FreeBytes(parent); ok && need > free {
		return nil, fmt.Errorf("%s would take %.2f GB, its disk has %.2f GB free", out, float64(need)/1e9,
			float64(free)/1e9)
	}
	var err error
	if w.aside, err = os.MkdirTemp(parent, "."+filepath.Base(out)+".partial-"); err != nil {
		return nil, err
	}
	for _, s := range w.shards {
		if err := w.create(s); err != nil {
			return nil, errors.Join(err, w.Abort())
		}
	}
	return w, nil
}

// plan deals the entries out to files, in order.
func plan(entries []Entry, shardSize int64) []*shard {
	var shards []*shard
	for _, e := range entries {
		n := e.Size()
		if len(shards) == 0 || n > 0 && shards[len(shards)-1].size+n > shardSize {
			shards = append(shards, &shard{})
		}
		s := shards[len(shards)-1]
		s.entries = append(s.entries, e)
		s.size += n
	}
	for i, s := range shards {
		s.name = WeightsFile
		if len(shards) > 1 {
			s.name = fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, len(shards))
		}
		// Wide types first: then every tensor is aligned to its type.
		slices.SortStableFunc(s.entries, func(a, b Entry) int { return cmp.Compare(sizes[b.DType], sizes[a.DType]) })
	}
	return shards
}

func (w *Writer) create(s *shard) error {
	doc := make(map[string]any, len(s.entries)+1)
	doc["__metadata__"] = map[string]string{"format": "pt"}
	var at int64
	for _, e := range s.entries {
		if w.places[e.Name] != nil {
			return fmt.Errorf("%s is written twice", e.Name)
		}
		n := e.Size()
		w.places[e.Name] = &place{shard: s, at: at, size: n}
		shape := e.Shape
		if shape == nil {
			shape = []int{} // a scalar, which is not null
		}
		doc[e.Name] = map[string]any{"dtype": e.DType, "shape": shape, "data_offsets": [2]int64{at, at + n}}
		at += n
	}
	header, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	for len(header)%8 != 0 {
		header = append(header, ' ')
	}
	if s.f, err = os.Create(filepath.Join(w.aside, s.name)); err != nil {
		return err
	}
	base := int64(8 + len(header))
	for _, e := range s.entries {
		w.places[e.Name].at += base
	}
	if _, err := s.f.Write(append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)); err != nil {
		return err
	}
	return s.f.Truncate(base + s.size)
}

// Write puts b at offset off of a tensor. Each byte is written once.
func (w *Writer) Write(name string, off int64, b []byte) error {
	p := w.places[name]
	if p == nil {
		return fmt.Errorf("writing %s: it is not among the entries", name)
	}
	if off < 0 || off+int64(len(b)) > p.size {
		return fmt.Errorf("writing %s: bytes %d to %d of %d", name, off, off+int64(len(b)), p.size)
	}
	if _, err := p.shard.f.WriteAt(b, p.at+off); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	p.written.Add(int64(len(b)))
	return nil
}

// WriteFile adds a file beside the weights.
func (w *Writer) WriteFile(name string, b []byte) error {
	f, err := os.Create(filepath.Join(w.aside, name))
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

// Commit checks that every tensor is complete, writes the index and gives the
// folder its name.
func (w *Writer) Commit() error {
	if err := w.commit(); err != nil {
		return errors.Join(fmt.Errorf("finishing %s: %w", w.out, err), w.Abort())
	}
	return nil
}

func (w *Writer) commit() error {
	var total int64
	fileOf := make(map[string]string, len(w.places))
	for name, p := range w.places {
		if n := p.written.Load(); n != p.size {
			return fmt.Errorf("%s has %d of %d bytes", name, n, p.size)
		}
		fileOf[name] = p.shard.name
		total += p.size
	}
	for _, s := range w.shards {
		err := s.f.Sync()
		if cerr := s.f.Close(); err == nil {
			err = cerr
		}
		s.f = nil
		if err != nil {
			return err
		}
	}
	if len(w.shards) > 1 {
		b, err := json.MarshalIndent(map[string]any{"metadata": map[string]int64{"total_size": total},
			"weight_map": fileOf}, "", " ")
		if err != nil {
			return err
		}
		if err := w.WriteFile(IndexFile, b); err != nil {
			return err
		}
	}
	if err := os.Chmod(w.aside, 0o755); err != nil {
		return err
	}
	if err := os.Remove(w.out); err != nil && !errors.Is(err, os.ErrNotExist) { // an empty folder
		return err
	}
	return os.Rename(w.aside, w.out)
}

// Abort removes what was written. After Commit it does nothing.
func (w *Writer) Abort() error {
	for _, s := range w.shards {
		if s.f != nil {
			s.f.Close()
			s.f = nil
		}
	}
	return os.RemoveAll(w.aside)
}
