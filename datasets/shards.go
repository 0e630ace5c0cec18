package datasets

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// ShardsDir is the folder, in an output folder, that has those of its shards.
const ShardsDir = "shards"

// Shard is one of a job's Of equal parts, from 0.
type Shard struct{ Index, Of int }

// Dir is the shard's place in an output folder.
func (s Shard) Dir() string {
	return filepath.Join(ShardsDir, fmt.Sprintf("%05d-of-%05d", s.Index, s.Of))
}

func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, s.Of) }

var shardName = regexp.MustCompile(`^([0-9]{5,9})-of-([0-9]{5,9})$`)

// ParseShard is the shard that a folder's name says.
func ParseShard(name string) (s Shard, ok bool) {
	m := shardName.FindStringSubmatch(name)
	if m == nil {
		return s, false
	}
	i, err1 := strconv.Atoi(m[1])
	n, err2 := strconv.Atoi(m[2])
	return Shard{i, n}, err1 == nil && err2 == nil && i < n
}

// Shards lists those that an output folder has, in order of their numbers.
func Shards(out string) ([]Shard, error) {
	entries, err := os.ReadDir(filepath.Join(out, ShardsDir))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Shard
	for _, e := range entries {
		if s, ok := ParseShard(e.Name()); ok && e.IsDir() {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b Shard) int { return a.Index - b.Index })
	return all, nil
}

// ShardSteps is where the numbers of a shard's steps begin when several are read as
// one timeline: step 7 of shard 3 is step 3,000,000,007.
const ShardSteps = 1_000_000_000

// firstStep is that of a file of steps or of a timeline: 0 where no shard wrote it.
func firstStep(path string) int64 {
	dir := filepath.Dir(filepath.Dir(path)) // the shard's, of shard/timeline/part
	if s, ok := ParseShard(filepath.Base(dir)); ok && filepath.Base(filepath.Dir(dir)) == ShardsDir {
		return int64(s.Index) * ShardSteps
	}
	return 0
}
