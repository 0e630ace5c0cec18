package tokenizer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// split is a part of a text that ends before rune to, and begins where the one before
// it ends.
type split struct {
	to    int
	match bool // of the pattern; behind a behavior: it is no piece
}

// behavior makes pieces of what a pattern matches and what lies between.
type behavior func(parts []split) []split

// behaviors are those of the library's Split, by their names there.
var behaviors = map[string]behavior{
	"Removed": func(parts []split) []split { return parts },
	"Isolated": func(parts []split) []split {
		for i := range parts {
			parts[i].match = false
		}
		return parts
	},
	"Contiguous": func(parts []split) []split {
		out := parts[:0]
		last := false
		for _, p := range parts {
			if n := len(out); n > 0 && p.match == last {
				out[n-1].to = p.to
			} else {
				out = append(out, split{to: p.to})
			}
			last = p.match
		}
		return out
	},
	"MergedWithPrevious": func(parts []split) []split {
		out := parts[:0]
		last := false
		for _, p := range parts {
			if n := len(out); n > 0 && p.match && !last {
				out[n-1].to = p.to
			} else {
				out = append(out, split{to: p.to})
			}
			last = p.match
		}
		return out
	},
	"MergedWithNext": func(parts []split) []split {
		var out []split // from the last
		last := false
		for _, p := range slices.Backward(parts) {
			if len(out) == 0 || !p.match || last {
				out = append(out, split{to: p.to})
			}
			last = p.match
		}
		slices.Reverse(out)
		return out
	},
}

func behaviorOf(name string) (behavior, error) {
	if b, ok := behaviors[name]; ok {
		return b, nil
	}
	return nil, fmt.Errorf("a Split of behavior %q is not supported; %s are", name,
		strings.Join(slices.Sorted(maps.Keys(behaviors)), ", "))
}

// joined makes one part of what lies between matches.
func joined(parts []split) []split {
	out := parts[:0]
	for i, p := range parts {
		if i > 0 && !p.match && !out[len(out)-1].match {
			out[len(out)-1].to = p.to
		} else {
			out = append(out, p)
		}
	}
	return out
}
