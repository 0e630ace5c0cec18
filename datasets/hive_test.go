package datasets

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

type hiveRow struct {
	Prompt string `parquet:"prompt"`
}

type hiveInside struct {
	K      string `parquet:"K"`
	Prompt string `parquet:"prompt"`
}

func writeHive[T any](t *testing.T, path string, rows ...T) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := parquet.WriteFile(path, rows); err != nil {
		t.Fatal(err)
	}
}

// hiveValues is a table's partition column k as JSON, a line a row, after its type.
func hiveValues(t *testing.T, dir string) (string, *Input) {
	t.Helper()
	paths, err := Expand([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	in, err := Open(paths)
	if err != nil {
		t.Fatal(err)
	}
	f, ok := in.Lookup("k")
	if !ok {
		if f, ok = in.Lookup("K"); !ok {
			return "none", in
		}
	}
	lines := []string{f.Type()}
	for _, r := range readAll(t, in.Reader(0, in.Rows)) {
		text, ok, err := f.JSON(nil, r)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			text = []byte("null")
		}
		lines = append(lines, string(text))
	}
	return strings.Join(lines, " "), in
}

// TestPartitionTypes: the types and values are those that DuckDB 2.0 gives for the same paths.
func TestPartitionTypes(t *testing.T) {
	for _, c := range []struct{ values, want string }{
		{"1 2", "INT64 1 2"},
		{"-5 0", "INT64 -5 0"},
		{"1 x", `STRING "1" "x"`},
		{"01 02", `STRING "01" "02"`},
		{"1.5", `STRING "1.5"`},
		{"99999999999999999999", `STRING "99999999999999999999"`},
		{"2024-01-01 2024-1-5", `DATE "2024-01-01" "2024-01-05"`},
		{"2024-01-01 5", `STRING "2024-01-01" "5"`},
		{"2024-01-01T10:00:00.5", `TIMESTAMP(us) "2024-01-01T10:00:00.5Z"`},
		{"2024-01-01%2010%3A00%3A00", `STRING "2024-01-01 10:00:00"`},
		{"a%20b", `STRING "a b"`},
		{"1 __HIVE_DEFAULT_PARTITION__", "INT64 1 null"},
		{"NULL 1", "INT64 1 null"},
		{"NULL x", `STRING "NULL" "x"`},
		{"__HIVE_DEFAULT_PARTITION__ x", `STRING null "x"`},
		{"a=b", "none"},
	} {
		dir := t.TempDir()
		for _, v := range strings.Fields(c.values) {
			writeHive(t, filepath.Join(dir, "k="+v, "a.parquet"), hiveRow{"x"})
		}
		got, _ := hiveValues(t, dir)
		want, have := strings.Fields(c.want), strings.Fields(got)
		slices.Sort(want)
		slices.Sort(have)
		if !slices.Equal(want, have) {
			t.Errorf("%s: %s, want %s", c.values, got, c.want)
		}
	}
}

// TestPartitionColumns: which paths give columns, and what happens to the files' own.
func TestPartitionColumns(t *testing.T) {
	dir := t.TempDir()
	writeHive(t, filepath.Join(dir, "k=1", "a.parquet"), hiveRow{"x"})
	writeHive(t, filepath.Join(dir, "b.parquet"), hiveRow{"y"})
	if got, _ := hiveValues(t, dir); got != "none" {
		t.Errorf("not every path has k: %s", got)
	}
	dir = t.TempDir()
	writeHive(t, filepath.Join(dir, "k=1", "k=2", "a.parquet"), hiveRow{"x"})
	if got, _ := hiveValues(t, dir); got != "INT64 1" {
		t.Errorf("k twice: %s", got)
	}
	dir = t.TempDir()
	writeHive(t, filepath.Join(dir, "k=7", "a.parquet"), hiveInside{"inside", "x"}, hiveInside{"inside", "y"})
	got, in := hiveValues(t, dir)
	if got != "INT64 7 7" || in.ColumnNames() != "K, prompt" {
		t.Errorf("a column that files have too: %s, columns %s", got, in.ColumnNames())
	}
	prompt, _ := in.Lookup("prompt")
	for i, r := range readAll(t, in.Reader(0, in.Rows)) {
		if text, _, err := prompt.Text(r); err != nil || string(text) != []string{"x", "y"}[i] {
			t.Errorf("row %d has prompt %q, %v", i, text, err)
		}
	}
	// The same file elsewhere is other data.
	other := filepath.Join(filepath.Dir(filepath.Dir(in.Files[0].Path)), "k=8", "a.parquet")
	writeHive(t, other, hiveInside{"inside", "x"}, hiveInside{"inside", "y"})
	moved, err := Open([]string{other})
	if err != nil {
		t.Fatal(err)
	}
	if moved.Files[0].Footer == in.Files[0].Footer {
		t.Error("the fingerprint does not have the partition")
	}
}

// TestPartitionOutput: partition columns are in the output files, with their types.
func TestPartitionOutput(t *testing.T) {
	dir := t.TempDir()
	writeHive(t, filepath.Join(dir, "k=2024-05-01", "a.parquet"), hiveRow{"x"}, hiveRow{"y"})
	_, in := hiveValues(t, dir)
	o, err := NewOutput(in, Naming{}, Result{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "out.parquet")
	part, err := o.Create(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range readAll(t, in.Reader(0, in.Rows)) {
		if err := part.Write(r, Result{RowIndex: r.Index}); err != nil {
			t.Fatal(err)
		}
	}
	if err := part.Close(); err != nil {
		t.Fatal(err)
	}
	back, err := Open([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	f, ok := back.Lookup("k")
	if !ok || f.Type() != "DATE" {
		t.Fatalf("k is %v, %v", f, ok)
	}
	for _, r := range readAll(t, back.Reader(0, back.Rows)) {
		if text, _, err := f.JSON(nil, r); err != nil || string(text) != `"2024-05-01"` {
			t.Errorf("%s, %v", text, err)
		}
	}
}

// TestGlobs: what DuckDB 2.0 matches, without names that are hidden to us.
func TestGlobs(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a/b/c/x.parquet", "a/x.parquet", "x.parquet", ".h/x.parquet", "_h/x.parquet",
		"a/.x.parquet", "a/{b}.parquet"} {
		writeHive(t, filepath.Join(dir, name), hiveRow{"x"})
	}
	all := "a/b/c/x.parquet a/x.parquet a/{b}.parquet x.parquet"
	for pattern, want := range map[string]string{
		"**/*.parquet":     all,
		"**":               all,
		"*":                all, // a folder that matches stands for its files
		"a/**":             "a/b/c/x.parquet a/x.parquet a/{b}.parquet",
		"**/x.parquet":     "a/b/c/x.parquet a/x.parquet x.parquet",
		"a/**/x.parquet":   "a/b/c/x.parquet a/x.parquet",
		"**/b/**/*":        "a/b/c/x.parquet",
		"[a]/x.parquet":    "a/x.parquet",
		"[!b]/x.parquet":   "a/x.parquet",
		"?.parquet":        "x.parquet",
		"a/{b}.parquet":    "a/{b}.parquet",
		"a/?b}.parquet":    "a/{b}.parquet",
		"{a,b}*/x.parquet": "",
		"**x.parquet":      "x.parquet",
		"_h/*.parquet":     "_h/x.parquet",
		"*/*.parquet":      "a/x.parquet a/{b}.parquet",
	} {
		found, err := Expand([]string{filepath.Join(dir, pattern)})
		var names []string
		for _, f := range found {
			rel, err := filepath.Rel(dir, f)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, rel)
		}
		if got := strings.Join(names, " "); got != want || (err == nil) == (want == "") {
			t.Errorf("%s: %s, %v; want %s", pattern, got, err, want)
		}
	}
}
