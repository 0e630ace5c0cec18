package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

// edit loads the demo's tokenizer.json after a change to it.
func edit(t testing.TB, change func(f map[string]any)) (*Tokenizer, error) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(tinyFile(t)))
	d.UseNumber()
	var f map[string]any
	if err := d.Decode(&f); err != nil {
		t.Fatal(err)
	}
	change(f)
	data, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return Load(data)
}

// rawText draws bytes: mostly words and odd characters, some not UTF-8.
func rawText(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.OneOf(
		rapid.SampledFrom([]string{" ", "  ", "\n", "\r\n", "'s", "'LL", "ſ", "12345", "word", "<|user|>", "</think>",
			"<|use", "é", "你好", "😀", "\u2028", "\xff", "\xe4\xbd", "\xf0\x9f", "\x80"}),
		rapid.String(), rapid.StringN(0, 8, -1),
	), 0, 20).Draw(t, "parts"), "")
}

// TestNothingIsLost: the tokens' bytes are the text, valid or not.
func TestNothingIsLost(t *testing.T) {
	tok := tiny(t)
	rapid.Check(t, func(t *rapid.T) {
		s := rawText(t)
		var b strings.Builder
		ids := tok.Encode(nil, s)
		for _, id := range ids {
			b.WriteString(tok.piece(id, false))
		}
		if b.String() != s {
			t.Fatalf("%q became %q", s, b.String())
		}
		if got, want := tok.Decode(ids, false), strings.ToValidUTF8(s, "\uFFFD"); strings.ReplaceAll(got, "\uFFFD",
			"") != strings.ReplaceAll(want, "\uFFFD", "") {
			t.Fatalf("%q decodes to %q", s, got)
		}
	})
}

// TestStreaming: pieces of text are whole characters and together are Decode's.
func TestStreaming(t *testing.T) {
	tok := tiny(t)
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOf(rapid.Int32Range(-1, int32(tok.VocabSize()))).Draw(t, "ids")
		skip := rapid.Bool().Draw(t, "skip")
		d := tok.NewDecoder(skip)
		var b strings.Builder
		for _, id := range ids {
			s := d.Next(id)
			if strings.ToValidUTF8(s, "") != s {
				t.Fatalf("half a character: %q", s)
			}
			b.WriteString(s)
		}
		b.WriteString(d.Flush())
		if want := tok.Decode(ids, skip); b.String() != want {
			t.Fatalf("%q, want %q", b.String(), want)
		}
	})
}

// TestReplacement has the examples of the Unicode Standard for maximal subparts
// (section 3.9, tables 3-8 to 3-11) and a cut end.
func TestReplacement(t *testing.T) {
	for in, want := range map[string]string{
		"\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41": "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA",
		"\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41": "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA",
		"\xf4\x91\x92\x93\xff\x41\x80\xbf\x42": "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA\uFFFD\uFFFDB",
		"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41": "\uFFFD\uFFFD\uFFFD\uFFFDA",
		"a\xf0\x9f\x98":                        "a\uFFFD",
		"\uFFFD\xe4\xbd\xa0":                   "\uFFFD你",
	} {
		tok := tiny(t)
		if got := tok.Decode(tok.Encode(nil, in), false); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestMergeOrder compares both ways to merge with merging by the book: always
// the lowest rank, leftmost.
func TestMergeOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const letters = 4
		table := newMergeTable(64)
		id := int32(letters)
		for rank := range rapid.IntRange(1, 40).Draw(t, "merges") {
			table.set(rapid.Int32Range(0, id-1).Draw(t, "left"), rapid.Int32Range(0, id-1).Draw(t, "right"), rank, id)
			id++
		}
		word := rapid.SliceOfN(rapid.Int32Range(0, letters-1), 2, 120).Draw(t, "word")
		want := slices.Clone(word)
		for {
			at, low := 0, noMerge
			for i := range len(want) - 1 {
				if p := table.get(want[i], want[i+1]); p < low {
					at, low = i, p
				}
			}
			if low == noMerge {
				break
			}
			want[at] = int32(uint32(low))
			want = slices.Delete(want, at+1, at+2)
		}
		var m merger
		if long := slices.Clone(word); !slices.Equal(long[:m.long(&table, long)], want) {
			t.Fatalf("long: want %v", want)
		}
		if len(word) <= shortWord {
			if short := slices.Clone(word); !slices.Equal(short[:m.short(&table, short)], want) {
				t.Fatalf("short: want %v", want)
			}
		}
	})
}

// TestCacheIsInvisible encodes more words than the cache holds, from many
// goroutines, and compares with a cold one.
func TestCacheIsInvisible(t *testing.T) {
	tok := tiny(t)
	r := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 2*cacheSlots)
	want := make([][]int32, len(words))
	for i := range words {
		words[i] = fmt.Sprintf(" w%x", r.Uint64N(1<<40))
		e := &encoder{t: tok}
		for start := 0; start < len(words[i]); {
			n := tok.stages[0].next(words[i][start:])
			e.ids = e.encodeWord(e.ids, words[i][start:start+n])
			start += n
		}
		want[i] = e.ids
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			var ids []int32
			for i := range words {
				i = (i + g*1000) % len(words)
				if ids = tok.Encode(ids[:0], words[i]); !slices.Equal(ids, want[i]) {
					t.Errorf("%q: %v, want %v", words[i], ids, want[i])
					return
				}
			}
		})
	}
	wg.Wait()
}

// TestLongWord would take hours if merging were quadratic.
func TestLongWord(t *testing.T) {
	tok := tiny(t)
	for _, s := range []string{strings.Repeat("a", 300_000), strings.Repeat("on", 150_000),
		strings.Repeat("你", 100_000), strings.Repeat(" ", 300_000), strings.Repeat("\u0301", 100_000)} {
		if got := tok.Decode(tok.Encode(nil, s), false); got != s {
			t.Errorf("%.10q… came back as %.20q…", s, got)
		}
	}
}

func TestVocabulary(t *testing.T) {
	tok := tiny(t)
	if n := tok.VocabSize(); n != 2048 {
		t.Errorf("VocabSize %d", n)
	}
	if got := tok.Encode([]int32{7}, "<|user|>"); !slices.Equal(got, []int32{7, 2034}) {
		t.Errorf("Encode appends %v", got)
	}
	if s := tok.Decode([]int32{-1, 2034, 1 << 30}, false); s != "<|user|>" {
		t.Errorf("a special token among ids that are none is %q", s)
	}
	if s := tok.Decode([]int32{2034}, true); s != "" {
		t.Errorf("a special token left out is %q", s)
	}
}

// TestLoadRefuses has files that would give other ids than the library's, or
// none.
func TestLoadRefuses(t *testing.T) {
	model := func(f map[string]any) map[string]any { return f["model"].(map[string]any) }
	vocab := func(f map[string]any) map[string]any { return model(f)["vocab"].(map[string]any) }
	pre := func(f map[string]any, i int) map[string]any {
		return f["pre_tokenizer"].(map[string]any)["pretokenizers"].([]any)[i].(map[string]any)
	}
	for _, c := range []struct {
		want   string
		change func(f map[string]any)
	}{
		{`model: type "Unigram", a SentencePiece tokenizer, as T5's; only byte-level BPE is read`,
			func(f map[string]any) { model(f)["type"] = "Unigram" }},
		{`model: type "WordPiece", as BERT's; only`, func(f map[string]any) { model(f)["type"] = "WordPiece" }},
		{`model: type "Odd", which is not known`, func(f map[string]any) { model(f)["type"] = "Odd" }},
		{"byte_fallback: a SentencePiece tokenizer",
			func(f map[string]any) { model(f)["byte_fallback"] = true; delete(vocab(f), "Ġ") }},
		{`model: type "Unigram"`, func(f map[string]any) { model(f)["type"] = "Unigram" }},
		{"model: dropout 0.1", func(f map[string]any) { model(f)["dropout"] = 0.1 }},
		{`continuing_subword_prefix "##"`, func(f map[string]any) { model(f)["continuing_subword_prefix"] = "##" }},
		{`end_of_word_suffix "</w>"`, func(f map[string]any) { model(f)["end_of_word_suffix"] = "</w>" }},
		{"vocab is missing", func(f map[string]any) { delete(model(f), "vocab") }},
		{`vocab lacks 'Ġ', the symbol of byte 0x20`, func(f map[string]any) { delete(vocab(f), "Ġ") }},
		{"has id 99999999", func(f map[string]any) { vocab(f)["zzz"] = 99999999 }},
		{"has id -1", func(f map[string]any) { vocab(f)["zzz"] = -1 }},
		{"have the same id 5", func(f map[string]any) { vocab(f)["zzz"] = 5 }},
		{"an empty token", func(f map[string]any) { vocab(f)[""] = 2100 }},
		{"cannot unmarshal", func(f map[string]any) { vocab(f)["zzz"] = 1e300 }},
		{"merges: number 0 has 3 parts", func(f map[string]any) { model(f)["merges"] = []any{"a b c"} }},
		{"merges: number 1 has 1 parts", func(f map[string]any) {
			model(f)["merges"] = []any{[]any{"o", "r"},
				[]any{"a"}}
		}},
		{"vocab lacks one of them", func(f map[string]any) { model(f)["merges"] = []any{[]any{"o", "Ωx"}} }},
		{"merges: ", func(f map[string]any) { model(f)["merges"] = 3 }},
		{`normalizer: type "NFKC"`, func(f map[string]any) { f["normalizer"] = map[string]any{"type": "NFKC"} }},
		{"normalizer: type is missing", func(f map[string]any) { f["normalizer"] = map[string]any{} }},
		{"nested more than", func(f map[string]any) {
			n := map[string]any{"type": "NFC"}
			for range 20 {
				n = map[string]any{"type": "Sequence", "normalizers": []any{n}}
			}
			f["normalizer"] = n
		}},
		{"the last part must be ByteLevel", func(f map[string]any) { f["pre_tokenizer"] = nil }},
		{"the last part must be ByteLevel", func(f map[string]any) {
			f["pre_tokenizer"] = map[string]any{"type": "Metaspace"}
		}},
		{`type "BertPreTokenizer" is not supported`, func(f map[string]any) { pre(f, 0)["type"] = "BertPreTokenizer" }},
		{`prepend_scheme "last" is not`, func(f map[string]any) {
			pre(f, 0)["type"],
				pre(f, 0)["prepend_scheme"] = "Metaspace", "last"
		}},
		{`the replacement "ab" is not`, func(f map[string]any) {
			pre(f, 0)["type"],
				pre(f, 0)["replacement"] = "Metaspace", "ab"
		}},
		{`the pattern (a+`, func(f map[string]any) { pre(f, 0)["pattern"] = map[string]any{"Regex": `(a+`} }},
		{`the pattern [`, func(f map[string]any) { pre(f, 0)["pattern"] = map[string]any{"Regex": `[`} }},
		{`\w is not supported`, func(f map[string]any) { pre(f, 0)["pattern"] = map[string]any{"Regex": `\w+`} }},
		{`repeats what repeats`, func(f map[string]any) { pre(f, 0)["pattern"] = map[string]any{"Regex": `(a+)+b`} }},
		{`a pattern of`, func(f map[string]any) {
			pre(f, 0)["pattern"] = map[string]any{"Regex": strings.Repeat("a",
				1<<15)}
		}},
		{`a Split of behavior "Merged"`, func(f map[string]any) { pre(f, 0)["behavior"] = "Merged" }},
		{"a Split without a pattern", func(f map[string]any) { pre(f, 0)["pattern"] = map[string]any{} }},
		{`decoder: type ""`, func(f map[string]any) { f["decoder"] = nil }},
		{`decoder: type "WordPiece"`, func(f map[string]any) { f["decoder"] = map[string]any{"type": "WordPiece"} }},
		{"has no content", func(f map[string]any) { f["added_tokens"] = []any{map[string]any{"id": 5}} }},
		{"is there twice", func(f map[string]any) {
			f["added_tokens"] = append(f["added_tokens"].([]any), f["added_tokens"].([]any)[0])
		}},
		{`token "or" has two ids`, func(f map[string]any) {
			f["added_tokens"] = []any{map[string]any{"id": 2027, "content": "or"}}
		}},
		{"bytes, more than 1024", func(f map[string]any) {
			f["added_tokens"] = []any{map[string]any{"id": 2027, "content": strings.Repeat("x", 2000)}}
		}},
	} {
		_, err := edit(t, c.change)
		if err == nil || !strings.HasPrefix(err.Error(), "tokenizer.json: ") ||
			!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
	for _, data := range []string{"", "null", "[]", `{"model":`, `{"model": {"vocab": []}}`} {
		if _, err := Load([]byte(data)); err == nil {
			t.Errorf("%q is accepted", data)
		}
	}
	if _, err := Load(make([]byte, maxFileBytes+1)); err == nil {
		t.Error("a file without bound is accepted")
	}
}

// TestAddedTokens has flags of added tokens; what is right comes from the
// library, which interop/tokenizer compares at length.
func TestAddedTokens(t *testing.T) {
	tok, err := edit(t, func(f map[string]any) {
		for i, a := range []map[string]any{
			{"content": "<l>", "lstrip": true}, {"content": "<r>", "rstrip": true}, {"content": "<both>",
				"lstrip": true, "rstrip": true},
			{"content": "dog", "single_word": true}, {"content": "É!",
				"normalized": true}, {"content": "<x>y"}, {"content": "<x>"},
		} {
			a["id"] = 2048 + i
			f["added_tokens"] = append(f["added_tokens"].([]any), a)
		}
		f["normalizer"] = map[string]any{"type": "Sequence", "normalizers": []any{map[string]any{"type": "NFC"}}}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text string
		want []string
	}{
		{"a <l> b", []string{"a", "<l>", " b"}},
		{"a <r> b", []string{"a", " ", "<r>", "b"}},
		{"a \n<both>\u2003 b", []string{"a", "<both>", "b"}},
		{"<r>  <l>", []string{"<r>", "<l>"}},
		{"dog dogs dog", []string{"dog", " dog", "s", " ", "dog"}},
		{"E\u0301!", []string{"\uFFFD!"}}, // its bytes are those that É and ! stand for
		{"<x><x>y<x", []string{"<x>", "<x>y", "<", "x"}},
	} {
		var got []string
		for _, id := range tok.Encode(nil, c.text) {
			got = append(got, tok.Decode([]int32{id}, false))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

// TestIgnoreMerges: with it, a word in the vocabulary is one token whatever the
// merges make.
func TestIgnoreMerges(t *testing.T) {
	for _, ignore := range []bool{true, false} {
		tok, err := edit(t, func(f map[string]any) {
			m := f["model"].(map[string]any)
			m["ignore_merges"] = ignore
			m["vocab"].(map[string]any)["zqxzq"] = 2100
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := tok.Encode(nil, "zqxzq"); slices.Equal(got, []int32{2100}) != ignore {
			t.Errorf("ignore_merges %v: %v", ignore, got)
		}
	}
}

// TestNFC compares the composition of runs of marks with the norm package's on
// texts that are short enough for it.
func TestNFC(t *testing.T) {
	marks := []rune("\u0301\u0323\u0307\u0327\u0328\u0345\u0591\u3099\u1161\u11a8")
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(marks),
			rapid.SampledFrom([]rune("aeqAßか\u1100가ḍ\u212b"))), 0, 20).Draw(t, "text"))
		if got, want := composeLong(s), norm.NFC.String(s); got != want {
			t.Fatalf("%+q: %+q, want %+q", s, got, want)
		}
	})
	long := "a" + strings.Repeat("\u0301", 40) + "\u0323"
	if got := nfc(long); got != "\u1ea1"+strings.Repeat("\u0301", 40) {
		t.Errorf("40 marks: %+q", got)
	}
	if got := nfc("e\u0301\u07fd\u0301a\u0323\u0301\xffo\u0308"); got != "é\u07fd\u0301ạ\u0301\xffö" {
		t.Errorf("a mark that Unicode 9.0 does not know: %+q", got)
	}
}

// smallFile is a tokenizer.json with every kind of part and few merges.
func smallFile(t testing.TB) []byte {
	t.Helper()
	vocab := map[string]int{"ab": 256, "abab": 257}
	for b, r := range alphabet() {
		vocab[string(r)] = b
	}
	data, err := json.Marshal(map[string]any{
		"added_tokens": []any{map[string]any{"id": 300, "content": "<x>", "special": true, "rstrip": true},
			map[string]any{"id": 301, "content": "é<", "normalized": true}},
		"normalizer": map[string]any{"type": "Sequence", "normalizers": []any{map[string]any{"type": "NFC"}}},
		"pre_tokenizer": map[string]any{"type": "Sequence", "pretokenizers": []any{map[string]any{"type": "Split",
			"pattern": map[string]any{"Regex": patternQwen}, "behavior": "Isolated", "invert": false},
			map[string]any{"type": "ByteLevel", "add_prefix_space": true, "use_regex": true}}},
		"decoder": map[string]any{"type": "ByteLevel"},
		"model": map[string]any{"type": "BPE", "dropout": nil, "ignore_merges": true, "vocab": vocab,
			"merges": []any{[]any{"a", "b"}, []any{"ab", "ab"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Load(data); err != nil {
		t.Fatal(err)
	}
	return data
}

// TestDamaged puts wrong values everywhere, cuts and flips bytes: there may be an
// error or a tokenizer that works, and nothing else.
func TestDamaged(t *testing.T) {
	small := smallFile(t)
	try := func(data []byte) {
		tok, err := Load(data)
		if err == nil {
			tok.Decode(tok.Encode(nil, "abab <x> é<\xff"), true)
		}
	}
	damaged, count := []string{"null", "3", "-1", "1e300", `"x"`, `""`, "[]", "{}", "[[]]", `[{}]`,
		`{"type":"Sequence"}`, "true"}, 0
	var visit func(v any, put func(any))
	var root any
	if err := json.Unmarshal(small, &root); err != nil {
		t.Fatal(err)
	}
	write := func() []byte {
		data, err := json.Marshal(root)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	visit = func(v any, put func(any)) {
		for _, bad := range damaged {
			put(json.RawMessage(bad))
			try(write())
			count++
		}
		put(v)
		switch v := v.(type) {
		case map[string]any:
			seen := 0
			for key, child := range v {
				if seen++; seen > 20 { // of the vocabulary
					break
				}
				visit(child, func(x any) { v[key] = x })
			}
		case []any:
			for i, child := range v {
				visit(child, func(x any) { v[i] = x })
			}
		}
	}
	visit(root, func(x any) { root = x })
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		bad := bytes.Clone(small[:r.IntN(len(small))])
		try(bad)
		bad = bytes.Clone(small)
		bad[r.IntN(len(bad))] ^= byte(1 << r.IntN(8))
		try(bad)
		count += 2
	}
	if count < 1000 {
		t.Errorf("%d files", count)
	}
}

// TestNested: groups that may take exponential time are known by their looks.
func TestNested(t *testing.T) {
	for source, want := range map[string]bool{
		`a+b*`: false, `(a+)?`: false, `(?:ab)+`: false, `(?i:'s|'t)?\p{L}+`: false, `[a+]*(b)`: false,
		`\p{N}{1,3}`: false, `\s+(?!\S)`: false, `(\p{L}){2}`: false,
		`(a+)+`: true, `(a*)*`: true, `(?:a{1,3})*`: true, `((a+)b)+`: true, `(a|b+)*`: true,
		`(a+){2,}`: true, `a)`: true,
	} {
		if got := nested(source); got != want {
			t.Errorf("%s: %v", source, got)
		}
	}
}

// TestPatterns: the engine cuts as the scanners do, and patterns that no scanner
// knows cut what they say.
func TestPatterns(t *testing.T) {
	scanners := patterns()
	for source, next := range scanners {
		p, err := newPattern(source, "Isolated", false)
		if err != nil {
			t.Fatal(err)
		}
		rapid.Check(t, func(t *rapid.T) {
			s := rawText(t)
			var want []string
			for rest := s; rest != ""; {
				n := next(rest)
				want, rest = append(want, rest[:n]), rest[n:]
			}
			if got := pieces(t, p, s); !slices.Equal(got, want) {
				t.Fatalf("%q: %q, want %q", s, got, want)
			}
		})
	}
	for _, c := range []struct {
		source, behavior string
		invert           bool
		want             string
	}{
		{`\p{N}`, "Isolated", false, "a |1|2| b\xff|3"},
		{`\p{N}+`, "Removed", false, "a | b\xff"},
		{`\p{N}+`, "Removed", true, "12|3"},
		{`\p{N}`, "Contiguous", false, "a |12| b\xff|3"},
		{`\p{N}`, "MergedWithPrevious", false, "a 1|2| b\xff3"},
		{`\p{N}`, "MergedWithPrevious", true, "a |1|2 b\xff|3"},
		{`\p{N}`, "MergedWithNext", false, "a |1|2 b\xff|3"},
		{`\p{N}`, "MergedWithNext", true, "a 1|2| b\xff3"},
		{`x`, "MergedWithNext", false, "a 12 b\xff3"},
		{`x`, "Isolated", false, "a 12 b\xff3"},
		{`x?`, "Isolated", false, "a 12 b\xff3"},
	} {
		p, err := newPattern(c.source, c.behavior, c.invert)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(pieces(t, p, "a 12 b\xff3"), "|"); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.source, c.behavior, got, c.want)
		}
	}
}

// pieces cuts a text by one pattern.
func pieces(t rapid.TB, p *pattern, s string) []string {
	var out []string
	if err := p.cut(s, func(piece string) { out = append(out, piece) }); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestLoadIsBounded: lists of many small things are refused before they take many
// times the file's size.
func TestLoadIsBounded(t *testing.T) {
	for _, c := range []struct{ data, want string }{
		{`{"added_tokens": [` + strings.Repeat("{},", 1<<20) + `{}]}`, "added_tokens: more than"},
		{`{"added_tokens": [` + strings.Repeat(`{"content": "`+strings.Repeat("x", 1000)+`"},`, 1<<11) + `{}]}`,
			"more than 1 MiB of text"},
		{`{"model": {"merges": [` + strings.Repeat("[],", 1<<20) + `[]]}}`, "merges: number 0 has 0 parts"},
	} {
		before := testing.AllocsPerRun(1, func() {
			if _, err := Load([]byte(c.data)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%.60s: error %v, want one with %q", c.data, err, c.want)
			}
		})
		if before > 1<<20 {
			t.Errorf("%.60s: %v allocations", c.data, before)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(smallFile(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		tok, err := Load(data)
		if err != nil {
			return
		}
		tok.Decode(tok.Encode(nil, "abab <x> e\u0301\xff"+string(data[:min(len(data), 100)])), true)
	})
}

func FuzzEncode(f *testing.F) {
	for _, v := range tinyVectors(f)[:60] {
		f.Add(v.Text)
	}
	f.Add("\xff\xe4\xbd'\xc5")
	plain := tiny(f)
	composed, err := edit(f, func(g map[string]any) {
		g["normalizer"] = map[string]any{"type": "NFC"}
		g["pre_tokenizer"] = map[string]any{"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for tok, want := range map[*Tokenizer]string{plain: s, composed: ""} {
			ids := tok.Encode(nil, s)
			var b strings.Builder
			for _, id := range ids {
				b.WriteString(tok.piece(id, false))
			}
			if want != "" && b.String() != want {
				t.Errorf("%q became %q", s, b.String())
			}
			if got, want := stream(tok, ids, false), tok.Decode(ids, false); got != want {
				t.Errorf("streamed %q, decoded %q", got, want)
			}
		}
	})
}

// A search that the clock on the wall ends begins again until it had its time of a
// processor: only then is the text refused.
func TestPatternTime(t *testing.T) {
	for _, c := range []struct {
		uses, of time.Duration // of a processor, of each second of the clock; the search is over after so much of it
		tries    int
		ok       bool
	}{
		{time.Second, time.Second, 1, true},
		{time.Second, time.Hour, 2, false}, // 20 s, then 40 s of at most 25
		{time.Millisecond, 10 * time.Millisecond, 1, true},
		{time.Millisecond, 100 * time.Millisecond, 4, true}, // a busy machine: 20, 40, 80 and 160 s
		{0, time.Hour, 8, false},                            // it gets nothing at all
	} {
		tries, now := 0, time.Duration(0)
		err := patiently(25*time.Second, func() time.Duration { return now }, func(clock time.Duration) error {
			tries++
			had := time.Duration(clock.Seconds() * float64(c.uses))
			now += had
			if had >= c.of {
				return nil
			}
			return errors.New("the clock says so")
		})
		if tries != c.tries || (err == nil) != c.ok || err != nil && !errors.Is(err, ErrPattern) {
			t.Errorf("%v a second of %v: %d tries, %v", c.uses, c.of, tries, err)
		}
	}
}

// Metaspace marks spaces and cuts before the marks.
func TestMetaspace(t *testing.T) {
	for _, c := range []struct {
		part  string
		first bool
		want  string
	}{
		{`{}`, true, "▁a|▁|▁b"}, {`{}`, false, "▁a|▁|▁b"},
		{`{"prepend_scheme": "first"}`, true, "▁a|▁|▁b"}, {`{"prepend_scheme": "first"}`, false, "a|▁|▁b"},
		{`{"prepend_scheme": "never"}`, true, "a|▁|▁b"}, {`{"add_prefix_space": false}`, true, "a|▁|▁b"},
		{`{"split": false, "replacement": "_"}`, true, "_a__b"},
	} {
		var p part
		if err := json.Unmarshal([]byte(c.part), &p); err != nil {
			t.Fatal(err)
		}
		m, err := newMetaspace(&p)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		m.cut("a  b", c.first, func(s string) { got = append(got, s) })
		if strings.Join(got, "|") != c.want {
			t.Errorf("%s: %q, want %q", c.part, got, c.want)
		}
	}
}
