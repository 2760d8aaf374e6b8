package follow

import (
	"slices"

	"kvfence/spec"
)

// Waits says that a line receives what its sender has not said yet: where traces of several nodes are merged, others go first. Guards that look
// at another node only ever come to hold, never cease to, so that any order in which nobody hears what was not said is right.
func (f *Follower) Waits(l *spec.TraceLine) bool {
	e := &l.Event
	switch l.Machine {
	case spec.TraceDecode:
		if r := f.decodes[l.Node]; r != nil && r.links[e.Peer] != nil {
			return f.decodeWaits(r, r.links[e.Peer], e)
		}
	case spec.TracePrefill:
		return f.prefillWaits(l.Node, e)
	case spec.TracePrefillLeader:
		if peerSaid(e, "ask") && !e.Transfer.IsZero() {
			id, known := f.ids[e.Transfer]
			return !known && f.leaders[e.Transfer.Leader] != nil && f.leaders[e.Transfer.Leader].last < e.Transfer.Counter || known && f.s.transfer(id).lead < leadAsking
		}
	case spec.TraceDecodeLeader:
		if id, known := f.ids[e.Transfer]; known && peerSaid(e, "asked") && len(f.leads) > 0 {
			t := f.s.transfer(id)
			return t.lead == leadAsking && !t.pask
		}
	}
	return false
}

func (f *Follower) decodeWaits(r *decodeRank, k *decodeLink, e *spec.TraceEvent) bool {
	if e.Kind == "Recv" && e.Message == "accept" {
		p := f.prefill[e.From]
		if n := len(k.incs); n > 0 && k.incs[n-1] != e.From && f.prefill[k.incs[n-1]] != nil && f.unread(k.incs[n-1]) {
			return true // the life before this one has said more
		}
		return p == nil || p.links[r.inc] == nil || !slices.Contains(p.links[r.inc].epochs, e.Epoch) // of a node not seen yet: its file may be behind
	}
	if k.inc != e.From && e.Kind == "Recv" || f.prefill[k.inc] == nil {
		return false
	}
	o := f.s.lease(leaseKey(r.node, e.Lease)).on(k.k)
	if o == nil || !o.owes {
		return false
	}
	switch {
	case e.Kind == "NoticeIn":
		return len(o.nsent) == 0
	case e.Kind != "Recv":
	case e.Message == "complete":
		return o.ans&(1<<kindComplete|1<<kindMisnamed) == 0
	case e.Message == "failed":
		return o.ans&(1<<kindFailed) == 0
	case e.Message == "abort_ack":
		return o.ans&(1<<kindAck) == 0
	case e.Message == "gone":
		return o.ans&(1<<kindGone) == 0
	case e.Message == "offer":
		p := f.prefillLeaseOf(k, o.lease.id)
		return p == nil || !p.offered
	}
	return false
}

func (f *Follower) prefillWaits(node spec.Incarnation, e *spec.TraceEvent) bool {
	p, r := f.prefill[node], f.decodes[e.From]
	if p == nil || e.Kind != "Recv" && e.Kind != "ConnectIn" || r != nil && r.over {
		return false
	}
	if r == nil {
		return e.Kind == "ConnectIn"
	}
	if e.Kind == "ConnectIn" {
		if x := p.links[e.From]; x != nil && x.to != nil {
			k := f.s.links[x.to.k]
			return Epoch(e.Epoch) > k.ep || leaseKey(r.node, e.Mark) > k.dmark && e.Mark > 0
		}
		if p.links[e.From] != nil {
			return true // decode has not heard the last answer
		}
		for _, x := range r.links {
			if k := f.s.links[x.k]; Epoch(e.Epoch) <= k.ep && (e.Mark == 0 || leaseKey(r.node, e.Mark) <= k.dmark) {
				return false
			}
		}
		return true
	}
	k := p.peers[e.Peer]
	if k == nil || k.decode != e.From {
		return false
	}
	if k.to == nil {
		return e.Message == "grant" || e.Message == "abort" || e.Message == "read"
	}
	if leaseKey(r.node, e.Mark) > f.s.links[k.to.k].dmark && e.Mark > 0 {
		return true
	}
	l := leaseKey(r.node, e.Lease)
	o := f.s.lease(l).on(k.to.k)
	switch e.Message {
	case "grant":
		return o == nil && l >= f.s.nodes[r.node].nextL
	case "abort":
		return o != nil && !aborted(o.lease)
	case "read":
		return o != nil && o.hold
	}
	return false
}
