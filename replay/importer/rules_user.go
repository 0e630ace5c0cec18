package importer

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"glmbatch/replay/timeline"
)

const (
	maxRules   = 10_000
	maxPattern = 4096
)

var classForm = regexp.MustCompile(`^[a-z0-9_]+(\.([a-z0-9_]+|\*|\?))*$`)

// ReadRules reads a user's rules: on each line a class, white space and a pattern,
// which is the rest of the line. Empty lines and lines that begin with # say nothing.
// name is the file's, for errors.
func ReadRules(r io.Reader, name string) ([]Rule, error) {
	lines := bufio.NewScanner(io.LimitReader(r, maxRules*maxPattern))
	lines.Buffer(nil, 2*maxPattern)
	var rules []Rule
	number := 0
	for lines.Scan() {
		number++
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		class, pattern := line, ""
		if i := strings.IndexAny(line, " \t"); i > 0 {
			class, pattern = line[:i], strings.TrimSpace(line[i:])
		}
		rule := Rule{Pattern: pattern, Class: class}
		err := rule.validate()
		if err == nil && len(rules) == maxRules {
			err = fmt.Errorf("more than %d rules", maxRules)
		}
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", name, number, err)
		}
		rules = append(rules, rule)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s, line %d: %w", name, number+1, err)
	}
	return rules, nil
}

// validate says what is wrong with a user's rule.
func (r Rule) validate() error {
	switch {
	case r.Class == "?":
		return errors.New("write a class instead of ?")
	case !classForm.MatchString(r.Class) || r.Class == timeline.ClassHost:
		return fmt.Errorf("bad class %q: small letters, with dots between them (a * is the number format that the "+
			"kernel's name tells)", r.Class)
	case r.Pattern == "":
		return errors.New("no pattern behind the class")
	case len(r.Pattern) > maxPattern:
		return fmt.Errorf("a pattern of %d bytes", len(r.Pattern))
	}
	if _, err := regexp.Compile(r.Pattern); err != nil {
		return fmt.Errorf("bad pattern: %w", err)
	}
	return nil
}
