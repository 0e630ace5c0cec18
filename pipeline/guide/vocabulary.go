package guide

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Tokens are what a text is made of: those of a tokenizer.Tokenizer.
type Tokens interface {
	VocabSize() int             // one more than the largest id
	Bytes(id int32) string      // what a token decodes to; "": no token has the id
	AddedIDs() map[int32]string // tokens that are never a part of a guided text
}

// vocabulary is tokens as the module reads them.
type vocabulary struct {
	bytes  []byte
	tokens int
	ends   []int32
}

// longest is how many bytes the module takes of a token. Longer ones are in no guided text.
const longest = 1024

// special marks tokens that are no text.
const special = "\xff"

func newVocabulary(t Tokens, most int, ends []int32) (*vocabulary, error) {
	v := &vocabulary{tokens: t.VocabSize()}
	if most > 0 {
		v.tokens = min(v.tokens, most)
	}
	added := t.AddedIDs()
	for id := range int32(v.tokens) {
		text := t.Bytes(id)
		if _, ok := added[id]; ok && text != "" {
			text = special + text
		}
		if len(text) > longest {
			text = ""
		}
		v.bytes = append(binary.LittleEndian.AppendUint32(v.bytes, uint32(len(text))), text...)
	}
	for _, id := range ends {
		if id >= 0 && int(id) < v.tokens && !slices.Contains(v.ends, id) {
			v.ends = append(v.ends, id)
			v.bytes = binary.LittleEndian.AppendUint32(v.bytes, uint32(id))
		}
	}
	if len(v.ends) == 0 {
		return nil, fmt.Errorf("the model has no end tokens: a text that follows a grammar could not end")
	}
	return v, nil
}
