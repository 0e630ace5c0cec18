package tokenizer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

// What a tokenizer.json may have at most: far above any real one, and small
// enough that no file makes Load use much more memory than its own size.
const (
	maxFileBytes  = 128 << 20
	maxIDs        = 1 << 20
	maxMerges     = 1 << 21
	maxAdded      = 1 << 16
	maxAddedTotal = 1 << 20 // bytes of all added tokens: a trie has them
	maxTokenBytes = 1 << 16
	maxAddedBytes = 1 << 10
	maxDepth      = 8 // of Sequence in Sequence
)

// file is tokenizer.json, as far as it is read.
type file struct {
	AddedTokens  addedList       `json:"added_tokens"`
	Normalizer   json.RawMessage `json:"normalizer"`
	PreTokenizer json.RawMessage `json:"pre_tokenizer"`
	Decoder      json.RawMessage `json:"decoder"`
	Model        model           `json:"model"`
}

type model struct {
	Type         string     `json:"type"`
	Dropout      *float64   `json:"dropout"`
	Prefix       *string    `json:"continuing_subword_prefix"`
	Suffix       *string    `json:"end_of_word_suffix"`
	IgnoreMerges bool       `json:"ignore_merges"`
	ByteFallback bool       `json:"byte_fallback"`
	Vocab        vocabulary `json:"vocab"`
	Merges       mergeList  `json:"merges"`
}

// part is a normalizer, pre-tokenizer or decoder.
type part struct {
	Type             string            `json:"type"`
	Normalizers      []json.RawMessage `json:"normalizers"`
	PreTokenizers    []json.RawMessage `json:"pretokenizers"`
	Decoders         []json.RawMessage `json:"decoders"`
	AddPrefixSpace   *bool             `json:"add_prefix_space"`
	UseRegex         *bool             `json:"use_regex"`
	Behavior         string            `json:"behavior"`
	Invert           bool              `json:"invert"`
	IndividualDigits bool              `json:"individual_digits"`
	Replacement      string            `json:"replacement"`
	PrependScheme    string            `json:"prepend_scheme"`
	Split            *bool             `json:"split"`
	Pattern          struct {
		Regex  *string
		String *string
	} `json:"pattern"`
}

// Load reads the bytes of a tokenizer.json. What it cannot do exactly as the
// Hugging Face library is an error that names it.
func Load(data []byte) (*Tokenizer, error) {
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("tokenizer.json: %d bytes, more than the %d that are read", len(data), maxFileBytes)
	}
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	// Ids may have gaps, but not so large that the tables outgrow the file.
	n := len(f.Model.Vocab) + len(f.AddedTokens)
	t := &loader{Tokenizer: &Tokenizer{}, ids: make(map[string]int32, n), limit: min(maxIDs, 4*int64(n)+1<<16)}
	for _, step := range []struct {
		field string
		do    func(*file) error
	}{
		{"model", t.loadModel},
		{"normalizer", func(f *file) error { return t.loadNormalizer(f.Normalizer, 0) }},
		{"added_tokens", t.loadAdded},
		{"pre_tokenizer", t.loadPreTokenizer},
		{"decoder", func(f *file) error { return loadDecoder(f.Decoder, 0) }},
	} {
		if err := step.do(&f); err != nil {
			return nil, fmt.Errorf("tokenizer.json: %s: %w", step.field, err)
		}
	}
	t.states.New = func() any { return &encoder{t: t.Tokenizer} }
	return t.Tokenizer, nil
}

// loader is a Tokenizer that is being filled.
type loader struct {
	*Tokenizer
	content []string         // by id, as the file writes it; "" where no token has the id
	ids     map[string]int32 // content to id
	limit   int64            // ids are below it
}

// kinds are the models of other tokenizers, in words.
var kinds = map[string]string{
	"WordPiece": "as BERT's",
	"Unigram":   "a SentencePiece tokenizer, as T5's",
	"WordLevel": "a token for each word",
}

const onlyByteLevel = "only byte-level BPE is read, as GLM's, Qwen's, Llama 3's and GPT-2's"

func (t *loader) loadModel(f *file) error {
	m := &f.Model
	switch {
	case m.Type != "BPE" && m.Type != "":
		return fmt.Errorf("type %q, %s; %s", m.Type, cmp.Or(kinds[m.Type], "which is not known"), onlyByteLevel)
	case m.Dropout != nil && *m.Dropout != 0:
		return fmt.Errorf("dropout %v makes ids random; it must be null", *m.Dropout)
	case m.Prefix != nil && *m.Prefix != "":
		return fmt.Errorf("continuing_subword_prefix %q is not supported", *m.Prefix)
	case m.Suffix != nil && *m.Suffix != "":
		return fmt.Errorf("end_of_word_suffix %q is not supported", *m.Suffix)
	case len(m.Vocab) == 0:
		return errors.New("vocab is missing or empty")
	}
	for token, id := range m.Vocab {
		if token == "" {
			return fmt.Errorf("vocab: id %d has an empty token", id)
		}
		if len(token) > maxTokenBytes {
			return fmt.Errorf("vocab: token %.20q… has %d bytes, more than %d", token, len(token), maxTokenBytes)
		}
		if err := t.put(token, id); err != nil {
			return fmt.Errorf("vocab: %w", err)
		}
	}
	symbols := alphabet()
	for b, symbol := range symbols {
		id, ok := t.ids[string(symbol)]
		if !ok && m.ByteFallback {
			return fmt.Errorf("byte_fallback: a SentencePiece tokenizer, as Llama 2's and Gemma's; %s", onlyByteLevel)
		}
		if !ok {
			return fmt.Errorf("vocab lacks %q, the symbol of byte 0x%02x: not a byte-level BPE", symbol, b)
		}
		t.bytes[b] = id
	}
	if m.IgnoreMerges {
		t.whole = make(map[string]int32, len(m.Vocab))
		for token := range m.Vocab {
			if s, ok := fromAlphabet(token); ok {
				t.whole[s] = t.ids[token]
			}
		}
	}
	return t.loadMerges(m.Merges)
}

// put gives content its id; it is an error if either is taken otherwise.
func (t *loader) put(content string, id int64) error {
	if id < 0 || id >= t.limit {
		return fmt.Errorf("token %.40q has id %d; in a vocabulary of this size ids are read up to %d", content, id,
			t.limit-1)
	}
	if old, ok := t.ids[content]; ok {
		if int64(old) != id {
			return fmt.Errorf("token %.40q has two ids, %d and %d", content, old, id)
		}
		return nil
	}
	if n := int(id) + 1; n > len(t.content) {
		grow := max(n, min(2*len(t.content), int(t.limit))) - len(t.content)
		t.content = append(t.content, make([]string, grow)...)
		t.text = append(t.text, make([]string, grow)...)
	}
	if t.content[id] != "" {
		return fmt.Errorf("tokens %.40q and %.40q have the same id %d", t.content[id], content, id)
	}
	t.ids[content] = int32(id)
	t.content[id] = content
	t.text[id] = bytesOf(content)
	return nil
}

func (t *loader) loadMerges(pairs mergeList) error {
	t.merges = newMergeTable(len(pairs))
	for rank, pair := range pairs {
		left, okLeft := t.ids[pair[0]]
		right, okRight := t.ids[pair[1]]
		merged, okMerged := t.ids[pair[0]+pair[1]]
		if !okLeft || !okRight || !okMerged {
			return fmt.Errorf("merges: number %d is %.40q and %.40q, but vocab lacks one of them or the two together",
				rank, pair[0], pair[1])
		}
		t.merges.set(left, right, rank, merged)
	}
	return nil
}

func (t *loader) loadNormalizer(data json.RawMessage, depth int) error {
	p, err := readPart(data, depth)
	if err != nil {
		return err
	}
	switch p.Type {
	case "":
	case "NFC":
		t.nfc = true
	case "Sequence":
		for _, d := range p.Normalizers {
			if err := t.loadNormalizer(d, depth+1); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("type %q is not supported; null, NFC and Sequence are", p.Type)
	}
	return nil
}

func (t *loader) loadAdded(f *file) error {
	seen := make(map[string]bool, len(f.AddedTokens))
	for _, a := range f.AddedTokens {
		switch {
		case a.Content == "":
			return fmt.Errorf("id %d has no content", a.ID)
		case len(a.Content) > maxAddedBytes:
			return fmt.Errorf("token %.20q… has %d bytes, more than %d", a.Content, len(a.Content), maxAddedBytes)
		case seen[a.Content]:
			return fmt.Errorf("token %q is there twice", a.Content)
		}
		seen[a.Content] = true
		if err := t.put(a.Content, a.ID); err != nil {
			return err
		}
	}
	size := 0
	for _, id := range t.ids {
		size = max(size, int(id)+1)
	}
	t.text = slices.Clone(t.text[:size])
	t.special = make([]bool, size)
	for _, a := range f.AddedTokens {
		t.special[a.ID] = a.Special
		if !a.Normalized {
			t.literal.add(a.Content, a)
			continue
		}
		pattern := a.Content
		if t.nfc {
			pattern = nfc(pattern)
			t.text[a.ID] = bytesOf(pattern)
		}
		t.normal.add(pattern, a)
	}
	return nil
}

// loadPreTokenizer reads ByteLevel, or a Sequence of Splits and a ByteLevel.
func (t *loader) loadPreTokenizer(f *file) error {
	p, err := readPart(f.PreTokenizer, 0)
	if err != nil {
		return err
	}
	parts := []part{p}
	if p.Type == "Sequence" {
		parts = nil
		if len(p.PreTokenizers) > maxDepth {
			return fmt.Errorf("a Sequence of %d, more than %d", len(p.PreTokenizers), maxDepth)
		}
		for _, d := range p.PreTokenizers {
			q, err := readPart(d, 1)
			if err != nil {
				return err
			}
			parts = append(parts, q)
		}
	}
	if len(parts) == 0 || parts[len(parts)-1].Type != "ByteLevel" {
		return errors.New("the last part must be ByteLevel")
	}
	known := patterns()
	for i, p := range parts {
		if p.Type == "ByteLevel" && i == len(parts)-1 {
			byteLevel := stage{next: func(s string) int { return len(s) }, prefix: p.AddPrefixSpace == nil ||
				*p.AddPrefixSpace}
			if p.UseRegex == nil || *p.UseRegex {
				byteLevel.next = known[patternGPT2]
			} else if !byteLevel.prefix {
				continue // nothing to do
			}
			t.stages = append(t.stages, byteLevel)
			continue
		}
		st, err := p.stage(known)
		if err != nil {
			return err
		}
		t.stages = append(t.stages, st)
	}
	return nil
}

// stage is a Split, or Digits or Punctuation, which are such, or Metaspace.
func (p *part) stage(known map[string]func(string) int) (st stage, err error) {
	switch {
	case p.Type == "Digits":
		p.Behavior, p.Invert = "Isolated", false
		source := `\p{N}+`
		if p.IndividualDigits {
			source = `\p{N}`
		}
		p.Pattern.Regex = &source
	case p.Type == "Punctuation":
		if p.Behavior == "" {
			p.Behavior = "Isolated"
		}
		st.pattern = &pattern{is: punctuation}
		st.pattern.join, err = behaviorOf(p.Behavior)
		return st, err
	case p.Type == "Metaspace":
		st.meta, err = newMetaspace(p)
		return st, err
	case p.Type != "Split":
		return st, fmt.Errorf("type %q is not supported here; Split, Digits, Punctuation, Metaspace and a last "+
			"ByteLevel are", p.Type)
	case p.Pattern.String != nil:
		source := regexp2.Escape(*p.Pattern.String)
		p.Pattern.Regex = &source
	case p.Pattern.Regex == nil:
		return st, errors.New("a Split without a pattern")
	}
	// The known patterns leave no text unmatched, so removing what does not match is
	// the same as isolating what does.
	if next, ok := known[*p.Pattern.Regex]; ok && (p.Behavior == "Isolated" || p.Behavior == "Removed" && p.Invert) {
		return stage{next: next}, nil
	}
	st.pattern, err = newPattern(*p.Pattern.Regex, p.Behavior, p.Invert)
	return st, err
}

func loadDecoder(data json.RawMessage, depth int) error {
	p, err := readPart(data, depth)
	if err != nil {
		return err
	}
	switch {
	case p.Type == "ByteLevel":
		return nil
	case p.Type == "Sequence" && len(p.Decoders) == 1:
		return loadDecoder(p.Decoders[0], depth+1)
	}
	return fmt.Errorf("type %q is not supported; ByteLevel is", p.Type)
}

// readPart reads one part; null and nothing give the zero part.
func readPart(data json.RawMessage, depth int) (part, error) {
	var p part
	if len(data) == 0 {
		return p, nil
	}
	if depth > maxDepth {
		return p, fmt.Errorf("nested more than %d deep", maxDepth)
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return p, err
	}
	if p.Type == "" && !bytes.Equal(bytes.TrimSpace(data), []byte("null")) {
		return p, errors.New("type is missing")
	}
	return p, nil
}

// alphabet returns the character that stands for each byte in a byte-level
// vocabulary: itself where it is printable Latin-1, else one from U+0100 on.
func alphabet() [256]rune {
	var a [256]rune
	next := rune(256)
	for b := range rune(256) {
		switch {
		case '!' <= b && b <= '~', 0xa1 <= b && b <= 0xac, 0xae <= b && b <= 0xff:
			a[b] = b
		default:
			a[b] = next
			next++
		}
	}
	return a
}

// fromAlphabet returns the bytes that a token of the byte-level alphabet stands
// for; not ok if it has any other character.
func fromAlphabet(token string) (string, bool) {
	out := make([]byte, 0, len(token))
	for _, r := range token {
		b, ok := byteOf(r)
		if !ok {
			return "", false
		}
		out = append(out, b)
	}
	return string(out), true
}

// bytesOf returns the bytes that a token decodes to: what its characters stand
// for if they are all of the alphabet, which an added token's may be by chance,
// else its own.
func bytesOf(token string) string {
	if s, ok := fromAlphabet(token); ok {
		return s
	}
	return token
}

// byteOf is alphabet the other way round.
func byteOf(r rune) (byte, bool) {
	switch {
	case r == utf8.RuneError, r > 0x143:
		return 0, false
	case '!' <= r && r <= '~', 0xa1 <= r && r <= 0xac, 0xae <= r && r <= 0xff:
		return byte(r), true
	case r < 0x100:
		return 0, false
	case r <= 0x120: // 0x00 to 0x20
		return byte(r - 0x100), true
	case r <= 0x142: // 0x7f to 0xa0
		return byte(r - 0x121 + 0x7f), true
	}
	return 0xad, true
}
