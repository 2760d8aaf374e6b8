//go:build linux

package shm

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"sync"

	"kvfence/impl/transport"
	"kvfence/spec"
)

// Export is one pull link at prefill, in one epoch. Safe for concurrent use.
type Export struct {
	e     *Exporter
	info  transport.LinkInfo
	sink  transport.ExporterSink
	nonce spec.Nonce

	mu     sync.Mutex
	page   *control
	busy   bool // a handshake has shown the key, or the link is open
	conn   *net.UnixConn
	peer   *peer
	shut   bool
	closed bool

	calls sync.Mutex // one call of the sink at a time
	ended bool       // ReaderEnded was called; by calls
}

// Shut tells the reader, through the control page and by closing the socket, that this end has given the link up. It proves
// nothing about copies in progress: the reader's process stays watched, and its end is still reported.
func (x *Export) Shut() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.shutLocked()
}

func (x *Export) shutLocked() {
	if x.shut {
		return
	}
	x.shut = true
	x.page.end()
	if x.conn != nil {
		_ = x.conn.Close() // nothing is sent after the handshake
	}
}

// Close shuts the link and stops watching its reader: call it when no source page is held for it any more. No call of the sink
// begins after it has returned; one that had begun may still run.
func (x *Export) Close() error {
	x.e.mu.Lock()
	if x.e.exports[nameOf(x.info)] == x {
		delete(x.e.exports, nameOf(x.info))
	}
	x.e.mu.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil
	}
	x.shutLocked()
	x.closed = true
	err := x.page.close()
	if x.peer != nil {
		err = errors.Join(err, x.peer.close())
	}
	return err
}

// call gives the sink one event, unless the link is closed or its reader's end was reported before.
func (x *Export) call(last bool, f func(transport.ExporterSink)) {
	x.calls.Lock()
	defer x.calls.Unlock()
	x.mu.Lock()
	closed := x.closed
	x.mu.Unlock()
	if closed || x.ended {
		return
	}
	x.ended = last
	f(x.sink)
}

// handshake is the exporter's side of wire.go. The connection is the link's when it returns nil.
func (e *Exporter) handshake(c *net.UnixConn) (err error) {
	defer func() {
		if err != nil {
			e.shaken(c)
		}
	}()
	p, err := peerOf(c, e.cfg.UIDs)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	s := &script{conn: c}
	hello := append([]byte(magic), make([]byte, challenge)...)
	random(hello[len(magic):])
	if err = s.send(hello); err != nil {
		return fmt.Errorf("%w: %w", transport.ErrAuth, err)
	}
	var x *Export
	body, files, err := s.receive(claimBytes, 1, func(b []byte) error {
		x = e.find(decodeClaim(b))
		if x == nil {
			return fmt.Errorf("%w: no such link", transport.ErrAuth)
		}
		s.key = x.info.Key
		return nil
	})
	if err != nil {
		return err
	}
	defer closeAll(files)
	if err = x.take(); err != nil {
		return err
	}
	if err = x.introduce(s, decodeClaim(body), files[0]); err == nil {
		err = x.open(c, p)
	}
	if err != nil {
		x.giveBack()
	}
	return err
}

func (e *Exporter) find(c claim) *Export {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.exports[linkName{c.prefill, c.decode, c.epoch}]
}

// take reserves the link for one handshake: one reader a link.
func (x *Export) take() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	err := ErrTwin
	switch {
	case x.shut:
		err = ErrClosed
	case !x.busy:
		x.busy = true
		return nil
	}
	return fmt.Errorf("epoch %d of %s: %w", x.info.Epoch, x.info.Decode, err)
}

func (x *Export) giveBack() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.busy = x.conn != nil
}

// introduce is packets 3 to 5: each end shows its memory and says what it has read in the other's.
func (x *Export) introduce(s *script, c claim, readerPage int) error {
	theirs, err := openControl(readerPage, x.info, c.nonce)
	if err != nil {
		return err
	}
	read := theirs.nonce()
	if err := theirs.close(); err != nil {
		return err
	}
	if err := x.sendTable(s); err != nil {
		return fmt.Errorf("%w: %w", transport.ErrAuth, err)
	}
	body, _, err := s.receive(nonceBytes, 0, nil)
	if err != nil {
		return err
	}
	if !bytes.Equal(body, x.nonce[:]) {
		return fmt.Errorf("reader of epoch %d: %w", x.info.Epoch, ErrNonce)
	}
	if err := s.send(read[:]); err != nil {
		return fmt.Errorf("%w: %w", transport.ErrAuth, err)
	}
	return nil
}

// sendTable sends packet 3. The control page's descriptor is used under the lock, so that Close cannot take
// it away; those of the pools stay open for as long as the exporter.
func (x *Export) sendTable(s *script) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return ErrClosed
	}
	t, files := tableOf(x.nonce, x.e.cfg.Pools)
	fds := []int{int(x.page.file.Fd())}
	for _, f := range files {
		fds = append(fds, int(f.Fd()))
	}
	return s.send(t.encode(), fds...)
}

// open makes the connection the link's own, tells the sink and begins to watch.
func (x *Export) open(c *net.UnixConn, p *peer) error {
	if !x.e.shaken(c) {
		return fmt.Errorf("%w: the handshake was dropped", transport.ErrAuth)
	}
	x.mu.Lock()
	if x.shut {
		x.mu.Unlock()
		return fmt.Errorf("epoch %d of %s: %w", x.info.Epoch, x.info.Decode, ErrClosed)
	}
	x.conn, x.peer = c, p
	x.mu.Unlock()
	x.call(false, func(s transport.ExporterSink) { s.Opened() })
	x.e.wg.Go(func() { x.watchSocket(c) })
	x.e.wg.Go(func() { x.watchProcess(p) })
	return nil
}

// watchSocket reports the loss of the socket. The reader says nothing on it after the handshake.
func (x *Export) watchSocket(c *net.UnixConn) {
	_, files, err := readPacket(c)
	closeAll(files)
	if err == nil {
		err = errors.New("reader spoke after the handshake")
	}
	if errors.Is(err, net.ErrClosed) {
		return // by Shut or Close
	}
	_ = c.Close() // nothing is sent after the handshake
	x.call(false, func(s transport.ExporterSink) {
		s.Lost(fmt.Errorf("%w: reader %s of epoch %d: %w", transport.ErrStream, x.info.Decode, x.info.Epoch, err))
	})
}

// watchProcess reports the end of the reader's process.
func (x *Export) watchProcess(p *peer) {
	if p.wait() == nil {
		x.call(true, func(s transport.ExporterSink) { s.ReaderEnded() })
	}
}
