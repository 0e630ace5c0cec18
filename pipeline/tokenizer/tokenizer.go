package tokenizer

import "sync"

// Tokenizer is a loaded tokenizer.json. It does not change after Load.
type Tokenizer struct {
	text    []string   // by id, the bytes that the token decodes to; "" where no token has the id
	special []bool     // by id
	bytes   [256]int32 // the id of each byte's symbol
	merges  mergeTable
	whole   map[string]int32 // bytes to id of tokens that need no merges; nil unless ignore_merges
	nfc     bool
	stages  []stage // the pre-tokenizer
	literal matcher // added tokens found in the text as it is
	normal  matcher // added tokens found in the normalized text
	states  sync.Pool
}

// VocabSize is one more than the largest id.
func (t *Tokenizer) VocabSize() int { return len(t.text) }

// Encode is TryEncode for texts that are known to have tokens.
func (t *Tokenizer) Encode(dst []int32, text string) []int32 {
	ids, _ := t.TryEncode(dst, text)
	return ids
}

// TryEncode appends the ids of text to dst. Added tokens in the text become their
// own ids, as in the library. The only error is ErrPattern.
func (t *Tokenizer) TryEncode(dst []int32, text string) ([]int32, error) {
	e := t.states.Get().(*encoder)
	e.ids, e.first = dst, true
	for at := (cursor{}); ; {
		before, id := t.literal.next(text, &at)
		e.normalized(before)
		if id < 0 {
			break
		}
		e.first = false
		e.ids = append(e.ids, id)
	}
	return e.done()
}

// EncodePlain is TryEncode of text in which added tokens are text too.
func (t *Tokenizer) EncodePlain(dst []int32, text string) ([]int32, error) {
	if t.nfc {
		text = nfc(text)
	}
	if text == "" {
		return dst, nil
	}
	e := t.states.Get().(*encoder)
	e.ids, e.first = dst, true
	e.split(text, 0)
	return e.done()
}

// done gives the encoder back.
func (e *encoder) done() ([]int32, error) {
	ids, err := e.ids, e.err
	e.release()
	e.t.states.Put(e)
	return ids, err
}

// Added are the texts of the added tokens: the special ones, and the others.
func (t *Tokenizer) Added() (special, others []string) {
	for _, m := range []*matcher{&t.literal, &t.normal} {
		for _, a := range m.tokens {
			if a.Special {
				special = append(special, a.Content)
			} else {
				others = append(others, a.Content)
			}
		}
	}
	return special, others
}

// AddedIDs are the added tokens by id: those that text has only when it is written as
// they are.
func (t *Tokenizer) AddedIDs() map[int32]string {
	ids := map[int32]string{}
	for _, m := range []*matcher{&t.literal, &t.normal} {
		for _, a := range m.tokens {
			ids[int32(a.ID)] = a.Content
		}
	}
	return ids
}

// encoder is what one Encode needs besides the Tokenizer; they are pooled, so
// there are about as many as threads that encode.
type encoder struct {
	t     *Tokenizer
	ids   []int32
	err   error
	first bool // nothing of the text was encoded yet
	cache cache
	m     merger
}

// normalized encodes text that has none of the literal added tokens.
func (e *encoder) normalized(text string) {
	if e.t.nfc {
		text = nfc(text)
	}
	for at := (cursor{}); ; {
		before, id := e.t.normal.next(text, &at)
		if before != "" {
			e.split(before, 0)
		}
		if id < 0 {
			return
		}
		e.first = false
		e.ids = append(e.ids, id)
	}
}

// split passes s, which is not empty, through the pre-tokenizer from stage i on.
func (e *encoder) split(s string, i int) {
	if i == len(e.t.stages) {
		e.first = false
		e.word(s)
		return
	}
	st := &e.t.stages[i]
	if st.prefix && s[0] != ' ' {
		s = " " + s
	}
	if st.meta != nil {
		st.meta.cut(s, e.first, func(piece string) { e.split(piece, i+1) })
		return
	}
	if st.pattern != nil {
		if err := st.pattern.cut(s, func(piece string) { e.split(piece, i+1) }); err != nil {
			e.err = err
		}
		return
	}
	for len(s) > 0 {
		n := st.next(s)
		e.split(s[:n], i+1)
		s = s[n:]
	}
}

// word appends the ids of one pre-token.
func (e *encoder) word(s string) {
	if len(s) == 1 && e.t.whole == nil {
		e.ids = append(e.ids, e.t.bytes[s[0]])
		return
	}
	if len(s) > maxCachedBytes {
		e.ids = e.encodeWord(e.ids, s)
		return
	}
	slot, hit := e.cache.find(s)
	if hit {
		e.ids = append(e.ids, slot.ids[:slot.n]...)
		return
	}
	from := len(e.ids)
	e.ids = e.encodeWord(e.ids, s)
	slot.keep(s, e.ids[from:])
}

func (e *encoder) encodeWord(dst []int32, s string) []int32 {
	if id, ok := e.t.whole[s]; ok {
		return append(dst, id)
	}
	from := len(dst)
	for i := range len(s) {
		dst = append(dst, e.t.bytes[s[i]])
	}
	n := e.m.merge(&e.t.merges, dst[from:])
	return dst[:from+n]
}

// release drops what a pooled encoder must not hold on to.
func (e *encoder) release() {
	e.ids, e.err = nil, nil
	e.m.release()
}
