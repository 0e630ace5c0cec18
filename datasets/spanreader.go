package datasets

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
)

// SpanReader reads the columns of a timeline that attribution needs, a block at a
// time: a row group of a Parquet file, a record batch of an Arrow file.
type SpanReader struct {
	path   string
	source spanSource
	next   int
	least  SpanColumns // its memory
	first  int64       // added to all numbers of steps: several shards are one timeline
}

// spanSource is one format of timelines.
type spanSource interface {
	blocks() int
	// bounds returns the least and the greatest step of a block, or the widest
	// there are; from statistics only.
	bounds(i int) (lo, hi int64)
	steps(i int, c *SpanColumns) error // reads c.Step alone
	read(i int, c *SpanColumns) error
	metadata(key string) (string, bool)
	Close() error
}

// maxBlockRows bounds the rows of a block: a reader holds two.
const maxBlockRows = 1 << 24

// OpenSpans opens a timeline. Names may be shared by the readers of one timeline's
// files.
func OpenSpans(path string, names *Names, also Columns) (*SpanReader, error) {
	open := openParquetSpans
	if isArrow(path) {
		open = openArrowSpans
	}
	source, err := open(path, names, also)
	if err != nil {
		return nil, badFile(path, err)
	}
	return &SpanReader{path: path, source: source, first: firstStep(path)}, nil
}

// SpanFiles returns the timeline files below a folder, in the order of their paths.
func SpanFiles(dir string) ([]string, error) { return tablesBelow(dir) }

// Findings returns what an importer stored about the timeline.
func (r *SpanReader) Findings() ([]Finding, error) {
	text, ok := r.source.metadata(FindingsKey)
	if !ok {
		return nil, nil
	}
	var f []Finding
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return nil, badFile(r.path, fmt.Errorf("metadata %s: %w", FindingsKey, err))
	}
	return f, nil
}

// Blocks returns the number of blocks.
func (r *SpanReader) Blocks() int { return r.source.blocks() }

// Steps returns bounds on the steps that block i has, from its statistics, or the
// widest there are.
func (r *SpanReader) Steps(i int) (lo, hi int64) {
	lo, hi = math.MinInt64, math.MaxInt64
	// Damaged statistics may have any length.
	_ = guard(func() error {
		lo, hi = r.source.bounds(i)
		return nil
	})
	if lo >= 0 && hi < math.MaxInt64-r.first {
		return lo + r.first, hi + r.first
	}
	if r.first > 0 {
		return math.MinInt64, math.MaxInt64
	}
	return lo, hi
}

// LeastStep reads the steps of block i and returns the least that is not
// negative, or the largest number there is.
func (r *SpanReader) LeastStep(i int) (int64, error) {
	err := guard(func() error { return r.source.steps(i, &r.least) })
	least := int64(math.MaxInt64)
	for _, s := range r.least.Step {
		if s >= 0 {
			least = min(least, s+r.first)
		}
	}
	return least, r.failed(i, err)
}

// Skip passes over the next block.
func (r *SpanReader) Skip() { r.next++ }

// Next reads the next block into c, whose memory it reuses, and returns io.EOF
// after the last.
func (r *SpanReader) Next(c *SpanColumns) error {
	if r.next >= r.source.blocks() {
		return io.EOF
	}
	i := r.next
	r.next++
	err := r.failed(i, guard(func() error { return r.source.read(i, c) }))
	if err == nil && r.first > 0 {
		for i, s := range c.Step {
			if s >= 0 {
				c.Step[i] = s + r.first
			}
		}
	}
	return err
}

func (r *SpanReader) failed(i int, err error) error {
	if err != nil {
		err = badFile(r.path, fmt.Errorf("block %d: %w", i, err))
	}
	return err
}

// Close closes the file.
func (r *SpanReader) Close() error { return guard(r.source.Close) }
