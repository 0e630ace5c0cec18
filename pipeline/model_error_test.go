package pipeline

import (
	"strings"
	"testing"

	"glmbatch/engine"
	"glmbatch/pipeline/guide"
)

// A model that gives nothing to choose from is the row's error, whatever its
// other samples came to.
func TestModelErrorIsTheRows(t *testing.T) {
	r := &row{left: 2}
	a, b := &sample{row: r}, &sample{row: r, index: 1}
	a.accept(engine.Token{Token: 3})
	if a.accept(engine.Token{Token: -1, Reason: engine.Failed}) {
		t.Error("the engine has ended the request already")
	}
	b.accept(engine.Token{Token: 4, Reason: engine.Length})
	if r.left != 0 || r.err == nil || r.err.code != ModelError {
		t.Errorf("left %d, error %v; want none left and %s", r.left, r.err, ModelError)
	}
}

// Where no logit is a number the error says what to do, guided or not.
func TestModelErrorNamesARemedy(t *testing.T) {
	for _, r := range []*row{{}, {guides: &guide.Guides{}, params: Params{GuidedBy: "guided_json"}}} {
		if err := (&sample{row: r}).failed(nil); !strings.Contains(err.text, "glmbatch model verify") {
			t.Errorf("%s: %s", err.code, err.text)
		}
	}
}
