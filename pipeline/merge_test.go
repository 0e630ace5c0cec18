package pipeline

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"glmbatch/datasets"
)

// shardsOf runs all shards of the demo job with the stub engine, into one folder.
func shardsOf(t *testing.T, n int) string {
	t.Helper()
	in, out := demoInput(t), t.TempDir()
	for k := range n {
		s := datasets.Shard{Index: k, Of: n}
		o := Options{TokenIDs: true, Params: Params{N: 2}, Limit: 210, PartRows: 40, Shard: k, Shards: n}
		j := newJob(t, in, o, &stub{vocab: 2000, length: 9}, filepath.Join(out, s.Dir()))
		if err := j.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		j.Folder.Close()
	}
	return out
}

// TestMerge: shards are the same job as one, also when a merge was cut off anywhere.
func TestMerge(t *testing.T) {
	in, whole := demoInput(t), t.TempDir()
	o := Options{TokenIDs: true, Params: Params{N: 2}, Limit: 210, PartRows: 40}
	if err := newJob(t, in, o, &stub{vocab: 2000, length: 9}, whole).Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	want := readOut(t, whole)
	wantManifest, err := readManifest(whole)
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []string{"", "outputs/part-00003.parquet", datasets.SuccessFile, datasets.ManifestFile} {
		out := shardsOf(t, 7)
		if cut != "" {
			before := t.TempDir()
			if err := os.CopyFS(before, os.DirFS(out)); err != nil {
				t.Fatal(err)
			}
			if _, err := Merge(out, nil); err != nil {
				t.Fatal(err)
			}
			// As it was before cut was there, and the shards' outputs with it.
			for _, name := range []string{datasets.SuccessFile, datasets.ManifestFile, cut} {
				if name == datasets.ManifestFile && cut == datasets.SuccessFile {
					continue
				}
				if err := os.Remove(filepath.Join(out, name)); err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
			}
			if err := os.RemoveAll(filepath.Join(out, datasets.ShardsDir)); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(before, datasets.ShardsDir),
				filepath.Join(out, datasets.ShardsDir)); err != nil {
				t.Fatal(err)
			}
		}
		m, err := Merge(out, nil)
		if err != nil || m.Shards != 7 || m.Already {
			t.Fatalf("cut %q: %+v, %v", cut, m, err)
		}
		if d := cmp.Diff(want, readOut(t, out)); d != "" {
			t.Errorf("cut %q: the rows differ:\n%s", cut, d[:min(len(d), 1000)])
		}
		got, err := readManifest(out)
		if err != nil {
			t.Fatal(err)
		}
		if got.RunID != wantManifest.RunID || got.Status != StatusComplete || got.differs(wantManifest) != "" {
			t.Errorf("cut %q: the manifest is of another job: %+v", cut, got)
		}
		if d := cmp.Diff(wantManifest.Counts, got.Counts); d != "" {
			t.Errorf("cut %q: the counts differ:\n%s", cut, d)
		}
	}
}

// TestMergeProof: what does not cover the input exactly once is not merged.
func TestMergeProof(t *testing.T) {
	part := func(shard, n int) string {
		return filepath.Join(datasets.Shard{Index: shard, Of: 3}.Dir(), datasets.OutputsDir,
			datasets.PartName(n, datasets.Parquet))
	}
	for _, c := range []struct {
		name, want string
		change     func(out string) error
	}{
		{"a part is lost", "part-00001.parquet is missing, with rows from", func(out string) error {
			return os.Remove(filepath.Join(out, part(1, 1)))
		}},
		{"the last part is lost", "part-00003.parquet is missing", func(out string) error {
			return os.Remove(filepath.Join(out, part(1, 3)))
		}},
		{"a part is there twice", "part-00002.parquet: " + ErrFolder.Error() + ": it has rows", func(out string) error {
			data, err := os.ReadFile(filepath.Join(out, part(1, 1)))
			return errors.Join(err, os.WriteFile(filepath.Join(out, part(1, 2)), data, 0o666))
		}},
		{"a part has a copy beside it", "part-00001 (1).parquet", func(out string) error {
			data, err := os.ReadFile(filepath.Join(out, part(1, 1)))
			return errors.Join(err, os.WriteFile(filepath.Join(out, strings.Replace(part(1, 1), ".", " (1).", 1)), data,
				0o666))
		}},
		{"a part is cut", "part-00001.parquet", func(out string) error {
			return os.Truncate(filepath.Join(out, part(1, 1)), 1000)
		}},
		{"a shard is there twice", "00002-of-00003: " + ErrFolder.Error() + ": it has shard 1/3",
			func(out string) error {
				dir := filepath.Join(out, datasets.Shard{Index: 2, Of: 3}.Dir())
				return errors.Join(os.RemoveAll(dir),
					os.CopyFS(dir, os.DirFS(filepath.Join(out, datasets.Shard{Index: 1, Of: 3}.Dir()))))
			}},
		{"a shard has a copy beside it", "00001-of-00003.old: " + ErrFolder.Error() + ": it has shard 1/3",
			func(out string) error {
				dir := filepath.Join(out, datasets.Shard{Index: 1, Of: 3}.Dir())
				return os.CopyFS(dir+".old", os.DirFS(dir))
			}},
		{"a part is another's", "files before it have up to", func(out string) error {
			data, err := os.ReadFile(filepath.Join(out, part(0, 1)))
			return errors.Join(err, os.WriteFile(filepath.Join(out, part(1, 1)), data, 0o666))
		}},
		{"a shard's success is lost", "1 are not complete: run them with --shard 1/3", func(out string) error {
			return os.Remove(filepath.Join(out, datasets.Shard{Index: 1, Of: 3}.Dir(), datasets.SuccessFile))
		}},
		{"a shard of another context",
			"room for 4096 tokens in shard 1/3 and for 1073741824 in shard 0/3, as their machines had not the same " +
				"memory: run shards with --kv-tokens 4096", func(out string) error {
				path := filepath.Join(out, datasets.Shard{Index: 1, Of: 3}.Dir(), datasets.ManifestFile)
				text, err := os.ReadFile(path)
				return errors.Join(err, os.WriteFile(path,
					[]byte(strings.Replace(string(text), `"context": "1073741824"`, `"context": "4096"`, 1)), 0o666))
			}},
		{"a shard of another number", "shards of 3 and of 4", func(out string) error {
			return os.Mkdir(filepath.Join(out, datasets.Shard{Index: 3, Of: 4}.Dir()), 0o777)
		}},
		{"a shard is lost", "have not begun: run them with --shard 2/3", func(out string) error {
			return os.RemoveAll(filepath.Join(out, datasets.Shard{Index: 2, Of: 3}.Dir()))
		}},
		{"no shards", "has no folder shards", func(out string) error {
			return os.RemoveAll(filepath.Join(out, datasets.ShardsDir))
		}},
	} {
		out := shardsOf(t, 3)
		if err := c.change(out); err != nil {
			t.Fatal(err)
		}
		if _, err := Merge(out, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if _, err := os.Stat(filepath.Join(out, datasets.SuccessFile)); err == nil {
			t.Errorf("%s: it was merged", c.name)
		}
	}
}

// TestMergedAgain: a folder that was merged is looked at again: what went missing since is
// named.
func TestMergedAgain(t *testing.T) {
	merged := shardsOf(t, 3)
	if _, err := Merge(merged, nil); err != nil {
		t.Fatal(err)
	}
	if m, err := Merge(merged, nil); err != nil || !m.Already || m.Parts < 6 {
		t.Fatal(m, err)
	}
	const name = "part-00003.parquet"
	for _, c := range []struct {
		what, want string
		change     func(outputs string) error
	}{
		{"deleted", name + " is missing", func(dir string) error { return os.Remove(filepath.Join(dir, name)) }},
		{"cut", name, func(dir string) error { return os.Truncate(filepath.Join(dir, name), 500) }},
		{"emptied", name, func(dir string) error { return os.Truncate(filepath.Join(dir, name), 0) }},
		{"another's", name, func(dir string) error {
			data, err := os.ReadFile(filepath.Join(dir, "part-00001.parquet"))
			return errors.Join(err, os.WriteFile(filepath.Join(dir, name), data, 0o666))
		}},
		{"a copy beside it", "part-00003.old.parquet", func(dir string) error {
			data, err := os.ReadFile(filepath.Join(dir, name))
			return errors.Join(err, os.WriteFile(filepath.Join(dir, "part-00003.old.parquet"), data, 0o666))
		}},
		{"all are gone", "part-00000.parquet is missing", os.RemoveAll},
		{"the last is gone", "part-000", func(dir string) error {
			names, err := parts(dir)
			return errors.Join(err, os.Remove(filepath.Join(dir, names[len(names)-1])))
		}},
	} {
		out := t.TempDir()
		if err := os.CopyFS(out, os.DirFS(merged)); err != nil {
			t.Fatal(err)
		}
		if err := c.change(filepath.Join(out, datasets.OutputsDir)); err != nil {
			t.Fatal(err)
		}
		if _, err := Merge(out, nil); !errors.Is(err, ErrFolder) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
	}
}

// TestRowCheck: rows with all their samples, in order.
func TestRowCheck(t *testing.T) {
	for _, c := range []struct {
		rows [][2]int64
		bad  int // the place that is refused; -1: none
	}{
		{[][2]int64{{5, 0}, {5, 1}, {6, 0}, {7, 0}, {7, 1}, {7, 2}}, -1},
		{[][2]int64{{5, 0}, {5, 0}}, 1},
		{[][2]int64{{5, 0}, {5, 2}}, 1},
		{[][2]int64{{5, 0}, {7, 0}}, 1},
		{[][2]int64{{5, 0}, {6, 1}}, 1},
		{[][2]int64{{4, 1}}, 0},
		{[][2]int64{{6, 0}}, 0},
		{[][2]int64{{5, 0}, {6, 0}, {7, 0}, {8, 0}}, 3},
		{[][2]int64{{5, 0}, {6, 0}, {5, 1}}, 2},
	} {
		check := rowCheck{row: 4, end: 8}
		bad := -1
		for i, r := range c.rows {
			if check.add(r[0], r[1]) != nil {
				bad = i
				break
			}
		}
		if bad != c.bad {
			t.Errorf("%v: refused at %d, want %d", c.rows, bad, c.bad)
		}
	}
}

// TestCountsAdd: whatever is counted is summed.
func TestCountsAdd(t *testing.T) {
	var a, b ManifestCounts
	v := reflect.ValueOf(&b).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Int64:
			f.SetInt(int64(i) + 1)
		case reflect.Map:
			f.Set(reflect.MakeMap(f.Type()))
			one := reflect.ValueOf(Checked{int64(i) + 1, int64(i)})
			if f.Type().Elem().Kind() == reflect.Int64 {
				one = reflect.ValueOf(int64(i) + 1)
			}
			f.SetMapIndex(reflect.ValueOf("x"), one)
		default:
			t.Fatalf("%s is %s, which add leaves out", v.Type().Field(i).Name, f.Kind())
		}
	}
	a.add(&b)
	if d := cmp.Diff(b, a); d != "" {
		t.Error(d)
	}
	a.add(&b)
	if reflect.ValueOf(a).Field(0).Int() != 2*v.Field(0).Int() {
		t.Error("it does not add")
	}
}
