package checkpoint

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// patterns are names of modules: exact, globs as ModelOpt writes them, or "re:" and
// a regular expression as compressed-tensors does. They serve comparisons that
// only warn, so what cannot be read, or would take too long, is said and no more.
type patterns struct {
	all      map[string]bool
	prefixes map[string]bool // of globs "prefix*"
	globs    []string
	regexps  []*regexp.Regexp
	unread   string // why some are left out; "": none are
}

// Limits of a list. Releases have some hundred names and a few expressions; every
// module of a model is held against each search.
const (
	maxPatterns = 1 << 18
	maxSearches = 256     // of globs and regular expressions that need a search
	maxPattern  = 4 << 10 // bytes of one
)

func compile(list []string) patterns {
	p := patterns{all: map[string]bool{}, prefixes: map[string]bool{}}
	for _, s := range list {
		if p.all[s] {
			continue
		}
		if len(p.all) == maxPatterns {
			p.unread = fmt.Sprintf("it has over %d entries", maxPatterns)
			break
		}
		p.all[s] = true
		head, isGlob := strings.CutSuffix(s, "*")
		expr, isRegexp := strings.CutPrefix(s, "re:")
		switch {
		case !isRegexp && !strings.ContainsAny(s, "*?["): // exact
		case !isRegexp && isGlob && !strings.ContainsAny(head, "*?["):
			p.prefixes[head] = true
		case len(s) > maxPattern || len(p.regexps)+len(p.globs) == maxSearches:
			p.unread = fmt.Sprintf("it has over %d searches, or one of over %d bytes", maxSearches, maxPattern)
		case isRegexp:
			if r, err := regexp.Compile("^(?:" + expr + ")"); err == nil {
				p.regexps = append(p.regexps, r)
			} else {
				p.unread = fmt.Sprintf("%q is not an expression that glmbatch reads", s)
			}
		default:
			if _, err := path.Match(s, ""); err == nil {
				p.globs = append(p.globs, s)
			} else {
				p.unread = fmt.Sprintf("%q is not a pattern", s)
			}
		}
	}
	return p
}

// match reports whether the module, or one that it is inside, is named.
func (p *patterns) match(module string) bool {
	for name := module; name != ""; name, _ = cutLast(name) {
		if p.all[name] {
			return true
		}
	}
	if len(p.prefixes) > 0 {
		for i := range len(module) + 1 {
			if p.prefixes[module[:i]] {
				return true
			}
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
