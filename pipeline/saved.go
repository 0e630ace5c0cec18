package pipeline

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"unsafe"

	"github.com/zeebo/xxh3"

	"glmbatch/datasets"
	"glmbatch/engine"
)

// The kinds of the journal's records. All begin with the kind, the row's identity and
// the position of the row's record before, 0 if there is none.
const (
	savedSample = 's'
	savedError  = 'e' // of a row that was run
	savedBad    = 'b' // of a row that cannot be run: the input says why

	savedAttempt = 'x' // a step ended badly with the row in it; before is the event's number
	savedRetry   = 'r' // the row, which has an error, is to be run again
	savedOutput  = 'o' // an output row of a file that is written anew
)

// badIdentity is that of rows that cannot be run, where one is needed: no request has it.
const badIdentity = 2

// writtenIdentity is that of output rows that were in a file: it does not matter which
// request they answered.
const writtenIdentity = 4

// saved is a record of the journal: a finished sample, or why a row has none.
type saved struct {
	kind     byte
	identity uint64 // of the row's request, see [row]
	before   int64  // position of the row's record before; 0: none
	given    int    // tokens of the prompt, see [row.given]
	cut      int    // tokens cut from it
	index    int    // of the sample
	of       int    // samples of the row
	reason   engine.Reason
	tokens   []int32
	chosen   []datasets.TokenLogprob
	top      [][]datasets.TokenLogprob
	prompt   promptLogprobs
	by       string // see [sample]
	code     string // of an error
	text     string // of an error; of an output row its [writtenResult]
	made     int    // tokens of an output row, which may not have them
}

var errSaved = errors.New("a record of the journal is not as this program writes it")

// append appends the record's bytes.
func (s *saved) append(b []byte) []byte {
	b = append(b, s.kind)
	b = binary.LittleEndian.AppendUint64(b, s.identity)
	b = binary.AppendUvarint(b, uint64(s.before))
	b = binary.AppendUvarint(b, uint64(s.given))
	b = binary.AppendUvarint(b, uint64(s.cut))
	if !s.answer() {
		b = appendText(b, s.code)
		return appendText(b, s.text)
	}
	if s.kind == savedOutput {
		b = binary.AppendUvarint(appendText(appendText(b, s.code), s.text), uint64(s.made))
	}
	b = binary.AppendUvarint(b, uint64(s.index))
	b = binary.AppendUvarint(b, uint64(s.of))
	b = appendText(b, string(s.reason))
	b = binary.AppendUvarint(b, uint64(len(s.tokens)))
	for _, t := range s.tokens {
		b = binary.AppendUvarint(b, uint64(uint32(t)))
	}
	b = appendLogprobs(b, s.chosen)
	b = appendLists(b, s.top)
	if s.by == "" && len(s.prompt.chosen) == 0 { // as records were before there was more
		return b
	}
	b = appendLogprobs(appendText(b, s.by), s.prompt.chosen)
	return appendLists(b, s.prompt.top)
}

func appendLists(b []byte, lists [][]datasets.TokenLogprob) []byte {
	b = binary.AppendUvarint(b, uint64(len(lists)))
	for _, list := range lists {
		b = appendLogprobs(b, list)
	}
	return b
}

// answer reports whether the record is one of the output rows that a row may have.
func (s *saved) answer() bool { return s.kind == savedSample || s.kind == savedOutput }

// appendLogprobs leaves the tokens' text out: it is made when it is written.
func appendLogprobs(b []byte, list []datasets.TokenLogprob) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, l := range list {
		rank := int32(0)
		if l.Rank != nil {
			rank = *l.Rank
		}
		b = binary.AppendUvarint(b, uint64(uint32(l.ID)))
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(l.Logprob))
		b = binary.AppendUvarint(b, uint64(uint32(rank)))
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// parseSaved is the reverse of append. What it returns shares nothing with b.
func parseSaved(b []byte) (*saved, error) {
	p := parser{b: b}
	s := &saved{kind: p.byte(), identity: p.uint64(), before: int64(p.uvarint()), given: int(p.uvarint()),
		cut: int(p.uvarint())}
	switch s.kind {
	case savedError, savedBad, savedAttempt, savedRetry:
		s.code, s.text = p.text(), p.text()
	case savedSample, savedOutput:
		if s.kind == savedOutput {
			s.code, s.text, s.made = p.text(), p.text(), int(p.uvarint())
		}
		s.index, s.of, s.reason = int(p.uvarint()), int(p.uvarint()), engine.Reason(p.text())
		s.tokens = make([]int32, p.count(1))
		for i := range s.tokens {
			s.tokens[i] = int32(p.uvarint())
		}
		s.chosen = p.logprobs()
		s.top = p.lists()
		if len(p.b) > 0 && !p.bad {
			s.by, s.prompt.chosen, s.prompt.top = p.text(), p.logprobs(), p.lists()
		}
		p.bad = p.bad || s.of < 1 || s.of > maxSamples || s.index < 0 || s.index >= s.of
	default:
		p.bad = true
	}
	if p.bad || len(p.b) > 0 || s.before < 0 || s.given < 0 || s.cut < 0 {
		return nil, errSaved
	}
	return s, nil
}

// parser takes a record apart; past its end all is 0 and bad is set.
type parser struct {
	b   []byte
	bad bool
}

func (p *parser) take(n int) []byte {
	if p.bad || n > len(p.b) {
		p.bad = true
		return nil
	}
	b := p.b[:n]
	p.b = p.b[n:]
	return b
}

func (p *parser) byte() byte {
	if b := p.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (p *parser) uint64() uint64 {
	if b := p.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (p *parser) float() float32 {
	if b := p.take(4); b != nil {
		return math.Float32frombits(binary.LittleEndian.Uint32(b))
	}
	return 0
}

func (p *parser) uvarint() uint64 {
	v, n := binary.Uvarint(p.b)
	if p.bad || n <= 0 {
		p.bad = true
		return 0
	}
	p.b = p.b[n:]
	return v
}

// count is the length of a list whose elements take so many bytes at least.
func (p *parser) count(each int) int {
	n := p.uvarint()
	if n > uint64(len(p.b)/each) {
		p.bad = true
		return 0
	}
	return int(n)
}

func (p *parser) logprobs() []datasets.TokenLogprob {
	n := p.count(6)
	if n == 0 {
		return nil
	}
	list := make([]datasets.TokenLogprob, n)
	for i := range list {
		list[i].ID, list[i].Logprob = int32(p.uvarint()), p.float()
		if rank := int32(p.uvarint()); rank != 0 {
			list[i].Rank = &rank
		}
	}
	return list
}

func (p *parser) lists() (lists [][]datasets.TokenLogprob) {
	if n := p.count(1); n > 0 {
		lists = make([][]datasets.TokenLogprob, n)
		for i := range lists {
			lists[i] = p.logprobs()
		}
	}
	return lists
}

func (p *parser) text() string { return string(p.take(p.count(1))) }

// sample makes a row's finished sample of the record.
func (s *saved) sample(r *row, text Text, seed int64) *sample {
	sm := &sample{row: r, index: s.index, seed: seed, tokens: s.tokens, chosen: s.chosen, top: s.top, prompt: s.prompt,
		by: s.by, reason: s.reason, saved: true}
	if len(r.params.StopText) > 0 {
		sm.text = newStopText(text.Tokenizer.NewDecoder(true), &r.params)
		for _, t := range s.tokens {
			sm.text.add(t)
		}
		sm.text.finish()
	}
	return sm
}

// identify hashes what the row asks of the engine: its tokens and its parameters. A
// sample of another request is not taken for this row's.
func (p *preparer) identify(r *row) uint64 {
	seed := uint64(0)
	if p.cols.params != nil || len(p.cols.single) > 0 {
		seed = hashParams(&r.params)
	} else {
		p.once.Do(func() { p.shared = hashParams(&p.o.Params) })
		seed = p.shared
	}
	tokens := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(r.prompt))), 4*len(r.prompt))
	return xxh3.HashSeed(tokens, seed^uint64(r.params.MaxTokens)) | 1
}

func hashParams(p *Params) uint64 {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // plain numbers, strings and lists
	}
	return xxh3.Hash(text)
}
