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

	"github.com/parquet-go/parquet-go"

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

// TestConformanceFolder passes every Parquet file and Arrow stream of the folder that the
// variable names through, for interop/conformance.py and interop/mutants.py, which compare
// what came of them: FOLDER/in to FOLDER/out, and what was refused to FOLDER/refused.txt with
// the reason. Folders below in whose names end in .parquets are one table each.
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
		stream := strings.HasSuffix(path, ".arrow")
		if !table && (d.IsDir() || !stream && !strings.HasSuffix(path, ".parquet")) {
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
		pass := passFiles
		if stream {
			pass = passStream
		}
		if err := pass(files, filepath.Join(dir, "out", strings.TrimSuffix(rel, "s"))); err != nil {
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

// passStream reads a file as standard input is read, and writes it as Parquet.
func passStream(files []string, to string) error {
	f, err := os.Open(files[0])
	if err != nil {
		return err
	}
	defer f.Close()
	in, err := OpenStream(f, files[0])
	if err != nil {
		return err
	}
	defer in.Close()
	return passThrough(in, to)
}

// FuzzPassThrough passes files of any bytes through: what is written has the rows that
// were read. Its seeds are small, so that a change of a byte is often a change of a value.
func FuzzPassThrough(f *testing.F) {
	for _, data := range smallFiles(f) {
		f.Add(data)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		in, err := OpenBytes("x", data)
		if err != nil || in.Rows > 1<<12 {
			return
		}
		var want, got bytes.Buffer
		if in.WriteJSONLines(&want) != nil {
			return
		}
		path := filepath.Join(dir, "out.parquet")
		if err := passThrough(in, path); err != nil {
			t.Fatal(err)
		}
		out, err := Open([]string{path})
		if err != nil {
			t.Fatal(err)
		}
		if err := out.WriteJSONLines(&got); err != nil {
			t.Fatal(err)
		}
		// Our column comes last in each row.
		kept := strings.ReplaceAll(strings.ReplaceAll(got.String(), `,"truncated_tokens":0}`, "}"),
			`{"truncated_tokens":0}`, "{}")
		if kept != want.String() {
			t.Errorf("%s, want %s", kept, &want)
		}
	})
}

// smallFiles are files of a few rows, of each type, encoding and codec.
func smallFiles(t testing.TB) (files [][]byte) {
	type inner struct {
		A *int32   `parquet:"a"`
		B []string `parquet:"b,list"`
	}
	add := func(write func(b *bytes.Buffer, o parquet.WriterOption) error) {
		for _, o := range []parquet.WriterOption{parquet.DataPageVersion(1), parquet.DataPageVersion(2),
			parquet.Compression(&parquet.Snappy),
			parquet.Compression(&parquet.Gzip), parquet.Compression(&parquet.Zstd),
			parquet.Compression(&parquet.Brotli), parquet.Compression(&parquet.Lz4Raw)} {
			var b bytes.Buffer
			if err := write(&b, o); err != nil {
				t.Fatal(err)
			}
			files = append(files, b.Bytes())
		}
	}
	one := int32(1)
	rows := []inner{{&one, []string{"x", ""}}, {nil, nil}, {&one, []string{"y"}}}
	add(func(b *bytes.Buffer, o parquet.WriterOption) error { return smallFile(b, o, rows) })
	add(func(b *bytes.Buffer, o parquet.WriterOption) error {
		return smallFile(b, o, []struct {
			X []inner `parquet:"x,list"`
		}{{rows}, {nil}, {rows[:1]}})
	})
	add(func(b *bytes.Buffer, o parquet.WriterOption) error {
		return smallFile(b, o, []struct {
			Delta int64    `parquet:"delta,delta"`
			Text  string   `parquet:"text,delta"`
			Dict  *string  `parquet:"dict,dict,optional"`
			Split float64  `parquet:"split,split"`
			Bool  bool     `parquet:"bool"`
			Dec   int64    `parquet:"dec,decimal(2:15)"`
			Fixed [3]byte  `parquet:"fixed"`
			Short int8     `parquet:"short"`
			Big   uint64   `parquet:"big"`
			Half  *float32 `parquet:"half,optional"`
		}{{1, "a", nil, 0.5, true, 5, [3]byte{1, 2, 3}, -1, 1 << 63, nil}, {-1, "ab", ptr("k"), -1, false, -5,
			[3]byte{}, 7, 0, ptr(float32(2))}})
	})
	add(func(b *bytes.Buffer, o parquet.WriterOption) error {
		return smallFile(b, o, []struct {
			M map[string]int32 `parquet:"m"`
		}{{map[string]int32{"a": 1}}, {nil}})
	})
	return files
}

func smallFile[T any](b *bytes.Buffer, o parquet.WriterOption, rows []T) error {
	w := parquet.NewGenericWriter[T](b, o)
	if _, err := w.Write(rows); err != nil {
		return err
	}
	return w.Close()
}
