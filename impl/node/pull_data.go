package node

import (
	"context"

	"kvfence/impl/core"
	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/impl/transport/shm"
	"kvfence/spec"
)

// openPull maps the source pool of a peer on the same host.
func (r *decodeRank) openPull(ctx context.Context, cancel context.CancelFunc, l *targetLink, a core.OpenData, info transport.LinkInfo) {
	d := r.side
	e := l.pull.open(a.Epoch, cancel)
	sink := &readerSink{rank: r, peer: a.Peer, link: l, end: e, layouts: byComponent(a.Info.PeerLayouts)}
	d.wg.Go(func() {
		path := socketPath(d.cfg.Transport.SocketDir, info.Prefill)
		rd, err := shm.Dial(ctx, shm.ReaderConfig{
			Address: path, Link: info, Source: sink.layouts, Memory: r.mem, Sink: sink,
		})
		r.sayUnopened(path, err)
		d.box.put(func() {
			d.later(r.host, dataUp(a.Peer, a.Epoch, l.pull.opened(e, readerPath{rd, sink}, err)))
			if e.lost && e.opened && !e.fencing {
				d.later(r.host, core.DataLost{Peer: a.Peer, Epoch: a.Epoch})
			}
		})
	})
}

// readerPath is an open pull path with its sink.
type readerPath struct {
	*shm.Reader
	sink *readerSink
}

func byComponent(ls []spec.Layout) (out [spec.ComponentCount]*spec.Layout) {
	for i := range ls {
		if ls[i].Component < spec.ComponentCount {
			out[ls[i].Component] = &ls[i]
		}
	}
	return out
}

// pullCopy derives both ends' segments and queues the copies; it ends in one PullDone.
func (r *decodeRank) pullCopy(a core.PullCopy) {
	done := core.PullDone{Peer: a.Peer, Epoch: a.Epoch, Job: a.Job, Lease: a.Lease}
	path, ok := r.link(a.Peer).pull.at(a.Epoch)
	if !ok {
		done.Err = "no data path"
		r.side.later(r.host, done)
		return
	}
	job := transport.CopyJob{ID: a.Job, Lease: a.Lease, Digests: a.Digests, Copies: make([]transport.Copy, len(a.Items))}
	var src, dst cutters
	total := uint64(0)
	for i := range a.Items {
		used, err := r.copyOf(&job.Copies[i], &a.Items[i], &src, &dst, path.sink.layouts)
		if err != nil {
			done.Err = err.Error()
			r.side.later(r.host, done)
			return
		}
		total += uint64(used)
	}
	r.side.metrics.pulled(total)
	path.Copy(job)
}

func (r *decodeRank) copyOf(c *transport.Copy, it *core.PullItem, src, dst *cutters, theirs [spec.ComponentCount]*spec.Layout) (used uint32, err error) {
	own := layoutIn(r.mem, it.Part.Component)
	if c.DstSegs, used, err = dst.of(it.Part, own).cut(it.Part, it.Index); err != nil {
		return 0, err
	}
	if c.SrcSegs, _, err = src.of(it.Part, theirs[it.Part.Component]).cut(it.Part, it.Index); err != nil {
		return 0, err
	}
	c.Component, c.Part, c.Index = it.Part.Component, it.Part.Index, it.Index
	c.Src, c.SrcSlot, c.SrcTag, c.Dst, c.DstTag = it.Src, it.SrcSlot, it.SrcTag, it.Dst, it.DstTag
	c.Head = device.HeaderOf(it.Part, *own, it.Index, used)
	return used, nil
}

// readerSink hears what happened on a pull link at decode.
type readerSink struct {
	rank    *decodeRank
	peer    core.PeerID
	link    *targetLink
	end     *end[readerPath]
	layouts [spec.ComponentCount]*spec.Layout
}

func (s *readerSink) Copied(res transport.CopyResult) {
	ev := core.PullDone{Peer: s.peer, Epoch: s.end.epoch, Job: res.Job, Lease: res.Lease}
	for _, b := range res.Bad {
		ev.Bad = append(ev.Bad, core.BadPart{Component: b.Component, Part: b.Part, Index: b.Index, State: b.State, Digest: b.Digest})
	}
	if res.Err != nil {
		ev.Err = res.Err.Error()
	}
	s.rank.side.post(s.rank.host, ev)
}

func (s *readerSink) Lost(err error) {
	d := s.rank.side
	d.box.put(func() {
		d.log.Warn("data path lost", "rank", s.rank.rank, "peer", s.peer, "err", err)
		if s.end.loss() {
			d.later(s.rank.host, core.DataLost{Peer: s.peer, Epoch: s.end.epoch})
		}
	})
}

// Fenced ends the path; the reader's memory is given back by a goroutine of its own, for Close may not be called from here.
func (s *readerSink) Fenced() {
	d := s.rank.side
	d.box.put(func() {
		rd := s.end.path.Reader
		s.link.pull.over(s.end)
		d.wg.Go(func() {
			if err := rd.Close(); err != nil {
				d.log.Warn("reader closed", "err", err)
			}
		})
	})
}
