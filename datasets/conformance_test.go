package datasets

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"glmbatch/datasets/pages"
)

// passThrough writes a file's rows out with a column of ours behind them.
func passThrough(in *Input, path string) (err error) {
	out, err := NewOutput(in, Naming{}, Cut{})
	if err != nil {
		return err
	}
	part, err := out.Create(path, nil)
	if err != nil {
		return err
	}
	r := in.Reader(0, in.Rows)
	defer r.Close()
	for n := int64(0); n < in.Rows; {
		records, err := r.Read()
		if err != nil {
			part.Abort()
			return err
		}
		for _, rec := range records {
			if err := part.Write(rec, Cut{}); err != nil {
				part.Abort()
				return err
			}
		}
		n += int64(len(records))
	}
	return part.Close()
}

// TestConformanceFolder passes every Parquet file of the folder that the variable
// names through, for interop/conformance.py, which compares what came of them: FOLDER/in
// to FOLDER/out, and what was refused to FOLDER/refused.txt with the reason. Folders
// below in whose names end in .parquets are one table each.
func TestConformanceFolder(t *testing.T) {
	dir := os.Getenv("GLMBATCH_CONFORMANCE")
	if dir == "" {
		t.Skip("GLMBATCH_CONFORMANCE names no folder")
	}
	var refused strings.Builder
	from := filepath.Join(dir, "in")
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		table := d.IsDir() && strings.HasSuffix(path, ".parquets")
		if !table && (d.IsDir() || !strings.HasSuffix(path, ".parquet")) {
			return nil
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		files := []string{path}
		if table {
			if files, err = Expand(files); err != nil {
				return err
			}
		}
		if err := passFiles(files, filepath.Join(dir, "out", strings.TrimSuffix(rel, "s"))); err != nil {
			kind := "refused"
			switch {
			case errors.Is(err, pages.ErrUnsupported):
				kind = "unsupported"
			case errors.Is(err, pages.ErrEncrypted):
				kind = "encrypted"
			case errors.Is(err, pages.ErrDamaged), strings.Contains(err.Error(), "damaged"):
				kind = "damaged"
			}
			fmt.Fprintf(&refused, "%s\t%s\t%s\n", rel, kind, strings.ReplaceAll(err.Error(), "\n", " "))
		}
		if table {
			return fs.SkipDir
		}
		return nil
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "refused.txt"), []byte(refused.String()), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func passFiles(files []string, to string) error {
	in, err := Open(files)
	if err != nil {
		return err
	}
	return passThrough(in, to)
}

// FuzzPassThrough passes files of any bytes through: what is written has the values
// that were read.
func FuzzPassThrough(f *testing.F) {
	for _, name := range fixtures {
		data, err := os.ReadFile(filepath.Join("testdata", name+".parquet"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		in, err := OpenBytes("x", data)
		if err != nil || in.Rows > 1<<16 {
			return
		}
		want, err := contents(data)
		if err != nil {
			return
		}
		path := filepath.Join(dir, "out.parquet")
		if err := passThrough(in, path); err != nil {
			t.Fatal(err)
		}
		out, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := contents(out)
		if err != nil {
			t.Fatal(err)
		}
		// Our column comes last in each row.
		if kept := bytes.ReplaceAll(got, []byte("0 true <nil> of truncated_tokens\n"), nil); !bytes.Equal(kept, want) {
			t.Errorf("%s, want %s", kept, want)
		}
	})
}
