package core

import (
	"testing"

	"kvfence/spec"
)

// A step costs the same with 1 and with 20,000 live leases: nothing in it walks over leases or pages.
func BenchmarkDecodeRank_ReadBeginEnd(b *testing.B) {
	for name, leases := range map[string]int{"1 lease": 1, "20000 leases": 20000} {
		b.Run(name, func(b *testing.B) {
			cfg := dRigConfig(1, false, false, 100000)
			cfg.MaxLeases = 1 << 20
			t := &testing.T{}
			g := &dRig{T: t, now: 1}
			r, err := NewDecodeRank(cfg)
			if err != nil {
				b.Fatal(err)
			}
			g.r, g.inc, g.peers = r, []spec.Incarnation{worldInc('p', 0, 0)}, []PeerID{1}
			bare := func(ev Event) {
				if _, err := r.Step(1, ev); err != nil {
					b.Fatal(err)
				}
			}
			bare(Dialed{Peer: 1, Conn: 1, Nonce: spec.Nonce{1}})
			bare(FenceDone{Peer: 1, Old: 0, OK: true})
			bare(g.msg(1, g.accept(1)))
			bare(DataUp{Peer: 1, Epoch: 1})
			for i := range leases {
				tr := spec.TransferID{Leader: r.own, Counter: uint64(i + 1)}
				bare(Side{Msg: Take{Transfer: tr, Tokens: dRigTokens, Prefill: g.peers}})
				bare(Side{Msg: Go{Transfer: tr}})
				l := r.byTransfer[tr]
				bare(g.msg(1, g.complete(l, 1)))
				bare(NoticeIn{Peer: 1, Epoch: 1, Lease: l.id, Number: 1})
				bare(Verified{Lease: l.id})
			}
			b.ReportAllocs()
			for b.Loop() {
				bare(ReadBegin{Lease: spec.LeaseID(leases), Pos: dRigTokens})
				bare(ReadEnd{Lease: spec.LeaseID(leases)})
			}
		})
	}
}
