package pipeline

import (
	"bytes"

	"glmbatch/pipeline/tokenizer"
)

// stopText is a response's text as it grows, watched for stop strings. They are
// found in the text, so it does not matter how tokens cut them.
type stopText struct {
	decoder *tokenizer.Decoder
	stops   []string
	with    bool // the stop string stays
	least   int  // tokens before one counts
	text    []byte
	found   bool
	by      string // the one that was found
}

func newStopText(d *tokenizer.Decoder, p *Params) *stopText {
	return &stopText{decoder: d, stops: p.StopText, with: p.IncludeStop, least: p.MinTokens}
}

// add appends a token's text. It returns true when a stop string is there; the
// text then ends before the first of them, or behind it. As in vLLM, a string that
// the first MinTokens tokens complete does not count.
func (s *stopText) add(token int32) bool {
	piece := s.decoder.Next(token)
	if s.least > 0 {
		s.least--
		s.text = append(s.text, piece...)
		return false
	}
	return s.grow(piece)
}

// finish appends what the decoder still held.
func (s *stopText) finish() bool { return !s.found && s.grow(s.decoder.Flush()) }

func (s *stopText) grow(piece string) bool {
	if piece == "" || s.found {
		return s.found
	}
	before := len(s.text)
	s.text = append(s.text, piece...)
	cut := -1
	for _, stop := range s.stops {
		from := max(0, before-len(stop)+1) // none that ends before here is new
		if at := bytes.Index(s.text[from:], []byte(stop)); at >= 0 && (cut < 0 || from+at < cut) {
			cut, s.by = from+at, stop
		}
	}
	if cut >= 0 {
		if s.with {
			cut += len(s.by)
		}
		s.text, s.found = s.text[:cut], true
	}
	return s.found
}
