package tokenizer

import "unicode/utf8"

// stage is one step of the pre-tokenizer: it cuts text into pieces that follow
// one another without gaps.
type stage struct {
	next    func(s string) int // length of the first piece of s, which is not empty
	pattern *pattern           // instead of next, where no scanner does what it does
	meta    *metaspace         // instead of both
	prefix  bool               // put a space before s unless it starts with one
}

// The patterns that are known, and the scanner that does the same as each. The
// words of text that they cut: contractions, letters, numbers, punctuation,
// space; they differ in what may come first and how many digits go together.
const (
	patternGPT2  = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	patternCL100 = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	patternQwen  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// patterns has the scanners by the exact text of the pattern.
func patterns() map[string]func(string) int {
	t := classes(classTable())
	gpt2 := func(s string) int { return t.gpt2(s) }
	digits3 := func(s string) int { return t.cl100(s, 3) }
	digits1 := func(s string) int { return t.cl100(s, 1) }
	return map[string]func(string) int{
		patternGPT2:  gpt2,
		patternCL100: digits3, // GLM-4, GLM-4.5, GLM-5, Llama 3, cl100k_base
		patternQwen:  digits1, // Qwen2, Qwen2.5, Qwen3
	}
}

// cl100 cuts by patternCL100 and patternQwen: at most digits numbers together.
func (t classes) cl100(s string, digits int) int {
	if s[0] == '\'' {
		if n := contraction(s, true); n > 0 {
			return n
		}
	}
	c, n := t.at(s, 0)
	switch c {
	case letter:
		return t.run(s, n, letter)
	case number:
		for ; digits > 1; digits-- {
			c, k := t.at(s, n)
			if k == 0 || c != number {
				break
			}
			n += k
		}
		return n
	case newline:
		return t.whitespace(s)
	case other:
		return t.prefixed(s)
	}
	// A space or tab: it belongs to the letters after it, and a plain space to
	// the punctuation after it.
	next, k := t.at(s, n)
	switch {
	case k > 0 && next == letter:
		return t.run(s, n, letter)
	case k > 0 && next == other && s[0] == ' ':
		return t.run(s, t.run(s, n, other), newline)
	}
	return t.whitespace(s)
}

// prefixed cuts text that starts with punctuation: one such character and
// letters, or punctuation and the line ends after it.
func (t classes) prefixed(s string) int {
	_, n := t.at(s, 0)
	if c, k := t.at(s, n); k > 0 && c == letter {
		return t.run(s, n, letter)
	}
	return t.run(s, t.run(s, n, other), newline)
}

// whitespace cuts by `\s*[\r\n]+|\s+(?!\S)|\s+`: up to the last line end if
// there is one, else as trailing does.
func (t classes) whitespace(s string) int {
	end, last, line := t.spaces(s)
	if line > 0 {
		return line
	}
	return trailing(s, end, last)
}

// trailing cuts by `\s+(?!\S)|\s+`: all of the space but its last character,
// which goes with the word that follows; or that one character.
func trailing(s string, end, last int) int {
	if end == len(s) || last == 0 {
		return end
	}
	return last
}

// spaces returns where the space that s starts with ends, where its last
// character starts, and where its last line end ends (0: none).
func (t classes) spaces(s string) (end, last, line int) {
	for {
		c, n := t.at(s, end)
		if n == 0 || c != space && c != newline {
			return end, last, line
		}
		last, end = end, end+n
		if c == newline {
			line = end
		}
	}
}

// gpt2 cuts by patternGPT2.
func (t classes) gpt2(s string) int {
	if s[0] == '\'' {
		if n := contraction(s, false); n > 0 {
			return n
		}
	}
	c, n := t.at(s, 0)
	if s[0] == ' ' {
		if next, k := t.at(s, 1); k > 0 && next != space && next != newline {
			c, n = next, 1+k
		}
	}
	if c == space || c == newline {
		end, last, _ := t.spaces(s)
		return trailing(s, end, last)
	}
	return t.run(s, n, c)
}

// contraction returns the length of the English contraction that s starts
// with, or 0. Folding case, the long s "ſ" is an s.
func contraction(s string, fold bool) int {
	if len(s) < 2 {
		return 0
	}
	a := s[1]
	if fold && s[1] == 0xc5 && len(s) > 2 && s[2] == 0xbf {
		return 1 + utf8.RuneLen('ſ')
	}
	var b byte
	if len(s) > 2 {
		b = s[2]
	}
	if fold {
		a, b = lower(a), lower(b)
	}
	switch {
	case a == 's', a == 't', a == 'm', a == 'd':
		return 2
	case a == 'r' && b == 'e', a == 'v' && b == 'e', a == 'l' && b == 'l':
		return 3
	}
	return 0
}

func lower(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}
