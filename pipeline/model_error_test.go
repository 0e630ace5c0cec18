package pipeline

import (
	"testing"

	"glmbatch/engine"
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
