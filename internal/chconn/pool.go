package chconn

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/semaphore"
)

// errClosed is what a closed client answers.
var errClosed = errors.New("the connection is closed")

// A pool bounds the statements on their way. The session used last is the first to be used again: few connections stay
// busy, rather than many idle.
type pool struct {
	slots *semaphore.Weighted
	open  func() (*session, error)

	mu     sync.Mutex
	idle   []*session
	closed bool
}

func newPool(size int, open func() (*session, error)) *pool {
	return &pool{slots: semaphore.NewWeighted(int64(size)), open: open}
}

// get waits for a session until the context is done. Every session goes back with put.
func (p *pool) get(ctx context.Context) (*session, error) {
	if err := p.slots.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("wait for a free connection: %w", cause(ctx))
	}
	s, err := p.take()
	if err != nil {
		p.slots.Release(1)
	}
	return s, err
}

func (p *pool) take() (*session, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errClosed
	}
	if n := len(p.idle); n > 0 {
		s := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return s, nil
	}
	return p.open()
}

func (p *pool) put(s *session) {
	defer p.slots.Release(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = s.close() // its statement is over, and nobody is left to hear of it
		return
	}
	p.idle = append(p.idle, s)
}

// close ends the idle sessions; each of the others ends with its statement.
func (p *pool) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	var errs []error
	for _, s := range p.idle {
		errs = append(errs, s.close())
	}
	p.idle = nil
	return errors.Join(errs...)
}

// cause says why a context is done, so that errors.Is finds [context.Canceled] or [context.DeadlineExceeded], whatever else
// the cause is.
func cause(ctx context.Context) error {
	switch why := context.Cause(ctx); {
	case why == nil:
		return nil
	case errors.Is(why, ctx.Err()):
		return why
	default:
		return fmt.Errorf("%w: %w", ctx.Err(), why)
	}
}
