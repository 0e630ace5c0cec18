package journal

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// magic begins each file; its last letter is the format's version.
const magic = "glmbj\r\n2"

const (
	namePrefix = "records-"
	nameSuffix = ".journal"
)

func fileName(first int64) string { return fmt.Sprintf("%s%016x%s", namePrefix, first, nameSuffix) }

// Record is a record of an earlier time.
type Record struct {
	At   int64 // its position
	Key  int64
	Data []byte // valid until the next record
}

// Found is what was there when a journal was opened.
type Found struct {
	Records int64
	Torn    int64 // bytes that were cut off: a record that was not written whole, and what came behind it
}

// Open opens the journal of a folder, which is made if there is none, and calls each
// with what is in it. owner says whose the records are: files of another owner are
// removed. The error of each ends the opening.
func Open(dir, owner string, o Options, each func(Record) error) (_ *Journal, found Found, err error) {
	if o.FileBytes == 0 {
		o.FileBytes = 64 << 20
	}
	if o.Buffer == 0 {
		o.Buffer = 64 << 10
	}
	j := &Journal{dir: dir, owner: owner, o: o, at: 1, syncs: newSyncer(o.noSync)}
	defer func() {
		if err != nil {
			_ = j.Close() // err says what is wrong
		}
	}()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, found, err
	}
	firsts, err := list(dir)
	if err != nil {
		return nil, found, err
	}
	for _, first := range firsts {
		if err := j.scan(first, &found, each); err != nil {
			return nil, found, err
		}
	}
	return j, found, j.reopen()
}

// list returns the positions of a folder's files.
func list(dir string) ([]int64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var firsts []int64
	for _, e := range entries {
		name, ok := strings.CutPrefix(e.Name(), namePrefix)
		if !ok || !e.Type().IsRegular() {
			continue
		}
		first, err := strconv.ParseInt(strings.TrimSuffix(name, nameSuffix), 16, 64)
		if err == nil && first > 0 && e.Name() == fileName(first) {
			firsts = append(firsts, first)
		}
	}
	slices.Sort(firsts)
	return firsts, nil
}

// scan reads a file's records. A file without its beginning, or of another owner,
// is removed.
func (j *Journal) scan(first int64, found *Found, each func(Record) error) error {
	f := &file{path: filepath.Join(j.dir, fileName(first)), first: first, top: -1}
	size, ours, err := f.read(j.owner, func(r Record) error {
		found.Records++
		return each(r)
	}, first >= j.at)
	if err != nil {
		return err
	}
	if !ours { // or it would overlap the one before
		found.Torn += size
		return os.Remove(f.path)
	}
	found.Torn += size - f.size
	j.files = append(j.files, f)
	j.at = first + f.size
	return nil
}

// read calls each with the records of a file of ours and sets its size up to the first
// that is not whole, and its top key. It returns the file's size on disk.
func (f *file) read(owner string, each func(Record) error, wanted bool) (size int64, ours bool, err error) {
	in, err := os.Open(f.path)
	if err != nil {
		return 0, false, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return 0, false, err
	}
	size = info.Size()
	s := &scanner{in: bufio.NewReaderSize(in, 1<<20), left: size}
	if !wanted || !s.magic() {
		return size, false, nil
	}
	_, data, ok, err := s.next()
	if err != nil || !ok || string(data) != owner {
		return size, false, f.wrap(err)
	}
	f.size = s.read
	for {
		key, data, ok, err := s.next()
		if err != nil || !ok {
			return size, true, f.wrap(err)
		}
		if err := each(Record{At: f.first + f.size, Key: key, Data: data}); err != nil {
			return size, true, err
		}
		f.top = max(f.top, key)
		f.size = s.read
	}
}

func (f *file) wrap(err error) error {
	if err != nil {
		err = fmt.Errorf("%s: %w", f.path, err)
	}
	return err
}

// Look calls each with what the journal of a folder has, and changes nothing: another
// process may be writing it, or removing files of it, which are left out then.
func Look(dir, owner string, each func(Record) error) error {
	firsts, err := list(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, first := range firsts {
		f := &file{path: filepath.Join(dir, fileName(first)), first: first, top: -1}
		if _, _, err := f.read(owner, each, true); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// reopen goes on behind the last record of the last file.
func (j *Journal) reopen() error {
	if len(j.files) == 0 || j.last().size >= j.o.FileBytes {
		return nil
	}
	f := j.last()
	out, err := os.OpenFile(f.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	j.out = out
	if err := out.Truncate(f.size); err != nil {
		return err
	}
	_, err = out.Seek(f.size, io.SeekStart)
	return err
}

// scanner reads frames until one is not whole.
type scanner struct {
	in         *bufio.Reader
	read, left int64
	buf        []byte
}

func (s *scanner) magic() bool {
	b := make([]byte, len(magic))
	if _, err := io.ReadFull(s.in, b); err != nil || string(b) != magic {
		return false
	}
	s.read += int64(len(b))
	s.left -= int64(len(b))
	return true
}

// next returns the next frame; ok is false at the end and where one is damaged.
func (s *scanner) next() (key int64, data []byte, ok bool, err error) {
	if s.left < frameHead {
		return 0, nil, false, nil
	}
	s.buf = slices.Grow(s.buf[:0], frameHead)[:frameHead]
	if _, err := io.ReadFull(s.in, s.buf); err != nil {
		return 0, nil, false, short(err)
	}
	n := int64(binary.LittleEndian.Uint32(s.buf))
	if n == 0 || n > maxRecord || n > s.left-frameHead {
		return 0, nil, false, nil
	}
	s.buf = slices.Grow(s.buf, int(n))[:frameHead+n]
	if _, err := io.ReadFull(s.in, s.buf[frameHead:]); err != nil {
		return 0, nil, false, short(err)
	}
	key, data, ok = open(s.buf)
	s.read += int64(len(s.buf))
	s.left -= int64(len(s.buf))
	return key, data, ok, nil
}

// short is nil where a file ended early, which the frame's absence says.
func short(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// open takes a whole frame apart.
func open(frame []byte) (key int64, data []byte, ok bool) {
	if binary.LittleEndian.Uint32(frame[4:]) != checksum(frame) {
		return 0, nil, false
	}
	k, n := binary.Uvarint(frame[frameHead:])
	if n <= 0 || int64(k) < 0 {
		return 0, nil, false
	}
	return int64(k), frame[frameHead+n:], true
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, fs.ErrInvalid) {
		return err
	}
	return nil
}
