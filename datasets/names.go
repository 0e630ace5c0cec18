package datasets

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Where an output file says what its columns of results are called.
const (
	keyPrefix   = "glmbatch.prefix"
	keyResponse = "glmbatch.response"
)

// Naming says what the columns of results are called. The zero value: by their own
// names, or, where the input has a column of one of these names, in whatever case, all
// with one prefix: glm_, or the first of glm2_, glm3_, … with which none is there.
type Naming struct {
	Prefix   string // of all
	Response string // the whole name of the column response
}

// ResultName is what a column of results is called in an input that is the output of a
// job: by what its files say.
func (in *Input) ResultName(plain string) string {
	if own := in.meta[keyResponse]; plain == "response" && own != "" {
		return own
	}
	return in.meta[keyPrefix] + plain
}

// Validate reports names that no column can have.
func (n Naming) Validate() error {
	for _, name := range []string{n.Prefix, n.Response} {
		if !utf8.ValidString(name) || strings.ContainsAny(name, "\x00\n") {
			return fmt.Errorf("%q cannot be part of a column's name", name)
		}
	}
	return nil
}

// choose returns the names for columns of ours, and the prefix that was needed.
func (n Naming) choose(in *Input, plain []string) (names []string, prefix string, err error) {
	taken := map[string]string{}
	for _, name := range in.Names() {
		taken[strings.ToLower(name)] = name
	}
	try := func(prefix string) (collision string) {
		names = names[:0]
		seen := map[string]bool{}
		for _, name := range plain {
			if name == "response" && n.Response != "" {
				name = n.Response
			} else {
				name = prefix + name
			}
			names = append(names, name)
			lower := strings.ToLower(name)
			if taken[lower] != "" && collision == "" {
				collision = taken[lower]
			}
			if seen[lower] && collision == "" {
				collision = name
			}
			seen[lower] = true
		}
		return collision
	}
	if lower := strings.ToLower(n.Response); n.Response != "" && taken[lower] != "" {
		return nil, "", fmt.Errorf("--response-column %s: the input has a column %s already", n.Response, taken[lower])
	}
	if n.Prefix != "" {
		if is := try(n.Prefix); is != "" {
			return nil, "", fmt.Errorf("--prefix %s: there is a column %s already", n.Prefix, is)
		}
		return names, n.Prefix, nil
	}
	prefix = ""
	for i := 1; try(prefix) != ""; i++ {
		if prefix = "glm_"; i > 1 {
			prefix = fmt.Sprintf("glm%d_", i)
		}
		if i > len(taken)+1 { // each input column is in the way of one prefix at most
			return nil, "", fmt.Errorf("--response-column %s: it is the name of another column of results", n.Response)
		}
	}
	return names, prefix, nil
}
