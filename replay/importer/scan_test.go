package importer

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/big"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"glmbatch/datasets"
)

// readText reads a trace's text and returns what the reader kept, without checks.
func readText(r io.Reader, window int) (*trace, error) {
	t := newTrace(Options{MaxRows: 1 << 20})
	return t, t.readTorch(newStream(r, window), "trace.json", 0)
}

// kept lists the records in order, as text.
func kept(t *trace) []string {
	out := []string{}
	t.each(func(_ int32, r *record) {
		s := t.shapes[r.shape]
		l := t.lanes[r.lane]
		out = append(out, fmt.Sprintf("%d %d..%d %q device %d/%d correlation %d node %d bytes %d %v %v",
			r.kind, r.start, r.end, t.names.list[r.name].text, l.device, l.id, r.correlation, r.node, r.bytes,
			s.grid, s.block))
	})
	return out
}

// TestRecovery holds what comes out of text that is not JSON.
func TestRecovery(t *testing.T) {
	sound := `{"ph":"X","cat":"kernel","name":"before","pid":0,"tid":7,"ts":1.001,"dur":2,"args":{"stream":7}}`
	after := `{"ph":"X","cat":"kernel","name":"after","pid":0,"tid":7,"ts":5.5,"dur":2,"args":{"stream":7}}`
	event := func(name string) string {
		return `{"ph":"X","cat":"kernel","name":"` + name +
			`","pid":0,"tid":7,"ts":3,"dur":2,"args":{"stream":7,"grid":[1,2,3]}}`
	}
	for _, c := range []struct {
		name, text                  string
		want                        []string // names of kernels
		recovered, quarantined, odd int64
		truncated                   bool
	}{
		{name: "sound", text: event("a b"), want: []string{"a b"}},
		{name: "escapes", text: event(`a\"b\\c\/dA\n`), want: []string{`a"b\c/dA `}},
		{name: "bad escapes", text: event(`C:\kernels\x`), want: []string{`C:\kernels\x`}, odd: 1},
		{name: "control characters", text: event("a\x01b\tc"), want: []string{"a b c"}, odd: 1},
		{name: "broken UTF-8", text: event("a\xff"), want: []string{"a�"}, odd: 1},
		{name: "a line break", text: event("a\nb"), want: []string{"a b"}, recovered: 1, odd: 1},
		{name: "quotes", text: event(`op "mul" of "x"`), want: []string{`op "mul" of "x"`}, recovered: 1},
		{name: "a backslash at the end", text: event(`C:\dir\`), want: []string{`C:\dir\`}, recovered: 1, odd: 1},
		{name: "a missing colon", text: `{"ph":"X","cat":"kernel","name" "oops","ts":1}`, want: nil, quarantined: 1},
		{name: "a missing brace", text: `{"ph":"X","cat":"kernel","name":"a","ts":3,"dur":1,"args":{"stream":7}`,
			want: nil, quarantined: 1},
		{name: "a trailing comma", text: `{"ph":"X","cat":"kernel","name":"a","ts":3,"dur":1,}`, want: []string{"a"}},
		{name: "no object", text: `12, "x", null`, want: nil, quarantined: 3},
		{name: "literals",
			text: `{"ph":"X","cat":"kernel","name":"a","ts":3,"dur":1,"args":{"x":NaN,"y":-Infinity,"z":[Infinity]}}`,
			want: []string{"a"}},
		{name: "nesting",
			text: `{"ph":"X","cat":"kernel","name":"a","args":{"x":[[],[[{"y":"}]"}]]],"stream":3},"ts":3,"dur":1}`,
			want: []string{"a"}},
		{name: "the category last", text: `{"args":{"stream":3},"name":"a","ts":"3","dur":"1","ph":"X","cat":"kernel"}`,
			want: []string{"a"}},
		{name: "2021", text: `{"ph":"X","cat":"Kernel","name":"a","pid":"GPU 0","tid":"stream 7","ts":3,"dur":1}`,
			want: []string{"a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, layout := range []struct{ before, comma, after string }{{"[", ",", "]"},
				{"{\"traceEvents\": [\n  ", ",\n  ", "\n], \"traceName\": \"x\"}"}} {
				text := layout.before + sound + layout.comma + c.text + layout.comma + after + layout.after
				for _, window := range []int{16, windowSize} {
					tr, err := readText(strings.NewReader(text), window)
					if err != nil {
						t.Fatal(err)
					}
					var names []string
					tr.each(func(_ int32, r *record) { names = append(names, tr.names.list[r.name].text) })
					want := append(append([]string{"before"}, c.want...), "after")
					if diff := cmp.Diff(want, names); diff != "" {
						t.Errorf("kernels (-want +got):\n%s\nof %s", diff, text)
					}
					p := tr.procs[0].parts
					if p.recovered != c.recovered || p.quarantined != c.quarantined || p.odd != c.odd ||
						p.truncatedAt >= 0 != c.truncated {
						t.Errorf(
							"recovered %d, quarantined %d, odd names %d, truncated at %d (%s); want %d, %d, %d, %v",
							p.recovered, p.quarantined, p.odd, p.truncatedAt, p.truncation, c.recovered, c.quarantined,
							c.odd, c.truncated)
					}
					at := p.firstRecovered
					if c.quarantined > 0 {
						at = p.firstQuarantined
					}
					if want := int64(strings.Index(text, c.text)); c.recovered+c.quarantined+c.odd > 0 && at != want {
						t.Errorf("the first is said to be at byte %d, it is at %d", at, want)
					}
				}
			}
		})
	}
}

// TestContainers holds packings of one trace that all read the same.
func TestContainers(t *testing.T) {
	var tt traceText
	tt.pairs(50, 100*us)
	whole := []byte(tt.String())
	pack := func(parts ...[]byte) []byte {
		var b bytes.Buffer
		for _, p := range parts {
			z := gzip.NewWriter(&b)
			z.Write(p)
			z.Close()
		}
		return b.Bytes()
	}
	want, _ := readText(bytes.NewReader(whole), windowSize)
	for _, c := range []struct {
		name      string
		data      []byte
		truncated bool
	}{
		{"plain", whole, false},
		{"byte order mark", append([]byte("\xef\xbb\xbf"), whole...), false},
		{"gzip", pack(whole), false},
		{"gzip of several members", pack(whole[:100], whole[100:3000], whole[3000:]), false},
		{"gzip without its trailer", pack(whole)[:len(pack(whole))-8], true},
		{"gzip with something behind", append(pack(whole), "garbage"...), true},
		{"spaces behind", append(append([]byte{}, whole...), "\n\n  "...), false},
	} {
		s, err := unpack(bytes.NewReader(c.data))
		if err != nil {
			t.Fatal(c.name, err)
		}
		tr := newTrace(Options{})
		if err := tr.readTorch(s, "trace.json", 0); err != nil {
			t.Fatal(c.name, err)
		}
		if diff := cmp.Diff(kept(want), kept(tr)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", c.name, diff)
		}
		if p := tr.procs[0].parts; p.truncatedAt >= 0 != c.truncated {
			t.Errorf("%s: truncated at %d (%s), want truncated %v", c.name, p.truncatedAt, p.truncation, c.truncated)
		}
	}
}

// TestTruncated cuts a trace everywhere: what is before the cut stays, and the
// cut is reported.
func TestTruncated(t *testing.T) {
	var tt traceText
	tt.pairs(4, 100*us)
	whole := tt.String()
	first := strings.Index(whole, "[") + 1
	for cut := first; cut < len(whole)-2; cut++ {
		tr, err := readText(strings.NewReader(whole[:cut]), 64)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if got, want := len(kept(tr)), strings.Count(whole[:cut], "}}"); got != want {
			t.Errorf("cut at %d: %d events, want %d", cut, got, want)
		}
		if tr.procs[0].parts.truncatedAt < 0 {
			t.Errorf("cut at %d: not reported", cut)
		}
	}
}

// TestBase holds that times are relative to a base, wherever that stands.
func TestBase(t *testing.T) {
	event := `{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":5107224832789.454,"dur":0.001}`
	for _, text := range []string{
		`{"baseTimeNanoseconds": 1790857026000000000, "traceEvents": [` + event + `]}`,
		`{"traceEvents": [` + event + `], "traceName": "x", "baseTimeNanoseconds": 1790857026000000000}`,
	} {
		tr, err := readText(strings.NewReader(text), windowSize)
		if err != nil {
			t.Fatal(err)
		}
		if r := tr.at(0); r.start != 1790857026000000000+5107224832789454 || r.end != r.start+1 {
			t.Errorf("%d..%d of %s", r.start, r.end, text)
		}
	}
}

// TestDecimal compares with arithmetic on fractions.
func TestDecimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`-?[0-9]{1,19}(\.[0-9]{0,12})?([eE][-+]?[0-9]{1,2})?`).Draw(t, "text")
		exact, ok := new(big.Rat).SetString(strings.TrimSuffix(text, "."))
		if !ok {
			t.Skip("not a number of math/big")
		}
		exact.Mul(exact, big.NewRat(1000, 1))
		half := big.NewRat(1, 2)
		if exact.Sign() < 0 {
			half.Neg(half)
		}
		sum := new(big.Rat).Add(exact, half)
		want := new(big.Int).Quo(sum.Num(), sum.Denom()) // towards zero
		got, gotOK := nanoseconds([]byte(text))
		digits := len(strings.TrimLeft(strings.ReplaceAll(strings.TrimLeft(strings.FieldsFunc(text,
			func(r rune) bool { return r == 'e' || r == 'E' })[0], "-"), ".", ""), "0"))
		switch {
		case gotOK && !want.IsInt64():
			t.Fatalf("%s: %d, but it does not fit", text, got)
		case gotOK && digits <= 19 && got != want.Int64():
			t.Fatalf("%s: %d, want %s", text, got, want)
		case !gotOK && want.IsInt64() && digits <= 18:
			t.Fatalf("%s: refused, want %s", text, want)
		}
	})
	for text, want := range map[string]int64{"5107224832789.454": 5107224832789454,
		"1740461679471346": 1740461679471346000, "1740461679471346.1234": 1740461679471346123,
		"0.0005": 1, "0.0004999": 0, "-0.0005": -1, "1e3": 1000000, "1.6E-3": 2, "9223372036854775.807": math.MaxInt64,
		"0": 0, "-0.0": 0} {
		if got, ok := nanoseconds([]byte(text)); !ok || got != want {
			t.Errorf("%s: %d %v, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "-", ".", "NaN", "Infinity", "1e", "1.2.3", "12a", "9223372036854775.808",
		"1e300", "0x10"} {
		if got, ok := nanoseconds([]byte(text)); ok {
			t.Errorf("%q: %d, want a refusal", text, got)
		}
	}
}

// drawnEvent is an event as a producer may write it.
type drawnEvent struct {
	Ph   string         `json:"ph"`
	Cat  string         `json:"cat"`
	Name string         `json:"name"`
	Pid  int            `json:"pid"`
	Tid  int            `json:"tid"`
	Ts   json.Number    `json:"ts"`
	Dur  json.Number    `json:"dur"`
	Args map[string]any `json:"args"`
}

// TestScanner holds that any valid trace reads the same whatever its layout and
// however it arrives, and that nothing of it is lost.
func TestScanner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z:<>{}\[\],"\\ ]{0,40}`))
		events := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) drawnEvent {
			return drawnEvent{
				Ph: rapid.SampledFrom([]string{"X", "X", "X", "i", "f"}).Draw(t, "ph"),
				Cat: rapid.SampledFrom([]string{"kernel", "gpu_memcpy", "cuda_runtime", "cpu_op", "ac2g"}).Draw(t,
					"cat"),
				Name: name.Draw(t, "name"),
				Pid:  rapid.IntRange(0, 9).Draw(t, "pid"), Tid: rapid.IntRange(0, 99).Draw(t, "tid"),
				Ts: json.Number(micros(rapid.Int64Range(1, 1<<50).Draw(t,
					"ts"))), Dur: json.Number(micros(rapid.Int64Range(0, 1<<30).Draw(t, "dur"))),
				Args: map[string]any{"stream": rapid.IntRange(0, 9).Draw(t, "stream"),
					"correlation": rapid.IntRange(1, 99).Draw(t, "correlation"),
					"grid":        []int{rapid.IntRange(1, 1<<31-1).Draw(t, "grid"), 1, 1}, name.Draw(t,
						"key"): name.Draw(t,
						"value")},
			}
		}), 0, 12).Draw(t, "events")
		want := []string{}
		for _, e := range events {
			k := kindOf([]byte(e.Cat))
			if e.Ph != "X" || k == isNothing || k == isOp || k == isPython {
				continue
			}
			start, _ := nanoseconds([]byte(e.Ts))
			dur, _ := nanoseconds([]byte(e.Dur))
			var odd int64
			body, _ := json.Marshal(e.Name)
			l, s := lane{-1, int64(e.Tid)}, shape{}
			if k.onDevice() {
				l = lane{int32(e.Pid), int64(e.Args["stream"].(int))}
				s.grid = [3]int32{int32(e.Args["grid"].([]int)[0]), 1, 1}
			}
			want = append(want, fmt.Sprintf("%d %d..%d %q device %d/%d correlation %d node 0 bytes 0 %v %v", k, start,
				start+dur,
				text(body[1:len(body)-1], &odd), l.device, l.id, e.Args["correlation"], s.grid, s.block))
		}
		trace := map[string]any{"traceEvents": events, "schemaVersion": 1, "a": map[string]any{"traceEvents": "[{"},
			"z": []string{"]}"}}
		layout := rapid.SampledFrom([]string{"", " ", "\t"}).Draw(t, "indent")
		var body []byte
		var err error
		if layout == "" {
			body, err = json.Marshal(trace)
		} else {
			body, err = json.MarshalIndent(trace, "", layout)
		}
		if err != nil {
			t.Fatal(err)
		}
		arrivals := []io.Reader{bytes.NewReader(body), iotest.OneByteReader(bytes.NewReader(body)),
			iotest.DataErrReader(bytes.NewReader(body))}
		for _, r := range arrivals {
			tr, err := readText(r, rapid.IntRange(1, 300).Draw(t, "window"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, kept(tr)); diff != "" {
				t.Fatalf("(-want +got)\n%s\nof %s", diff, body)
			}
			if p := tr.procs[0].parts; p.recovered+p.quarantined+p.badNumber != 0 || p.truncatedAt >= 0 {
				t.Fatalf("%+v of %s", p, body)
			}
		}
	})
}

// FuzzTorch feeds anything to the whole import.
func FuzzTorch(f *testing.F) {
	var tt traceText
	tt.pairs(3, 100*us)
	tt.step("decode_step.1", 100*us, 50*us)
	for _, seed := range []string{tt.String(), `[]`, `{"traceEvents":[{"ph":"X","cat":"kernel","name":"a"b","ts":1}]}`,
		`{"traceEvents":[{"ph":"X","cat":"kernel","name":"a\","ts":1},{"ph":1}]`, "\xef\xbb\xbf[", "\x1f\x8b"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		// Plain text in a small window, so that events cross its end.
		s := newStream(bytes.NewReader(data), 32)
		if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
			var err error
			if s, err = unpack(bytes.NewReader(data)); err != nil {
				return
			}
		}
		tr := newTrace(Options{MaxRows: 1000})
		if tr.readTorch(s, "fuzz.json", 0) != nil {
			return
		}
		sum, err := tr.finish(func(rows []datasets.Span) error {
			for _, r := range rows {
				if r.EndNS < r.StartNS {
					t.Errorf("a row ends before it starts: %+v", r)
				}
			}
			return nil
		})
		if err == nil && sum.Rows == 0 {
			t.Error("no rows and no error")
		}
	})
}
