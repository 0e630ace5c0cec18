package datasets

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// TestCSV: what a CSV has comes back as it was, whatever its fields have in them, from a
// file, compressed or not, and from a stream.
// TestCSVHeads: a mark of UTF-8 may stand before a quoted name, and a row of commas is
// refused before it is split.
func TestCSVHeads(t *testing.T) {
	var out strings.Builder
	if err := linesOfCSV(strings.NewReader("\ufeff\"prompt\",\"n, or more\"\nx,1\n"), &out); err != nil ||
		out.String() != `{"prompt":"x","n, or more":1}`+"\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
	commas := strings.Repeat(",", maxJSONColumns+3*aheadCSV)
	for _, text := range []string{commas, "prompt\n" + commas} {
		if err := linesOfCSV(strings.NewReader(text), io.Discard); err == nil ||
			!strings.Contains(err.Error(), "a row has more than") {
			t.Errorf("a row of commas: %v", err)
		}
	}
	var many strings.Builder
	many.WriteString("prompt,n\n")
	for range 3 * maxJSONColumns {
		many.WriteString("\"a,b\",1\n")
	}
	if err := linesOfCSV(strings.NewReader(many.String()), io.Discard); err != nil {
		t.Errorf("many rows: %v", err)
	}
}

func TestCSV(t *testing.T) {
	const text = "\ufeffprompt,n,id,share,ok,note\n" +
		"\"two, \"\"quoted\"\"\nlines\",3,007,0.5,true,\n" +
		"plain,12,8,1.25,false,x\n" +
		"5,,1e3,2.5,true,\"\"\n"
	want := [][]string{{"prompt", "n", "id", "share", "ok", "note"}, {"two, \"quoted\"\nlines", "3", "007", "0.5",
		"true", ""},
		{"plain", "12", "8", "1.25", "false", "x"}, {"5", "", "1e3", "2.5", "true", ""}}
	dir := t.TempDir()
	pack := map[string][]byte{"a.csv": []byte(text)}
	var gz, zst bytes.Buffer
	g := gzip.NewWriter(&gz)
	g.Write([]byte(text))
	g.Close()
	z, err := zstd.NewWriter(&zst)
	if err != nil {
		t.Fatal(err)
	}
	z.Write([]byte(text))
	z.Close()
	pack["a.csv.gz"], pack["A.CSV.zst"] = gz.Bytes(), zst.Bytes()
	check := func(name string, in *Input, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(name, err)
		}
		defer in.Close()
		var b strings.Builder
		if err := in.WriteCSV(&b, CSVOptions{}); err != nil {
			t.Fatal(name, err)
		}
		have, err := csv.NewReader(strings.NewReader(b.String())).ReadAll()
		if err != nil {
			t.Fatal(name, err)
		}
		if d := cmp.Diff(want, have); d != "" {
			t.Errorf("%s:\n%s", name, d)
		}
		shapes := map[string]Shape{"prompt": Text, "n": Int, "id": Text, "share": Float, "ok": Bool, "note": Text}
		for column, shape := range shapes {
			if f, ok := in.Lookup(column); !ok || f.Shape != shape {
				t.Errorf("%s: column %s is %s", name, column, f.Type())
			}
		}
	}
	for name, data := range pack {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		if !IsLines(path) {
			t.Error(name)
		}
		in, err := OpenLines([]string{path})
		check(name, in, err)
	}
	in, err := OpenStream(strings.NewReader(text), "standard input")
	check("stream", in, err)
	for text, says := range map[string]string{
		"a,b\n1\n":             "line 2",
		"a,a\n1,2\n":           `column 2 is called "a"`,
		"a,\n1,2\n":            "needs a name",
		"a,b\n1,\"x\n":         "line 2",
		"a,b\n1,x\"y\n":        "line 2",
		"a\n\xff\n":            "line 2",
		"a,b\n1,2\n3,\xff\xfe": "line 3",
		"a,b\n":                "no columns",
	} {
		in, err := OpenStream(strings.NewReader(text), "standard input")
		if err == nil {
			in.Close()
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
	bad := filepath.Join(dir, "bad.csv")
	if err := os.WriteFile(bad, []byte("a,b\n1,2\n3\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLines([]string{filepath.Join(dir, "a.csv"), bad}); err == nil ||
		!strings.Contains(err.Error(), "line 3") {
		t.Error(err)
	}
}

// FuzzCSV: what is read once is the same when it was written and is read again.
func FuzzCSV(f *testing.F) {
	f.Add("a,b\n1,\"x\"\"y\"\n,\n")
	f.Add("a\n\"\"\n007\n")
	f.Fuzz(func(t *testing.T, text string) {
		var once strings.Builder
		if linesOfCSV(strings.NewReader(text), &once) != nil {
			return
		}
		dir := t.TempDir()
		read := func(text string) (string, bool) {
			path := filepath.Join(dir, "x.csv")
			if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
			in, err := OpenLines([]string{path})
			if err != nil {
				return "", false
			}
			defer in.Close()
			var b strings.Builder
			if err := in.WriteCSV(&b, CSVOptions{}); err != nil {
				t.Fatal(err)
			}
			return b.String(), true
		}
		first, ok := read(text)
		if !ok {
			return
		}
		if second, ok := read(first); !ok || second != first {
			t.Fatalf("%q became %q, then %q", text, first, second)
		}
	})
}

// TestSpreadsheet: texts that a spreadsheet would run have an apostrophe, numbers have none.
func TestSpreadsheet(t *testing.T) {
	type row struct {
		Text   string   `parquet:"text"`
		List   []string `parquet:"list,list"`
		Number float64  `parquet:"number"`
	}
	path := filepath.Join(t.TempDir(), "x.parquet")
	w, err := Create[row](path, nil)
	if err != nil {
		t.Fatal(err)
	}
	rows := []row{{`=HYPERLINK("http://x")`, []string{"=1"}, -0.5}, {"-1", nil, 2}, {"\t=1", nil, 3}, {"a = b", nil, 4},
		{"'=1", nil, 5}}
	if err := errors.Join(w.Write(rows), w.Close()); err != nil {
		t.Fatal(err)
	}
	in, err := Open([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for safe, want := range map[bool][]string{
		false: {`=HYPERLINK("http://x")`, "-1", "\t=1", "a = b", "'=1"},
		true:  {`'=HYPERLINK("http://x")`, "'-1", "'\t=1", "a = b", "'=1"},
	} {
		var b bytes.Buffer
		if err := in.WriteCSV(&b, CSVOptions{Spreadsheet: safe}); err != nil {
			t.Fatal(err)
		}
		lines, err := csv.NewReader(&b).ReadAll()
		if err != nil || lines[1][1] != `["=1"]` || lines[1][2] != "-0.5" {
			t.Fatal(lines, err)
		}
		for i, line := range lines[1:] {
			if line[0] != want[i] {
				t.Errorf("%v: %q, want %q", safe, line[0], want[i])
			}
		}
	}
}
