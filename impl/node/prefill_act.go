package node

import (
	"fmt"

	"kvfence/impl/core"
)

// act carries out the leader's actions, in order.
func (p *prefillSide) act(a core.Action) error {
	switch a := a.(type) {
	case core.Did:
	case core.Count:
		p.metrics.count("prefill", a)
	case core.ToRank:
		if int(a.Rank) >= len(p.ranks) {
			return fmt.Errorf("no rank %d", a.Rank)
		}
		p.later(p.ranks[a.Rank].host, core.Side{Rank: a.Rank, Msg: a.Msg})
	case core.ReplyLeader:
		p.later(p.ranks[0].host, core.SayFor{Peer: a.Peer, Body: a.Body})
	case core.Compute:
		p.startCompute(a)
	case core.Stop:
		p.fail(a, "prefill")
	default:
		return fmt.Errorf("the driver does not know %T", a)
	}
	return nil
}

// act carries out a rank's actions, in order.
func (r *prefillRank) act(a core.Action) error {
	p := r.side
	switch a := a.(type) {
	case core.Did:
	case core.Count:
		p.metrics.count("prefill", a)
	case core.Send:
		if c := r.conns[a.Conn]; c != nil {
			if err := c.send(a.Env); err != nil {
				p.log.Warn("control connection given up", "rank", r.rank, "peer", a.Peer, "err", err)
			}
		}
	case core.CloseConn:
		if c := r.conns[a.Conn]; c != nil {
			_ = c.finish() // a full queue has closed it already
		}
	case core.ToLeader:
		p.later(p.lead, core.Side{Rank: r.rank, Msg: a.Msg})
	case core.VoidTags:
		return r.mem[a.Component].Store.Void(a.Pages)
	case core.ExpectData:
		r.expectData(a)
	case core.Fence:
		r.fence(a)
	case core.Seal:
		r.seal(a)
	case core.Post:
		r.post(a)
	case core.Notice:
		r.notice(a)
	case core.Alarm:
		p.metrics.alarm("prefill", p.log, r.rank, a)
	case core.Stop:
		p.fail(a, r.host.name)
	default:
		return fmt.Errorf("the driver does not know %T", a)
	}
	return nil
}
