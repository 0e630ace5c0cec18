package engine_test

import (
	"pgregory.net/rapid"

	"glmbatch/engine"
	"glmbatch/engine/glm5"
)

// arrival is a request and when it comes and goes.
type arrival struct {
	engine.Request
	after  int                 // tokens that were seen before it comes
	cancel int                 // after so many tokens; 0: never
	guide  func() engine.Guide // nil: none; else each run has its own
}

// play runs requests to their ends, as they come and go.
func play(t *rapid.T, m *glm5.Model, o engine.Options, list []arrival) (map[int64]answer, engine.Stats) {
	e, err := engine.New(m, o)
	if err != nil {
		t.Fatal(err)
	}
	got := map[int64]answer{}
	next, seen := 0, 0
	for next < len(list) || !e.Idle() {
		for next < len(list) && (seen >= list[next].after || e.Idle()) {
			r := list[next].Request
			if list[next].guide != nil {
				r.Guide = list[next].guide()
			}
			if err := e.Add(r); err != nil {
				t.Fatal(err)
			}
			next++
		}
		tokens, err := e.Step()
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range tokens {
			seen++
			a, cancel := got[k.ID], list[k.ID].cancel
			switch {
			case a.reason != engine.Going:
				t.Fatalf("request %d goes on after its end", k.ID)
			case !k.Prompt && cancel > 0 && len(a.tokens) == cancel: // what the step gave behind it
				continue
			}
			a.add(k)
			got[k.ID] = a
			if a.reason == engine.Going && !k.Prompt && len(a.tokens) == cancel {
				e.Cancel(k.ID)
			}
		}
	}
	if s := e.Stats(); s.Pages != 0 || s.Running+s.Waiting != 0 {
		t.Fatalf("idle with %+v", s)
	}
	return got, e.Stats()
}

// same reports requests whose answers differ from those of another run.
func same(t *rapid.T, list []arrival, how string, got, want map[int64]answer) {
	for _, a := range list {
		if got[a.ID].String() != want[a.ID].String() {
			t.Errorf("request %d:\n%s %v\nwant %v", a.ID, how, got[a.ID], want[a.ID])
		}
	}
}
