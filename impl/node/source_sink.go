package node

import (
	"sync"

	"kvfence/impl/core"
	"kvfence/spec"
)

// sourceSink hears what happened on a push link at prefill. The transport answers notices by lease; notices holds their numbers
// in the order in which they were given.
type sourceSink struct {
	rank *prefillRank
	peer core.PeerID
	link *sourceLink
	end  *end[sourcePath]

	mu      sync.Mutex
	notices map[spec.LeaseID][]uint64
}

// expect books the number of a notice that is about to be given.
func (s *sourceSink) expect(lease spec.LeaseID, number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notices[lease] = append(s.notices[lease], number)
}

func (s *sourceSink) next(lease spec.LeaseID) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.notices[lease]
	if len(q) == 0 {
		return 0
	}
	if s.notices[lease] = q[1:]; len(q) == 1 {
		delete(s.notices, lease)
	}
	return q[0]
}

func (s *sourceSink) Posted(batch uint64, err error) {
	ev := core.Posted{Peer: s.peer, Epoch: s.end.epoch, Batch: batch}
	if err != nil {
		ev.Err = err.Error()
	}
	s.rank.side.post(s.rank.host, ev)
}

func (s *sourceSink) Noticed(lease spec.LeaseID, channels []spec.Channel, err error) {
	ev := core.Noticed{Peer: s.peer, Epoch: s.end.epoch, Lease: lease, Number: s.next(lease), Channels: channels}
	if err != nil {
		ev.Err = err.Error()
	}
	s.rank.side.post(s.rank.host, ev)
}

func (s *sourceSink) Lost(err error) {
	p := s.rank.side
	p.box.put(func() {
		p.log.Warn("data path lost", "rank", s.rank.rank, "peer", s.peer, "err", err)
		if s.end.loss() {
			p.later(s.rank.host, core.DataLost{Peer: s.peer, Epoch: s.end.epoch})
		}
	})
}

// FenceFailed implements transport.FenceFailer.
func (s *sourceSink) FenceFailed(err error) {
	p := s.rank.side
	p.box.put(func() {
		p.log.Error("data path could not be fenced", "rank", s.rank.rank, "peer", s.peer, "epoch", s.end.epoch, "err", err)
		s.end.failed = true
		s.link.push.over(s.end)
	})
}

func (s *sourceSink) Fenced() { s.rank.side.box.put(func() { s.link.push.over(s.end) }) }
