package datasets

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// TestJSONText: members and texts are those that encoding/json finds.
func TestJSONText(t *testing.T) {
	for _, text := range []string{`{}`, ` { } `, `{"a":1}`,
		`{"a" : "x\"}" ,"b":[1,"]",{"c":"\\"}],"":null, "d":-1.5e3}`,
		`{"\u0061\ud83d\ude00":"\ud800x\udc00\ud800\u0041\/\b\f\n\r\t\\\"é"}`,
		`{"x":"\ud83d\ud83d\ude00"}`, `{"a":true,"a":{"b":[]}}`} {
		checkJSONText(t, strings.TrimSpace(text))
	}
}

func FuzzJSONText(f *testing.F) {
	f.Add(`{"a" : "x\"}" ,"b":[1,"]",{"c":"\\"}],"":null}`)
	f.Add(`{"\u0061\ud83d\ude00":"\ud800x\udc00\ud800\u0041"}`)
	// Not UTF-8: such lines are refused before.
	f.Add("{\"\\ud83d\\ude80\":\"\\ud800\x80\xff\\ud800\\u0241\"}")
	f.Fuzz(checkJSONText)
}

func checkJSONText(t *testing.T, text string) {
	want := map[string]json.RawMessage{}
	if !utf8.ValidString(text) || !json.Valid([]byte(text)) || text[0] != '{' ||
		json.Unmarshal([]byte(text), &want) != nil {
		return
	}
	got := map[string]json.RawMessage{}
	err := eachMember([]byte(text), func(key, value []byte) error {
		got[string(unquoted(key))] = value
		if value[0] == '"' {
			var s string
			if err := json.Unmarshal(value, &s); err != nil || s != string(unquoted(value)) {
				t.Errorf("%s is %q, want %q (%v)", value, unquoted(value), s, err)
			}
		}
		return nil
	})
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%s: %s (%v)", text, d, err)
	}
}

// TestLongLine: what a long line takes is a small multiple of it.
func TestLongLine(t *testing.T) {
	const size = 8 << 20
	line := `{"prompt":"` + strings.Repeat(`x\n`, size/3) + `","m":[` + strings.Repeat(`"y",`, size/4) + `1]}`
	allocated := func(f func()) int {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		return int(after.TotalAlloc - before.TotalAlloc)
	}
	table := &jsonTable{index: map[string]int{}, values: map[string][]byte{}}
	n := allocated(func() {
		if err := table.look([]byte(line)); err != nil {
			t.Fatal(err)
		}
		table.schema()
		rec, err := table.row([]byte(line))
		if err != nil || rec.Bytes() < size {
			t.Fatalf("a row of %d bytes (%v)", rec.Bytes(), err)
		}
	})
	if n > 5*len(line) {
		t.Errorf("a line of %d bytes took %d", len(line), n)
	}
}
