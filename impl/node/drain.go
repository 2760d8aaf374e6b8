package node

import (
	"context"
	"errors"
	"time"

	"kvfence/impl/core"
)

// Drain stops admitting and waits until everything that runs has ended, or ctx has; progress is logged. What has not ended then
// is aborted by Close. A second call returns when the first does.
func (n *Node) Drain(ctx context.Context) {
	n.mu.Lock()
	n.draining = true
	n.mu.Unlock()
	if n.gate != nil {
		n.gate.Drain()
	}
	if n.decode != nil {
		n.decode.drain.Store(true)
		if n.decode.ready.Load() {
			n.decode.box.put(func() { n.decode.later(n.decode.lead, core.Drain{}) })
		}
	}
	if n.prefill != nil && n.decode == nil { // with decode in this process, its requests still need prefill
		n.prefill.box.put(func() { n.prefill.later(n.prefill.lead, core.Drain{}) })
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	said := time.Now()
	for {
		left := n.unfinished()
		if left == 0 {
			return
		}
		if time.Since(said) > time.Second {
			said = time.Now()
			n.log.Info("draining", "unfinished", left)
		}
		select {
		case <-ctx.Done():
			n.log.Warn("drain time is over; what runs is aborted", "unfinished", left)
			return
		case <-n.stop:
			return
		case <-tick.C:
		}
	}
}

// unfinished counts requests and transfers that have not ended.
func (n *Node) unfinished() (left int) {
	if d := n.decode; d != nil && d.ready.Load() {
		d.loop.call(func() {
			s := d.leader.Status()
			left += max(s.Queued+s.Asking+s.Waiting+s.Filling+s.Running+s.Ending, len(d.requests))
		})
	}
	if p := n.prefill; p != nil {
		p.loop.call(func() { left += p.leader.Status().Admitted })
	}
	return left
}

// Close ends everything: requests that still run get their error, data paths are fenced, goroutines are waited for. Safe after a
// failed Start and more than once.
func (n *Node) Close() error {
	n.closing.Do(func() {
		close(n.ended)
		n.closed = n.close()
	})
	return n.closed
}

func (n *Node) close() error {
	var errs []error
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if n.gate != nil {
		n.gate.Drain()
	}
	if n.decode != nil { // its end gives every request that runs its error, which the servers below still hand out
		errs = append(errs, n.decode.close())
	}
	if n.prefill != nil {
		errs = append(errs, n.prefill.close())
	}
	for _, s := range n.servers {
		if err := s.Shutdown(ctx); err != nil {
			_ = s.Close() // handlers that wait for a client; their contexts end
		}
	}
	errs = append(errs, closeListener(n.gateLn), closeListener(n.operatorLn))
	if n.client != nil {
		n.client.Close()
	}
	n.wg.Wait()
	if n.trace != nil {
		errs = append(errs, n.trace.Close())
	}
	return errors.Join(errs...)
}
