package journal

import (
	"encoding/binary"
	"fmt"
	"os"
	"sort"
)

// reader is the file that was read last, and room for a record.
type reader struct {
	of  *file
	in  *os.File
	buf []byte
}

func (r *reader) close() {
	if r.in != nil {
		r.in.Close()
	}
	r.of, r.in = nil, nil
}

func (r *reader) forget(f *file) {
	if r.of == f {
		r.close()
	}
}

// Read returns the record at a position. It is valid until the next Read.
func (j *Journal) Read(at int64) (data []byte, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("reading the journal in %s at %d: %w", j.dir, at, err)
		}
	}()
	i := sort.Search(len(j.files), func(i int) bool { return j.files[i].first > at }) - 1
	if i < 0 || at-j.files[i].first >= j.files[i].size {
		return nil, fmt.Errorf("there is no such record")
	}
	if err := j.Flush(); err != nil {
		return nil, err
	}
	f, r := j.files[i], &j.reads
	if r.of != f {
		r.close()
		if r.in, err = os.Open(f.path); err != nil {
			return nil, err
		}
		r.of = f
	}
	off := at - f.first
	if cap(r.buf) < 4<<10 {
		r.buf = make([]byte, 4<<10)
	}
	r.buf = r.buf[:min(int64(cap(r.buf)), f.size-off)]
	if _, err := r.in.ReadAt(r.buf, off); err != nil {
		return nil, err
	}
	if len(r.buf) < frameHead {
		return nil, fmt.Errorf("the record is cut off")
	}
	n := frameHead + int64(binary.LittleEndian.Uint32(r.buf))
	if n > f.size-off {
		return nil, fmt.Errorf("the record is cut off")
	}
	if n > int64(len(r.buf)) {
		r.buf = make([]byte, n)
		if _, err := r.in.ReadAt(r.buf, off); err != nil {
			return nil, err
		}
	}
	_, data, ok := open(r.buf[:n])
	if !ok {
		return nil, fmt.Errorf("the record is damaged")
	}
	return data, nil
}
