package record

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// load are requests that keep a server decoding.
type load struct {
	cancel  context.CancelFunc
	workers sync.WaitGroup

	mu     sync.Mutex
	tokens []int // pieces that each request got, over all its repeats
	fault  error // the first; it ends the wait for tokens
	moved  chan struct{}
}

// decode sends n requests, again and again until stopped.
func (s *server) decode(ctx context.Context, n, tokens int) *load {
	l := &load{tokens: make([]int, n), moved: make(chan struct{}, 1)}
	ctx, l.cancel = context.WithCancel(ctx)
	for i := range n {
		l.workers.Go(func() {
			for ctx.Err() == nil {
				if err := s.stream(ctx, i, tokens, func() { l.got(i) }); err != nil && ctx.Err() == nil {
					l.failed(err)
					return
				}
			}
		})
	}
	return l
}

// stop ends all requests: servers drop a sequence whose client is gone.
func (l *load) stop() {
	l.cancel()
	l.workers.Wait()
}

func (l *load) got(i int) {
	l.mu.Lock()
	l.tokens[i]++
	l.mu.Unlock()
	l.nudge()
}

func (l *load) failed(err error) {
	l.mu.Lock()
	if l.fault == nil {
		l.fault = err
	}
	l.mu.Unlock()
	l.nudge()
}

func (l *load) nudge() {
	select {
	case l.moved <- struct{}{}:
	default:
	}
}

// least returns how many pieces the slowest request has.
func (l *load) least() (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	least := 0
	for i, t := range l.tokens {
		if i == 0 || t < least {
			least = t
		}
	}
	return least, l.fault
}

// until waits until every request has got n pieces.
func (l *load) until(ctx context.Context, n int) error {
	for {
		least, err := l.least()
		if err != nil || least >= n {
			return err
		}
		select {
		case <-l.moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// stream sends one request and calls got for each piece that comes.
func (s *server) stream(ctx context.Context, i, tokens int, got func()) error {
	r, err := s.send(ctx, http.MethodPost, "/v1/completions", map[string]any{
		"model":      s.model,
		"prompt":     fmt.Sprintf("Request %d. Count from one to ten thousand, in words: one, two, three,", i),
		"max_tokens": tokens, "temperature": 0, "ignore_eos": true, "stream": true,
	})
	if err != nil {
		return fmt.Errorf("sending a request to decode: %w", err)
	}
	defer r.Body.Close()
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(nil, maxReply)
	pieces := 0
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:"))
		data = bytes.TrimSpace(data)
		if !ok || len(data) == 0 {
			continue
		}
		if string(data) == "[DONE]" {
			break
		}
		pieces++
		got()
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading what a request decodes: %w", err)
	}
	if pieces == 0 {
		select { // a server that answers nothing is not to be flooded
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
		return errors.New("the server answered a streamed request with nothing")
	}
	return nil
}
