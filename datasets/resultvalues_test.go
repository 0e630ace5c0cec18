package datasets

import (
	"testing"

	"github.com/parquet-go/parquet-go"
)

// TestValues: a struct that gives its values itself gives those that the library would.
func TestValues(t *testing.T) {
	empty, text := "", "some text"
	for _, r := range []Result{
		{},
		{Response: &text, Reasoning: &empty, FinishReason: "stop", PromptTokens: 3, CompletionTokens: -4,
			RowIndex: 1 << 40, SampleIndex: 7, Seed: -1 << 60, RunID: "run"},
		{ErrorCode: &text, Error: &text, FinishReason: "error"},
	} {
		const first = 5
		want := parquet.SchemaOf(r).Deconstruct(nil, r)
		have := r.values(nil, first)
		if len(have) != len(want) {
			t.Fatalf("%d values, want %d", len(have), len(want))
		}
		for i, v := range want {
			h := have[i]
			if !parquet.DeepEqual(h, v.Level(v.RepetitionLevel(), v.DefinitionLevel(), v.Column()+first)) {
				t.Errorf("column %d: %+v, want %+v", i, h, v)
			}
		}
	}
}
