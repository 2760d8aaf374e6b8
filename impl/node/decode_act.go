package node

import (
	"fmt"

	"kvfence/impl/core"
)

// act carries out the leader's actions, in order.
func (d *decodeSide) act(a core.Action) error {
	switch a := a.(type) {
	case core.Did:
	case core.Count:
		d.metrics.count("decode", a)
	case core.ToRank:
		if int(a.Rank) >= len(d.ranks) {
			return fmt.Errorf("no rank %d", a.Rank)
		}
		d.later(d.ranks[a.Rank].host, core.Side{Rank: a.Rank, Msg: a.Msg})
	case core.SendLeader:
		d.later(d.ranks[0].host, core.SayFor{Peer: a.Peer, Body: a.Body})
	case core.OpenStream:
		d.opened(a)
	case core.Emit:
		d.emit(a)
	case core.Answer:
		d.answer(a)
	case core.ReadFirst:
		d.beginFirst(a)
	case core.RunStep:
		d.beginStep(a)
	case core.Stop:
		d.fail(a, "decode")
	default:
		return fmt.Errorf("the driver does not know %T", a)
	}
	return nil
}

// act carries out a rank's actions, in order.
func (r *decodeRank) act(a core.Action) error {
	d := r.side
	switch a := a.(type) {
	case core.Did:
	case core.Count:
		d.metrics.count("decode", a)
	case core.Send:
		if c := r.conns[a.Conn]; c != nil {
			if err := c.conn.send(a.Env); err != nil {
				d.log.Warn("control connection given up", "rank", r.rank, "peer", c.peer.addr, "err", err)
			}
		}
	case core.CloseConn:
		if c := r.conns[a.Conn]; c != nil {
			_ = c.conn.finish() // a full queue has closed it already
		}
	case core.ToLeader:
		r.observe(a.Msg)
		d.later(d.lead, core.Side{Rank: r.rank, Msg: a.Msg})
	case core.OpenData:
		r.openData(a)
	case core.Fence:
		r.fence(a)
	case core.Stop:
		d.fail(a, r.host.name)
	default:
		return r.actMemory(a)
	}
	return nil
}

// actMemory carries out what concerns pages.
func (r *decodeRank) actMemory(a core.Action) error {
	switch a := a.(type) {
	case core.VoidTags:
		if err := r.expel(a.Component, a.Pages); err != nil {
			return err
		}
		return r.mem[a.Component].Store.Void(a.Pages)
	case core.PutTag:
		return putTag(r.mem[a.Component], a.Page, a.Slot, a.Tag)
	case core.Allow:
		if !r.link(a.Peer).grants.Allow(a.Grant) {
			return fmt.Errorf("lease %d cannot enter the grant table of peer %d", a.Grant.Lease, a.Peer)
		}
	case core.Revoke:
		r.link(a.Peer).grants.Revoke(a.Lease)
	case core.Verify:
		r.verify(a)
	case core.PullCopy:
		r.pullCopy(a)
	case core.ReadPages:
		r.readPages(a)
	case core.ReadRefused:
		r.readRefused(a)
	case core.Alarm:
		r.side.metrics.alarm("decode", r.side.log, r.rank, a)
	default:
		return fmt.Errorf("the driver does not know %T", a)
	}
	return nil
}
