//go:build verbs

package verbs

// #include "shim.h"
import "C"

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// tryWindows tries a device's memory windows on memory of its own: a write inside of one must land, and one that leaves it by a byte must
// not. Soft RoCE announces windows and does not hold their bounds. An error says why windows are not used.
func (r *rail) tryWindows() (err error) {
	if r.hca.limits.windows2 == 0 {
		return errors.New("the device has no memory windows of type 2B")
	}
	if r.adapter.opts.unprobed {
		return nil
	}
	if _, err := r.up(); err != nil {
		return fmt.Errorf("windows could not be tried: %w", err)
	}
	p := &prober{rail: r}
	defer func() { err = errors.Join(err, p.free()) }()
	if err := p.open(); err != nil {
		return fmt.Errorf("windows could not be tried: %w", err)
	}
	if err := p.write(0, 64); err != nil || !bytes.Equal(p.memory[:64], p.ones[:64]) {
		return fmt.Errorf("a write inside of a window did not land: %w", err)
	}
	if err := p.write(windowBytes-63, 64); err == nil || bytes.Contains(p.memory[64:], p.ones[:1]) {
		return errors.New("its windows do not hold their bounds: a write that left one by a byte was taken")
	}
	return nil
}

// windowBytes is the window on the first half of the prober's memory.
const windowBytes = 4096

// prober is two queue pairs of one device and a window between them.
type prober struct {
	rail           *rail
	memory, ones   []byte
	target, source region
	mw             *C.struct_ibv_mw
	key            C.uint32_t
	writer, server *queue
}

func (p *prober) open() (err error) {
	r, none := p.rail, func(error) {}
	if p.memory, err = arena(2 * windowBytes); err != nil {
		return err
	}
	if p.ones, err = arena(4096); err != nil {
		return err
	}
	for i := range p.ones {
		p.ones[i] = 1
	}
	if p.target, err = r.hca.register(p.memory, localWrite|bindWindows); err != nil {
		return err
	}
	if p.source, err = r.hca.register(p.ones, localWrite); err != nil {
		return err
	}
	if p.writer, err = newQueue(r, 0, false, none, nil); err != nil {
		return err
	}
	if p.server, err = newQueue(r, 0, false, none, nil); err != nil {
		return err
	}
	if err := result("let windows be bound", C.kv_qp_init(p.server.qp, C.uint8_t(r.cfg.Port), 1, 0, 1)); err != nil {
		return err
	}
	a, b := r.end(p.writer), r.end(p.server)
	if err := errors.Join(p.writer.connect(a, b), p.server.connect(b, a)); err != nil {
		return err
	}
	p.writer.start()
	p.server.start()
	if p.mw, err = C.kv_mw(r.hca.pd); p.mw == nil {
		return failed("allocate window", err)
	}
	p.key = C.uint32_t(r.adapter.nextKey(C.kv_mw_key(p.mw)))
	return do(p.server, func(b *batch) {
		o := b.add(C.KV_BIND)
		o.mw, o.mr, o.key, o.remote, o.length = pointer(p.mw), pointer(p.target.mr), p.key, addressOf(p.memory), windowBytes
	})
}

// do posts what put appends, and waits for it, as long as a fence waits for its marker; a device that does not answer is asked to look again.
func do(q *queue, put func(*batch)) error {
	done := make(chan error, 1)
	q.push(job{build: func(b *batch, _ int) (bool, error) { put(b); return true, nil }, end: func(err error) { done <- err }})
	for again := range markerRoom {
		select {
		case err := <-done:
			return err
		case <-time.After(remindAfter << again):
			q.wait.wake()
		}
	}
	return errors.New("a request has not completed")
}

// write writes n ones at an offset of the window.
func (p *prober) write(at, n int) error {
	return do(p.writer, func(b *batch) {
		o := b.add(C.KV_WRITE)
		o.remote, o.key = addressOf(p.memory)+C.uint64_t(at), p.key
		b.piece(o, addressOf(p.ones), uint32(n), p.source.local())
	})
}

func (p *prober) free() (err error) {
	for _, q := range []*queue{p.writer, p.server} {
		if q != nil && q.running() {
			err = errors.Join(err, q.stop())
		}
	}
	if err != nil { // what is not quiet is not freed
		return err
	}
	if p.mw != nil {
		err = errors.Join(err, result("free window", C.kv_mw_free(p.mw)))
	}
	for _, q := range []*queue{p.writer, p.server} {
		if q != nil {
			err = errors.Join(err, q.free())
		}
	}
	err = errors.Join(err, p.target.free(), p.source.free())
	for _, m := range [][]byte{p.memory, p.ones} {
		if m != nil {
			err = errors.Join(err, unix.Munmap(m))
		}
	}
	return err
}
