package node

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"kvfence/impl/core"
	"kvfence/impl/node/api"
	"kvfence/impl/workload"
	"kvfence/spec"
)

// request is one client's request between Submit and its end. The loop fills it, the client's goroutine empties it; what waits is
// bounded by the maximum of new tokens.
type request struct {
	mu     sync.Mutex
	ready  *api.Ready
	tokens []core.Token
	answer *core.Answer
	wake   chan struct{} // capacity 1
}

// update changes the request and wakes its reader; on the loop.
func (q *request) update(f func()) {
	q.mu.Lock()
	f()
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (d *decodeSide) opened(a core.OpenStream) {
	if q := d.requests[a.Req]; q != nil {
		q.update(func() {
			q.ready = &api.Ready{DecodePromptTokens: int(a.PromptTokens), PrefillPromptTokens: int(a.PrefillTokens)}
		})
	}
}

func (d *decodeSide) emit(a core.Emit) {
	d.metrics.token()
	if q := d.requests[a.Req]; q != nil {
		q.update(func() { q.tokens = append(q.tokens, a.Token) })
	}
}

func (d *decodeSide) answer(a core.Answer) {
	d.metrics.answer(a)
	if q := d.requests[a.Req]; q != nil {
		delete(d.requests, a.Req)
		q.update(func() { q.answer = &a })
	}
}

// Generate implements api.Service: it submits one request and reports its progress. It never answers success on its own: a done
// is the leader's verdict.
func (d *decodeSide) Generate(ctx context.Context, req *api.Request, sink api.Sink) (api.Done, error) {
	if d.halted.Load() {
		return api.Done{}, errHalted()
	}
	if !d.ready.Load() {
		return api.Done{}, withCause(api.Errorf(api.PeerLost, "the prefill side has not been reached yet"), spec.CausePeerLost)
	}
	if err := d.check(req); err != nil {
		return api.Done{}, err
	}
	if most := int64(d.cfg.Bounds.Queue + d.cfg.Bounds.Running + 64); d.inside.Add(1) > most {
		d.inside.Add(-1)
		e := withCause(api.Errorf(api.OverCapacity, "%d requests are at this node", most), spec.CauseOverCapacity)
		e.RetryAfterSeconds = 1
		return api.Done{}, e
	}
	defer d.inside.Add(-1)
	id := core.RequestID(d.nextID.Add(1))
	q := &request{wake: make(chan struct{}, 1)}
	submit := d.submission(id, req)
	if !d.box.put(func() {
		if d.halted.Load() {
			q.update(func() {
				q.answer = &core.Answer{Req: id, Cause: spec.CauseInvariant, Detail: "the node stopped itself"}
			})
			return
		}
		d.requests[id] = q
		d.deliver(d.lead, submit)
	}) {
		return api.Done{}, withCause(api.Errorf(api.ShuttingDown, "the node is ending"), spec.CauseShutdown)
	}
	done, err := d.follow(ctx, q, sink)
	if err != nil && !q.over() {
		d.box.put(func() {
			if d.requests[id] != nil { // nobody reads any more; the leader ends it by its own rules
				delete(d.requests, id)
				d.deliver(d.lead, core.ClientGone{Req: id})
			}
		})
	}
	return done, err
}

// halt ends all requests: a machine of this process has stopped, and nothing that it says is believed any more. Loop only, or
// before the loop runs.
func (d *decodeSide) halt() {
	d.halted.Store(true)
	d.endRequests(spec.CauseInvariant, "the node stopped itself")
}

// endRequests answers every request with a failure; what the leader says of them later reaches nobody. Loop only.
func (d *decodeSide) endRequests(cause spec.Cause, detail string) {
	for id, q := range d.requests {
		delete(d.requests, id)
		q.update(func() { q.answer = &core.Answer{Req: id, Cause: cause, Detail: detail} })
	}
}

func errHalted() error {
	return withCause(api.Errorf(api.Internal, "the node stopped itself"), spec.CauseInvariant)
}

func (q *request) over() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.answer != nil
}

// check refuses what this model does not have.
func (d *decodeSide) check(req *api.Request) error {
	bad := func(param, format string, args ...any) error {
		e := withCause(api.Errorf(api.InvalidRequest, format, args...), spec.CauseInvalid)
		e.Param = param
		return e
	}
	vocab := int32(d.model.Geometry().Vocab)
	for i, t := range req.Prompt {
		if t >= vocab {
			return bad("prompt", "token %d at position %d; the vocabulary has %d", t, i, vocab)
		}
	}
	if req.Adapter != "" {
		return bad("model", "no adapter %q", req.Adapter)
	}
	if req.TopLogprobs > d.cfg.Bounds.TopLogprobs {
		return bad("top_logprobs", "%d alternatives, at most %d", req.TopLogprobs, d.cfg.Bounds.TopLogprobs)
	}
	return nil
}

func (d *decodeSide) submission(id core.RequestID, req *api.Request) core.Submit {
	s := core.Submit{
		Req: id, Label: req.ID, Tenant: req.Tenant, Salt: req.Salt, Adapter: req.Adapter, Prompt: slices.Clone(req.Prompt),
		MaxNew: uint32(req.MaxTokens), TimeLeft: core.Duration(req.TimeLeft), EOS: workload.EOS, Stop: req.Stop,
		Sampling: spec.Sampling{Temperature: req.Temperature, TopP: req.TopP, Seed: req.Seed},
	}
	if req.Logprobs {
		s.Sampling.Logprobs = uint16(1 + req.TopLogprobs)
	}
	return s
}

// follow passes on what the loop reports until the answer.
func (d *decodeSide) follow(ctx context.Context, q *request, sink api.Sink) (api.Done, error) {
	opened := false
	for {
		select {
		case <-ctx.Done():
			return api.Done{}, context.Cause(ctx)
		case <-d.done:
			return api.Done{}, withCause(api.Errorf(api.ShuttingDown, "the node ended"), spec.CauseShutdown)
		case <-q.wake:
		}
		q.mu.Lock()
		ready, tokens, answer := q.ready, q.tokens, q.answer
		q.tokens = nil
		q.mu.Unlock()
		if ready != nil && !opened {
			if err := sink.Ready(*ready); err != nil {
				return api.Done{}, err
			}
			opened = true
		}
		for _, t := range tokens {
			if err := sink.Token(apiToken(t)); err != nil {
				return api.Done{}, err
			}
		}
		if answer != nil {
			return d.verdict(*answer)
		}
	}
}

func apiToken(t core.Token) api.Token {
	out := api.Token{ID: t.ID, Logprob: t.Logprob}
	for _, v := range t.Top {
		out.Top = append(out.Top, api.TopToken{ID: v.ID, Logprob: v.Logprob})
	}
	return out
}

func (d *decodeSide) verdict(a core.Answer) (api.Done, error) {
	if a.Cause == "" {
		return api.Done{Finish: a.Finish, PromptTokens: int(a.PromptTokens), CompletionTokens: int(a.NewTokens)}, nil
	}
	detail := a.Detail
	if detail == "" {
		detail = string(a.Cause)
	}
	e := withCause(api.Errorf(codeOf(a.Cause), "%s", detail), a.Cause)
	e.RetryAfterSeconds = int((time.Duration(a.RetryAfter) + time.Second - 1) / time.Second)
	if a.Cause == spec.CauseTooLong {
		l := a.Limits
		e.PromptTokens, e.MaxTokens, e.WindowTokens = int(l.Prompt), int(l.MaxNew), int(l.Window)
		e.PrefillPoolTokens, e.DecodePoolTokens = int(l.PrefillPool), int(l.DecodePool)
		e.Limit, e.Need, e.Allowed = limitOf(l)
		if a.Detail == "" {
			e.Message = fmt.Sprintf("the request needs %d tokens, the %s has %d", e.Need, l.Limiting, e.Allowed)
		}
	}
	return api.Done{}, e
}

func withCause(e *api.Error, c spec.Cause) *api.Error {
	e.Cause = string(c)
	return e
}

// limitOf names the limit that refused, what was asked of it, and what it has.
func limitOf(l core.Limits) (name string, need, allowed int) {
	switch l.Limiting {
	case "prefill pool":
		return api.LimitPrefillPool, int(l.Prompt), int(l.PrefillPool)
	case "decode pool":
		return api.LimitDecodePool, int(l.Prompt + max(l.MaxNew, 1)), int(l.DecodePool)
	}
	return api.LimitWindow, int(l.Prompt + max(l.MaxNew, 1)), int(l.Window)
}

// codeOf is the API's code of a cause; spec/reason.go names the HTTP status of each.
func codeOf(c spec.Cause) api.Code {
	switch c {
	case spec.CauseTooLong:
		return api.ContextLengthExceeded
	case spec.CauseInvalid, spec.CauseDuplicateLabel:
		return api.InvalidRequest
	case spec.CauseOverCapacity, spec.CausePreempted:
		return api.OverCapacity
	case spec.CauseDeadline:
		return api.Deadline
	case spec.CauseClientGone:
		return api.ClientGone
	case spec.CauseOperator, spec.CauseShutdown:
		return api.ShuttingDown
	case spec.CauseMismatch:
		return api.KVMismatch
	case spec.CauseCompute, spec.CauseInvariant:
		return api.Internal
	}
	return api.PeerLost
}

// Info implements api.Service.
func (d *decodeSide) Info(context.Context) (api.Info, error) {
	info := api.Info{
		Model: d.model.Name(), Revision: revision(d.cfg, d.model), Vocab: d.model.Geometry().Vocab, WindowTokens: int(d.cfg.Sizes.Window),
		DecodePoolTokens: int(d.cfg.Sizes.DecodePool), PageTokens: int(d.cfg.Sizes.Page), Node: d.cfg.Decode.Name,
		Incarnation: d.inc[0].Hex(), Draining: d.drain.Load(),
	}
	info.PrefillPoolTokens, info.Reason = d.pair()
	info.Ready = info.Reason == "" && !info.Draining
	if info.Draining {
		info.Reason = "draining"
	}
	return info, nil
}
