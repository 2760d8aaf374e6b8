package node

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"kvfence/impl/core"
	"kvfence/spec"
)

// tracer writes each step of each machine as one JSON object a line: time, machine, event, actions. A nil tracer writes nothing.
// Safe for concurrent use by the loops of both sides.
type tracer struct {
	mu   sync.Mutex
	w    *bufio.Writer
	c    io.Closer
	err  error
	stop chan struct{}
	done chan struct{}
}

type traceItem struct {
	Type string `json:"type"`
	Body any    `json:"body"`
}

type traceLine struct {
	At      core.Time   `json:"at"`
	Machine string      `json:"machine"`
	Event   traceItem   `json:"event"`
	Actions []traceItem `json:"actions,omitempty"`
	Err     string      `json:"err,omitempty"`
}

func newTracer(w io.WriteCloser) *tracer {
	t := &tracer{w: bufio.NewWriterSize(w, 256<<10), c: w, stop: make(chan struct{}), done: make(chan struct{})}
	go t.flushNowAndThen()
	return t
}

func (t *tracer) step(machine string, now core.Time, ev core.Event, actions []core.Action, err error) {
	if t == nil {
		return
	}
	line := traceLine{At: now, Machine: machine, Event: traceItem{typeName(ev), redact(ev)}}
	for _, a := range actions {
		line.Actions = append(line.Actions, traceItem{typeName(a), redact(a)})
	}
	if err != nil {
		line.Err = err.Error()
	}
	b, jerr := json.Marshal(line)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = jerr
	}
	if t.err == nil {
		_, t.err = t.w.Write(append(b, '\n'))
	}
}

func (t *tracer) flushNowAndThen() {
	defer close(t.done)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			t.mu.Lock()
			if err := t.w.Flush(); t.err == nil {
				t.err = err
			}
			t.mu.Unlock()
		case <-t.stop:
			return
		}
	}
}

// close flushes and closes the file; the first error of all.
func (t *tracer) close() error {
	if t == nil {
		return nil
	}
	close(t.stop)
	<-t.done
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.w.Flush(); t.err == nil {
		t.err = err
	}
	if err := t.c.Close(); t.err == nil {
		t.err = err
	}
	return t.err
}

// redact takes the keys of data streams out of what is traced. Prompts stay: a trace is as confidential as the requests.
func redact(v any) any {
	switch v := v.(type) {
	case core.ConnectIn:
		v.Key = [32]byte{}
		return v
	case core.OpenData:
		v.Info.Key = [32]byte{}
		return v
	case core.ExpectData:
		v.Info.Key = [32]byte{}
		return v
	case core.Recv:
		v.Env = withoutKey(v.Env)
		return v
	case core.Send:
		v.Env = withoutKey(v.Env)
		return v
	}
	return v
}

func withoutKey(e spec.Envelope) spec.Envelope {
	if m, ok := e.Body.(spec.Accept); ok {
		m.DataKey = [32]byte{}
		e.Body = m
	}
	return e
}

// typeName names an event or action, and the message inside of it.
func typeName(v any) string {
	var inner any
	switch v := v.(type) {
	case core.Side:
		inner = v.Msg
	case core.ToRank:
		inner = v.Msg
	case core.ToLeader:
		inner = v.Msg
	case core.Recv:
		inner = v.Env.Body
	case core.Send:
		inner = v.Env.Body
	case core.SayFor:
		inner = v.Body
	}
	if inner == nil {
		return short(v)
	}
	return short(v) + "(" + short(inner) + ")"
}

func short(v any) string {
	name := fmt.Sprintf("%T", v)
	return name[strings.LastIndexByte(name, '.')+1:]
}
