package checkpoint

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// patterns are names of modules left out of quantisation: exact, globs as
// ModelOpt writes them, or "re:" and a regular expression as compressed-tensors does.
type patterns struct {
	all      []string // sorted
	exact    map[string]bool
	prefixes []string // of globs "prefix*"
	globs    []string
	regexps  []*regexp.Regexp
}

const maxGlobs = 4096 // of globs and regular expressions that need a search

func compile(list []string) (patterns, error) {
	p := patterns{all: slices.Compact(slices.Sorted(slices.Values(list))), exact: map[string]bool{}}
	for _, s := range list {
		head, isGlob := strings.CutSuffix(s, "*")
		expr, isRegexp := strings.CutPrefix(s, "re:")
		switch {
		case isRegexp:
			r, err := regexp.Compile("^(?:" + expr + ")")
			if err != nil {
				return p, fmt.Errorf("ignore %q: %w", s, err)
			}
			p.regexps = append(p.regexps, r)
		case !strings.ContainsAny(s, "*?["):
			p.exact[s] = true
		case isGlob && !strings.ContainsAny(head, "*?["):
			p.prefixes = append(p.prefixes, head)
		default:
			if _, err := path.Match(s, ""); err != nil {
				return p, fmt.Errorf("ignore %q: %w", s, err)
			}
			p.globs = append(p.globs, s)
		}
	}
	if n := len(p.globs) + len(p.regexps) + len(p.prefixes); n > maxGlobs {
		return p, fmt.Errorf("ignore has %d patterns, at most %d are supported", n, maxGlobs)
	}
	return p, nil
}

// match reports whether the module, or one that it is inside, is left out.
func (p *patterns) match(module string) bool {
	for name := module; ; {
		if p.exact[name] {
			return true
		}
		dot := strings.LastIndexByte(name, '.')
		if dot < 0 {
			break
		}
		name = name[:dot]
	}
	for _, s := range p.prefixes {
		if strings.HasPrefix(module, s) {
			return true
		}
	}
	for _, s := range p.globs {
		if ok, _ := path.Match(s, module); ok { // compile has checked the form
			return true
		}
	}
	for _, r := range p.regexps {
		if r.MatchString(module) {
			return true
		}
	}
	return false
}
