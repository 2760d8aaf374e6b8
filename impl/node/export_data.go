package node

import (
	"context"
	"errors"
	"fmt"

	"kvfence/impl/core"
	"kvfence/impl/transport"
	"kvfence/impl/transport/shm"
)

var errNoPull = fmt.Errorf("%w: this node's pools cannot be mapped (transport.kind is not shm)", transport.ErrStream)

// exportPath is prefill's end of a pull link in one epoch.
type exportPath struct {
	export *shm.Export
	sink   *exporterSink
}

// offerPool lets decode's reader map this rank's pool. It ends in DataUp when the reader has, or when it does not in time.
func (r *prefillRank) offerPool(a core.ExpectData, info transport.LinkInfo) {
	p, l := r.side, r.link(a.Peer)
	ctx, cancel := context.WithTimeout(p.ctx, dataBound)
	e := l.pull.open(a.Epoch, cancel)
	s := &exporterSink{rank: r, peer: a.Peer, link: l, end: e}
	if r.shm == nil {
		p.later(r.host, dataUp(a.Peer, a.Epoch, l.pull.opened(e, nil, errNoPull)))
		return
	}
	x, err := r.shm.Offer(info, s)
	if err != nil {
		p.later(r.host, dataUp(a.Peer, a.Epoch, l.pull.opened(e, nil, err)))
		return
	}
	s.export = x
	p.wg.Go(func() {
		<-ctx.Done() // opened, given up by a fence, or too late
		p.box.put(func() { s.settle(ctx.Err()) })
	})
}

// shut is what the fence of a pull link does at the source: it tells the reader that this end has given the link up. Whether the
// reader has stopped is proven by its Read, which the machine hears, or by the end of its process, which stays watched.
func (r *prefillRank) shut(x *exportPath) {
	x.export.Shut()
	r.shutExports = append(r.shutExports, x.sink)
	r.side.laterDo(func() { x.sink.link.pull.over(x.sink.end) })
}

// sweepExports closes shut exports whose link holds no source page any more; on the loop, now and then.
func (r *prefillRank) sweepExports() {
	if len(r.shutExports) == 0 {
		return
	}
	offered := map[core.PeerID]int{}
	for _, k := range r.m.Status().Links {
		offered[k.Peer] = k.Offered
	}
	kept := r.shutExports[:0]
	for _, s := range r.shutExports {
		if offered[s.peer] > 0 && !s.ended {
			kept = append(kept, s)
			continue
		}
		r.closeExport(s.export)
	}
	r.shutExports = kept
}

func (r *prefillRank) closeExport(x *shm.Export) {
	r.side.wg.Go(func() { // not on the loop: it waits for a call of the sink that is running
		if err := x.Close(); err != nil {
			r.side.log.Warn("export closed", "err", err)
		}
	})
}

// exporterSink hears what happened to a pull link at prefill. Its fields are touched on the loop only.
type exporterSink struct {
	rank    *prefillRank
	peer    core.PeerID
	link    *sourceLink
	end     *end[*exportPath]
	export  *shm.Export
	settled bool
	ended   bool
}

// settle ends the opening, once.
func (s *exporterSink) settle(err error) {
	if s.settled {
		return
	}
	s.settled = true
	r := s.rank
	if err != nil {
		s.export.Shut()
		r.closeExport(s.export)
		err = errors.Join(fmt.Errorf("%w: no reader has mapped the pool", transport.ErrStream), err)
	}
	r.side.later(r.host, dataUp(s.peer, s.end.epoch, s.link.pull.opened(s.end, &exportPath{s.export, s}, err)))
}

func (s *exporterSink) Opened() {
	s.rank.side.box.put(func() { s.settle(nil) })
}

func (s *exporterSink) ReaderEnded() {
	p := s.rank.side
	p.box.put(func() {
		s.ended = true
		p.later(s.rank.host, core.ReaderEnded{Peer: s.peer})
	})
}

func (s *exporterSink) Lost(err error) {
	p := s.rank.side
	p.box.put(func() {
		p.log.Warn("data path lost", "rank", s.rank.rank, "peer", s.peer, "err", err)
		if s.end.loss() {
			p.later(s.rank.host, core.DataLost{Peer: s.peer, Epoch: s.end.epoch})
		}
	})
}
