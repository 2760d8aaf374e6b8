package node

import (
	"errors"
	"net"
	"os"
	"time"

	"kvfence/spec"
)

// quietBound is how long the end of a side waits for its data paths to be fenced. The exit of the process is the last fence.
const quietBound = 10 * time.Second

// everyEpoch is above any epoch.
const everyEpoch = ^spec.Epoch(0)

// quiet fences every data path of the side and waits, bounded, until nothing is placed or read any more. Not from the loop.
func (p *prefillSide) quiet() {
	done := make(chan struct{})
	p.box.put(func() {
		left := 1
		ended := func(bool) {
			if left--; left == 0 {
				close(done)
			}
		}
		for _, r := range p.ranks {
			for _, l := range r.links {
				left += 2
				l.push.stop(everyEpoch, ended)
				l.pull.stop(everyEpoch, ended)
			}
		}
		ended(true)
	})
	waitFor(done, p.loop)
}

// quiet is as for prefill; here the grant tables are raised first, so that nothing more begins to land.
func (d *decodeSide) quiet() {
	done := make(chan struct{})
	d.box.put(func() {
		left := 1
		ended := func(bool) {
			if left--; left == 0 {
				close(done)
			}
		}
		for _, r := range d.ranks {
			for _, l := range r.links {
				left += 2
				l.grants.Raise(everyEpoch)
				l.push.stop(everyEpoch, ended)
				l.pull.stop(everyEpoch, ended)
			}
		}
		ended(true)
	})
	waitFor(done, d.loop)
}

func waitFor(done chan struct{}, l *loop) {
	t := time.NewTimer(quietBound)
	defer t.Stop()
	select {
	case <-done:
	case <-l.done:
	case <-t.C:
	}
}

// close ends the side: nothing new, links shut, data paths fenced, goroutines waited for, memory given back.
func (p *prefillSide) close() error {
	errs := []error{closeListener(p.control)}
	if p.running.Load() {
		// The peers lose this node before its computation is broken off: that is not an engine's own error.
		p.loop.call(func() {
			for _, r := range p.ranks {
				for _, c := range r.conns {
					c.abort()
				}
			}
		})
		p.quiet()
	}
	p.cancel()
	p.compute.close()
	p.work.close()
	if p.running.Load() {
		p.loop.call(func() {
			for _, r := range p.ranks {
				for _, s := range r.shutExports {
					r.closeExport(s.export)
				}
			}
		})
		p.loop.stop()
	}
	for _, r := range p.ranks {
		if r.data != nil {
			errs = append(errs, r.data.Close())
		}
		if r.shm != nil {
			errs = append(errs, r.shm.Close())
		}
	}
	p.wg.Wait()
	for _, r := range p.ranks {
		if r.verbs != nil {
			errs = append(errs, r.verbs.Close())
		}
		if r.free != nil {
			errs = append(errs, r.free())
		}
	}
	return errors.Join(errs...)
}

// close is as for prefill.
func (d *decodeSide) close() error {
	errs := []error{closeListener(d.api)}
	d.stopStart()
	d.startedOnce.Wait()
	running := d.ready.Swap(false)
	if running {
		d.box.put(func() { d.endRequests(spec.CauseShutdown, "the node is ending") })
		d.quiet()
	}
	d.cancel()
	d.step.close()
	d.work.close()
	if running {
		d.loop.call(func() {
			for _, r := range d.ranks {
				for _, c := range r.conns {
					c.conn.abort()
				}
			}
		})
		d.loop.stop()
	}
	d.wg.Wait()
	for _, r := range d.ranks {
		if r.verbs != nil {
			errs = append(errs, r.verbs.Close())
		}
		if r.free != nil {
			errs = append(errs, r.free())
		}
	}
	return errors.Join(errs...)
}

func closeListener(l net.Listener) error {
	if l == nil {
		return nil
	}
	if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
