package main

import (
	"context"
	"math/rand/v2"

	"glmbatch/engine"
	"glmbatch/pipeline/guide"
)

// benchSchema is what the answers of bench --job --guided are: more records than fit.
const benchSchema = `{"type":"array","minItems":400,"items":{"type":"object","properties":{"name":{"type":"string"},"kind":{"enum":["person","place","thing"]},"year":{"type":"integer","minimum":1900,"maximum":2100},"tags":{"type":"array","items":{"type":"string"},"maxItems":3}},"required":["name","kind","year","tags"],"additionalProperties":false}}`

// jobGuides make the guides of a made-up job.
type jobGuides struct {
	guides *guide.Guides // nil: answers are free
	spec   guide.Spec
}

func (b *jobBench) guides(ctx context.Context) (g jobGuides, err error) {
	if !b.flags.job.guided {
		return g, nil
	}
	v := newMadeUp(b.model.Config.Vocab, b.flags.Seed)
	if g.guides, err = guide.New(ctx, v, guide.Options{Ends: []int32{int32(len(v) - 1)}, Cache: guideCache()}); err !=
		nil {
		return g, err
	}
	if g.spec, err = guide.NewSchema([]byte(benchSchema), guide.Whitespace{}); err == nil {
		err = g.guides.Check(g.spec)
	}
	return g, err
}

func (g *jobGuides) next() engine.Guide {
	if g.guides == nil {
		return nil
	}
	return g.guides.Start(g.spec, false)
}

func (g *jobGuides) close() {
	if g.guides != nil {
		g.guides.Close()
	}
}

// madeUp is a vocabulary of bytes and of made-up words, as long and as mixed as those of
// tokenizers: most begin with a space, some are numbers, marks, white space or no ASCII.
type madeUp []string

func newMadeUp(n int, seed uint64) madeUp {
	r := rand.New(rand.NewPCG(seed, 3))
	v := make(madeUp, 0, n)
	seen := map[string]bool{"": true}
	for b := range min(n-1, 256) {
		v = append(v, string([]byte{byte(b)}))
		seen[v[b]] = true
	}
	pick := func(from string, most int) string {
		letters := []rune(from)
		text := make([]rune, 1+r.IntN(most))
		for i := range text {
			text[i] = letters[r.IntN(len(letters))]
		}
		return string(text)
	}
	const small = "abcdefghijklmnopqrstuvwxyz"
	for len(v) < n-1 {
		word := ""
		switch k := r.IntN(100); {
		case k < 50:
			word = " " + pick(small, 10)
		case k < 75:
			word = pick(small, 10)
		case k < 80:
			word = pick("ABCDEFGHIJKLMNOPQRSTUVWXYZ", 8)
		case k < 92:
			word = pick("äöüßéèñçøåłжшдифбя的一是不了人我在有他这中大来上国", 5)
		case k < 97:
			word = pick("{}[]():;,.\"'/\\<>=+-*&|!?#%_ ", 4)
		case k < 99:
			word = pick("0123456789", 3)
		default:
			word = pick(" \n\t", 24)
		}
		if !seen[word] {
			seen[word] = true
			v = append(v, word)
		} else if len(v) > n/2 { // short ones run out
			v = append(v, word+pick(small, 12))
		}
	}
	return append(v, "<end>")
}

func (v madeUp) VocabSize() int        { return len(v) }
func (v madeUp) Bytes(id int32) string { return v[id] }
func (v madeUp) AddedIDs() map[int32]string {
	return map[int32]string{int32(len(v) - 1): v[len(v)-1]}
}
