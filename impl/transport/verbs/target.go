//go:build verbs

package verbs

// #include "shim.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"kvfence/impl/transport"
	"kvfence/impl/transport/tcp"
	"kvfence/spec"
)

// target is decode's end of one link in one epoch.
type target struct {
	a      *Adapter
	grants *transport.Grants
	info   transport.LinkInfo
	sink   transport.TargetSink
	conn   net.Conn
	queues [MaxRails]*queue
	rails  []int
	outbox []message      // for the stream's writer
	wg     sync.WaitGroup // the stream's writer
	work   sync.WaitGroup // openings and takings back of rights that are under way

	quiet   sync.Once
	quieted chan struct{} // closed when teardown is over
	failure error         // of teardown

	mu     sync.Mutex
	settle sync.Cond // rights, outbox, lost or fenced have changed
	leases map[spec.LeaseID]*lease
	lost   bool
	fenced bool
}

// Dial opens a link to the address that prefill announced. When it returns without error all rails that both ends have up are connected. ctx bounds the
// opening only. The caller has raised grants to info.Epoch, and fences the target in the end, whatever happens.
func (a *Adapter) Dial(ctx context.Context, addr string, info transport.LinkInfo, grants *transport.Grants, sink transport.TargetSink, stream tcp.Options) (_ transport.Target, err error) {
	if err := a.checkKept(); err != nil {
		return nil, err
	}
	conn, err := tcp.DialStream(ctx, addr, info, stream)
	if err != nil {
		return nil, err
	}
	t := &target{a: a, grants: grants, info: info, sink: sink, conn: conn, quieted: make(chan struct{}), leases: map[spec.LeaseID]*lease{}}
	t.settle.L = &t.mu
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	err = t.open(conn)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close()
		for _, q := range t.queues {
			if q != nil {
				err = errors.Join(err, q.free())
			}
		}
		if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		return nil, fmt.Errorf("link to %s: %w", addr, err)
	}
	if a.leases != LeasesOff {
		grants.Enforce(info.Epoch, t)
	}
	t.run()
	return t, nil
}

// open exchanges addresses and connects.
func (t *target) open(conn net.Conn) (err error) {
	ours := opening{Version: openingVersion, Windows: t.a.leases != LeasesOff}
	t.queues, err = t.a.makeQueues(t.a.opts.NoticeDepth, t.lose, func(rail int) func(spec.LeaseID, uint64) {
		return func(l spec.LeaseID, n uint64) { t.noticed(rail, l, n) }
	})
	if err != nil {
		return errors.Join(err, refuse(conn, err))
	}
	for i, q := range t.queues {
		if q != nil {
			end := t.a.rails[i].end(q)
			end.Keys = t.a.poolKeys(i)
			ours.Rails = append(ours.Rails, end)
		}
	}
	for _, p := range t.a.mem {
		if p != nil {
			ours.Pools = append(ours.Pools, poolEnd{p.Layout, uint64(addressOf(p.Bytes)), uint64(addressOf(p.Tags))})
		}
	}
	if err := putOpening(conn, ours); err != nil {
		return err
	}
	kind, body, err := getFrame(conn)
	if err != nil {
		return err
	}
	if kind != frameOpen {
		return fmt.Errorf("%w: kind %d in place of an opening", ErrFrame, kind)
	}
	theirs, err := parseOpening(body)
	if err != nil {
		return err
	}
	rails, err := agree(ours, theirs)
	if err != nil {
		return err
	}
	if _, err = connectAll(&t.queues, rails, ours.Rails, theirs.Rails); err != nil {
		return err
	}
	t.rails = rails
	if err := t.a.release(t.info, min(theirs.Oldest, t.info.Epoch), false); err != nil {
		return err
	}
	return putFrame(conn, frameReady, nil)
}

// poolKeys are the keys of the whole pools on one rail; where leases have keys of their own there are none to be told.
func (a *Adapter) poolKeys(rail int) (out []poolKey) {
	if a.leases != LeasesOff {
		return nil
	}
	for c, p := range a.mem {
		if p != nil {
			r := a.rails[rail].pools[c]
			out = append(out, poolKey{spec.Component(c), uint32(r.pages.remote()), uint32(r.tags.remote())})
		}
	}
	return out
}

// run starts the queues and both directions of the stream.
func (t *target) run() {
	for _, i := range t.rails {
		t.queues[i].start()
	}
	t.a.join(t)
	t.a.follow(t.info, t.conn, t.hear)
	t.wg.Add(1)
	go func() {
		defer t.wg.Done()
		t.tell()
	}()
}

// message is a frame to prefill: keys of a lease, or the word that it is taken back. What waits is bounded by the leases of the link.
type message struct {
	kind byte
	body []byte
}

// tell writes messages to the stream until the link ends.
func (t *target) tell() {
	for {
		ms := t.messages()
		if ms == nil {
			return
		}
		for _, m := range ms {
			if err := putFrame(t.conn, m.kind, m.body); err != nil {
				t.lose(fmt.Errorf("%w: to %s: %w", transport.ErrStream, t.info.Prefill, err))
				return
			}
		}
	}
}

// messages waits for some; nil at the link's end.
func (t *target) messages() (ms []message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.outbox) == 0 && !t.lost && !t.fenced {
		t.settle.Wait()
	}
	if t.lost || t.fenced {
		return nil
	}
	ms, t.outbox = t.outbox, nil
	return ms
}

// send queues a message. Called with mu held.
func (t *target) send(kind byte, body []byte) {
	t.outbox = append(t.outbox, message{kind, body})
	t.settle.Broadcast()
}

// hear is told how the stream ended: by prefill's word that its end is shut, or without a word.
func (t *target) hear(shut bool, err error) {
	if err == nil {
		err = errors.New("prefill's end is shut")
	}
	t.lose(fmt.Errorf("%w: stream of %s to %s in epoch %d: %w", transport.ErrStream, t.info.Prefill, t.info.Decode, t.info.Epoch, err))
	if shut {
		<-t.quieted // it was in error before it is destroyed, and what it had placed is flushed
		_ = t.a.release(t.info, t.info.Epoch, true)
	}
}

// follow reads a link's stream until it ends. It outlives the target's fence, since prefill may be slower to shut its end.
func (a *Adapter) follow(i transport.LinkInfo, conn net.Conn, hear func(shut bool, err error)) {
	a.mu.Lock()
	a.ends[keyOf(i)] = func() { _ = conn.Close() }
	a.mu.Unlock()
	a.wg.Add(1)
	go func() {
		defer a.wg.Done()
		kind, _, err := getFrame(conn)
		if err == nil && kind != frameShut {
			err = fmt.Errorf("%w: kind %d from prefill", ErrFrame, kind)
		}
		_ = conn.Close()
		a.mu.Lock()
		delete(a.ends, keyOf(i))
		a.mu.Unlock()
		hear(err == nil, err)
	}()
}

// noticed passes a notice on.
func (t *target) noticed(rail int, l spec.LeaseID, n uint64) {
	t.sink.NoticeIn(uint32(rail), l, n)
}

// uses implements member.
func (t *target) uses(rail int) bool { return t.queues[rail] != nil }

// lose reports the first loss that no fence caused.
func (t *target) lose(err error) {
	t.mu.Lock()
	report := !t.fenced && !t.lost
	t.lost = true
	t.settle.Broadcast()
	t.mu.Unlock()
	if report {
		t.sink.Lost(err)
	}
}

// Cut implements transport.Cutter: the queue pairs are put in error now, and destroyed; the loss is reported.
func (t *target) Cut() {
	t.lose(fmt.Errorf("%w: cut off", transport.ErrStream))
	go t.teardown()
}

// Fence implements transport.Target; see the package comment for why nothing lands once Fenced is called.
func (t *target) Fence() {
	t.mu.Lock()
	again := t.fenced
	t.fenced = true
	t.settle.Broadcast()
	t.mu.Unlock()
	if again {
		return
	}
	go func() {
		t.teardown()
		if t.failure == nil {
			for _, i := range t.rails {
				t.queues[i].tellers.Wait() // nothing is heard of the epoch behind Fenced
			}
		}
		t.a.counts.fences.Add(1)
		transport.Fenced(t.sink, t.failure)
	}()
}

// teardown makes the queue pairs quiet, once; it returns when that is done.
func (t *target) teardown() {
	t.quiet.Do(func() {
		defer close(t.quieted)
		if t.failure = t.makeQuiet(); t.failure != nil {
			t.grants.Fail(t.failure)
		}
	})
	<-t.quieted
}

func (t *target) makeQuiet() (err error) {
	t.a.leave(t)
	var qs []*queue
	for _, i := range t.rails {
		qs = append(qs, t.queues[i])
	}
	if err := stopAll(qs); err != nil {
		return err
	}
	if c, can := t.conn.(interface{ CloseWrite() error }); can { // prefill sees the end, and may still say that its own end is shut
		_ = t.conn.SetWriteDeadline(time.Now().Add(shutBound))
		_ = c.CloseWrite()
	}
	t.wg.Wait()
	t.work.Wait()
	if t.a.leases == LeasesOff { // without a key of its own the number must not come back
		if err := flushAll(qs); err != nil {
			return err
		}
		t.a.keep(t.info, qs)
		return nil
	}
	// A4: a window that is freed is gone with its key; the queue pair that it is bound to is in error and goes behind it.
	if err := t.a.fenceStep(stepRights, t.freeRights); err != nil {
		return err
	}
	if err := destroyAll(qs); err != nil {
		return err
	}
	if err := flushAll(qs); err != nil { // A5: what a right let in before it was gone may still be on its way to memory
		return err
	}
	t.releaseAll()
	return nil
}
