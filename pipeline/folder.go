package pipeline

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"glmbatch/datasets"
)

// The names in an output folder.
const (
	manifestFile = "_manifest.json"
	successFile  = "_SUCCESS"
	lockFile     = ".lock"
	outputsDir   = "outputs"
	stepsDir     = "steps"
	timelineDir  = "timeline"
	capturesDir  = "captures"
)

var (
	// ErrLocked: another run has the folder.
	ErrLocked = errors.New("another run has the folder: wait for its end, or choose another --out")
	// ErrFolder: the folder has something else in it; nothing was changed.
	ErrFolder = errors.New("the folder cannot be used")
)

// Folder is an output folder that this process has to itself.
type Folder struct {
	Dir      string
	Resumed  bool
	NextRow  int64           // input row to begin or go on with
	NextPart int             // of outputs
	Recorder RecorderOptions // where a recorder begins or goes on

	manifest *Manifest
	lock     *flock.Flock
}

// OpenFolder locks dir and makes it ready for the job of m: new, or as an
// earlier run of the same job left it. With overwrite, what another job left is
// removed, and without it the folder of one that left nothing, as its start failed;
// only folders that have a manifest are ever touched. firstRow is the job's first
// input row.
func OpenFolder(dir string, m *Manifest, overwrite bool, firstRow int64) (_ *Folder, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	if _, err := os.Stat(filepath.Join(dir, manifestFile)); errors.Is(err, os.ErrNotExist) {
		if err := checkEmpty(dir); err != nil { // before the lock makes a file there
			return nil, err
		}
	}
	f := &Folder{Dir: dir, NextRow: firstRow, manifest: m, lock: flock.New(filepath.Join(dir, lockFile))}
	if ok, err := f.lock.TryLock(); err != nil {
		return nil, fmt.Errorf("locking %s: %w", dir, err)
	} else if !ok {
		return nil, fmt.Errorf("%s: %w", dir, ErrLocked)
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	m.Version, m.RunID = manifestVersion, runID(m)
	m.Started, m.Runs = time.Now().UTC().Truncate(time.Millisecond), 1
	old, err := readManifest(dir)
	if err != nil && !overwrite {
		return nil, fmt.Errorf("%w: %w; start anew with --overwrite", ErrFolder, err)
	}
	switch {
	case overwrite && (old != nil || err != nil):
		err = f.clear()
	case old == nil:
		err = checkEmpty(dir)
	default:
		err = f.resume(old)
	}
	if err != nil {
		return nil, err
	}
	f.Recorder.Dir = dir
	m.Status = StatusRunning
	return f, m.write(dir)
}

// Close gives the folder up.
func (f *Folder) Close() error { return f.lock.Unlock() }

// checkEmpty refuses a folder with files that are not ours.
func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			return fmt.Errorf("%s: %w: it has %s but no %s, so it is not an output of glmbatch; choose another --out", dir, ErrFolder, e.Name(), manifestFile)
		}
	}
	return nil
}

// clear removes what a job leaves, and nothing else.
func (f *Folder) clear() error {
	// The manifest goes last: a crash in between leaves a folder that is known.
	for _, name := range []string{successFile, outputsDir, stepsDir, timelineDir, capturesDir, manifestFile} {
		if err := os.RemoveAll(filepath.Join(f.Dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// resume finds where an earlier run of the same job ended.
func (f *Folder) resume(old *Manifest) error {
	if _, err := os.Stat(filepath.Join(f.Dir, successFile)); err == nil {
		return fmt.Errorf("%s: %w: its job is complete; choose another --out, or run it again with --overwrite", f.Dir, ErrFolder)
	}
	if what := f.manifest.differs(old); what != "" {
		if !f.begun() {
			return f.clear()
		}
		return fmt.Errorf("%s: %w: it belongs to another job: %s; choose another --out, or start anew with --overwrite", f.Dir, ErrFolder, what)
	}
	f.manifest.Started, f.manifest.Runs = old.Started, old.Runs+1
	f.Resumed = true
	if err := f.outputs(); err != nil {
		return err
	}
	return f.records()
}

// begun reports whether a run left rows, steps, captures, or what cannot be read.
func (f *Folder) begun() bool {
	for _, dir := range []string{outputsDir, stepsDir, timelineDir, capturesDir} {
		entries, err := os.ReadDir(filepath.Join(f.Dir, dir))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return true
		}
		for _, e := range entries {
			name := e.Name()
			if strings.HasPrefix(name, ".") { // unfinished
				continue
			}
			if !strings.HasPrefix(name, "part-") {
				return true
			}
			if dir == outputsDir {
				if _, rows, err := datasets.Metadata(filepath.Join(f.Dir, dir, name)); err != nil || rows > 0 {
					return true
				}
			}
		}
	}
	old := Folder{Dir: f.Dir}
	return old.records() != nil || old.Recorder.FirstStep > 0
}

// outputs reads the metadata of the finished parts, which must follow each other.
func (f *Folder) outputs() error {
	names, err := parts(filepath.Join(f.Dir, outputsDir))
	if err != nil {
		return err
	}
	for i, name := range names {
		path := filepath.Join(f.Dir, outputsDir, name)
		meta, _, err := datasets.Metadata(path)
		if err != nil {
			return fmt.Errorf("%w: %w; start anew with --overwrite", ErrFolder, err)
		}
		from, err1 := strconv.ParseInt(meta[keyFrom], 10, 64)
		to, err2 := strconv.ParseInt(meta[keyTo], 10, 64)
		if name != datasets.PartName(i, datasets.Parquet) || err1 != nil || err2 != nil || from != f.NextRow || to < from || meta[keyRun] != f.manifest.RunID {
			return fmt.Errorf("%s: %w: the file does not follow the one before it; start anew with --overwrite", path, ErrFolder)
		}
		f.NextRow = to
	}
	f.NextPart = len(names)
	return nil
}

// records finds the numbers of the next step and of the next files.
func (f *Folder) records() error {
	steps, err := parts(filepath.Join(f.Dir, stepsDir))
	if err != nil {
		return err
	}
	spans, err := parts(filepath.Join(f.Dir, timelineDir))
	if err != nil {
		return err
	}
	f.Recorder.StepsPart, f.Recorder.TimelinePart = len(steps), len(spans)
	if len(steps) == 0 {
		return nil
	}
	return datasets.Read(filepath.Join(f.Dir, stepsDir, steps[len(steps)-1]), func(rows []datasets.Step) error {
		for _, s := range rows {
			f.Recorder.FirstStep = max(f.Recorder.FirstStep, s.Step+1)
		}
		return nil
	})
}

// parts lists the finished files of a folder, and removes unfinished ones.
func parts(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		switch name := e.Name(); {
		case strings.HasPrefix(name, ".") && strings.HasSuffix(name, ".tmp"):
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				return nil, err
			}
		case strings.HasPrefix(name, "part-"):
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// finish writes the manifest, and _SUCCESS last.
func (f *Folder) finish(status string, counts ManifestCounts, cause error) error {
	f.manifest.Status, f.manifest.Counts = status, counts
	if cause != nil {
		f.manifest.Error = oneLine(cause)
	}
	if err := f.manifest.write(f.Dir); err != nil || status != StatusComplete {
		return err
	}
	return datasets.WriteFile(filepath.Join(f.Dir, successFile), nil)
}
