package datasets

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// What is below reads parts of texts that are known to be valid JSON and UTF-8, where they lie:
// a copy of a long line would be one of many.

// eachMember calls f with each key, in its quotes, and value of an object.
func eachMember(object []byte, f func(key, value []byte) error) error {
	b := skipSpace(object[1:])
	for b[0] != '}' {
		key := b[:jsonEnd(b)]
		b = skipSpace(skipSpace(b[len(key):])[1:]) // the colon
		value := b[:jsonEnd(b)]
		if err := f(key, value); err != nil {
			return err
		}
		if b = skipSpace(b[len(value):]); b[0] == ',' {
			b = skipSpace(b[1:])
		}
	}
	return nil
}

func skipSpace(b []byte) []byte { return bytes.TrimLeft(b, " \t\r\n") }

// jsonEnd is the length of the value that b begins with.
func jsonEnd(b []byte) int {
	switch b[0] {
	case '"':
		return textEnd(b)
	case '{', '[':
		depth := 0
		for i := 0; ; i++ {
			switch b[i] {
			case '"':
				i += textEnd(b[i:]) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
	}
	return bytes.IndexAny(b, ",}] \t\r\n")
}

// textEnd is the length of the text that b begins with, with its quotes.
func textEnd(b []byte) int {
	for i := 1; ; i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
}

// unquoted is the text that a JSON text means; where it has no escapes, a part of it.
// Half a surrogate pair is U+FFFD, as encoding/json has it.
func unquoted(quoted []byte) []byte {
	text := quoted[1 : len(quoted)-1]
	at := bytes.IndexByte(text, '\\')
	if at < 0 {
		return text
	}
	out := append(make([]byte, 0, len(text)), text[:at]...)
	for text = text[at:]; len(text) > 0; {
		if at = bytes.IndexByte(text, '\\'); at < 0 {
			return append(out, text...)
		}
		out = append(out, text[:at]...)
		c := text[at+1]
		text = text[at+2:]
		switch c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r := unit(text)
			text = text[4:]
			if utf16.IsSurrogate(r) {
				pair := rune(utf8.RuneError)
				if len(text) >= 6 && text[0] == '\\' && text[1] == 'u' {
					pair = utf16.DecodeRune(r, unit(text[2:]))
				}
				if r = pair; pair != utf8.RuneError {
					text = text[6:]
				}
			}
			out = utf8.AppendRune(out, r)
		default: // quote, slash, backslash
			out = append(out, c)
		}
	}
	return out
}

// unit is the UTF-16 unit of four hexadecimal digits.
func unit(b []byte) rune {
	n, _ := strconv.ParseUint(string(b[:4]), 16, 16) // they are: the text is valid
	return rune(n)
}
