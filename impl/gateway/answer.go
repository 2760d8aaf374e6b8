package gateway

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"kvfence/impl/node/api"
)

// answer turns a run's progress into an HTTP response. Nothing is written before all
// choices are ready (stream) or done (whole).
type answer struct {
	w        http.ResponseWriter
	render   *renderer
	job      *job
	onFirst  func() // the first piece of text came
	results  []result
	ready    int
	finished int
	started  bool
	text     []strings.Builder
	hadFirst bool
}

// errWrite: the client does not read. Its connection is gone or it stalls.
var errWrite = errors.New("gateway: the client does not read")

func newAnswer(w http.ResponseWriter, render *renderer, onFirst func()) *answer {
	n := len(render.job.prompts) * render.job.n
	return &answer{
		w: w, render: render, job: render.job, onFirst: onFirst,
		results: make([]result, n), text: make([]strings.Builder, n),
	}
}

// follow reads progress to its end. cancel ends the run. It returns nil when every
// choice is done and, for a stream, written; else the first error.
func (a *answer) follow(events <-chan progress, cancel context.CancelFunc) error {
	var first error
	for p := range events {
		if first != nil {
			continue // the channel is read to its end
		}
		if first = a.take(p); first != nil {
			cancel()
		}
	}
	if first == nil && a.finished != len(a.results) {
		first = api.Errorf(api.Internal, "%d of %d choices ended", a.finished, len(a.results))
	}
	return first
}

func (a *answer) take(p progress) error {
	if p.err != nil {
		return p.err
	}
	if p.ready {
		a.ready++
		if a.ready == len(a.results) && a.job.stream {
			return a.open()
		}
		return nil
	}
	if p.piece != nil && !a.hadFirst {
		a.hadFirst = true
		a.onFirst()
	}
	if p.finish != nil {
		a.finished++
	}
	if a.started {
		return a.stream(p)
	}
	a.collect(p)
	return nil
}

// collect keeps what may not go out yet; at most the answers' own size.
func (a *answer) collect(p progress) {
	res := &a.results[p.index]
	if p.piece != nil {
		a.text[p.index].WriteString(p.piece.text)
		if a.job.logprobs {
			res.tokens = append(res.tokens, p.piece.tokens...)
		}
	} else {
		res.finish, res.completion = p.finish.finish, p.finish.completion
	}
}

// open sends the status line of a stream: every choice's KV is verified.
func (a *answer) open() error {
	h := a.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	a.started = true
	a.w.WriteHeader(http.StatusOK)
	for i := range a.results {
		if c, any := a.render.opening(i); any {
			if err := a.event(c); err != nil {
				return err
			}
		}
	}
	for i := range a.results {
		if err := a.catchUp(i); err != nil {
			return err
		}
	}
	return a.flush()
}

// catchUp sends what a choice said before the others were ready, as one event.
func (a *answer) catchUp(index int) error {
	res := &a.results[index]
	if text := a.text[index].String(); text != "" || len(res.tokens) > 0 {
		if err := a.event(a.render.part(index, piece{text: text, tokens: res.tokens})); err != nil {
			return err
		}
	}
	if res.finish != "" {
		return a.event(a.render.closing(index, res.finish))
	}
	return nil
}

func (a *answer) stream(p progress) error {
	if p.piece != nil {
		return a.event(a.render.part(p.index, *p.piece))
	}
	a.results[p.index].completion = p.finish.completion
	return a.event(a.render.closing(p.index, p.finish.finish))
}

func (a *answer) event(c choice) error {
	b, err := a.render.chunk(c)
	if err != nil {
		return api.Errorf(api.Internal, "an answer that cannot be said as JSON: %v", err)
	}
	return a.write("data: " + string(b) + "\n\n")
}

func (a *answer) write(s string) error {
	if _, err := a.w.Write([]byte(s)); err != nil {
		return errWrite
	}
	return a.flush()
}

func (a *answer) flush() error {
	if err := http.NewResponseController(a.w).Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return errWrite
	}
	return nil
}

// usage counts each prompt once and all completions.
func (a *answer) usage() usage {
	var u usage
	for _, p := range a.job.prompts {
		u.PromptTokens += len(p)
	}
	for _, r := range a.results {
		u.CompletionTokens += r.completion
	}
	u.TotalTokens = u.PromptTokens + u.CompletionTokens
	return u
}

// succeed ends the response after follow has returned nil.
func (a *answer) succeed() error {
	if a.job.stream {
		if a.job.usage {
			b, err := a.render.usageChunk(a.usage())
			if err != nil {
				return api.Errorf(api.Internal, "usage that cannot be said as JSON: %v", err)
			}
			if err := a.write("data: " + string(b) + "\n\n"); err != nil {
				return err
			}
		}
		return a.write("data: [DONE]\n\n")
	}
	for i := range a.results {
		a.results[i].text = a.text[i].String()
	}
	body, err := a.render.whole(a.results, a.usage())
	if err != nil {
		return api.Errorf(api.Internal, "an answer that cannot be said as JSON: %v", err)
	}
	a.started = true
	a.w.Header().Set("Content-Type", "application/json")
	a.w.Header().Set("Cache-Control", "no-store")
	return a.write(string(body))
}

// fail ends the response with f: the whole response, or, once a stream has begun, its
// last event. What went out stands; neither finish reason nor end mark follows.
func (a *answer) fail(f *failure) {
	if !a.started {
		f.write(a.w)
		return
	}
	if a.job.stream {
		_ = a.write("event: error\ndata: " + strings.TrimSpace(string(f.body())) + "\n\n")
	}
}
