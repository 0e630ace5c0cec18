package main

import (
	"fmt"
	"strconv"
	"strings"

	"glmbatch/engine"
	"glmbatch/engine/glm5"
)

const speculateUsage = "guess up to `N` tokens of each row ahead with the model's prediction layer and verify them " +
	"in the next step; auto: while so few rows run that it pays; ngram:N: guess what followed the last tokens " +
	"before; off. The outputs have the same bits"

// autoDrafts is the most drafts of auto.
const autoDrafts = 3

// speculation reads what --speculate says.
func speculation(text string) (s engine.Speculation, err error) {
	if text == "off" {
		return s, nil
	}
	if text == "auto" {
		return engine.Speculation{Drafts: autoDrafts, Auto: true}, nil
	}
	n, ngram := strings.CutPrefix(text, "ngram:")
	if s.Drafts, err = strconv.Atoi(n); err != nil || s.Drafts < 1 || s.Drafts > engine.MaxDrafts {
		return engine.Speculation{},
			fmt.Errorf("--speculate %q: it must be off, auto, N or ngram:N, with N from 1 to %d", text,
				engine.MaxDrafts)
	}
	s.NGram = ngram
	return s, nil
}

// speculates has a model loaded for drafts of at most so many sequences at once.
func speculates(o *glm5.Options, s engine.Speculation, seqs int) {
	if s.Drafts == 0 {
		return
	}
	rows := seqs * (1 + s.Drafts)
	if s.Auto {
		rows = seqs + min(seqs, engine.AutoRows)*s.Drafts
	}
	o.MaxLogits = max(o.MaxLogits, rows)
	if !s.NGram {
		o.MTP, o.Drafts = true, s.Drafts
	}
}
