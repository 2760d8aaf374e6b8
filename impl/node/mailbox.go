package node

import "sync"

// mailbox hands work to one goroutine, in order. put never blocks, so that a worker or transport goroutine that reports to the
// loop can never wait for the loop that waits for it. It holds no more than what is outstanding: workers are bounded by the
// machines' own bounds, readers of connections by their credit, clients by the API's.
type mailbox struct {
	mu     sync.Mutex
	items  []func()
	closed bool
	wake   chan struct{} // capacity 1
}

func newMailbox() *mailbox { return &mailbox{wake: make(chan struct{}, 1)} }

// put adds f; false after close: f will not run.
func (m *mailbox) put(f func()) bool {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return false
	}
	m.items = append(m.items, f)
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
	return true
}

// take returns everything that waits.
func (m *mailbox) take() []func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	items := m.items
	m.items = nil
	return items
}

// close makes later puts fail and returns what waits.
func (m *mailbox) close() []func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	items := m.items
	m.items = nil
	return items
}

// pool runs jobs on a fixed number of goroutines, in order of arrival. put never blocks; what may wait is bounded by the machines.
type pool struct {
	mu     sync.Mutex
	more   sync.Cond
	jobs   []func()
	closed bool
	wg     sync.WaitGroup
}

func newPool(workers int) *pool {
	p := &pool{}
	p.more.L = &p.mu
	for range workers {
		p.wg.Go(p.work)
	}
	return p
}

func (p *pool) put(job func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.jobs = append(p.jobs, job)
	p.more.Signal()
}

func (p *pool) work() {
	for {
		p.mu.Lock()
		for len(p.jobs) == 0 && !p.closed {
			p.more.Wait()
		}
		if p.closed {
			p.mu.Unlock()
			return
		}
		job := p.jobs[0]
		p.jobs[0] = nil
		p.jobs = p.jobs[1:]
		p.mu.Unlock()
		job()
	}
}

// close drops what waits, lets the running jobs end and waits for them.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.jobs = nil
	p.more.Broadcast()
	p.mu.Unlock()
	p.wg.Wait()
}
