package datasets

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

var parquetExts = []string{".parquet", ".parq", ".pq"}

// Expand returns the Parquet files that args name, in order: a file as it is, a
// folder's files at any depth, a glob's matches. Within a folder or a glob the
// order is that of the paths' bytes. Names that start with "." or "_" are left
// out of folders and globs, as other tools do, unless a glob says them.
//
// Globs are DuckDB's: * and ? within a name, ** for any number of folders, [a-z]
// and [!a-z]; all else is as it is.
func Expand(args []string) ([]string, error) {
	var files []string
	for _, arg := range args {
		found, err := expand(arg)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no input files")
	}
	return files, nil
}

func expand(arg string) ([]string, error) {
	if arg == "" {
		return nil, errors.New("an argument is empty: name a file, a folder or a glob")
	}
	arg, err := LocalPath(arg)
	if err != nil {
		return nil, err
	}
	if Scheme(arg) != "" {
		return expandURL(arg)
	}
	info, err := os.Stat(arg)
	if err == nil && !info.IsDir() {
		return []string{arg}, nil
	}
	if err == nil {
		found, err := filesBelow(arg, parquetExts)
		if err == nil && len(found) == 0 {
			err = fmt.Errorf("%s: the folder has no Parquet files (%s)", arg, strings.Join(parquetExts, ", "))
		}
		return found, err
	}
	if !strings.ContainsAny(arg, "*?[") {
		return nil, fmt.Errorf("%s: no such file or folder", arg)
	}
	return glob(arg)
}

// glob lists the files that a pattern matches, and those of the folders that it
// matches. With ** a folder's files match for themselves.
func glob(pattern string) ([]string, error) {
	matches, err := doublestar.FilepathGlob(literal.Replace(pattern), doublestar.WithFailOnIOErrors(),
		doublestar.WithNoFollow())
	if err != nil {
		return nil, fmt.Errorf("%s: bad pattern: %w", pattern, err)
	}
	slices.Sort(matches)
	deep := slices.Contains(strings.Split(filepath.ToSlash(pattern), "/"), "**")
	var files []string
	for _, m := range matches {
		if hiddenMatch(pattern, m) {
			continue
		}
		info, err := os.Stat(m)
		switch {
		case err != nil:
			return nil, err
		case !info.IsDir():
			files = append(files, m)
		case !deep:
			found, err := expand(m)
			if err != nil {
				return nil, err
			}
			files = append(files, found...)
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: the pattern matches no Parquet file", pattern)
	}
	return files, nil
}

// literal takes their meaning from what the library has beyond DuckDB's globs.
var literal = strings.NewReplacer(`\`, `\\`, "{", `\{`, "}", `\}`)

// hiddenMatch reports whether a wildcard of the pattern stands for a hidden name.
func hiddenMatch(pattern, path string) bool {
	said := map[string]bool{}
	for _, name := range strings.Split(filepath.ToSlash(pattern), "/") {
		said[name] = true
	}
	for _, name := range strings.Split(filepath.ToSlash(path), "/") {
		if hidden(name) && name != ".." && !said[name] {
			return true
		}
	}
	return false
}

var scheme = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*)://`)

// Scheme is the scheme of a URL, in small letters; "" of a path.
func Scheme(path string) string {
	if m := scheme.FindStringSubmatch(path); m != nil {
		return strings.ToLower(m[1])
	}
	return ""
}

func hidden(name string) bool { return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") }

// filesBelow lists a folder's files that end in one of exts, sorted by path.
func filesBelow(dir string, exts []string) ([]string, error) {
	var found []string
	root := filepath.Clean(dir) + string(filepath.Separator) // of a link, the folder that it names
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path != root && hidden(d.Name()) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !d.IsDir() && slices.Contains(exts, strings.ToLower(filepath.Ext(path))) {
			found = append(found, path)
		}
		return nil
	})
	slices.Sort(found)
	return found, err
}

// tablesBelow lists a folder's files of tables of our own, sorted by path.
func tablesBelow(dir string) ([]string, error) {
	files, err := filesBelow(dir, append([]string{"." + Arrow}, parquetExts...))
	if err == nil && len(files) == 0 {
		err = errors.New("the folder has no Parquet or Arrow files")
	}
	return files, badFile(dir, err)
}

func isArrow(path string) bool { return strings.EqualFold(filepath.Ext(path), "."+Arrow) }
