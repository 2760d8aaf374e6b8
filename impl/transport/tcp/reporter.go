package tcp

import (
	"sync"

	"kvfence/impl/transport"
	"kvfence/spec"
)

// reporter calls a source's sink, one call at a time and in order, from a goroutine of its own: neither Post nor a sender ever
// waits for the sink. It ends with the call of Fenced. What it holds is bounded by what was posted.
type reporter struct {
	sink  transport.SourceSink
	mu    sync.Mutex
	some  sync.Cond
	calls []func(transport.SourceSink)
	last  bool
}

func newReporter(sink transport.SourceSink) *reporter {
	r := &reporter{sink: sink}
	r.some.L = &r.mu
	go r.run()
	return r
}

func (r *reporter) run() {
	for {
		r.mu.Lock()
		for len(r.calls) == 0 && !r.last {
			r.some.Wait()
		}
		calls, last := r.calls, r.last
		r.calls = nil
		r.mu.Unlock()
		for _, f := range calls {
			f(r.sink)
		}
		if last {
			r.sink.Fenced()
			return
		}
	}
}

func (r *reporter) add(f func(transport.SourceSink)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, f)
	r.some.Signal()
}

func (r *reporter) posted(batch uint64, err error) {
	r.add(func(s transport.SourceSink) { s.Posted(batch, err) })
}

func (r *reporter) noticed(l spec.LeaseID, ch []spec.Channel, err error) {
	r.add(func(s transport.SourceSink) { s.Noticed(l, ch, err) })
}

func (r *reporter) lost(err error) {
	r.add(func(s transport.SourceSink) { s.Lost(err) })
}

// fenced lets the reporter end after all calls added so far.
func (r *reporter) fenced() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = true
	r.some.Signal()
}
