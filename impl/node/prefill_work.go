package node

import (
	"context"
	"fmt"
	"time"

	"kvfence/impl/core"
	"kvfence/impl/device"
	"kvfence/impl/workload"
	"kvfence/spec"
)

// seal takes the byte digests of finished parts on a worker; the pages stay held until Sealed. For pull the tag goes into the
// source slot, behind the bytes that it vouches for.
func (r *prefillRank) seal(a core.Seal) {
	r.side.work.put(func() {
		digests := make([]uint64, len(a.Items))
		var segs []spec.Segment
		for i, it := range a.Items {
			pool := r.mem[it.Part.Component]
			var err error
			if segs, err = it.Part.Segments(pool.Layout, it.Index, segs[:0]); err != nil {
				r.side.box.put(func() { r.side.fatal(fmt.Errorf("seal: %w", err)) })
				return
			}
			used := spec.UsedBytes(segs)
			if a.Digests {
				if digests[i], err = digestOf(pool, it.Part, it.Index, it.Src.Page); err != nil {
					r.side.box.put(func() { r.side.fatal(fmt.Errorf("seal: %w", err)) })
					return
				}
			}
			if a.Pull {
				tag := it.Tag
				tag.Used, tag.HasDigest, tag.Digest = used, a.Digests, digests[i]
				if err = putTag(pool, it.Src.Page, it.Slot, tag); err != nil {
					r.side.box.put(func() { r.side.fatal(fmt.Errorf("seal: %w", err)) })
					return
				}
			}
		}
		if !a.Digests {
			digests = nil
		}
		r.side.post(r.host, core.Sealed{Seal: a.Seal, Lease: a.Lease, Digests: digests})
	})
}

// startCompute runs the model over a chunk on the one worker that there is for it.
func (p *prefillSide) startCompute(a core.Compute) {
	p.compute.put(func() {
		done := core.ComputeDone{Transfer: a.Transfer, From: a.From, To: a.To}
		if err := p.runCompute(p.ctx, a); err != nil {
			done.Err = err.Error()
		}
		p.post(p.lead, done)
		p.box.put(p.sayProgress)
	})
}

// sayEvery is how often a long prefill says how far it is.
const sayEvery = 10 * time.Second

// computing is what a long prefill says of itself in the log.
type computing struct {
	every  time.Duration
	oldest spec.TransferID
	said   time.Time // or seen first
}

// sayProgress logs how far the oldest transfer is, once it has been the oldest for long. Loop only.
func (p *prefillSide) sayProgress() {
	s := p.leader.Status()
	if s.Oldest != p.computing.oldest {
		p.computing.oldest, p.computing.said = s.Oldest, time.Now()
		return
	}
	if s.Tokens == 0 || time.Since(p.computing.said) < p.computing.every {
		return
	}
	p.computing.said = time.Now()
	p.log.Info("computing", "transfer", s.Oldest, "computed", s.OldestComputed, "tokens", s.OldestTokens, "transfers", s.Admitted+s.Halves,
		"computed_of_all", s.Computed, "tokens_of_all", s.Tokens)
}

func (p *prefillSide) runCompute(ctx context.Context, a core.Compute) error {
	mems, pages := make([]device.Memory, len(p.ranks)), make([][]spec.GrantedPage, len(p.ranks))
	for k, r := range p.ranks {
		mems[k], pages[k] = r.mem, a.Pages[k][spec.KV]
	}
	kv, err := newSideKV(p.model.Geometry(), mems, pages)
	if err != nil {
		return err
	}
	logits, err := p.model.Prefill(ctx, kv, a.Tokens, int(a.From), int(a.To))
	if err == nil {
		err = kv.store(int(a.From), int(a.To))
	}
	if err != nil || !a.Last {
		return err
	}
	if logits == nil {
		return fmt.Errorf("the last chunk ends at %d of %d tokens", a.To, len(a.Tokens))
	}
	writer, ok := core.AuxWriter(p.layouts)
	if !ok || len(a.Pages[writer][spec.Aux]) == 0 {
		return fmt.Errorf("no page for the auxiliary record")
	}
	return writePage(p.ranks[writer].mem[spec.Aux], a.Pages[writer][spec.Aux][0].Page, func(page []byte) error {
		return putAux(page, auxRecord{Tokens: uint32(len(a.Tokens)), First: sample(logits, a.Sampling, len(a.Tokens))})
	})
}

// logprobsWanted and topWanted read Sampling.Logprobs: 0 none, else 1 + the number of alternatives.
func logprobsWanted(s spec.Sampling) (wanted bool, top int) {
	return s.Logprobs > 0, int(s.Logprobs) - 1
}

// sample draws the token of a position and what the API may show of it.
func sample(logits []float32, s spec.Sampling, pos int) core.Token {
	t := core.Token{ID: workload.Sample(logits, workload.Sampling{Temperature: s.Temperature, TopP: s.TopP, Seed: s.Seed}, pos)}
	if wanted, n := logprobsWanted(s); wanted {
		lp, top := workload.Logprobs(logits, t.ID, min(n, auxMaxTop))
		t.Logprob = lp
		for _, v := range top {
			t.Top = append(t.Top, core.TopToken{ID: v.ID, Logprob: v.Logprob})
		}
	}
	return t
}
