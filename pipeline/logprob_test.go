package pipeline

import (
	"context"
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"glmbatch/datasets"
	"glmbatch/engine"
)

// improbable is an engine whose log-probabilities are no numbers.
type improbable struct{ stub }

func (e *improbable) Step() ([]engine.Token, error) {
	tokens, err := e.stub.Step()
	for i := range tokens {
		t := &tokens[i]
		t.Logprob = []float32{float32(math.NaN()), float32(math.Inf(-1)), -0.5}[i%3]
		t.Top = []engine.Logprob{{Token: t.Token, Logprob: t.Logprob}, {Token: 7, Logprob: float32(math.Inf(-1))}}
	}
	return tokens, err
}

// TestImprobable: log-probabilities that are no numbers are the least that there is, in
// files, in lines made of them, and in rows that are written again.
func TestImprobable(t *testing.T) {
	out := t.TempDir()
	o := Options{Raw: true, TokenIDs: true, Logprobs: true, Limit: 9,
		Params: Params{Sampling: engine.Sampling{Logprobs: 3}}}
	j := newJob(t, demoInput(t), o, &improbable{stub{vocab: 2000, length: 3}}, out)
	if err := j.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	in, err := datasets.Open([]string{filepath.Join(out, datasets.OutputsDir, "part-00000.parquet")})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	rows, err := newOutputRows(in)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	least, numbers := 0, 0
	more := newWrittenFields(in)
	for r := rows.next(); r != nil; r = rows.next() {
		s, err := more.saved(r)
		if err != nil {
			t.Fatal(err)
		}
		for i, l := range s.chosen {
			switch l.Logprob {
			case leastLogprob:
				least++
			case -0.5:
				numbers++
			default:
				t.Errorf("row %d: %v", r.row, l)
			}
			if s.top[i][1].Logprob != leastLogprob {
				t.Errorf("row %d: %v", r.row, s.top[i])
			}
		}
	}
	if rows.err != nil || least == 0 || numbers == 0 {
		t.Errorf("%d least, %d others, %v", least, numbers, rows.err)
	}
	var lines, errs strings.Builder
	if err := WriteBatch(in, BatchInfo{}, &lines, &errs); err != nil ||
		!strings.Contains(lines.String(), `"logprob":-9999`) || strings.Contains(lines.String(), "Inf") {
		t.Errorf("%v: %s", err, lines.String())
	}
	// As files of earlier versions have them.
	var l []writtenLogprob
	if err := json.Unmarshal([]byte(`[{"id":1,"logprob":"-Inf"},{"id":2,"logprob":"NaN"},{"id":3,"logprob":-2.5}]`),
		&l); err != nil || l[0].Logprob != leastLogprob || l[1].Logprob != leastLogprob || l[2].Logprob != -2.5 {
		t.Errorf("%v, %v", l, err)
	}
	if err := json.Unmarshal([]byte(`[{"logprob":"x"}]`), &l); err == nil {
		t.Error("a text is taken for a number")
	}
}
