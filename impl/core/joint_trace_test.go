package core

import (
	"fmt"
	"os"

	"github.com/stretchr/testify/require"

	"kvfence/spec"
)

// trace prints every step of the world when KVFENCE_TRACE is set.
func (w *world) trace(who string, ev any, acts []Action) {
	if os.Getenv("KVFENCE_TRACE") == "" {
		return
	}
	if _, ok := ev.(Tick); ok && len(acts) == 0 {
		return
	}
	fmt.Printf("%d %s <- %T %.300s\n", w.now, who, ev, fmt.Sprintf("%+v", ev))
	for _, a := range acts {
		fmt.Printf("      %T %.300s\n", a, fmt.Sprintf("%+v", a))
	}
}

// follower walks behind the decode machines and requires that each action that they name in Did is enabled in TLA/Transfer.tla at
// that point, as far as decode's own variables decide it.
type follower struct {
	w    *world
	lead map[spec.TransferID]string
	dst  map[followLease]string
	hold map[followLease]map[PeerID]bool
	got  map[followLease]map[PeerID]bool
	krn  map[followLease]int
	jobs map[followHold]int // copies that have not come back
	up   map[followLink]bool
	pubs map[followPage]followPub
	seen map[string]int
}

type followPage struct {
	rank int
	page spec.PageID
}

type followPub struct {
	gen    spec.Generation
	filler spec.LeaseID
}

type followLease struct {
	rank  int
	lease spec.LeaseID
}

type followHold struct {
	lease followLease
	peer  PeerID
}

type followLink struct {
	rank int
	peer PeerID
}

func newFollower(w *world) *follower {
	return &follower{w: w, lead: map[spec.TransferID]string{}, dst: map[followLease]string{}, hold: map[followLease]map[PeerID]bool{}, got: map[followLease]map[PeerID]bool{},
		krn: map[followLease]int{}, jobs: map[followHold]int{}, up: map[followLink]bool{}, pubs: map[followPage]followPub{}, seen: map[string]int{}}
}

// leader follows one action of the leader; refusals and requests that end without a name have none to follow.
func (f *follower) leader(d Did) {
	f.seen[d.Name]++
	if d.Transfer == (spec.TransferID{}) {
		return
	}
	was := f.lead[d.Transfer]
	next := map[string]map[string]string{
		"Submit": {"": "submitted"}, "Retry": {"": "submitted"}, "Recause": {"failed": "failed"}, "Ask": {"submitted": "asking"}, "RecvAsked": {"asking": "open"}, "Run": {"open": "run"}, "Success": {"run": "ok"},
		"Failure": {"submitted": "failed", "asking": "failed", "open": "failed", "run": "failed"}, "Answer": {"ok": "ok", "failed": "failed"},
	}[d.Name][was]
	require.NotEmpty(f.w.t, next, "%s of %s in state %q", d.Name, d.Transfer, was)
	f.lead[d.Transfer] = next
}

// rank follows one action of a rank.
func (f *follower) rank(rank int, d Did, acts []Action) {
	t, l := f.w.t, followLease{rank, d.Lease}
	f.seen[d.Name]++
	need := func(ok bool) {
		require.True(t, ok, "%s of lease %d, peer %d, lease is %q", d.Name, d.Lease, d.Peer, f.dst[l])
	}
	switch d.Name {
	case "Grant":
		need(f.lead[d.Transfer] == "open" || f.lead[d.Transfer] == "failed") // the leader may have failed it since it said Go
		need(f.dst[l] == "")
		f.dst[l], f.hold[l], f.got[l] = "filling", map[PeerID]bool{}, map[PeerID]bool{}
		for _, a := range only[Send](acts) {
			if g, ok := a.Env.Body.(spec.Grant); ok && g.Lease == d.Lease {
				need(f.up[followLink{rank, a.Peer}])
				f.hold[l][a.Peer] = true
			}
		}
	case "Abort":
		need(f.dst[l] == "filling" || f.dst[l] == "verified")
		f.dst[l] = "revoking"
	case "RecvComplete", "RecvReceipt", "NoticeIn", "PullBegin", "PullCheck":
		need(f.hold[l][d.Peer])
		switch d.Name {
		case "PullBegin":
			f.jobs[followHold{l, d.Peer}]++
		case "PullCheck":
			f.jobs[followHold{l, d.Peer}]--
			need(f.jobs[followHold{l, d.Peer}] >= 0)
		}
	case "Take", "SaidRead":
		need(f.hold[l][d.Peer])
		need(f.jobs[followHold{l, d.Peer}] == 0)
		f.hold[l][d.Peer] = false
		f.got[l][d.Peer] = (d.Detail == "complete" || d.Name == "SaidRead") && f.dst[l] == "filling"
		if d.Name == "Take" && d.Detail != "complete" && f.dst[l] == "filling" {
			f.dst[l] = "revoking"
		}
	case "Verify":
		need(f.dst[l] == "filling")
		for p := range f.hold[l] {
			need(f.got[l][p])
		}
		f.dst[l] = "verified"
	case "Ready":
		need(f.dst[l] == "verified")
		f.dst[l] = "ready"
	case "Read", "Append":
		need(f.dst[l] == "ready")
		if d.Name == "Read" {
			f.krn[l]++
		}
	case "ReadEnd":
		need(f.krn[l] > 0)
		f.krn[l]--
	case "Release":
		need(f.dst[l] == "revoking" || f.dst[l] == "ready")
		need(f.krn[l] == 0)
		for _, h := range f.hold[l] {
			need(!h)
		}
		f.dst[l] = "done"
	case "Publish", "Share", "Unpublish", "Grow":
		f.shares(rank, d, need)
	default:
		f.links(rank, d)
	}
}

// shares follows what is published and shared.
func (f *follower) shares(rank int, d Did, need func(bool)) {
	l := followLease{rank, d.Lease}
	if d.Name == "Grow" {
		need(f.dst[l] == "ready")
		return
	}
	p, x := followPage{rank: rank}, followPub{}
	_, err := fmt.Sscanf(d.Detail, "kv page %d generation %d of lease %d", &p.page, &x.gen, &x.filler)
	require.NoError(f.w.t, err)
	switch d.Name {
	case "Publish":
		need(f.dst[l] == "ready" && x.filler == d.Lease)
		f.pubs[p] = x
	case "Share":
		need(f.dst[l] == "filling" && f.pubs[p] == x && x.filler != d.Lease)
	case "Unpublish":
		need(f.pubs[p] == x && x.filler == d.Lease)
		delete(f.pubs, p)
	}
}

// links follows what a rank does to a link.
func (f *follower) links(rank int, d Did) {
	k := followLink{rank, d.Peer}
	switch d.Name {
	case "Fence":
		f.up[k] = false
		f.each(rank, func(x followLease) {
			if f.hold[x][d.Peer] && f.dst[x] == "filling" {
				f.dst[x] = "revoking"
			}
		})
	case "FenceEnd":
		f.each(rank, func(x followLease) {
			if f.hold[x][d.Peer] && f.dst[x] == "revoking" && f.jobs[followHold{x, d.Peer}] == 0 {
				f.hold[x][d.Peer] = false
			}
		})
	case "Connect":
		require.False(f.w.t, f.up[k], "Connect of peer %d, which is up", d.Peer)
		f.up[k] = true
	}
}

func (f *follower) each(rank int, do func(followLease)) {
	for x := range f.dst {
		if x.rank == rank {
			do(x)
		}
	}
}
