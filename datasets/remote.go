package datasets

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"glmbatch/stores"
)

// LocalPath is the path of a file:// URL; other paths and URLs are as they are.
func LocalPath(arg string) (string, error) {
	if Scheme(arg) != "file" {
		return arg, nil
	}
	u, err := url.Parse(arg)
	if err != nil || u.Host != "" && u.Host != "localhost" || u.Path == "" {
		return "", fmt.Errorf("%s: not a URL of a file on this machine, such as file:///data/prompts.parquet", arg)
	}
	return filepath.FromSlash(u.Path), nil
}

// expandURL is expand for an object store: an object, what lies below a prefix, or
// what a glob matches. A ? begins the URL's options, so it is no wildcard here.
func expandURL(arg string) ([]string, error) {
	if !stores.IsURL(arg) {
		return nil, fmt.Errorf("%s: %s:// cannot be read: it must be one of %s, or file", arg, Scheme(arg),
			strings.Join(stores.Schemes, ", "))
	}
	ctx := context.Background()
	name, query, _ := strings.Cut(arg, "?")
	if strings.ContainsAny(name, "*[") {
		return globURL(ctx, name, query)
	}
	if !strings.HasSuffix(name, "/") {
		if ok, err := stores.Exists(ctx, arg); err != nil || ok {
			return []string{arg}, err
		}
	}
	entries, err := stores.List(ctx, arg)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, e := range entries {
		if !hiddenMatch("", e.Key) && slices.Contains(parquetExts, strings.ToLower(path.Ext(e.Key))) {
			found = append(found, e.URL)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: no such object, and no Parquet files (%s) below it", arg,
			strings.Join(parquetExts, ", "))
	}
	return found, nil
}

// globURL lists what a pattern matches among the objects below its fixed part.
func globURL(ctx context.Context, pattern, query string) ([]string, error) {
	scheme, rest, _ := strings.Cut(pattern, "://")
	base, below := doublestar.SplitPattern(literal.Replace(rest))
	below = strings.TrimPrefix(below, "/")
	if base == "." || base == "" {
		return nil, fmt.Errorf("%s: a bucket's name cannot be a pattern", pattern)
	}
	from := scheme + "://" + base
	if query != "" {
		from += "?" + query
	}
	entries, err := stores.List(ctx, from)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, e := range entries {
		ok, err := doublestar.Match(below, e.Key)
		if err != nil {
			return nil, fmt.Errorf("%s: bad pattern: %w", pattern, err)
		}
		if ok && !hiddenMatch(below, e.Key) {
			found = append(found, e.URL)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: the pattern matches no object", pattern)
	}
	return found, nil
}
