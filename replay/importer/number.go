package importer

import "math"

// nanoseconds turns a decimal number of microseconds, as written in a trace,
// into nanoseconds, rounded half away from zero. It is exact: no float is
// involved. ok is false for anything that is not a finite number in range.
func nanoseconds(text []byte) (ns int64, ok bool) { return decimal(text, 3) }

// integer turns a decimal number into an integer, rounded.
func integer(text []byte) (int64, bool) { return decimal(text, 0) }

// decimal returns text * 10^shift, rounded half away from zero.
func decimal(text []byte, shift int) (int64, bool) {
	i, negative := 0, false
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		negative = text[0] == '-'
		i++
	}
	var digits uint64 // the first 19 significant digits
	used, digitsSeen := 0, 0
	exponent := shift
	rest := byte(0) // the first digit that did not fit into digits
	restSeen := false
	point := false
	for ; i < len(text); i++ {
		c := text[i]
		if (c == '.' || c == ',') && !point { // a comma by the user's locale
			point = true
			continue
		}
		if c < '0' || c > '9' {
			break
		}
		digitsSeen++
		switch {
		case used < 18:
			digits = digits*10 + uint64(c-'0')
			if digits > 0 {
				used++
			}
			if point {
				exponent--
			}
		default:
			if !restSeen {
				rest, restSeen = c-'0', true
			}
			if !point {
				exponent++
			}
		}
	}
	if digitsSeen == 0 {
		return 0, false
	}
	if i < len(text) && (text[i] == 'e' || text[i] == 'E') {
		i++
		e, sign := 0, 1
		if i < len(text) && (text[i] == '-' || text[i] == '+') {
			if text[i] == '-' {
				sign = -1
			}
			i++
		}
		if i == len(text) {
			return 0, false
		}
		for ; i < len(text) && text[i] >= '0' && text[i] <= '9'; i++ {
			if e < 10000 {
				e = e*10 + int(text[i]-'0')
			}
		}
		exponent += sign * e
	}
	if i != len(text) {
		return 0, false
	}
	if digits == 0 {
		return 0, true
	}
	switch {
	case exponent < 0:
		for ; exponent < -1 && digits > 0; exponent++ {
			digits /= 10
		}
		if exponent == -1 {
			digits = (digits + 5) / 10
		}
	case exponent == 0:
		if rest >= 5 {
			digits++
		}
	default:
		// A 19th digit still fits: use it before multiplying.
		if restSeen && digits <= math.MaxInt64/10 {
			digits = digits*10 + uint64(rest)
			exponent--
		}
		for ; exponent > 0; exponent-- {
			if digits > math.MaxInt64/10 {
				return 0, false
			}
			digits *= 10
		}
	}
	if digits > math.MaxInt64 {
		return 0, false
	}
	if negative {
		return -int64(digits), true
	}
	return int64(digits), true
}
