package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
)

// Options are a journal's limits. The zero value is usable.
type Options struct {
	FileBytes int64 // after which a new file begins; 0: 64 MiB
	Buffer    int   // bytes in memory before they are flushed unasked; 0: 64 KiB
	noSync    bool  // for tests that need not survive the machine
}

// Journal is an open journal. It is for one goroutine.
type Journal struct {
	dir, owner string
	o          Options
	files      []*file // in order of position; the last is written
	out        *os.File
	buf        []byte // not flushed yet
	at         int64  // position of what is appended next
	reads      reader
	syncs      *syncer
	err        error // of a write: nothing is written after it
}

// file is one file of a journal.
type file struct {
	path  string
	first int64 // position of its first byte
	size  int64
	top   int64 // the largest key in it; -1: there is none
}

// A frame is the length of what follows the checksum, the checksum, the key as a
// varint, and the record's bytes.
const (
	frameHead = 8
	maxRecord = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Append adds a record and returns its position, which is never 0.
func (j *Journal) Append(key int64, data []byte) (int64, error) {
	if j.err != nil {
		return 0, j.err
	}
	if key < 0 || len(data) > maxRecord-binary.MaxVarintLen64 {
		return 0, fmt.Errorf("journal: a record of %d bytes with key %d", len(data), key)
	}
	if j.out == nil || j.last().size >= j.o.FileBytes {
		if err := j.begin(); err != nil {
			return 0, j.fail(err)
		}
	}
	at := j.at
	j.add(key, data)
	f := j.last()
	f.top = max(f.top, key)
	if len(j.buf) >= j.o.Buffer {
		return at, j.Flush()
	}
	return at, nil
}

// add puts a frame into the buffer.
func (j *Journal) add(key int64, data []byte) {
	start := len(j.buf)
	j.buf = append(j.buf, make([]byte, frameHead)...)
	j.buf = binary.AppendUvarint(j.buf, uint64(key))
	j.buf = append(j.buf, data...)
	frame := j.buf[start:]
	binary.LittleEndian.PutUint32(frame, uint32(len(frame)-frameHead))
	binary.LittleEndian.PutUint32(frame[4:], checksum(frame))
	j.at += int64(len(frame))
	j.last().size += int64(len(frame))
}

// checksum is that of a frame: of its length and what follows the checksum.
func checksum(frame []byte) uint32 {
	return crc32.Update(crc32.Checksum(frame[:4], castagnoli), castagnoli, frame[frameHead:])
}

func (j *Journal) last() *file { return j.files[len(j.files)-1] }

// begin starts the next file.
func (j *Journal) begin() error {
	if err := j.flush(); err != nil {
		return err
	}
	if j.out != nil {
		j.syncs.retire(j.out, j.at)
		j.out = nil
	}
	path := filepath.Join(j.dir, fileName(j.at))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o666)
	if err != nil {
		return err
	}
	j.out = f
	j.files = append(j.files, &file{path: path, first: j.at, top: -1})
	j.buf = append(j.buf, magic...)
	j.at += int64(len(magic))
	j.last().size = int64(len(magic))
	j.add(0, []byte(j.owner))
	if err := j.flush(); err != nil {
		return err
	}
	if j.o.noSync {
		return nil
	}
	return syncDir(j.dir)
}

// Flush hands everything to the system: it survives the end of the process.
func (j *Journal) Flush() error {
	if j.err != nil {
		return j.err
	}
	return j.fail(errors.Join(j.flush(), j.syncs.failed()))
}

func (j *Journal) flush() error {
	if len(j.buf) == 0 {
		return nil
	}
	_, err := j.out.Write(j.buf)
	j.buf = j.buf[:0]
	return err
}

// fail keeps the first error.
func (j *Journal) fail(err error) error {
	if err != nil && j.err == nil {
		j.err = fmt.Errorf("writing the journal in %s: %w", j.dir, err)
	}
	return j.err
}

// Sync flushes, and has the disk asked to keep what was flushed; it does not wait
// for it. An error of that comes out of a later call.
func (j *Journal) Sync() error {
	if err := j.Flush(); err != nil || j.out == nil {
		return err
	}
	j.syncs.ask(j.out, j.at)
	return nil
}

// End is the position of the next record; Synced is up to where the disk keeps all.
func (j *Journal) End() int64    { return j.at }
func (j *Journal) Synced() int64 { return j.syncs.done.Load() }

// Trim removes the files in which no record has a key of least or more.
func (j *Journal) Trim(least int64) error {
	kept := j.files[:0]
	var errs []error
	for i, f := range j.files {
		if f.top >= least || i == len(j.files)-1 {
			kept = append(kept, f)
			continue
		}
		j.reads.forget(f)
		if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	clear(j.files[len(kept):])
	j.files = kept
	return errors.Join(errs...)
}

// Close writes and syncs what is left.
func (j *Journal) Close() error {
	var err error
	if j.err == nil {
		err = j.flush()
	}
	j.reads.close()
	if j.out != nil {
		j.syncs.retire(j.out, j.at)
		j.out = nil
	}
	j.syncs.close()
	return j.fail(errors.Join(err, j.syncs.failed()))
}

// Remove closes the journal and removes its folder.
func (j *Journal) Remove() error {
	err := j.Close()
	if rerr := os.RemoveAll(j.dir); err == nil {
		err = rerr
	}
	return err
}
