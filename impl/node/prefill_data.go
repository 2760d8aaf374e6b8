package node

import (
	"fmt"
	"net"
	"strconv"
	"time"

	"kvfence/impl/config"
	"kvfence/impl/core"
	"kvfence/impl/transport"
	"kvfence/impl/transport/tcp"
	"kvfence/spec"
)

// sourceLink is prefill's data path of one link.
type sourceLink struct {
	push ends[sourcePath]
	pull ends[*exportPath]
}

// sourcePath is an open push path with its sink.
type sourcePath struct {
	transport.Source
	sink *sourceSink
}

// link returns the data path of a peer; on the loop only.
func (r *prefillRank) link(peer core.PeerID) *sourceLink {
	l := r.links[peer]
	if l == nil {
		l = &sourceLink{}
		l.push.fence = func(s sourcePath) { s.Fence() }
		l.pull.fence = r.shut
		r.links[peer] = l
	}
	return l
}

// listenData binds the data listener of a rank: the configured port, and the ports behind it for further ranks.
func (r *prefillRank) listenData(cfg config.Config, creds *credentials) error {
	host, port, err := net.SplitHostPort(cfg.Prefill.Data)
	if err != nil {
		return fmt.Errorf("%w: prefill.data = %s: %w", ErrListen, cfg.Prefill.Data, err)
	}
	addr := cfg.Prefill.Data
	if n, err := strconv.Atoi(port); err == nil && n != 0 {
		addr = net.JoinHostPort(host, strconv.Itoa(n+int(r.rank)))
	}
	opts := tcp.Options{Streams: cfg.Transport.Streams, Congestion: cfg.Transport.CongestionControl}
	if !cfg.TLS.PlainData {
		opts.TLS = creds.server()
	}
	if isVerbs(cfg) {
		return r.listenVerbs(addr, cfg, opts)
	}
	l, err := tcp.Listen(addr, r.mem, opts)
	if err != nil {
		return listenError("prefill.data", addr, err)
	}
	r.data = l
	return nil
}

// listenVerbs opens the rails, and listens for the streams that open links over them.
func (r *prefillRank) listenVerbs(addr string, cfg config.Config, opts tcp.Options) (err error) {
	opts.Streams = 0
	if r.verbs, err = openVerbs(cfg, r.mem, false, opts); err != nil {
		return err
	}
	l, err := r.verbs.Listen(addr)
	if err != nil {
		return listenError("prefill.data", addr, err)
	}
	r.data = l
	return nil
}

// expectData waits for decode's streams, or offers the pool to decode's reader.
func (r *prefillRank) expectData(a core.ExpectData) {
	r.side.log.Info("link taken", "rank", r.rank, "peer", a.Peer, "decode", a.Info.Decode, "epoch", a.Epoch)
	info := transport.LinkInfo{Prefill: a.Info.Prefill, Decode: a.Info.Decode, Epoch: a.Epoch, Key: a.Info.Key}
	if a.Info.Pull {
		r.offerPool(a, info)
		return
	}
	l := r.link(a.Peer)
	e := l.push.open(a.Epoch, func() {})
	if r.data == nil {
		r.side.later(r.host, dataUp(a.Peer, a.Epoch, l.push.opened(e, sourcePath{}, errNoPush)))
		return
	}
	sink := &sourceSink{rank: r, peer: a.Peer, link: l, end: e, notices: map[spec.LeaseID][]uint64{}}
	src, err := r.data.Expect(info, sink)
	r.side.later(r.host, dataUp(a.Peer, a.Epoch, l.push.opened(e, sourcePath{src, sink}, err)))
}

var errNoPush = fmt.Errorf("%w: this node has no data streams (transport.kind is shm)", transport.ErrStream)

// fence ends the sending streams of a link up to an epoch: nothing older is read here once FenceDone is said.
func (r *prefillRank) fence(a core.Fence) {
	began := time.Now()
	l := r.link(a.Peer)
	l.push.stop(a.Old, func(pushed bool) {
		l.pull.stop(a.Old, func(pulled bool) {
			r.side.metrics.fenced("prefill", time.Since(began))
			r.side.log.Info("link fenced", "rank", r.rank, "peer", a.Peer, "epoch", a.Old, "took", time.Since(began), "ok", pushed && pulled)
			r.side.later(r.host, core.FenceDone{Peer: a.Peer, Old: a.Old, OK: pushed && pulled})
		})
	})
}

// post derives the source segments and queues the writes.
func (r *prefillRank) post(a core.Post) {
	refuse := func(err error) {
		r.side.later(r.host, core.Posted{Peer: a.Peer, Epoch: a.Epoch, Batch: a.Batch, Err: err.Error()})
	}
	src, ok := r.link(a.Peer).push.at(a.Epoch)
	if !ok {
		refuse(fmt.Errorf("%w: no data path in epoch %d", transport.ErrStream, a.Epoch))
		return
	}
	b := transport.Batch{ID: a.Batch, Lease: a.Lease, Writes: make([]transport.Write, 0, len(a.Items))}
	var cuts cutters
	total := uint64(0)
	for _, it := range a.Items {
		segs, used, err := cuts.of(it.Part, layoutIn(r.mem, it.Part.Component)).cut(it.Part, it.Index)
		if err != nil {
			refuse(err)
			return
		}
		total += uint64(used)
		b.Writes = append(b.Writes, transport.Write{
			Component: it.Part.Component, Part: it.Part.Index, Of: it.Part, Index: it.Index, Src: it.Src.Page, SrcSegs: segs, Dst: it.Dst, Tag: it.Tag,
		})
	}
	r.side.metrics.posted(total)
	src.Post(b)
}

// notice queues a drain notice behind the lease's last write.
func (r *prefillRank) notice(a core.Notice) {
	if p, ok := r.link(a.Peer).push.at(a.Epoch); ok {
		p.sink.expect(a.Lease, a.Number)
		p.Notice(a.Lease, a.Number)
		return
	}
	r.side.later(r.host, core.Noticed{Peer: a.Peer, Epoch: a.Epoch, Lease: a.Lease, Number: a.Number, Err: "no data path"})
}
