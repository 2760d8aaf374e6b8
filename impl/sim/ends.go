package sim

import (
	"kvfence/impl/transport"
	"kvfence/spec"
)

// endsKey names a data path.
type endsKey struct {
	prefill, decode spec.Incarnation
	epoch           spec.Epoch
}

// ends are both ends of a data path, in the lives in which they were opened; nil what was not.
type ends struct {
	src     *sourcePath
	srcRank *prefillRank
	srcLife int
	dst     *targetPath
	dstLink *targetLink
	dstRank *decodeRank
	dstLife int
}

// endsOf finds or makes the ends of a path.
func (w *World) endsOf(info transport.LinkInfo) *ends {
	key := endsKey{info.Prefill, info.Decode, info.Epoch}
	e := w.ends[key]
	if e == nil {
		e = &ends{}
		w.ends[key] = e
	}
	return e
}

// srcAlive reports that the source end was opened and that its process lives.
func (e *ends) srcAlive() bool {
	return e.src != nil && e.srcRank.side.up && e.srcRank.side.life == e.srcLife && !e.srcRank.host.dead
}

func (e *ends) dstAlive() bool {
	return e.dst != nil && e.dstRank.side.up && e.dstRank.side.life == e.dstLife && !e.dstRank.host.dead
}
