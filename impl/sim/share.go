package sim

import (
	"slices"

	"kvfence/impl/core"
	"kvfence/spec"
)

// What the simulation has for sharing beyond the machines' own: further samples of a running transfer (the leader has none yet, so that
// the driver stands in for it), the copies of a step, and planted bugs.

// fork is a further sample: a lease of its own at every rank, which the world runs and gives back.
type fork struct {
	of     *xfer // prompt and domain
	toy    *toy
	id     spec.TransferID
	leases []spec.LeaseID
	ready  int
	over   bool // ReleaseLease was sent
	freed  int
	steps  int // to come
}

// forkCounter keeps the names of further samples apart from those of the leader.
const forkCounter = 1 << 32

// Fork starts a further sample of a transfer with all its leases ready, at every rank of its side, for so many steps. It may be refused.
func (d *decodeSide) Fork(of spec.TransferID, steps int) bool {
	w := d.w
	x := w.xfers[of]
	if x == nil || !d.up || d.lead.dead {
		return false
	}
	toy := newToy(x.domain, nil)
	toy.chain = append(toy.chain[:0], x.toy.chain[:x.prompt+1]...)
	w.forked++
	f := &fork{of: x, toy: toy, id: spec.TransferID{Leader: of.Leader, Counter: forkCounter + w.forked}, leases: make([]spec.LeaseID, len(d.ranks)), steps: steps}
	d.forks[f.id] = f
	for k, r := range d.ranks {
		d.later(r.host, core.Side{Rank: spec.Rank(k), Msg: core.Fork{Transfer: f.id, From: of}})
	}
	return true
}

// forkSaid takes what a rank says about a further sample; false: it is the leader's.
func (d *decodeSide) forkSaid(rank spec.Rank, m core.SideMsg) bool {
	switch m := m.(type) {
	case core.Taken:
		if f := d.forks[m.Transfer]; f != nil {
			f.leases[rank] = m.Lease
			return true
		}
	case core.LeaseReady:
		if f := d.forks[m.Transfer]; f != nil {
			if f.ready++; f.ready == len(d.ranks) {
				d.forkStep(f, f.toy.next(len(f.toy.chain)-1))
			}
			return true
		}
	case core.NoRoom:
		return d.forkEnd(m.Transfer)
	case core.NoPlan:
		return d.forkEnd(m.Transfer)
	case core.LeaseFailed:
		return d.forkEnd(m.Transfer)
	case core.GrowNoRoom:
		return d.forkEnd(m.Transfer)
	case core.Grown:
		return d.forks[m.Transfer] != nil
	case core.LeaseFreed:
		f := d.forks[m.Transfer]
		if f != nil {
			if f.freed++; f.freed == len(d.ranks) {
				delete(d.forks, m.Transfer)
			}
		}
		return f != nil
	}
	return false
}

// forkEnd gives a further sample up, once.
func (d *decodeSide) forkEnd(id spec.TransferID) bool {
	f := d.forks[id]
	if f == nil {
		return false
	}
	if !f.over {
		f.over = true
		for k, r := range d.ranks {
			d.later(r.host, core.Side{Rank: spec.Rank(k), Msg: core.ReleaseLease{Transfer: id}})
		}
	}
	return true
}

// forkStep runs the step that stores a token; it ends where the pages that it took end.
func (d *decodeSide) forkStep(f *fork, token int32) {
	pos := uint32(len(f.toy.chain) - 1)
	if f.steps == 0 || f.over || pos+1 >= d.w.cfg.Window {
		d.forkEnd(f.id)
		return
	}
	f.steps--
	if pos%pageTokens == 0 {
		for k, r := range d.ranks {
			d.later(r.host, core.Side{Rank: spec.Rank(k), Msg: core.Grow{Transfer: f.id, Pos: pos}})
		}
	}
	d.begin(&read{transfer: f.id, leases: f.leases, run: core.RunStep{Transfer: f.id, Leases: f.leases, Token: token, Pos: pos}, fork: f}, pos)
}

func (d *decodeSide) forkStepped(f *fork, ok bool, next int32) {
	if !ok {
		d.forkEnd(f.id)
		return
	}
	d.w.stepsForked++
	d.forkStep(f, next)
}

// known is what the world knows of the tokens that a read stands for.
func (d *decodeSide) known(rd *read) *xfer {
	if rd.fork != nil {
		return &xfer{domain: rd.fork.of.domain, prompt: rd.fork.of.prompt, toy: rd.fork.toy}
	}
	return d.w.xfers[rd.transfer]
}

// copies does what a step has to do before its kernel.
func (d *decodeSide) copies(rd *read) {
	rd.copied = true
	for k, t := range rd.tables {
		for _, c := range t.Copies {
			if d.w.cfg.Plant.NoCopy {
				continue
			}
			if err := d.ranks[k].mem[c.Component].CopyTokens(c.Index, c.From.Page, c.To.Page, c.Tokens); err != nil {
				d.w.violate(Contract, "%s: copy: %v", d.ranks[k].host.name, err)
			}
		}
	}
}

// appendTo is where a step stores its token: in its block table, or, planted, in the first page of it whatever the position.
func (w *World) appendTo(pages []spec.GrantedPage) []spec.GrantedPage {
	if !w.cfg.Plant.AppendOver {
		return pages
	}
	over := slices.Clone(pages)
	for i := range over {
		over[i] = pages[0]
	}
	return over
}

// plantedIDs replaces content ids by ones that leave something out.
func (d *decodeSide) plantedIDs(m core.SideMsg) core.SideMsg {
	t, ok := m.(core.Take)
	p := d.w.cfg.Plant
	x := d.w.xfers[t.Transfer]
	if !ok || x == nil || !p.ShortIDs && !p.AnyDomain {
		return m
	}
	prompt, contents := x.tokens, []spec.ContentID(nil)
	for i := range t.Contents {
		to := (i + 1) * pageTokens
		from := 0
		if p.ShortIDs {
			from = i * pageTokens
		}
		domain := t.Domain
		if p.AnyDomain {
			domain = spec.Domain{}
		}
		ids := spec.ContentIDs(prompt[from:to], domain, pageTokens)
		contents = append(contents, ids[len(ids)-1])
	}
	t.Contents = contents
	return t
}
