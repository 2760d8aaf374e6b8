package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// Paths of the interface.
const (
	PathGenerate = "/kvfence/v1/generate"
	PathInfo     = "/kvfence/v1/info"
)

// bodyTimeout bounds how long a request's body may take to arrive.
const bodyTimeout = time.Minute

const contentType = "application/x-ndjson"

// Service is what a decode leader offers. Safe for concurrent use.
type Service interface {
	// Generate answers one request. It reports progress to sink, in order:
	// Accepted at most once, Ready once and before any Token, and returns the
	// success verdict or the failure: an *Error, or any error (its CodeOf is
	// sent). A sink error means that the client is gone: the node should abort.
	// ctx ends when the client's connection does. req is valid until return.
	Generate(ctx context.Context, req *Request, sink Sink) (Done, error)
	Info(ctx context.Context) (Info, error)
}

// Sink takes a request's progress. One goroutine at a time, and none after
// Generate has returned. A call may block on a slow client for WriteTimeout.
type Sink interface {
	Accepted(promptTokens int) error
	Ready(Ready) error
	Token(Token) error
}

// HandlerConfig configures [NewHandler].
type HandlerConfig struct {
	Service         Service
	MaxPromptTokens int                       // longest prompt that is read at all; above the window, so that admission says why
	WriteTimeout    time.Duration             // for each event to a client that does not read; 0: 30 s
	Authorize       func(*http.Request) error // nil: whoever the listener let in
}

// NewHandler serves the interface. The listener brings TLS and peer certificates.
func NewHandler(cfg HandlerConfig) (http.Handler, error) {
	if cfg.Service == nil || cfg.MaxPromptTokens < 1 || cfg.MaxPromptTokens > maxPromptCeiling || cfg.WriteTimeout < 0 {
		return nil, fmt.Errorf("api: handler needs a service, 1..%d prompt tokens (has %d) and a write timeout (has %v)", maxPromptCeiling, cfg.MaxPromptTokens, cfg.WriteTimeout)
	}
	if cfg.WriteTimeout == 0 {
		cfg.WriteTimeout = 30 * time.Second
	}
	h := &handler{cfg}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+PathGenerate, h.guarded(h.generate))
	mux.HandleFunc("GET "+PathInfo, h.guarded(h.info))
	return mux, nil
}

type handler struct{ cfg HandlerConfig }

func (h *handler) guarded(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if h.cfg.Authorize != nil {
			if err := h.cfg.Authorize(r); err != nil {
				http.Error(w, "this interface is for the gateways of this deployment", http.StatusForbidden)
				return
			}
		}
		// A kept connection still has the deadline of its last answer.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(h.cfg.WriteTimeout))
		next(w, r)
	}
}

func (h *handler) info(w http.ResponseWriter, r *http.Request) {
	info, err := h.cfg.Service.Info(r.Context())
	if err != nil {
		http.Error(w, clip(err.Error()), http.StatusServiceUnavailable)
		return
	}
	info.MaxPromptTokens = h.cfg.MaxPromptTokens
	body, err := json.Marshal(info)
	if err != nil {
		http.Error(w, "info cannot be said as JSON", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // the client's loss is its own
}

func (h *handler) generate(w http.ResponseWriter, r *http.Request) {
	s := &eventWriter{w: w, rc: http.NewResponseController(w), timeout: h.cfg.WriteTimeout}
	req, err := h.read(w, r)
	if err != nil {
		s.end(Event{Kind: KindError, Error: Errorf(InvalidRequest, "%w", err)})
		return
	}
	s.seq = sequence{promptTokens: len(req.Prompt), maxTokens: req.MaxTokens}
	done, err := h.cfg.Service.Generate(r.Context(), req, s)
	if err == nil {
		// An illegal success (never ready, wrong counts) must not go out as one.
		if err = s.end(Event{Kind: KindDone, Done: &done}); err == nil || errors.Is(err, errGone) {
			return
		}
		if CodeOf(err) != KVMismatch {
			err = Errorf(Internal, "the node's own answer is not legal: %w", err)
		}
	}
	// A failed write means that nobody reads; there is no one left to tell.
	_ = s.end(Event{Kind: KindError, Error: AsError(err).sanitised()})
}

// read takes the request's body, bounded by the longest prompt.
func (h *handler) read(w http.ResponseWriter, r *http.Request) (*Request, error) {
	rc := http.NewResponseController(w)
	// As with write deadlines, a recorder has none. Without the reset the server's
	// own background read would take the deadline for the client's departure.
	_ = rc.SetReadDeadline(time.Now().Add(bodyTimeout))
	defer func() { _ = rc.SetReadDeadline(time.Time{}) }()
	limit := int64(requestOverhead) + bytesPerToken*int64(h.cfg.MaxPromptTokens)
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		var big *http.MaxBytesError
		if errors.As(err, &big) {
			return nil, fmt.Errorf("%w: the body has more than %d bytes (%d prompt tokens)", ErrRequest, limit, h.cfg.MaxPromptTokens)
		}
		return nil, fmt.Errorf("%w: body: %w", ErrRequest, err)
	}
	return ParseRequest(body)
}

// ParseRequest reads and validates a request's JSON. Errors wrap [ErrRequest].
func ParseRequest(body []byte) (*Request, error) {
	var req Request
	if err := strictJSON(body, &req); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrRequest, err)
	}
	if err := req.Validate(); err != nil {
		return nil, err
	}
	return &req, nil
}

// errGone: the client does not read any more.
var errGone = errors.New("api: the client is gone")

// eventWriter is the Sink of one request.
type eventWriter struct {
	w       http.ResponseWriter
	rc      *http.ResponseController
	timeout time.Duration

	mu      sync.Mutex // a late call after Generate's return must meet ended, not a race
	seq     sequence
	started bool
	over    bool
	gone    error
	buf     []byte
}

func (s *eventWriter) Accepted(promptTokens int) error {
	return s.emit(Event{Kind: KindAccepted, Accepted: &Accepted{PromptTokens: promptTokens}})
}
func (s *eventWriter) Ready(r Ready) error { return s.emit(Event{Kind: KindReady, Ready: &r}) }
func (s *eventWriter) Token(t Token) error { return s.emit(Event{Kind: KindToken, Token: &t}) }

func (s *eventWriter) emit(e Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write(e)
}

// end writes the last event; nothing is written after it has worked.
func (s *eventWriter) end(e Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return fmt.Errorf("%w: a second end", ErrProtocol)
	}
	if e.Kind == KindError {
		s.seq.ended = false // an illegal done has not gone out; its error may
	}
	err := s.write(e)
	s.over = err == nil
	return err
}

// write sends one event. The status line goes out with the first; it says 200 only
// if that first event is not an error. Called with mu held.
func (s *eventWriter) write(e Event) error {
	if s.gone != nil {
		return s.gone
	}
	if s.over {
		return fmt.Errorf("%w: %s after the end", ErrProtocol, e.Kind)
	}
	line, err := AppendEvent(s.buf[:0], e)
	if err != nil {
		return err
	}
	if err := s.seq.step(e); err != nil {
		return err
	}
	s.buf = line
	if !s.started {
		s.started = true
		s.w.Header().Set("Content-Type", contentType)
		s.w.Header().Set("Cache-Control", "no-store")
		if e.Kind == KindError {
			s.w.WriteHeader(e.Error.Status)
		}
	}
	// Recorders and some wrappers have no deadline; a real connection does.
	if err := s.rc.SetWriteDeadline(time.Now().Add(s.timeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return s.lost(err)
	}
	if _, err := s.w.Write(line); err != nil {
		return s.lost(err)
	}
	if err := s.rc.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return s.lost(err)
	}
	return nil
}

func (s *eventWriter) lost(err error) error {
	s.gone = fmt.Errorf("%w: %w", errGone, err)
	return s.gone
}
