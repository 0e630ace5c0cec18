package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"glmbatch/datasets"
)

var (
	// ErrLocked: another run has the folder.
	ErrLocked = errors.New("another run has the folder")
	// ErrFolder: the folder has something else in it; nothing was changed.
	ErrFolder = errors.New("the folder cannot be used")
)

// CompleteError says that the folder has all of the job already; nothing was changed.
type CompleteError struct {
	Dir    string
	Counts ManifestCounts
}

func (e *CompleteError) Error() string { return e.Dir + " has all of this job already" }

// Folder is an output folder that this process has to itself.
type Folder struct {
	Dir      string
	Resumed  bool
	NextRow  int64           // input row of the next part
	NextPart int             // of outputs
	Recorder RecorderOptions // where a recorder begins or goes on

	manifest *Manifest
	lock     *lock
	first    int64     // the job's first input row
	old      bool      // another job's output is there, which begin removes
	started  bool      // begin was called
	tally    tally     // of the parts
	saved    *recovery // the journal and what it has; nil before begin where old
	aboard   *Aboard
}

// FolderOptions say how to open a folder.
type FolderOptions struct {
	Overwrite bool // what a job left is removed when the new one begins
	Retry     bool // rows whose error may pass run again, also those of a complete job
	NoLock    bool // the folder's file system has no locks: the caller sees to it that no other run has it
}

// OpenFolder locks dir and makes it ready for the job of m: new, or as an
// earlier run of the same job left it. With Overwrite, what another job left is
// removed when this one begins, and without it the folder of one that left nothing,
// as its start failed; only folders that have a manifest are ever touched. The error
// is a *CompleteError where nothing is left to do.
func OpenFolder(dir string, m *Manifest, o FolderOptions) (_ *Folder, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOutput, err)
	}
	if err := checkLinks(dir); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, datasets.ManifestFile)); errors.Is(err, os.ErrNotExist) {
		if err := checkEmpty(dir); err != nil { // before the lock makes a file there
			return nil, err
		}
	}
	f := &Folder{Dir: dir, NextRow: m.FromRow, first: m.FromRow, manifest: m,
		aboard: &Aboard{dir: filepath.Join(dir, datasets.JournalDir)}}
	if f.lock, err = lockFolder(dir, o.NoLock); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = f.Close() // err says what is wrong
		}
	}()
	if err := removeUnfinished(dir); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOutput, err)
	}
	m.Version, m.RunID = manifestVersion, runID(m)
	m.Started, m.Runs = time.Now().UTC().Truncate(time.Millisecond), 1
	m.Status, m.guard = StatusRunning, &sync.Mutex{}
	f.Recorder.Dir = dir
	old, err := readManifest(dir)
	if err != nil && !o.Overwrite {
		return nil, fmt.Errorf("%w: %w; start anew with --overwrite", ErrFolder, err)
	}
	switch {
	case o.Overwrite && (old != nil || err != nil):
		f.old = true
		return f, nil
	case old == nil:
		err = checkEmpty(dir)
	default:
		err = f.resume(old, o.Retry)
	}
	if err == nil {
		err = f.open()
	}
	if err == nil && o.Retry {
		err = errorsOf(ErrOutput, errors.Join(f.saved.retry(), dropCaptures(dir)))
	}
	return f, err
}

// open says in the manifest that the job runs, by which the folder is known as ours, and
// opens the journal.
func (f *Folder) open() (err error) {
	if !f.Resumed {
		f.manifest.Counts.InputRows = f.manifest.ToRow - f.first
		if err = f.manifest.write(f.Dir); err != nil {
			return fmt.Errorf("%w: %w", ErrOutput, err)
		}
	}
	if f.saved, err = recoverJournal(f.Dir, f.manifest.RunID, f.NextRow); err != nil || !f.Resumed {
		return errorsOf(ErrOutput, err)
	}
	var has tally
	has.add(&f.tally)
	has.add(&f.saved.tally)
	f.manifest.Counts = has.counts(f.manifest.ToRow - f.first)
	f.manifest.Engine = f.Recorder.done()
	return errorsOf(ErrOutput, f.manifest.write(f.Dir))
}

// dropCaptures removes the steps of rows that had an error and run again.
func dropCaptures(dir string) error {
	dir = filepath.Join(dir, datasets.CapturesDir)
	files, err := os.ReadDir(dir)
	err = noFile(err)
	for _, file := range files {
		if ok, bad := filepath.Match(datasets.RowCaptures, file.Name()); bad != nil || ok {
			err = errors.Join(err, bad, noFile(os.Remove(filepath.Join(dir, file.Name()))))
		}
	}
	return err
}

// errorsOf is err as one of a kind; nil stays nil.
func errorsOf(kind, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", kind, err)
}

// removeUnfinished removes what a crash left of the folder's own files, and of captures,
// unless these are a link to elsewhere.
func removeUnfinished(dir string) error {
	err := removeTemporary(dir, func(name string) bool {
		return strings.HasPrefix(name, "."+datasets.ManifestFile+".") ||
			strings.HasPrefix(name, "."+datasets.SuccessFile+".")
	})
	captures := filepath.Join(dir, datasets.CapturesDir)
	if info, bad := os.Lstat(captures); err != nil || bad != nil || !info.IsDir() {
		return errors.Join(err, noFile(bad))
	}
	return removeTemporary(captures, func(name string) bool { return strings.HasPrefix(name, ".") })
}

func removeTemporary(dir string, ours func(name string) bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if name := e.Name(); ours(name) && strings.HasSuffix(name, ".tmp") {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// begin is called when the job has all that it needs to run.
func (f *Folder) begin() error {
	if f.old {
		if err := f.clear(); err != nil {
			return err
		}
		f.old = false
		if err := f.open(); err != nil {
			return err
		}
	}
	f.started = true
	return f.aboard.begin()
}

// Aboard is the observer of the engine that the job runs with.
func (f *Folder) Aboard() *Aboard { return f.aboard }

// Suspects are how many rows run alone, as a step ended badly with them, and how many
// have an error, as two did.
func (f *Folder) Suspects() (alone, failed int) {
	if f.saved == nil {
		return 0, 0
	}
	return f.saved.suspects()
}

// Done is how many rows are finished, in parts or in the journal.
func (f *Folder) Done() int64 {
	n := f.NextRow - f.first
	if f.saved != nil && f.saved.journal != nil { // nil: it could not be read
		n += f.saved.tally.Rows
	}
	return n
}

// Finished reports whether the parts have all rows already.
func (f *Folder) Finished() bool { return f.Resumed && f.NextPart > 0 && f.NextRow >= f.manifest.ToRow }

// Torn is how many bytes of the journal a crash had left unfinished.
func (f *Folder) Torn() int64 {
	if f.saved == nil {
		return 0
	}
	return f.saved.found.Torn
}

// Close gives the folder up.
func (f *Folder) Close() error {
	var err error
	if f.saved != nil && f.saved.journal != nil { // nil: it could not be read
		err = f.saved.journal.Close()
		f.saved = nil
	}
	return errors.Join(err, f.lock.release())
}

// checkEmpty refuses a folder with files that are not ours.
func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			return fmt.Errorf("%s: %w: it has %s but no %s, so it is not an output of glmbatch; choose another --out",
				dir, ErrFolder, e.Name(), datasets.ManifestFile)
		}
	}
	return nil
}

// clear removes what a job leaves, and nothing else.
func (f *Folder) clear() error {
	// The manifest goes last: a crash in between leaves a folder that is known.
	for _, name := range datasets.JobNames {
		if err := os.RemoveAll(filepath.Join(f.Dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// resume finds where an earlier run of the same job ended.
func (f *Folder) resume(old *Manifest, retry bool) error {
	_, err := os.Stat(filepath.Join(f.Dir, datasets.SuccessFile))
	complete := err == nil
	if what := f.manifest.differs(old); what != "" {
		if !complete && !hasWork(f.Dir, old.RunID) {
			return f.clear()
		}
		return fmt.Errorf("%s: %w: it belongs to another job: %s; choose another --out, or start anew with --overwrite",
			f.Dir, ErrFolder, what)
	}
	if complete {
		_ = os.RemoveAll(filepath.Join(f.Dir, datasets.JournalDir)) // a crash may have left it
		if err := f.whole(); err != nil {
			return err
		}
		if has := (tally{Codes: old.Counts.Codes}); !retry || has.passing() == 0 {
			return &CompleteError{f.Dir, old.Counts}
		}
	}
	f.manifest.Started, f.manifest.Updated, f.manifest.Runs = old.Started, old.Updated, old.Runs+1
	f.Recorder.Shared = old.Engine.Shared
	f.Resumed = true
	if err := f.outputs(); err != nil {
		return err
	}
	if retry {
		if err := f.retryParts(); err != nil {
			return errorsOf(ErrOutput, err)
		}
	}
	return f.records()
}

// whole is an error where files of a complete job are missing or cannot be read.
func (f *Folder) whole() error {
	has := &Folder{Dir: f.Dir, NextRow: f.NextRow, manifest: f.manifest}
	if err := has.outputs(); err != nil {
		return err
	}
	if has.NextRow < f.manifest.ToRow {
		return fmt.Errorf("%s: %w: the job is complete with row %d, but %s has rows up to %d only: %s is missing; "+
			"bring it back, or start anew with --overwrite",
			f.Dir, ErrFolder, f.manifest.ToRow, datasets.OutputsDir, has.NextRow,
			datasets.PartName(has.NextPart, datasets.Parquet))
	}
	return nil
}

// hasWork reports whether a run left rows, steps, captures, or what cannot be read.
func hasWork(folder, runID string) bool {
	if r, err := recoverJournal(folder, runID, 0); err != nil || r.found.Records > 0 {
		if err == nil {
			_ = r.journal.Close() // it was only read
		}
		return true
	} else if r.journal.Close() != nil {
		return true
	}
	for _, dir := range []string{datasets.OutputsDir, datasets.StepsDir, datasets.TimelineDir, datasets.CapturesDir} {
		entries, err := os.ReadDir(filepath.Join(folder, dir))
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
			if dir == datasets.OutputsDir {
				if _, rows, err := datasets.Metadata(filepath.Join(folder, dir, name)); err != nil || rows > 0 {
					return true
				}
			}
		}
	}
	old := Folder{Dir: folder}
	return old.records() != nil || old.Recorder.FirstStep > 0
}

// outputs reads the metadata of the finished parts, which must follow each other.
func (f *Folder) outputs() error {
	names, err := parts(filepath.Join(f.Dir, datasets.OutputsDir))
	if err != nil {
		return err
	}
	return f.follow(names)
}

// follow reads the metadata of parts.
func (f *Folder) follow(names []string) error {
	for i := range names {
		if err := f.followOne(names, i); err != nil {
			return err
		}
	}
	return nil
}

// followOne reads the metadata of the next part.
func (f *Folder) followOne(names []string, i int) error {
	path := filepath.Join(f.Dir, datasets.OutputsDir, names[i])
	meta, _, err := datasets.Metadata(path)
	if err != nil {
		return fmt.Errorf("%w: %w; start anew with --overwrite", ErrFolder, err)
	}
	from, err1 := strconv.ParseInt(meta[keyFrom], 10, 64)
	to, err2 := strconv.ParseInt(meta[keyTo], 10, 64)
	if err1 != nil || err2 != nil || to < from || meta[keyRun] != f.manifest.RunID {
		return fmt.Errorf("%s: %w: it is not of this job; remove it, or start anew with --overwrite", path, ErrFolder)
	}
	if err := f.follows(path, i, from, to); err != nil {
		return err
	}
	if meta[keyEarly] != "" { // its rows are in the journal too
		if i != len(names)-1 {
			return fmt.Errorf("%s: %w: the file is not whole, but not the last; start anew with --overwrite",
				path, ErrFolder)
		}
		return nil
	}
	var t tally
	if c := meta[keyCounts]; c != "" {
		if err := json.Unmarshal([]byte(c), &t); err != nil {
			return fmt.Errorf("%s: %w: its counts: %w", path, ErrFolder, err)
		}
	}
	f.tally.add(&t)
	f.NextRow, f.NextPart = to, i+1
	return nil
}

// follows is an error where a part is not the i-th, or does not begin with the row after
// the one before it.
func (f *Folder) follows(path string, i int, from, to int64) error {
	name, want := filepath.Base(path), datasets.PartName(i, datasets.Parquet)
	const anew = "or start anew with --overwrite"
	switch {
	case name > want && from > f.NextRow:
		return fmt.Errorf("%s: %w: %s is missing, with rows from %d; bring it back, %s", filepath.Dir(path), ErrFolder,
			want, f.NextRow, anew)
	case from < f.NextRow:
		return fmt.Errorf("%s: %w: it has rows %d to %d, and files before it have up to %d; remove what is there "+
			"twice, %s", path, ErrFolder, from, to-1, f.NextRow-1, anew)
	case name != want:
		return fmt.Errorf("%s: %w: it should be %s; give it its name, %s", path, ErrFolder, want, anew)
	case from > f.NextRow:
		return fmt.Errorf("%s: %w: it begins with row %d, and the file before it ends with %d; bring back what is "+
			"missing, %s", path, ErrFolder, from, f.NextRow-1, anew)
	}
	return nil
}

// records finds the numbers of the next step and of the next files.
func (f *Folder) records() error {
	steps, err := parts(filepath.Join(f.Dir, datasets.StepsDir))
	if err != nil {
		return err
	}
	spans, err := parts(filepath.Join(f.Dir, datasets.TimelineDir))
	if err != nil {
		return err
	}
	f.Recorder.StepsPart, f.Recorder.TimelinePart = len(steps), len(spans)
	if len(spans) > 0 { // a file may have been left without rows, and removed
		if _, err := fmt.Sscanf(spans[len(spans)-1], "part-%d.", &f.Recorder.TimelinePart); err == nil {
			f.Recorder.TimelinePart++
		}
	}
	captures, err := os.ReadDir(filepath.Join(f.Dir, datasets.CapturesDir))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, c := range captures { // of steps that a kill kept from the table
		var step int64
		if _, err := fmt.Sscanf(c.Name(), "step-%d.arrow", &step); err == nil {
			f.Recorder.FirstStep = max(f.Recorder.FirstStep, step+1)
		}
	}
	for _, name := range steps {
		err := datasets.Read(filepath.Join(f.Dir, datasets.StepsDir, name), func(rows []datasets.Step) error {
			for _, s := range rows {
				f.Recorder.FirstStep = max(f.Recorder.FirstStep, s.Step+1)
				f.Recorder.Preempted += int64(s.Preempted)
				f.Recorder.Sampled.Choose(s.Step, s.Kind)
				f.Recorder.Energy.add(s.GPUJoules)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// parts lists the finished files of a folder, and removes unfinished ones.
func parts(dir string) ([]string, error) {
	names, unfinished, err := listParts(dir)
	for _, name := range unfinished {
		if err == nil {
			err = os.Remove(filepath.Join(dir, name))
		}
	}
	return names, err
}

// listParts lists the finished files of a folder, in order, and the unfinished ones.
func listParts(dir string) (names, unfinished []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, nil
	}
	for _, e := range entries { // sorted by name
		switch name := e.Name(); {
		case strings.HasPrefix(name, ".") && strings.HasSuffix(name, ".tmp"):
			unfinished = append(unfinished, name)
		case strings.HasPrefix(name, "part-"):
			names = append(names, name)
		}
	}
	return names, unfinished, err
}

// report writes how far the job is.
func (f *Folder) report(counts ManifestCounts, engine ManifestEngine) error {
	f.manifest.Counts, f.manifest.Engine = counts, engine
	return f.manifest.write(f.Dir)
}

// finish writes the manifest, and _SUCCESS last; the journal of a job that is complete
// is removed then. What another job left is as it was where this one did not begin.
func (f *Folder) finish(status string, counts ManifestCounts, engine ManifestEngine, cause error) error {
	if f.old || f.saved == nil {
		return nil
	}
	saved := f.saved
	f.saved = nil
	if status != StatusComplete {
		if err := saved.journal.Close(); err != nil {
			return err
		}
	}
	f.manifest.Status, f.manifest.Counts, f.manifest.Engine = status, counts, engine
	if cause != nil {
		f.manifest.Error = oneLine(cause)
	}
	if err := f.manifest.write(f.Dir); err != nil || status != StatusComplete {
		return err
	}
	if err := datasets.WriteFile(filepath.Join(f.Dir, datasets.SuccessFile), nil); err != nil {
		return err
	}
	return saved.journal.Remove()
}
