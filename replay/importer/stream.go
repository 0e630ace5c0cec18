package importer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
)

// stream is a window on the text of a trace. Text is addressed by its place in
// the window; base is the offset of the window in the unpacked text.
type stream struct {
	r     io.Reader
	buf   []byte
	pos   int // next byte to read
	end   int // bytes in buf
	base  int64
	eof   bool
	fault error // what ended the text early, nil: it is whole
}

const (
	windowSize = 1 << 20
	// maxEvent bounds one event, and so the window.
	maxEvent = 16 << 20
)

func newStream(r io.Reader, window int) *stream {
	return &stream{r: r, buf: make([]byte, window)}
}

// offset of the next byte in the unpacked text.
func (s *stream) offset() int64 { return s.base + int64(s.pos) }

// more reads on, keeping the text from s.pos. It reports whether there was
// more; false also where the window is full.
func (s *stream) more() bool {
	if s.eof {
		return false
	}
	if s.pos > 0 {
		copy(s.buf, s.buf[s.pos:s.end])
		s.base += int64(s.pos)
		s.end -= s.pos
		s.pos = 0
	}
	if s.end == len(s.buf) {
		if len(s.buf) >= maxEvent {
			return false
		}
		grown := make([]byte, min(2*len(s.buf), maxEvent))
		copy(grown, s.buf[:s.end])
		s.buf = grown
	}
	for tries := 0; tries < 100; tries++ {
		n, err := s.r.Read(s.buf[s.end:])
		s.end += n
		if err != nil {
			s.eof = true
			if !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				s.fault = err
			}
		}
		if n > 0 || s.eof {
			return n > 0
		}
	}
	s.eof, s.fault = true, io.ErrNoProgress
	return false
}

// text returns what is in the window.
func (s *stream) text() []byte { return s.buf[s.pos:s.end] }

// space skips white space and returns the next byte, 0 at the end.
func (s *stream) space() byte {
	for {
		for s.pos < s.end {
			c := s.buf[s.pos]
			if c != ' ' && c != '\n' && c != '\r' && c != '\t' {
				return c
			}
			s.pos++
		}
		if !s.more() {
			return 0
		}
	}
}

// skip reads over one value of any size.
func (s *stream) skip() bool {
	c := s.space()
	switch {
	case c == 0:
		return false
	case c != '{' && c != '[' && c != '"':
		for {
			for ; s.pos < s.end; s.pos++ {
				switch s.buf[s.pos] {
				case ',', '}', ']', ' ', '\n', '\r', '\t':
					return true
				}
			}
			if !s.more() {
				return s.eof
			}
		}
	}
	depth, inString, escaped := 0, false, false
	for {
		for ; s.pos < s.end; s.pos++ {
			c := s.buf[s.pos]
			switch {
			case escaped:
				escaped = false
			case inString:
				switch c {
				case '\\':
					escaped = true
				case '"':
					inString = false
				}
			case c == '"':
				inString = true
			case c == '{' || c == '[':
				depth++
			case c == '}' || c == ']':
				depth--
			}
			if depth == 0 && !inString && !escaped {
				s.pos++
				return true
			}
		}
		if !s.more() {
			return false
		}
	}
}

// openTrace opens a trace, unpacking gzip by its magic number, not its name.
func openTrace(path string) (*stream, io.Closer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the trace: %w", err)
	}
	s, err := unpack(f)
	if err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return s, f, nil
}

// unpack returns the text of a trace, without a byte order mark.
func unpack(f io.Reader) (*stream, error) {
	packed := bufio.NewReaderSize(f, 256<<10)
	var r io.Reader = packed
	head, err := packed.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if bytes.Equal(head, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(packed)
		if err != nil {
			return nil, fmt.Errorf("bad gzip header: %w", err)
		}
		r = z
	}
	s := newStream(r, windowSize)
	for s.end < 3 && s.more() {
	}
	if bytes.HasPrefix(s.text(), []byte("\xef\xbb\xbf")) {
		s.pos = 3
	}
	return s, nil
}
