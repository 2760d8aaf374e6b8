package trace

import (
	"bufio"
	"encoding/json"
	"io"
	"sync"
	"time"

	"kvfence/spec"
)

// waiting is how many lines may wait for the file before lines are lost; a loop never waits for a disk.
const waiting = 1 << 15

// Writer writes lines to a file from a goroutine of its own. A nil Writer writes nothing. Safe for concurrent use: lines stand in the
// file in the order of the calls.
type Writer struct {
	mu     sync.Mutex
	lost   int // since the last line that had room
	closed bool
	lines  chan spec.TraceLine
	done   chan error
}

// NewWriter writes to w, and closes it in the end.
func NewWriter(w io.WriteCloser) *Writer {
	t := &Writer{lines: make(chan spec.TraceLine, waiting), done: make(chan error, 1)}
	go func() { t.done <- t.run(w) }()
	return t
}

// Write queues a line. Where the file is too slow lines are lost, which the next one that has room is preceded by a line to say: a
// trace with a hole says so, and is not checked beyond it.
func (t *Writer) Write(l spec.TraceLine) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	if len(t.lines)+2 > cap(t.lines) { // only this goroutine adds
		t.lost++
		return
	}
	if t.lost > 0 {
		t.lines <- spec.TraceLine{At: l.At, Node: l.Node, Machine: spec.TraceWorld, Event: spec.TraceEvent{Kind: "Lost", Number: uint64(t.lost)}}
		t.lost = 0
	}
	t.lines <- l
}

// run is the writing goroutine: a line that waits for nothing is flushed within a second.
func (t *Writer) run(c io.WriteCloser) (err error) {
	w := bufio.NewWriterSize(c, 256<<10)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	keep := func(e error) {
		if err == nil {
			err = e
		}
	}
	for {
		select {
		case l, ok := <-t.lines:
			if !ok {
				keep(w.Flush())
				keep(c.Close())
				return err
			}
			keep(enc.Encode(l))
		case <-tick.C:
			keep(w.Flush())
		}
	}
}

// Close writes what waits and closes the file; the first error of all. Lines that come later are dropped.
func (t *Writer) Close() error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil
	}
	t.closed = true
	close(t.lines)
	t.mu.Unlock()
	return <-t.done
}

// Waiting is how many lines wait for the file.
func (t *Writer) Waiting() int { return len(t.lines) }
