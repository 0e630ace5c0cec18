package datasets

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"glmbatch/datasets/pages"
)

// Partition columns, as DuckDB reads them: folders called name=value in the path
// of every file are columns of the table. Where a file has a column of that name
// too, the path's value stands in its place.

// partitionValue is one folder of a path.
type partitionValue struct {
	name string
	raw  string // as the path has it: types are inferred from this
}

const defaultPartition = "__HIVE_DEFAULT_PARTITION__" // stands for null

// pathPartitions are those of a path in its order; the first of a name counts.
func pathPartitions(path string) []partitionValue {
	dir := filepath.ToSlash(path)
	if Scheme(path) != "" {
		dir, _, _ = strings.Cut(dir, "?") // options
	}
	dir = dir[:strings.LastIndexByte(dir, '/')+1]
	var all []partitionValue
	seen := map[string]bool{}
	for _, part := range strings.Split(dir, "/") {
		name, value, ok := strings.Cut(part, "=")
		if !ok || name == "" || strings.Contains(value, "=") || strings.ContainsAny(part, "?\n") {
			continue
		}
		if name = unescape(name); !seen[name] {
			seen[name] = true
			all = append(all, partitionValue{name, value})
		}
	}
	return all
}

func unescape(s string) string {
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}

// partition adds the columns of the files' paths to the table, if all files have
// the same ones.
func (in *Input) partition() {
	names := pathPartitions(in.Files[0].Path)
	if len(names) == 0 {
		return
	}
	values := make([]map[string]string, len(in.Files)) // raw, by name
	for i := range in.Files {
		values[i] = map[string]string{}
		for _, p := range pathPartitions(in.Files[i].Path) {
			values[i][p.name] = p.raw
		}
		if len(values[i]) != len(names) {
			return
		}
		for _, p := range names {
			if _, ok := values[i][p.name]; !ok {
				return
			}
		}
	}
	for _, p := range names {
		kind := partitionKindOf(values, p.name)
		n := leafNode(p.name, kind.leafType())
		if have := in.fieldLike(p.name); have >= 0 {
			n.name = in.root.child(have).name
			in.root.fields[have] = n
		} else {
			in.root.fields = append(in.root.fields, n)
		}
		in.hive = append(in.hive, n)
		for i := range in.Files {
			in.Files[i].hive = append(in.Files[i].hive, kind.value(values[i][p.name]))
		}
	}
	for i := range in.Files {
		in.Files[i].sealPartitions(names, values[i])
	}
}

// sealPartitions makes a file's fingerprint that of its partition columns too.
func (f *File) sealPartitions(names []partitionValue, values map[string]string) {
	h := sha256.New()
	e := json.NewEncoder(h)
	_ = e.Encode(f.Footer) // a hash takes everything
	for _, p := range names {
		_ = e.Encode([]string{p.name, values[p.name]})
	}
	f.Footer = hex.EncodeToString(h.Sum(nil))
}

// fieldLike is the place of a column by its name, whatever its letters' case.
func (in *Input) fieldLike(name string) int {
	for i := range in.root.fields {
		if strings.EqualFold(in.root.child(i).name, name) {
			return i
		}
	}
	return -1
}

func leafNode(name string, typ leafType) *node {
	return &node{name: name, rep: optional, leaf: true, typ: typ}
}

// partitionKind is the type of a partition column.
type partitionKind uint8

const (
	partitionText partitionKind = iota
	partitionDate
	partitionTime
	partitionInt
)

// partitionKindOf is the type that all of a column's values have; else it is text.
func partitionKindOf(values []map[string]string, name string) partitionKind {
	kind, known := partitionText, false
	for _, v := range values {
		raw := v[name]
		if nullPartition(raw) {
			continue
		}
		k := partitionKindOfText(raw)
		if known && k != kind {
			return partitionText
		}
		kind, known = k, true
	}
	return kind
}

func nullPartition(raw string) bool {
	return raw == defaultPartition || strings.EqualFold(raw, "null")
}

func partitionKindOfText(raw string) partitionKind {
	if _, ok := partitionDay(raw); ok {
		return partitionDate
	}
	if _, ok := partitionMoment(raw); ok {
		return partitionTime
	}
	if _, ok := partitionNumber(raw); ok {
		return partitionInt
	}
	return partitionText
}

func (k partitionKind) leafType() leafType {
	switch k {
	case partitionDate:
		return leafType{kind: pages.Int32, logical: pages.Logical{Class: pages.Date}}
	case partitionTime:
		return leafType{kind: pages.Int64, logical: pages.Logical{Class: pages.Timestamp, Unit: pages.Micros}}
	case partitionInt:
		return leafType{kind: pages.Int64}
	}
	return textType
}

// value is packed as in a [Record]; nil is null.
func (k partitionKind) value(raw string) []byte {
	if raw == defaultPartition || k != partitionText && nullPartition(raw) {
		return nil
	}
	switch k {
	case partitionDate:
		day, _ := partitionDay(raw) // the kind says that it is one
		return binary.LittleEndian.AppendUint32(nil, uint32(day.Unix()/(24*60*60)))
	case partitionTime:
		at, _ := partitionMoment(raw)
		return binary.LittleEndian.AppendUint64(nil, uint64(at.UnixMicro()))
	case partitionInt:
		n, _ := partitionNumber(raw)
		return binary.LittleEndian.AppendUint64(nil, uint64(n))
	}
	return []byte(unescape(raw))
}

func partitionDay(raw string) (time.Time, bool) {
	at, err := time.Parse("2006-1-2", raw)
	return at, err == nil
}

// partitionMoment is a time without a zone, or in UTC where it has one.
func partitionMoment(raw string) (time.Time, bool) {
	raw = strings.Replace(raw, "T", " ", 1)
	// with fractions too
	for _, layout := range []string{"2006-1-2 15:4:5", "2006-1-2 15:4:5Z07:00", "2006-1-2 15:4:5Z07"} {
		if at, err := time.Parse(layout, raw); err == nil {
			return at.UTC(), true
		}
	}
	return time.Time{}, false
}

// wholeNumber leaves out what has more zeros or signs than it needs: 007 is a name.
var wholeNumber = regexp.MustCompile(`^(-?[1-9][0-9]*|0)$`)

func partitionNumber(raw string) (int64, bool) {
	if !wholeNumber.MatchString(raw) {
		return 0, false
	}
	n, err := strconv.ParseInt(raw, 10, 64)
	return n, err == nil
}
