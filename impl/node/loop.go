package node

import (
	"fmt"
	"sync"
	"time"

	"kvfence/impl/core"
	"kvfence/impl/trace"
)

// machine is what the four machines of impl/core have in common.
type machine interface {
	Step(now core.Time, ev core.Event) ([]core.Action, error)
	Deadline() core.Time
}

// loop is the one goroutine that touches the machines of a side. Everything else talks to it through its mailbox.
type loop struct {
	box   *mailbox
	epoch time.Time // zero of the clock
	trace *trace.Writer
	// machines in a fixed order, with the one that carries out actions.
	hosts []*host
	queue []func() // what carrying out an action caused; run in order after all actions of its step
	busy  bool     // the queue is being run
	fatal func(error)

	quit chan struct{}
	once sync.Once
	done chan struct{}
}

// host is one machine of a side with what carries out its actions.
type host struct {
	name string // for traces and logs: "decode/0", "decode/leader"
	m    machine
	act  func(core.Action) error

	trace *trace.Machine // nil without a trace
}

func newLoop(epoch time.Time, t *trace.Writer, fatal func(error)) *loop {
	return &loop{box: newMailbox(), epoch: epoch, trace: t, fatal: fatal, quit: make(chan struct{}), done: make(chan struct{})}
}

// now is the monotonic time; never 0.
func (l *loop) now() core.Time { return core.Time(time.Since(l.epoch)) + 1 }

// post delivers ev to h on the loop; from any goroutine.
func (l *loop) post(h *host, ev core.Event) bool { return l.box.put(func() { l.deliver(h, ev) }) }

// call runs f on the loop and waits for it; false if the loop has ended. Not from the loop itself.
func (l *loop) call(f func()) bool {
	ran := make(chan struct{})
	if !l.box.put(func() { f(); close(ran) }) {
		return false
	}
	select {
	case <-ran:
		return true
	case <-l.done:
		select {
		case <-ran:
			return true
		default:
			return false
		}
	}
}

// later queues ev behind everything that is queued; on the loop only.
func (l *loop) later(h *host, ev core.Event) { l.laterDo(func() { l.step(h, ev) }) }

// laterDo queues f; on the loop only.
func (l *loop) laterDo(f func()) {
	l.queue = append(l.queue, f)
	if l.busy {
		return
	}
	l.busy = true
	for len(l.queue) > 0 {
		f := l.queue[0]
		l.queue[0] = nil
		l.queue = l.queue[1:]
		f()
	}
	l.queue, l.busy = nil, false
}

// deliver steps h with ev, and after it with everything that its actions caused, in order; on the loop only.
func (l *loop) deliver(h *host, ev core.Event) { l.later(h, ev) }

// step is the one place where machines are stepped, and where the trace is written.
func (l *loop) step(h *host, ev core.Event) {
	now := l.now()
	actions, err := h.m.Step(now, ev)
	l.tracePoint(h, now, ev, actions)
	if err != nil {
		l.fatal(fmt.Errorf("%s: %T: %w", h.name, ev, err))
		return
	}
	for _, a := range actions {
		if err := h.act(a); err != nil {
			l.fatal(fmt.Errorf("%s: %T: %w", h.name, a, err))
			return
		}
	}
}

// maxSleep bounds a sleep, so that a clock that jumped is noticed.
const maxSleep = time.Minute

// run is the loop; it ends with stop.
func (l *loop) run() {
	defer close(l.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-l.quit:
			l.box.close()
			return
		case <-l.box.wake:
		case <-timer.C:
		}
		for _, f := range l.box.take() {
			l.laterDo(f)
		}
		for _, h := range l.hosts {
			if d := h.m.Deadline(); d != 0 && d <= l.now() {
				l.deliver(h, core.Tick{})
			}
		}
		timer.Reset(l.sleep())
	}
}

func (l *loop) sleep() time.Duration {
	next, now := maxSleep, l.now()
	for _, h := range l.hosts {
		if d := h.m.Deadline(); d != 0 {
			next = min(next, max(time.Duration(d-now), 0))
		}
	}
	return next
}

// stop ends the loop and waits for it.
func (l *loop) stop() {
	l.once.Do(func() { close(l.quit) })
	<-l.done
}
