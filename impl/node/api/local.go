package api

import (
	"context"
	"io"
	"sync"
)

// Local is a [Backend] for a gateway in the decode leader's own process: the same
// order, checks and cancellation, without a socket. Safe for concurrent use.
type Local struct {
	service Service
	max     int
	running sync.WaitGroup
}

// NewLocal serves s. maxPromptTokens is what Info reports as the bound of the
// interface; at least the window.
func NewLocal(s Service, maxPromptTokens int) *Local { return &Local{service: s, max: maxPromptTokens} }

// Wait returns when no call of the service is running; call it when no stream is
// opened any more.
func (l *Local) Wait() { l.running.Wait() }

// Info implements [Backend].
func (l *Local) Info(ctx context.Context) (Info, error) {
	info, err := l.service.Info(ctx)
	info.MaxPromptTokens = l.max
	return info, err
}

// Open implements [Backend].
func (l *Local) Open(ctx context.Context, req *Request) (Stream, error) {
	if err := req.Validate(); err != nil {
		return nil, Errorf(InvalidRequest, "%w", err)
	}
	own := *req
	own.Prompt = append(Tokens(nil), req.Prompt...) // the service may outlive the caller's interest
	ctx, cancel := context.WithCancel(ctx)
	s := &localStream{ctx: ctx, cancel: cancel, events: make(chan Event, 16)}
	l.running.Add(1)
	go func() {
		defer l.running.Done()
		defer close(s.events)
		sink := &localSink{stream: s, seq: sequence{promptTokens: len(own.Prompt), maxTokens: own.MaxTokens}}
		sink.end(l.service.Generate(ctx, &own, sink))
	}()
	return Checked(s, req), nil
}

type localStream struct {
	ctx    context.Context
	cancel context.CancelFunc
	events chan Event
}

func (s *localStream) Next() (Event, error) {
	select {
	case e, ok := <-s.events:
		if ok {
			return e, nil
		}
		if s.ctx.Err() == nil {
			return Event{}, io.EOF // Checked makes it an error before done
		}
	case <-s.ctx.Done():
	}
	return Event{}, Errorf(CodeOf(s.ctx.Err()), "%w", context.Cause(s.ctx))
}

func (s *localStream) Close() error {
	s.cancel()
	return nil
}

// localSink is the service's end.
type localSink struct {
	stream *localStream
	mu     sync.Mutex
	seq    sequence
	over   bool
}

func (s *localSink) Accepted(n int) error {
	return s.send(Event{Kind: KindAccepted, Accepted: &Accepted{PromptTokens: n}})
}
func (s *localSink) Ready(r Ready) error { return s.send(Event{Kind: KindReady, Ready: &r}) }
func (s *localSink) Token(t Token) error { return s.send(Event{Kind: KindToken, Token: &t}) }

func (s *localSink) send(e Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return Errorf(Internal, "%w: %s after the end", ErrProtocol, e.Kind)
	}
	if err := e.check(); err != nil {
		return err
	}
	if err := s.seq.step(e); err != nil {
		return err
	}
	return s.put(e)
}

func (s *localSink) put(e Event) error {
	select {
	case s.stream.events <- e:
		return nil
	case <-s.stream.ctx.Done():
		return errGone
	}
}

func (s *localSink) end(done Done, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := Event{Kind: KindDone, Done: &done}
	if err == nil {
		if err = e.check(); err == nil {
			err = s.seq.step(e)
		}
		if err != nil && CodeOf(err) != KVMismatch {
			err = Errorf(Internal, "the node's own answer is not legal: %w", err)
		}
	}
	if err != nil {
		e = Event{Kind: KindError, Error: AsError(err).sanitised()}
	}
	s.over = true
	_ = s.put(e) // nobody there: there is no one left to tell
}
