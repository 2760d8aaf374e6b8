package api

import (
	"errors"
	"fmt"
	"io"
)

// sequence is the order of a stream's events, the same at both ends.
type sequence struct {
	promptTokens int
	maxTokens    int // 0: no bound
	accepted     bool
	ready        bool
	ended        bool
	tokens       int
}

// step takes the next event or says what is wrong with it: [ErrProtocol] for the
// order, an *Error of KVMismatch for numbers that differ.
func (s *sequence) step(e Event) error {
	if s.ended {
		return fmt.Errorf("%w: %s after the end", ErrProtocol, e.Kind)
	}
	switch e.Kind {
	case KindAccepted:
		if s.accepted || s.ready {
			return fmt.Errorf("%w: accepted twice or late", ErrProtocol)
		}
		s.accepted = true
		return s.count("accepted by decode", e.Accepted.PromptTokens)
	case KindReady:
		if s.ready {
			return fmt.Errorf("%w: ready twice", ErrProtocol)
		}
		s.ready = true
		if err := s.count("ready at decode", e.Ready.DecodePromptTokens); err != nil {
			return err
		}
		return s.count("ready from prefill", e.Ready.PrefillPromptTokens)
	case KindToken:
		if !s.ready {
			return fmt.Errorf("%w: a token before ready", ErrProtocol)
		}
		s.tokens++
		if s.maxTokens > 0 && s.tokens > s.maxTokens {
			return fmt.Errorf("%w: more than the %d tokens asked for", ErrProtocol, s.maxTokens)
		}
	case KindDone:
		s.ended = true
		if !s.ready {
			return fmt.Errorf("%w: done before ready", ErrProtocol)
		}
		if e.Done.CompletionTokens != s.tokens {
			return fmt.Errorf("%w: done counts %d tokens, %d were sent", ErrProtocol, e.Done.CompletionTokens, s.tokens)
		}
		return s.count("done", e.Done.PromptTokens)
	case KindError:
		s.ended = true
	}
	return nil
}

func (s *sequence) count(where string, got int) error {
	if got != s.promptTokens {
		e := Errorf(KVMismatch, "the prompt has %d tokens, but %d were counted (%s)", s.promptTokens, got, where)
		e.PromptTokens = s.promptTokens
		return e
	}
	return nil
}

// Checked wraps a stream so that only events in a legal order and with agreeing
// counts come through; an error event, an early end and anything illegal come as
// *Error and are final. req is the request that the stream answers.
func Checked(s Stream, req *Request) Stream {
	if c, ok := s.(*checked); ok && c.seq.promptTokens == len(req.Prompt) {
		return c
	}
	return &checked{Stream: s, seq: sequence{promptTokens: len(req.Prompt), maxTokens: req.MaxTokens}}
}

type checked struct {
	Stream
	seq  sequence
	last error
}

func (c *checked) Next() (Event, error) {
	if c.last != nil {
		return Event{}, c.last
	}
	e, err := c.Stream.Next()
	if err == nil {
		if err = e.check(); err == nil {
			err = c.seq.step(e)
		}
		if err != nil && CodeOf(err) != KVMismatch {
			err = Errorf(PeerLost, "%w", err)
		}
	} else if err == io.EOF {
		err = Errorf(PeerLost, "%w", ErrTruncated)
	} else if errors.Is(err, ErrProtocol) && CodeOf(err) == Internal {
		err = Errorf(PeerLost, "%w", err)
	} else {
		failed := *AsError(err)
		if errors.Is(&failed, io.EOF) {
			failed.err = nil // only the end after done is io.EOF
		}
		err = &failed
	}
	switch {
	case err != nil:
		c.last = err
		return Event{}, err
	case e.Kind == KindDone:
		c.last = io.EOF
	case e.Kind == KindError:
		c.last = e.Error
		return Event{}, c.last
	}
	return e, nil
}
