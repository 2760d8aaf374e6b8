package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"kvfence/impl/core"
	"kvfence/impl/transport"
	"kvfence/impl/transport/tcp"
	"kvfence/spec"
)

// dataBound is how long the opening of a data path may take.
const dataBound = 20 * time.Second

// targetLink is decode's data path of one link. The grant table stays for the life of the process: its epoch only rises.
type targetLink struct {
	grants *transport.Grants
	push   ends[transport.Target]
	pull   ends[readerPath]
}

// link returns the data path of a peer; on the loop only.
func (r *decodeRank) link(peer core.PeerID) *targetLink {
	l := r.links[peer]
	if l == nil {
		l = &targetLink{grants: transport.NewGrants(r.mem)}
		l.push.fence = func(t transport.Target) { t.Fence() }
		l.pull.fence = func(p readerPath) { p.Fence() }
		r.links[peer] = l
	}
	return l
}

// openData opens the data path and ends in one DataUp.
func (r *decodeRank) openData(a core.OpenData) {
	info := transport.LinkInfo{Prefill: a.Info.Prefill, Decode: a.Info.Decode, Epoch: a.Epoch, Key: a.Info.Key}
	ctx, cancel := context.WithTimeout(r.side.ctx, dataBound)
	l := r.link(a.Peer)
	if a.Info.Pull {
		r.openPull(ctx, cancel, l, a, info)
		return
	}
	l.grants.Raise(a.Epoch)
	e := l.push.open(a.Epoch, cancel)
	sink := &targetSink{rank: r, peer: a.Peer, link: l, end: e, credit: make(chan struct{}, noticeCredit)}
	d := r.side
	opts := tcp.Options{Streams: d.cfg.Transport.Streams, Congestion: d.cfg.Transport.CongestionControl}
	peer := d.peers[a.Peer-1]
	addr := dialable(a.Info.Address, peer.addr)
	if !d.cfg.TLS.PlainData {
		opts.TLS = d.creds.client(serverName(peer.name, addr))
	}
	d.wg.Go(func() {
		t, err := r.push.Dial(ctx, addr, info, l.grants, sink, opts)
		r.sayUnopened(addr, err)
		d.box.put(func() {
			d.later(r.host, dataUp(a.Peer, a.Epoch, l.push.opened(e, t, err)))
			sink.lateLoss()
		})
	})
}

// sayUnopened logs why a data path did not open, unless somebody gave it up on purpose. The link is fenced and tried again.
func (r *decodeRank) sayUnopened(addr string, err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		r.side.log.Warn("data path could not be opened", "rank", r.rank, "peer", addr, "err", err)
	}
}

// dialable is where to dial an announced data address: a listener on all addresses of its host is dialed on the one that its
// control link uses.
func dialable(announced, control string) string {
	host, port, err := net.SplitHostPort(announced)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsUnspecified() {
		return announced
	}
	if host, _, err = net.SplitHostPort(control); err != nil {
		return announced
	}
	return net.JoinHostPort(host, port)
}

// fence carries out decode's fence in the order that it needs: the epoch is raised first, so that no placement begins; then the
// streams are closed; then it waits until every placer has stopped.
func (r *decodeRank) fence(a core.Fence) {
	l, d := r.link(a.Peer), r.side
	l.grants.Raise(a.New)
	began := time.Now()
	l.push.stop(a.Old, func(pushed bool) {
		l.pull.stop(a.Old, func(pulled bool) {
			if !pushed || !pulled { // what could not be fenced may still land: no wait makes it a fence
				d.later(r.host, core.FenceDone{Peer: a.Peer, Old: a.Old})
				return
			}
			d.wg.Go(func() { // the placers of ends that are long over have stopped; this is the proof of it
				if err := l.grants.Wait(a.New); err != nil {
					d.log.Error("what is being placed has no known end", "rank", r.rank, "peer", a.Peer, "err", err)
					d.post(r.host, core.FenceDone{Peer: a.Peer, Old: a.Old})
					return
				}
				d.metrics.fenced("decode", time.Since(began))
				d.post(r.host, core.FenceDone{Peer: a.Peer, Old: a.Old, OK: true})
			})
		})
	})
}

// expel sees to it that nothing is being placed into pages that are handed out now. Their last hold ended by proof; where the proof was
// a receipt, that is the word of the peer that writes. One that writes on is cut off, and the loss of its streams fences its link.
// An error says that the pages cannot be handed out: no proof will come any more.
func (r *decodeRank) expel(c spec.Component, pages []spec.PageID) error {
	for _, p := range r.side.peers {
		l := r.links[p.id]
		if l == nil || len(l.grants.Strays(c, pages)) == 0 || l.settle(c, pages) {
			continue
		}
		r.side.metrics.refused("decode", string(spec.RefuseRevoked), "stray")
		r.side.log.Error("a peer writes into pages of which it said that it was done: it is cut off", "rank", r.rank, "peer", p.addr)
		l.push.each(func(t transport.Target) {
			if k, can := t.(transport.Cutter); can {
				k.Cut()
			}
		})
		if err := l.grants.WaitStrays(); err != nil { // its streams are closed: no longer than a copy in memory
			return fmt.Errorf("pages that are handed out are being written by peer %s: %w", p.addr, err)
		}
	}
	return nil
}

// targetSink hears what happened on a push link.
type targetSink struct {
	rank *decodeRank
	peer core.PeerID
	link *targetLink
	end  *end[transport.Target]
	// credit is for notices that wait for the loop; a peer that sends more of them than the loop can take is read more slowly.
	credit chan struct{}
}

// noticeCredit is how many notices of one link may wait for the loop.
const noticeCredit = 1024

func (s *targetSink) NoticeIn(channel uint32, lease spec.LeaseID, number uint64) {
	d := s.rank.side
	select {
	case s.credit <- struct{}{}:
	case <-d.ctx.Done():
		return
	}
	d.box.put(func() {
		<-s.credit
		d.deliver(s.rank.host, core.NoticeIn{Peer: s.peer, Epoch: s.end.epoch, Channel: channel, Lease: lease, Number: number})
	})
}

func (s *targetSink) Refused(lease spec.LeaseID, why spec.Refusal) {
	s.rank.side.metrics.refused("decode", string(why), "write")
}

func (s *targetSink) Lost(err error) {
	d := s.rank.side
	d.box.put(func() {
		d.log.Warn("data path lost", "rank", s.rank.rank, "peer", s.peer, "err", err)
		if s.end.loss() {
			d.later(s.rank.host, core.DataLost{Peer: s.peer, Epoch: s.end.epoch})
		}
	})
}

// lateLoss reports a loss that came before the opening was booked.
func (s *targetSink) lateLoss() {
	if s.end.lost && s.end.opened && !s.end.fencing {
		s.rank.side.later(s.rank.host, core.DataLost{Peer: s.peer, Epoch: s.end.epoch})
	}
}

// FenceFailed implements transport.FenceFailer.
func (s *targetSink) FenceFailed(err error) {
	d := s.rank.side
	d.box.put(func() {
		d.log.Error("data path could not be fenced", "rank", s.rank.rank, "peer", s.peer, "epoch", s.end.epoch, "err", err)
		s.end.failed = true
		s.link.push.over(s.end)
	})
}

func (s *targetSink) Fenced() { s.rank.side.box.put(func() { s.link.push.over(s.end) }) }
