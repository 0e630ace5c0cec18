package pipeline

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"glmbatch/datasets"
)

// Aboard keeps on disk which rows the steps have that are on their way, so that a
// process that crashes leaves it behind. Its OnLaunch is the engine's observer. The
// Go runtime itself writes down that, and why, a program crashes; one that somebody
// kills leaves nothing, and its rows are blamed for nothing.
type Aboard struct {
	dir   string              // of the journal
	alone *row                // a row that runs alone, as a step ended badly with it; nil: none does
	find  func(id int64) *row // that a request is of; nil: none. Set by the job
	now   []onBoard           // what the last record has
	file  *os.File
	seq   uint64 // of the last record: no two are the same, in all runs
	buf   []byte
}

// onBoard is a row of a step.
type onBoard struct {
	row      int64
	identity uint64
}

// The files, in the folder of the journal. A record has one of two places in turn, so
// that one is whole whenever the process ends.
const (
	aboardFile = "aboard"
	crashFile  = "crash"

	aboardHead = 20
	maxAboard  = 1 << 20
)

// Alone is the input row that runs alone, as a step ended badly with it before, if one
// does. Whoever runs the steps writes each of them to the row's capture before it runs:
// the last is that which ends badly, if one does.
func (a *Aboard) Alone() (row int64, ok bool) {
	if a.alone == nil {
		return 0, false
	}
	return a.alone.record.Index, true
}

// capture is the file of a row's last step, with its folder in the job's.
func (a *Aboard) capture(row int64) string {
	return filepath.Join(datasets.CapturesDir, datasets.RowCapture(row))
}

// captured is where the capture of a row is; "": there is none.
func (a *Aboard) captured(row int64) string {
	name := a.capture(row)
	if _, err := os.Stat(filepath.Join(filepath.Dir(a.dir), name)); err != nil {
		return ""
	}
	return name
}

// ended is told that a row has ended well, or has an error of its own.
func (a *Aboard) ended(r *row) error {
	if r != a.alone {
		return nil
	}
	a.alone = nil
	return noFile(os.Remove(filepath.Join(filepath.Dir(a.dir), a.capture(r.record.Index))))
}

// begin is called when the job does.
func (a *Aboard) begin() error {
	crash, err := os.Create(filepath.Join(a.dir, crashFile))
	if err != nil {
		return err
	}
	err = debug.SetCrashOutput(crash, debug.CrashOptions{}) // it has a descriptor of its own
	if cerr := crash.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	a.seq = uint64(time.Now().UnixNano()) &^ 1
	a.file, err = os.Create(filepath.Join(a.dir, aboardFile))
	return err
}

// end is called when the job has ended, however it did.
func (a *Aboard) end() error {
	a.find = nil
	if a.file == nil {
		return nil
	}
	err := errors.Join(debug.SetCrashOutput(nil, debug.CrashOptions{}), a.file.Close())
	a.file = nil
	for _, name := range []string{aboardFile, crashFile} {
		if rerr := os.Remove(filepath.Join(a.dir, name)); err == nil && !errors.Is(rerr, os.ErrNotExist) {
			err = rerr
		}
	}
	return err
}

// OnLaunch writes down the rows of requests that steps are about to have.
func (a *Aboard) OnLaunch(ids []int64) error {
	if a.find == nil || a.file == nil {
		return nil
	}
	a.now = a.now[:0]
	for _, id := range ids {
		if r := a.find(id); r != nil && len(a.now) < maxAboard {
			a.now = append(a.now, onBoard{r.record.Index, r.identity})
		}
	}
	a.seq++
	le := binary.LittleEndian
	b := append(a.buf[:0], make([]byte, aboardHead)...)
	for _, r := range a.now {
		b = le.AppendUint64(b, uint64(r.row))
		b = le.AppendUint64(b, r.identity)
	}
	le.PutUint64(b, a.seq)
	le.PutUint64(b[8:], uint64(len(a.now)))
	le.PutUint32(b[16:], aboardSum(b))
	a.buf = b
	if _, err := a.file.WriteAt(b, a.place(a.seq)); err != nil {
		return fmt.Errorf("%w: %w", ErrOutput, err)
	}
	return nil
}

// place is far enough from the other one.
func (a *Aboard) place(seq uint64) int64 { return int64(seq&1) * (aboardHead + 16*maxAboard) }

func aboardSum(b []byte) uint32 {
	return crc32.Update(crc32.ChecksumIEEE(b[:16]), crc32.IEEETable, b[aboardHead:])
}

// crashed is what a process left that crashed in a step: why it did, the rows of its
// steps, and the number of that record. why is "" where it did not.
func (a *Aboard) crashed() (why string, rows []onBoard, seq uint64, err error) {
	why, err = a.why()
	if err != nil || why == "" {
		return "", nil, 0, err
	}
	f, err := os.Open(filepath.Join(a.dir, aboardFile))
	if err != nil {
		return "", nil, 0, noFile(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", nil, 0, err
	}
	for place := range uint64(2) {
		if s, r, ok := readAboard(f, a.place(place), info.Size()); ok && s > seq {
			seq, rows = s, r
		}
	}
	return why, rows, seq, nil
}

// why is what the runtime wrote when the program crashed in a step, in a line; "": it did
// not, or not there, or somebody asked for it.
func (a *Aboard) why() (string, error) {
	f, err := os.Open(filepath.Join(a.dir, crashFile))
	if err != nil {
		return "", noFile(err)
	}
	defer f.Close()
	b := make([]byte, 64<<10)
	n, err := io.ReadFull(f, b)
	if n == 0 || err != io.EOF && err != io.ErrUnexpectedEOF && err != nil {
		return "", nil // a file that cannot be read says nothing either
	}
	text := strings.TrimSpace(string(b[:n]))
	if !crashOfStep(text) {
		return "", nil
	}
	first, _, _ := strings.Cut(text, "\n")
	return oneLine(errors.New(first)), nil
}

// crashOfStep reports whether what the runtime wrote of a crash says that a step did it:
// the goroutine that crashed, which comes first, was in code of the engine or a device.
// Code that is not this program's, as a driver's on its own threads, works for steps alone.
func crashOfStep(text string) bool {
	head, stack, ok := strings.Cut(text, "\ngoroutine ")
	if strings.HasPrefix(head, "SIGQUIT") || strings.Contains(head, " sigcode=0") { // somebody sent it
		return false
	}
	if !ok { // it has no more to say, or there was no room for it on the disk
		return true
	}
	stack, _, _ = strings.Cut(stack, "\n\n")
	for line := range strings.Lines(stack) {
		name := strings.TrimPrefix(line, "created by ")
		switch {
		case strings.HasPrefix(name, "glmbatch/engine"), strings.HasPrefix(name, "glmbatch/kernels"):
			return true
		case strings.HasPrefix(name, "glmbatch/"), strings.HasPrefix(name, "main."):
			return false
		}
	}
	return true
}

func noFile(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func readAboard(f *os.File, at, size int64) (seq uint64, rows []onBoard, ok bool) {
	le := binary.LittleEndian
	b := make([]byte, aboardHead)
	if _, err := f.ReadAt(b, at); err != nil {
		return 0, nil, false
	}
	n := le.Uint64(b[8:])
	if n > maxAboard || at+aboardHead+16*int64(n) > size {
		return 0, nil, false
	}
	b = append(b, make([]byte, 16*n)...)
	if _, err := f.ReadAt(b[aboardHead:], at+aboardHead); err != nil || aboardSum(b) != le.Uint32(b[16:]) {
		return 0, nil, false
	}
	for at := aboardHead; at < len(b); at += 16 {
		rows = append(rows, onBoard{int64(le.Uint64(b[at:])), le.Uint64(b[at+8:])})
	}
	return le.Uint64(b), rows, true
}
