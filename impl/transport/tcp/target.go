package tcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"kvfence/impl/transport"
)

// target is decode's end of one link in one epoch.
type target struct {
	info   transport.LinkInfo
	grants *transport.Grants
	sink   transport.TargetSink
	wires  []wire
	wg     sync.WaitGroup // the readers

	mu     sync.Mutex
	fenced bool
	lost   bool
}

// Dial opens the streams of a link to the address that prefill announced, proves itself on each, and starts to receive. When it
// returns without error all streams are attached at both ends. ctx bounds the opening only. The grant table decides what lands; the
// caller has raised it to info.Epoch, and fences the target in the end, whatever happens.
func Dial(ctx context.Context, addr string, info transport.LinkInfo, grants *transport.Grants, sink transport.TargetSink, opts Options) (transport.Target, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	if info.Key == [32]byte{} {
		return nil, fmt.Errorf("%w: the link has no key", transport.ErrAuth)
	}
	t := &target{info: info, grants: grants, sink: sink}
	for i := range opts.Streams {
		w, err := dialStream(ctx, addr, hello{stream: i, streams: opts.Streams, prefill: info.Prefill, decode: info.Decode, epoch: info.Epoch}, info.Key, opts)
		if err != nil {
			t.closeAll()
			return nil, fmt.Errorf("stream %d to %s: %w", i, addr, err)
		}
		t.wires = append(t.wires, w)
	}
	t.wg.Add(len(t.wires))
	for i, w := range t.wires {
		x := &receiver{w: w, epoch: info.Epoch, channel: uint32(i), grants: grants, sink: sink}
		go func() {
			defer t.wg.Done()
			t.lose(i, x.run())
		}()
	}
	return t, nil
}

func dialStream(ctx context.Context, addr string, h hello, key [32]byte, opts Options) (wire, error) {
	s, c, err := dialProved(ctx, addr, h, key, opts)
	if err != nil {
		return nil, err
	}
	w, err := newWire(s, c, opts.Spin)
	if err != nil {
		_ = c.Close()
	}
	return w, err
}

// dialProved opens a connection that both ends have proved to be the link's.
func dialProved(ctx context.Context, addr string, h hello, key [32]byte, opts Options) (net.Conn, *net.TCPConn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, nil, err
	}
	c, ok := conn.(*net.TCPConn)
	if !ok {
		_ = conn.Close()
		return nil, nil, fmt.Errorf("%w: %s is no TCP address", ErrOptions, addr)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	s, err := func() (net.Conn, error) {
		if err := opts.tune(c); err != nil {
			return nil, err
		}
		s, binding, err := secure(ctx, c, opts.TLS, false)
		if err != nil {
			return nil, err
		}
		return s, prove(s, key, h, binding)
	}()
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = c.Close()
		if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		return nil, nil, err
	}
	return s, c, nil
}

// lose reports the first loss of a stream that no fence caused, and ends the others.
func (t *target) lose(stream int, err error) {
	t.mu.Lock()
	report := !t.fenced && !t.lost
	t.lost = true
	t.mu.Unlock()
	t.closeAll()
	if report {
		t.sink.Lost(fmt.Errorf("%w: stream %d of %s to %s in epoch %d: %w", transport.ErrStream, stream, t.info.Prefill, t.info.Decode, t.info.Epoch, err))
	}
}

func (t *target) closeAll() {
	for _, w := range t.wires {
		w.close()
	}
}

// Cut implements transport.Cutter: the readers find their streams closed, and the first one reports the loss.
func (t *target) Cut() { t.closeAll() }

// Fence implements transport.Target; see the package comment for why nothing lands once Fenced is called.
func (t *target) Fence() {
	t.mu.Lock()
	again := t.fenced
	t.fenced = true
	t.mu.Unlock()
	if again {
		return
	}
	t.closeAll()
	go func() {
		var err error
		t.wg.Wait()
		err = t.grants.Wait(t.info.Epoch + 1)
		transport.Fenced(t.sink, err)
	}()
}
