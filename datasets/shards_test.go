package datasets

import (
	"path/filepath"
	"slices"
	"testing"
)

// TestShardSteps: timelines of shards are one, whose steps have numbers of their own.
func TestShardSteps(t *testing.T) {
	out := t.TempDir()
	for _, format := range []string{Parquet, Arrow} {
		path := filepath.Join(out, Shard{3, 8}.Dir(), "timeline", PartName(0, format))
		w, err := Create[Span](path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write([]Span{{Step: -1}, {Step: 0}, {Step: 42}}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		var names Names
		r, err := OpenSpans(path, &names, 0)
		if err != nil {
			t.Fatal(err)
		}
		lo, hi := r.Steps(0)
		least, err := r.LeastStep(0)
		var c SpanColumns
		if nerr := r.Next(&c); err != nil || nerr != nil {
			t.Fatal(err, nerr)
		}
		want := []int64{-1, 3_000_000_000, 3_000_000_042}
		if !slices.Equal(c.Step, want) || least != want[1] || lo > want[1] || hi < want[2] {
			t.Errorf("%s: steps %v, least %d, bounds %d to %d", format, c.Step, least, lo, hi)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := Shards(out); err != nil || !slices.Equal(got, []Shard{{3, 8}}) {
		t.Errorf("%v, %v", got, err)
	}
	for name, ok := range map[string]bool{"00000-of-00001": true, "00003-of-00003": false, "3-of-4": false,
		"00001-of-00004x": false, "100000-of-200000": true} {
		if _, got := ParseShard(name); got != ok {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestRowNumbers: of our own columns, whatever the input's are called.
func TestRowNumbers(t *testing.T) {
	type before struct {
		Prompt string `parquet:"prompt"`
		Row    string `parquet:"row_index"`
	}
	in := filepath.Join(t.TempDir(), "in.parquet")
	writeHive(t, in, before{"x", "a"}, before{"y", "b"})
	table, err := Open([]string{in})
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out.parquet")
	o, err := NewOutput(table, Naming{}, Result{})
	if err != nil {
		t.Fatal(err)
	}
	part, err := o.Create(out, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range readAll(t, table.Reader(0, table.Rows)) {
		for sample := range int32(2) {
			if err := part.Write(r, Result{RowIndex: r.Index + 7, SampleIndex: sample}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := part.Close(); err != nil {
		t.Fatal(err)
	}
	var got []int64
	err = RowNumbers(out, func(row, sample int64) error {
		got = append(got, row, sample)
		return nil
	})
	if want := []int64{7, 0, 7, 1, 8, 0, 8, 1}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if err := RowNumbers(in, func(row, sample int64) error { return nil }); err == nil {
		t.Error("a file that is no output has row numbers")
	}
}
