package glm5

import (
	"fmt"
	"slices"

	"glmbatch/kernels"
)

// What steps leave in the model's memory, for checks against a reference. Each
// fills dst with the first rows of the last program, as the first rank has them that has rows.

// Residual reads [rows, hidden]: the embedding, then each layer's output as its
// calls end.
func (m *Model) Residual(dst []float32) error { return fetch(m, "residual stream", dst, m.buf.x) }

// Final reads [rows, hidden] after the last norm.
func (m *Model) Final(dst []float32) error { return fetch(m, "normed hidden states", dst, m.buf.h) }

// Logits reads [rows of logits, vocab].
func (m *Model) Logits(dst []float32) error { return fetch(m, "logits", dst, m.buf.logits) }

// Routes reads the experts [rows, experts a token] of the last MoE layer that
// ran, ascending, and their weights.
func (m *Model) Routes(experts []int32, weights []float32) error {
	if err := fetch(m, "routes", experts, m.buf.experts); err != nil {
		return err
	}
	return fetch(m, "routing weights", weights, m.buf.weights)
}

// Router reads [rows, experts] of the last MoE layer that ran: logits.
func (m *Model) Router(dst []float32) error { return fetch(m, "router logits", dst, m.buf.router) }

// Scores reads what the last indexer has scored: [rows of its call, positions].
func (m *Model) Scores(dst []float32) error { return fetch(m, "indexer scores", dst, m.buf.scores) }

// Selection reads the positions [rows, top-k] of the last indexer that ran,
// ascending, then -1. Rows below the batch's Long have none: they select
// everything, and what is read for them is stale.
func (m *Model) Selection(dst []int32) error { return fetch(m, "selected positions", dst, m.buf.sel) }

// first is the first rank that has rows.
func (m *Model) first() int {
	return max(0, slices.IndexFunc(m.cuts[0].shares, func(s share) bool { return s.from < s.to }))
}

func fetch[T int32 | float32](m *Model, what string, dst []T, b kernels.Buffer) error {
	if len(dst) == 0 {
		return nil
	}
	if err := m.g.Download(m.first(), bytesOf(dst), b); err != nil {
		return fmt.Errorf("fetching %s: %w", what, err)
	}
	return nil
}
