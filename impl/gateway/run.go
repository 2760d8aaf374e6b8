package gateway

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"kvfence/impl/node/api"
)

// result is a finished choice.
type result struct {
	text       string
	tokens     []placed
	finish     string
	completion int // tokens, as the node counts
}

// progress is what a choice's goroutine tells the one that answers. Exactly one of
// the fields beside index says what.
type progress struct {
	index  int
	ready  bool
	piece  *piece
	finish *result // text and tokens empty: they went before
	err    error
}

// run is one admitted request at the backend: prompts x n choices, each a request of
// its own there.
type run struct {
	backend  api.Backend
	tok      Tokenizer
	job      *job
	id       identity
	label    string
	adapter  string
	seed     uint64
	deadline time.Time
	now      func() time.Time
}

// SampleSeed is the seed of sample j (from 0) of each prompt; sample 0 has the
// request's own, so that n changes no earlier sample.
func SampleSeed(seed uint64, j int) uint64 {
	return seed + uint64(j)*0x9e3779b97f4a7c15
}

// start runs all choices. The channel is closed when every goroutine has ended and
// every stream is closed; the receiver must read it to the end, and may cancel ctx to
// hasten that.
func (r *run) start(ctx context.Context) <-chan progress {
	out := make(chan progress, 16)
	var wg sync.WaitGroup
	for index := range len(r.job.prompts) * r.job.n {
		wg.Add(1)
		go func() {
			defer wg.Done()
			// An error is always told: the receiver reads to the end.
			if err := r.choice(ctx, index, out); err != nil {
				out <- progress{index: index, err: err}
			}
		}()
	}
	go func() {
		wg.Wait()
		close(out)
	}()
	return out
}

func (r *run) request(index int) *api.Request {
	req := &api.Request{
		ID: fmt.Sprintf("%s-%d", r.label, index), Tenant: r.id.tenant, Salt: r.job.salt, Adapter: r.adapter,
		Prompt: r.job.prompts[index/r.job.n], MaxTokens: r.job.max,
		Temperature: r.job.temperature, TopP: r.job.topP, Seed: SampleSeed(r.seed, index%r.job.n),
		Logprobs: r.job.logprobs, TopLogprobs: r.job.top,
		TimeLeft: api.Millis(r.deadline.Sub(r.now())),
	}
	for _, s := range r.job.stop {
		req.Stop = append(req.Stop, r.tok.Encode(s))
	}
	return req
}

// choice runs one stream to its end. It returns nil only after done.
func (r *run) choice(ctx context.Context, index int, out chan<- progress) error {
	req := r.request(index)
	if req.TimeLeft <= 0 {
		return context.DeadlineExceeded
	}
	stream, err := r.backend.Open(ctx, req)
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	stream = api.Checked(stream, req)
	// The reader may be parked in Next on a stream that knows nothing of ctx.
	stop := context.AfterFunc(ctx, func() { _ = stream.Close() })
	defer stop()

	text := newAssembler(r.tok, r.job.stop)
	for {
		e, err := stream.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		var p progress
		switch e.Kind {
		case api.KindReady:
			p = progress{index: index, ready: true}
		case api.KindToken:
			p = r.piece(index, text.push(*e.Token))
		case api.KindDone:
			if last := r.piece(index, text.finish()); last.piece != nil {
				if err := send(ctx, out, last); err != nil {
					return err
				}
			}
			p = progress{index: index, finish: r.finished(text, e.Done)}
		}
		if p == (progress{}) || p.piece == nil && p.finish == nil && !p.ready {
			continue
		}
		if err := send(ctx, out, p); err != nil {
			return err
		}
	}
}

// piece wraps text that may go out; the zero progress if there is nothing to say.
func (r *run) piece(index int, p piece) progress {
	if p.text == "" && (len(p.tokens) == 0 || !r.job.logprobs) {
		return progress{}
	}
	return progress{index: index, piece: &p}
}

func (r *run) finished(text *assembler, done *api.Done) *result {
	finish := done.Finish
	if text.stopped {
		finish = api.FinishStop // also where the node does not know stop sequences
	}
	return &result{finish: finish, completion: done.CompletionTokens}
}

func send(ctx context.Context, out chan<- progress, p progress) error {
	select {
	case out <- p:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
