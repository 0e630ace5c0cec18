package datasets

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rowsOf are all values as JSON, an object a row.
func rowsOf(t testing.TB, in *Input) []string {
	t.Helper()
	r := in.Reader(0, in.Rows)
	defer r.Close()
	var rows []string
	for int64(len(rows)) < in.Rows {
		records, err := r.Read()
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range records {
			a := Field{node: in.root}
			v, _, err := a.JSON(nil, rec)
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, string(v))
		}
	}
	return rows
}

func TestJSONLines(t *testing.T) {
	for _, c := range []struct{ name, text, types, want string }{
		{"types", `{"a":1,"b":0.5,"c":true,"d":"x"}` + "\n" + `{"a":2,"b":3,"c":false,"d":"é"}`,
			"INT64 DOUBLE BOOLEAN STRING",
			`{"a":1,"b":0.5,"c":true,"d":"x"} {"a":2,"b":3,"c":false,"d":"é"}`},
		{"order and gaps", "\xef\xbb\xbf" + `{"b":1}` + "\r\n\n" + `{"z":null,"a":"x","b":null}` + "\n",
			"INT64 NULL STRING", `{"b":1} {"a":"x"}`},
		{"nested", `{"m":[{"role":"user","content":"hi"}],"p":{"n": 2}}`, "JSON JSON",
			`{"m":"[{\"role\":\"user\",\"content\":\"hi\"}]","p":"{\"n\": 2}"}`},
		{"mixed", `{"a":1}` + "\n" + `{"a":"1"}` + "\n" + `{"a":[1]}` + "\n" + `{"a":true}`, "STRING",
			`{"a":"1"} {"a":"1"} {"a":"[1]"} {"a":"true"}`},
		{"long", `{"a":9223372036854775807}`, "INT64", `{"a":9223372036854775807}`},
		{"beyond", `{"a":9223372036854775808,"b":1e999}`, "STRING STRING", `{"a":"9223372036854775808","b":"1e999"}`},
		{"not a double", `{"a":9007199254740993}` + "\n" + `{"a":0.5}`, "STRING",
			`{"a":"9007199254740993"} {"a":"0.5"}`},
		{"twice", `{"a":1,"a":2}`, "INT64", `{"a":2}`},
	} {
		in, err := OpenStream(strings.NewReader(c.text), "standard input")
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var types []string
		for i := range in.root.fields {
			types = append(types, strings.TrimSuffix(in.root.child(i).String(), "(null)"))
		}
		if d := cmp.Diff(c.types, strings.Join(types, " ")); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
		if d := cmp.Diff(c.want, strings.Join(rowsOf(t, in), " ")); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
		if in.Files[0].Path != "standard input" || in.Files[0].ModTime != 0 {
			t.Errorf("%s: %+v", c.name, in.Files[0])
		}
		local := in.Files[0].local
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Dir(local)); err == nil {
			t.Errorf("%s: %s was left", c.name, local)
		}
	}
}

// TestJSONLinesFaults: each is named with its line.
func TestJSONLinesFaults(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "x: it is empty",
		" \n\n":                 "x: it is empty",
		"{}\n{}":                "x: there are no columns",
		`{"a":1}` + "\n{":       "x: line 2: not a JSON object",
		`[{"a":1}]`:             `x: line 1: it begins with "["`,
		`{"a":1} {"a":2}`:       "x: line 1: not a JSON object",
		"{\"a\":\"\xff\"}":      "x: line 1: invalid UTF-8",
		`{"":1}`:                `x: line 1: key ""`,
		"PAR1xxxxPAR1":          "x: a Parquet file cannot be read as a stream",
		strings.Repeat("[", 99): "x: line 1: it begins",
	} {
		in, err := OpenStream(strings.NewReader(text), "x")
		if err == nil {
			in.Close()
			t.Errorf("%q: no error", text)
		} else if !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func FuzzJSONLines(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":[1,{"c":"x"}],"d":null}` + "\n" + `{"a":1.5,"d":"\ud800"}`))
	f.Add([]byte(`{"a":true}` + "\n" + `{"A":-0}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		in, err := OpenStream(strings.NewReader(string(text)), "x")
		if err != nil {
			return
		}
		defer in.Close()
		rowsOf(t, in)
	})
}
