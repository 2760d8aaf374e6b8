package sim

import (
	"kvfence/impl/core"
	"kvfence/spec"
)

// Request is one client's request and what became of it.
type Request struct {
	ID     core.RequestID
	Slot   int // decode side, or prefill side for a half
	Half   bool
	Submit core.Submit
	Done   bool
	Lost   bool // its node died: the client saw its connection end, nothing was promised
	Gone   bool // the client has left
	Finish string
	Cause  spec.Cause
	Detail string
	Limits core.Limits
	Tokens []int32
	Opened bool
	Final  bool // an Answer came

	w      *World
	toy    *toy // of prompt and tokens
	source spec.SourceName
	life   int
}

// Ask hands a request to the decode side in a slot. A side that is down refuses at once, like a closed port.
func (w *World) Ask(slot int, s core.Submit) *Request {
	q := w.newRequest(slot, s)
	d := w.decode[slot]
	if !d.up || d.lead.dead {
		q.Done, q.Lost = true, true
		return q
	}
	q.life = d.life
	d.later(d.lead, q.Submit)
	return q
}

// Half starts a prefill-first half at a prefill side, as an outside router does.
func (w *World) Half(slot int, s core.Submit) *Request {
	q := w.newRequest(slot, s)
	q.Half = true
	if p := w.prefill[slot]; p.up {
		p.later(p.lead, q.Submit)
	}
	return q
}

func (w *World) newRequest(slot int, s core.Submit) *Request {
	s.Req = core.RequestID(len(w.requests) + 1)
	if s.EOS == 0 {
		s.EOS = -1
	}
	q := &Request{ID: s.Req, Slot: slot, Submit: s, w: w}
	w.requests = append(w.requests, q)
	return q
}

// Leave tells the node that a client is gone; false if it has its answer, or nobody is there.
func (w *World) Leave(q *Request) bool {
	if q.Half {
		return false
	}
	d := w.decode[q.Slot]
	if q.Done || q.Gone || !d.up || d.life != q.life {
		return false
	}
	q.Gone = true
	d.later(d.lead, core.ClientGone{Req: q.ID})
	return true
}

func (w *World) request(id core.RequestID) *Request { return w.requests[id-1] }

// Source is the name that prefill gave a half; zero before.
func (q *Request) Source() spec.SourceName { return q.source }

func (q *Request) domain() spec.Domain {
	return spec.DomainOf(q.Submit.Tenant, q.Submit.Salt, q.Submit.Adapter, revision)
}

// stands is what the KV of a half stands for.
func (q *Request) stands() *xfer {
	return &xfer{domain: q.domain(), prompt: len(q.Submit.Prompt), toy: newToy(q.domain(), q.Submit.Prompt)}
}

func (q *Request) opened(a core.OpenStream) {
	if q.Opened || q.Final {
		q.w.violate(Answers, "request %d is opened twice or after its answer", q.ID)
	}
	q.Opened = true
	if a.PromptTokens != uint32(len(q.Submit.Prompt)) || a.PrefillTokens != a.PromptTokens {
		q.w.violate(Answers, "request %d: prompt of %d tokens is counted as %d and %d", q.ID, len(q.Submit.Prompt), a.PromptTokens, a.PrefillTokens)
	}
}

// emit compares each token, as it leaves, with the one that a single process would have given.
func (q *Request) emit(a core.Emit) {
	if !q.Opened || q.Final {
		q.w.violate(Answers, "request %d: a token before its stream or after its answer", q.ID)
	}
	if q.toy == nil {
		q.toy = newToy(q.domain(), q.Submit.Prompt)
	}
	if want := q.toy.next(len(q.toy.chain) - 1); a.Token.ID != want {
		q.w.violate(I3, "request %d token %d is %d, alone it is %d", q.ID, len(q.Tokens), a.Token.ID, want)
	}
	q.Tokens = append(q.Tokens, a.Token.ID)
	q.toy.push(a.Token.ID)
}

// answer checks the one end of a request: a success is whole, a failure has its cause.
func (q *Request) answer(a core.Answer) {
	if q.Final {
		q.w.violate(I11, "request %d is answered twice", q.ID)
	}
	q.Done, q.Final, q.Finish, q.Cause, q.Detail, q.Limits = true, true, a.Finish, a.Cause, a.Detail, a.Limits
	q.w.note("request %d answered %q %q %s", q.ID, a.Finish, a.Cause, a.Detail)
	switch {
	case a.Cause == "" && a.Finish != "length":
		q.w.violate(I12, "request %d ends well for no reason (%q)", q.ID, a.Finish)
	case a.Cause == "" && q.Submit.MaxNew != 0 && len(q.Tokens) != int(q.Submit.MaxNew):
		q.w.violate(I12, "request %d ends well with %d of %d tokens", q.ID, len(q.Tokens), q.Submit.MaxNew)
	case a.Cause != "" && (a.Finish != "" || !a.Cause.Known()):
		q.w.violate(Answers, "request %d fails with cause %q and finish %q", q.ID, a.Cause, a.Finish)
	case a.Cause == spec.CauseInvariant && q.w.kinds[FenceFailed] == 0:
		q.w.violate(Answers, "request %d: %s", q.ID, a.Detail)
	}
}

// OK reports a request that ended well.
func (q *Request) OK() bool { return q.Final && q.Cause == "" }
