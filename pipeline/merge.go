package pipeline

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"glmbatch/datasets"
)

// settingShard is the setting that says which shard of how many a job is.
const settingShard = "--shard"

// ErrShards: shards are missing or not complete; they are to be run first.
var ErrShards = errors.New("the shards are not complete")

// Merged is what [Merge] made, or found to be made already.
type Merged struct {
	Already bool
	Shards  int
	Parts   int // files in outputs
	Counts  ManifestCounts
}

// Merge makes one output folder of a job's shards, which lie in its folder shards. It
// proves that they are shards of one job and that their rows cover the input exactly
// once, takes their parts over in the input's order, sums their counts, and writes
// manifest and _SUCCESS. Steps, timelines and captures stay where they are. A merge
// that was interrupted goes on when it is called again.
func Merge(out string, arguments []string) (*Merged, error) {
	shards, err := datasets.Shards(out)
	if err != nil {
		return nil, err
	}
	if len(shards) == 0 {
		return nil, fmt.Errorf("%s: %w: it has no folder %s with shards: runs with --shard make it", out, ErrFolder,
			datasets.ShardsDir)
	}
	if err := checkLinks(out); err != nil {
		return nil, err
	}
	lock, err := lockFolder(out, false)
	if err != nil {
		return nil, err
	}
	defer lock.release()
	if _, err := os.Stat(filepath.Join(out, datasets.SuccessFile)); err == nil {
		m, err := readManifest(out)
		if err != nil || m == nil {
			return nil, errors.Join(fmt.Errorf("%s: %w: it has %s without a manifest", out, ErrFolder,
				datasets.SuccessFile), err)
		}
		n, err := checkMerged(out, m)
		if err != nil {
			return nil, err
		}
		return &Merged{Already: true, Shards: len(shards), Parts: n, Counts: m.Counts}, dropShardOutputs(out, shards)
	}
	if err := onlyShards(out); err != nil {
		return nil, err
	}
	if err := allShards(out, shards); err != nil {
		return nil, err
	}
	manifests, err := shardManifests(out, shards)
	if err != nil {
		return nil, err
	}
	files, err := cover(out, shards, manifests)
	if err != nil {
		return nil, err
	}
	m := mergeManifests(manifests)
	m.Arguments = arguments
	if err := takeParts(filepath.Join(out, datasets.OutputsDir), files); err != nil {
		return nil, err
	}
	if err := m.write(out); err != nil {
		return nil, err
	}
	if err := datasets.WriteFile(filepath.Join(out, datasets.SuccessFile), nil); err != nil {
		return nil, err
	}
	return &Merged{Shards: len(shards), Parts: len(files), Counts: m.Counts}, dropShardOutputs(out, shards)
}

// checkMerged looks whether all that was merged is there still: each row with all its
// samples, exactly once. It returns the number of files.
func checkMerged(out string, m *Manifest) (int, error) {
	f := &Folder{Dir: out, NextRow: m.FromRow, manifest: m}
	if err := f.whole(); err != nil {
		return 0, err
	}
	names, err := parts(filepath.Join(out, datasets.OutputsDir))
	if err != nil {
		return 0, err
	}
	c := rowCheck{row: m.FromRow - 1, end: m.ToRow}
	for _, name := range names {
		if err := datasets.RowNumbers(filepath.Join(out, datasets.OutputsDir, name), c.add); err != nil {
			return 0, fmt.Errorf("%w: %w", ErrFolder, err)
		}
	}
	if c.row != m.ToRow-1 || c.rows != m.Counts.Samples {
		return 0, fmt.Errorf("%s: %w: it has %d rows up to input row %d, its manifest %d up to %d", out, ErrFolder,
			c.rows, c.row, m.Counts.Samples, m.ToRow-1)
	}
	return len(names), nil
}

// onlyShards refuses folders beside the shards that have a job: copies, under names that
// are no shard's. Readers of all files would have their rows twice.
func onlyShards(out string) error {
	entries, err := os.ReadDir(filepath.Join(out, datasets.ShardsDir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		dir := filepath.Join(out, datasets.ShardsDir, e.Name())
		m, err := readManifest(dir)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrFolder, err)
		}
		if m == nil {
			continue
		}
		var s datasets.Shard
		if _, err := fmt.Sscanf(m.Settings[settingShard], "%d/%d", &s.Index, &s.Of); err != nil ||
			filepath.Join(out, s.Dir()) != dir {
			return fmt.Errorf("%s: %w: it has shard %s, whose folder is %s: remove what is there twice", dir, ErrFolder,
				s, filepath.Base(s.Dir()))
		}
	}
	return nil
}

// allShards reports shards that are missing, or of a job cut into another number.
func allShards(out string, shards []datasets.Shard) error {
	of := shards[0].Of
	have := map[int]bool{}
	for _, s := range shards {
		if s.Of != of {
			return fmt.Errorf("%s: %w: it has shards of %d and of %d: remove those of one", out, ErrFolder, of, s.Of)
		}
		have[s.Index] = true
	}
	var missing []string
	for i := range of {
		if !have[i] {
			missing = append(missing, datasets.Shard{Index: i, Of: of}.String())
		}
	}
	return toRun(out, "have not begun", missing)
}

// toRun is the error of shards that are to be run; nil without any.
func toRun(out, what string, shards []string) error {
	if len(shards) == 0 {
		return nil
	}
	const most = 20
	list := strings.Join(shards[:min(len(shards), most)], ", ")
	if more := len(shards) - most; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("%s: %w: %d %s: run them with --shard %s", out, ErrShards, len(shards), what, list)
}

// shardManifests are those of the shards, which must be of one job and complete.
func shardManifests(out string, shards []datasets.Shard) ([]*Manifest, error) {
	var all []*Manifest
	var open []string
	for _, s := range shards {
		dir := filepath.Join(out, s.Dir())
		m, err := readManifest(dir)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFolder, err)
		}
		if _, err := os.Stat(filepath.Join(dir, datasets.SuccessFile)); err != nil || m == nil ||
			m.Status != StatusComplete {
			open = append(open, s.String())
			continue
		}
		if was := m.Settings[settingShard]; was != s.String() {
			return nil, fmt.Errorf("%s: %w: its manifest is of shard %s", dir, ErrFolder, was)
		}
		all = append(all, m)
	}
	if err := toRun(out, "are not complete", open); err != nil {
		return nil, err
	}
	for i, m := range all[1:] {
		like := *m
		like.Settings = maps.Clone(m.Settings)
		like.Settings[settingShard] = all[0].Settings[settingShard]
		if err := sameContext(out, shards, all); err != nil {
			return nil, err
		}
		if what := like.differs(all[0]); what != "" {
			return nil, fmt.Errorf("%s: %w: shard %s is of another job than shard %s: %s", out, ErrFolder, shards[i+1],
				shards[0], what)
		}
	}
	return all, nil
}

// sameContext refuses shards of which some could hold longer sequences than others: rows
// of theirs may have been refused, or cut short, that another's would not. They ran on
// machines of unequal memory.
func sameContext(out string, shards []datasets.Shard, all []*Manifest) error {
	least, most := 0, 0
	for i := range all {
		if all[i].context() < all[least].context() {
			least = i
		}
		if all[i].context() > all[most].context() {
			most = i
		}
	}
	if all[least].context() == all[most].context() {
		return nil
	}
	return fmt.Errorf("%s: %w: a sequence had room for %d tokens in shard %s and for %d in shard %s, as their "+
		"machines had not the same memory: run shards with --kv-tokens %d (and --overwrite) until all have that room",
		out, ErrFolder, all[least].context(), shards[least], all[most].context(), shards[most], all[least].context())
}

// cover proves that the shards' parts have each input row, with all its samples,
// exactly once and in order, and returns the parts.
func cover(out string, shards []datasets.Shard, manifests []*Manifest) ([]string, error) {
	var files []string
	var next, samples int64 // the input row that comes next; output rows so far
	for i, s := range shards {
		dir := filepath.Join(out, s.Dir())
		f := Folder{Dir: dir, NextRow: next, manifest: manifests[i]}
		if err := f.outputs(); err != nil {
			return nil, err
		}
		if want := next + manifests[i].Counts.InputRows; f.NextRow != want {
			return nil,
				fmt.Errorf("%s: %w: its parts end with row %d, its manifest with row %d: %s is missing; bring it "+
					"back, or run the shard anew with --overwrite",
					dir, ErrFolder, f.NextRow-1, want-1, datasets.PartName(f.NextPart, datasets.Parquet))
		}
		names, err := parts(filepath.Join(dir, datasets.OutputsDir))
		if err != nil {
			return nil, err
		}
		c := rowCheck{row: next - 1, end: f.NextRow}
		for _, name := range names {
			path := filepath.Join(dir, datasets.OutputsDir, name)
			before := c.rows
			if err := datasets.RowNumbers(path, c.add); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrFolder, err)
			}
			if c.rows > before || len(files) == 0 && s.Index == s.Of-1 { // a job without rows has one file
				files = append(files, path)
			}
		}
		if c.row != f.NextRow-1 {
			return nil, fmt.Errorf("%s: %w: row %d is missing", dir, ErrFolder, c.row+1)
		}
		next = f.NextRow
		samples += c.rows
	}
	if all := jobRows(manifests[0]); next != all {
		return nil, fmt.Errorf("%s: %w: the shards have %d rows, the input has %d", out, ErrFolder, next, all)
	}
	return files, nil
}

// jobRows is how many input rows a job is about, without its shard.
func jobRows(m *Manifest) int64 {
	var all int64
	for _, f := range m.Input {
		all += f.Rows
	}
	if limit, err := strconv.ParseInt(m.Settings["--limit"], 10, 64); err == nil && limit > 0 {
		all = min(all, limit)
	}
	return all
}

// rowCheck follows the numbers of a shard's output rows.
type rowCheck struct {
	row, sample int64 // the last
	end         int64 // the input row after the shard's last
	rows        int64
}

func (c *rowCheck) add(row, sample int64) error {
	switch {
	case row == c.row+1 && sample == 0 && row < c.end:
	case row == c.row && c.rows > 0 && sample == c.sample+1:
	default:
		return fmt.Errorf("row %d sample %d comes after row %d sample %d", row, sample, c.row, c.sample)
	}
	c.row, c.sample = row, sample
	c.rows++
	return nil
}

// mergeManifests is the manifest of the job that the shards make.
func mergeManifests(shards []*Manifest) *Manifest {
	m := *shards[0]
	m.Settings = maps.Clone(m.Settings)
	m.Settings[settingShard] = datasets.Shard{Index: 0, Of: 1}.String()
	m.ToRow = shards[len(shards)-1].ToRow
	m.Status, m.Error, m.Runs, m.Counts = StatusComplete, "", 0, ManifestCounts{}
	m.Engine = ManifestEngine{}
	joules, all := 0.0, true
	for _, s := range shards {
		if s.Started.Before(m.Started) {
			m.Started = s.Started
		}
		m.Runs += s.Runs
		m.Counts.add(&s.Counts)
		m.Engine.add(&s.Engine)
		if all = all && s.Engine.Joules != nil; all {
			joules += *s.Engine.Joules
		}
	}
	if all {
		m.Engine.setEnergy(&joules, &m.Counts)
	}
	return &m
}

// add sums every count.
func (c *ManifestCounts) add(o *ManifestCounts) {
	to, from := reflect.ValueOf(c).Elem(), reflect.ValueOf(o).Elem()
	for i := range to.NumField() {
		switch f := to.Field(i); f.Kind() {
		case reflect.Int64:
			f.SetInt(f.Int() + from.Field(i).Int())
		case reflect.Map: // of counts, by their names
			if g, ok := f.Interface().(map[string]Checked); ok {
				for _, name := range slices.Sorted(maps.Keys(o.Groups)) {
					g = groups(g).add(name, o.Groups[name])
				}
				f.Set(reflect.ValueOf(g))
				continue
			}
			if f.IsNil() && from.Field(i).Len() > 0 {
				f.Set(reflect.MakeMap(f.Type()))
			}
			for it := from.Field(i).MapRange(); it.Next(); {
				sum := it.Value().Int()
				if have := f.MapIndex(it.Key()); have.IsValid() {
					sum += have.Int()
				}
				f.SetMapIndex(it.Key(), reflect.ValueOf(sum).Convert(f.Type().Elem()))
			}
		}
	}
}

// takeParts gives the files their places in dir, without copying where links can be made.
func takeParts(dir string, files []string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	have, err := parts(dir) // of a merge that was interrupted
	if err != nil {
		return err
	}
	if len(have) > len(files) {
		return fmt.Errorf("%s: %w: it has %d files, the shards have %d", dir, ErrFolder, len(have), len(files))
	}
	for i, path := range files {
		name := datasets.PartName(i, datasets.Parquet)
		if slices.Contains(have, name) {
			if err := samePart(filepath.Join(dir, name), path); err != nil {
				return err
			}
			continue
		}
		if err := datasets.LinkFile(path, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// samePart refuses a file that is not the shard's.
func samePart(have, want string) error {
	a, err := os.Stat(have)
	if err != nil {
		return err
	}
	b, err := os.Stat(want)
	if err != nil {
		return err
	}
	if os.SameFile(a, b) {
		return nil
	}
	same := a.Size() == b.Size()
	if same {
		same, err = sameBytes(have, want)
	}
	if err == nil && !same {
		err = fmt.Errorf("%s: %w: it is not the shard's %s", have, ErrFolder, want)
	}
	return err
}

func sameBytes(a, b string) (bool, error) {
	x, err := os.Open(a)
	if err != nil {
		return false, err
	}
	defer x.Close()
	y, err := os.Open(b)
	if err != nil {
		return false, err
	}
	defer y.Close()
	p, q := make([]byte, 1<<16), make([]byte, 1<<16)
	for {
		n, err1 := io.ReadFull(x, p)
		k, err2 := io.ReadFull(y, q)
		if n != k || string(p[:n]) != string(q[:k]) {
			return false, nil
		}
		if err1 != nil || err2 != nil {
			if (err1 == io.EOF || err1 == io.ErrUnexpectedEOF) && (err2 == io.EOF || err2 == io.ErrUnexpectedEOF) {
				return true, nil
			}
			return false, errors.Join(err1, err2)
		}
	}
}

// dropShardOutputs removes the shards' outputs, which are the job's now: else whoever
// reads all files below the folder would have each row twice.
func dropShardOutputs(out string, shards []datasets.Shard) error {
	for _, s := range shards {
		if err := os.RemoveAll(filepath.Join(out, s.Dir(), datasets.OutputsDir)); err != nil {
			return err
		}
	}
	return nil
}
