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
	longest int
	text    []byte
	found   bool
}

func newStopText(d *tokenizer.Decoder, stops []string) *stopText {
	s := &stopText{decoder: d, stops: stops}
	for _, stop := range stops {
		s.longest = max(s.longest, len(stop))
	}
	return s
}

// add appends a token's text. It returns true when a stop string is there; the
// text then ends before the first of them.
func (s *stopText) add(token int32) bool { return s.grow(s.decoder.Next(token)) }

// finish appends what the decoder still held.
func (s *stopText) finish() bool { return !s.found && s.grow(s.decoder.Flush()) }

func (s *stopText) grow(piece string) bool {
	if piece == "" || s.found {
		return s.found
	}
	from := max(0, len(s.text)-s.longest+1) // no string that ends before here is new
	s.text = append(s.text, piece...)
	cut := -1
	for _, stop := range s.stops {
		if at := bytes.Index(s.text[from:], []byte(stop)); at >= 0 && (cut < 0 || from+at < cut) {
			cut = from + at
		}
	}
	if cut >= 0 {
		s.text, s.found = s.text[:cut], true
	}
	return s.found
}
