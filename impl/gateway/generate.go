package gateway

import (
	"context"
	"encoding/binary"
	"errors"
	"net/http"
	"slices"
	"strings"

	"kvfence/impl/node/api"
)

// generate answers a completion or a chat. A failure that it returns has not been
// written; after a stream has begun it writes its errors itself.
func (g *Gateway) generate(x *exchange, w http.ResponseWriter, r *http.Request) *failure {
	if g.isDraining() {
		w.Header().Set("Connection", "close")
		return fromNode(api.Errorf(api.ShuttingDown, "this gateway is shutting down"), "", g.cfg.RetryAfter)
	}
	id, f := g.identify(r)
	if f != nil {
		return f
	}
	x.tenant = id.tenant
	leave, f := g.admit.enter(id)
	if f != nil {
		return f
	}
	defer leave()
	body, f := g.body(w, r)
	if f != nil {
		return f
	}
	parse := parseCompletion
	if x.endpoint != "completions" {
		parse = parseChat
	}
	j, f := parse(body, g.tok, limits{choices: g.cfg.MaxChoices, defaultMax: g.cfg.DefaultMaxTokens})
	if f != nil {
		return f
	}
	ctx, cancel := g.requestContext(r)
	defer cancel()
	run, f := g.prepare(ctx, x, id, j)
	if f != nil {
		return f
	}
	release, err := g.admit.acquire(ctx, id.tenant, len(j.prompts)*j.n)
	if err != nil {
		return g.judge(ctx, r, err, j)
	}
	defer release()
	return g.answer(ctx, cancel, x, w, r, run)
}

// requestContext ends with the client's connection, the deadline, or a drain's patience.
func (g *Gateway) requestContext(r *http.Request) (context.Context, context.CancelFunc) {
	timed, cancelTimed := context.WithTimeout(r.Context(), g.cfg.RequestTimeout)
	ctx, cancel := context.WithCancelCause(timed)
	stop := context.AfterFunc(g.forced, func() { cancel(errShutdown) })
	return ctx, func() {
		stop()
		cancel(context.Canceled)
		cancelTimed()
	}
}

// prepare checks what needs the node's info: the model, and a prompt beyond all bounds.
func (g *Gateway) prepare(ctx context.Context, x *exchange, id identity, j *job) (*run, *failure) {
	info, err := g.info.get(ctx, false)
	if err != nil {
		return nil, fromNode(err, j.promptParam(), g.cfg.RetryAfter)
	}
	run := &run{
		backend: g.deps.Backend, tok: g.tok, job: j, id: id, label: x.id,
		deadline: x.start.Add(g.cfg.RequestTimeout), now: g.deps.Now,
	}
	switch {
	case j.model == "" || j.model == info.Model:
		j.model = info.Model
	case slices.Contains(info.Adapters, j.model):
		run.adapter = j.model
	default:
		return nil, noModel(j.model)
	}
	for _, p := range j.prompts {
		// The node judges what fits. Only what its interface cannot carry ends here.
		if info.MaxPromptTokens > 0 && len(p) > info.MaxPromptTokens && len(p) > info.WindowTokens {
			return nil, fromNode(beyond(len(p), j.max, info), j.promptParam(), 0)
		}
	}
	if j.seed != nil {
		run.seed = *j.seed
		return run, nil
	}
	var b [8]byte
	if !g.fillRandom(b[:]) {
		return nil, fromNode(api.Errorf(api.Internal, "no randomness for a seed"), "", 0)
	}
	run.seed = binary.LittleEndian.Uint64(b[:])
	return run, nil
}

func beyond(prompt, asked int, info api.Info) *api.Error {
	e := api.Errorf(api.ContextLengthExceeded, "refused by the gateway")
	e.Limit, e.Need, e.Allowed = api.LimitWindow, prompt, info.WindowTokens
	e.PromptTokens, e.MaxTokens = prompt, asked
	e.WindowTokens, e.PrefillPoolTokens, e.DecodePoolTokens = info.WindowTokens, info.PrefillPoolTokens, info.DecodePoolTokens
	return e
}

// answer runs the admitted request.
func (g *Gateway) answer(ctx context.Context, cancel context.CancelFunc, x *exchange, w http.ResponseWriter, r *http.Request, run *run) *failure {
	j := run.job
	prefix := "cmpl-"
	if j.chat {
		prefix = "chatcmpl-"
	}
	render := &renderer{
		job: j, tok: g.tok, id: prefix + strings.TrimPrefix(x.id, "req_"), model: j.model, created: x.start.Unix(),
	}
	a := newAnswer(w, render, func() {
		g.metrics.firstToken.WithLabelValues(x.endpoint).Observe(g.deps.Now().Sub(x.start).Seconds())
	})
	if j.stream {
		g.metrics.streams.Inc()
		defer g.metrics.streams.Dec()
	}
	err := a.follow(run.start(ctx), cancel)
	if err == nil {
		x.usage = a.usage()
		if err = a.succeed(); err == nil {
			return nil
		}
	}
	f := g.judge(ctx, r, err, j)
	if !a.started {
		return f
	}
	x.code = f.code
	if f.code != string(api.ClientGone) {
		a.fail(f)
	}
	return nil
}

// judge finds the error that the client is told: whoever ended the request's context
// comes before what that did to the backend's stream.
func (g *Gateway) judge(ctx context.Context, r *http.Request, err error, j *job) *failure {
	var own *failure
	cause := context.Cause(ctx)
	switch {
	case errors.As(err, &own):
	case errors.Is(err, errWrite):
		err = api.Errorf(api.ClientGone, "the client does not read")
	case r.Context().Err() != nil:
		err = api.Errorf(api.ClientGone, "the client is gone")
	case errors.Is(cause, errShutdown):
		err = api.Errorf(api.ShuttingDown, "this gateway is shutting down and could wait no longer")
	case api.CodeOf(err) == api.ClientGone && errors.Is(ctx.Err(), context.DeadlineExceeded),
		api.CodeOf(err) == api.Deadline:
		err = api.Errorf(api.Deadline, "the request was not done within %v", g.cfg.RequestTimeout)
	case api.CodeOf(err) == api.ClientGone:
		// Nobody left and the node says so: its fault, never the client's.
		err = api.Errorf(api.PeerLost, "the node ended the request as if its client had left")
	}
	return fromNode(err, j.promptParam(), g.cfg.RetryAfter)
}
