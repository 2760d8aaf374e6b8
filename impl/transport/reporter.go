package transport

import (
	"sync"

	"kvfence/spec"
)

// Reporter calls a source's sink, one call at a time and in order, from a goroutine of its own: neither Post nor a sender ever
// waits for the sink. It ends with the call of Fenced, or of FenceFailed. What it holds is bounded by what was posted.
type Reporter struct {
	sink   SourceSink
	mu     sync.Mutex
	some   sync.Cond
	calls  []func(SourceSink)
	last   bool
	failed error // of the fence
}

// NewReporter runs until Fenced or FenceFailed.
func NewReporter(sink SourceSink) *Reporter {
	r := &Reporter{sink: sink}
	r.some.L = &r.mu
	go r.run()
	return r
}

func (r *Reporter) run() {
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
			Fenced(r.sink, r.failed)
			return
		}
	}
}

func (r *Reporter) add(f func(SourceSink)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, f)
	r.some.Signal()
}

// Posted reports the end of a batch.
func (r *Reporter) Posted(batch uint64, err error) {
	r.add(func(s SourceSink) { s.Posted(batch, err) })
}

// Noticed reports the channels of a notice.
func (r *Reporter) Noticed(l spec.LeaseID, ch []spec.Channel, err error) {
	r.add(func(s SourceSink) { s.Noticed(l, ch, err) })
}

// Lost reports the loss of the link.
func (r *Reporter) Lost(err error) {
	r.add(func(s SourceSink) { s.Lost(err) })
}

// Fenced lets the reporter end after all calls added so far, with Fenced.
func (r *Reporter) Fenced() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = true
	r.some.Signal()
}

// FenceFailed is Fenced for a fence that could not be completed.
func (r *Reporter) FenceFailed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last, r.failed = true, err
	r.some.Signal()
}

// Stop ends a reporter of a source that never came to be: its sink hears nothing.
func (r *Reporter) Stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last, r.sink = true, silent{}
	r.some.Signal()
}

// silent is the sink of a stopped reporter.
type silent struct{}

func (silent) Posted(uint64, error)                        {}
func (silent) Noticed(spec.LeaseID, []spec.Channel, error) {}
func (silent) Lost(error)                                  {}
func (silent) Fenced()                                     {}

// Fenced tells a sink how its fence ended. One that cannot hear of a failure hears nothing: its fence never returns, which is the truth.
func Fenced(sink interface{ Fenced() }, failed error) {
	if failed == nil {
		sink.Fenced()
		return
	}
	if f, can := sink.(FenceFailer); can {
		f.FenceFailed(failed)
	}
}
