//go:build linux

package bench

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"

	"kvfence/impl/core"
	"kvfence/impl/node"
	"kvfence/spec"
)

// guarded is the whole path: a decode rig here, a prefill rig in the second process, and this process in both leaders' place.
type guarded struct {
	child   *proc
	index   int // of the rig in the second process
	rig     *node.DecodeRig
	heard   *ear
	shape   Shape
	counter uint64
	verify  chan core.Verify
	seals   []int64
}

func openGuarded(ctx context.Context, child *proc, index int, control string, c config0, page, pool int, digests bool, log io.Writer) (*guarded, error) {
	g := &guarded{child: child, index: index, heard: newEar(), verify: make(chan core.Verify, 16)}
	rc := c.rigConfig(page, pool, digests, false, g.heard, log)
	rc.Verify = func(v core.Verify) { g.verify <- v }
	var err error
	if g.rig, err = node.NewDecodeRig(rc, control); err != nil {
		return nil, err
	}
	clear(g.rig.Memory()[spec.KV].Bytes) // every page is there
	if _, _, err = waitFor[core.PeerUp](ctx, g.heard); err != nil {
		return g, err
	}
	return g, nil
}

func (g *guarded) transfer() spec.TransferID {
	g.counter++
	return spec.TransferID{Leader: g.rig.Incarnation(), Counter: g.counter}
}

func (g *guarded) take(t spec.TransferID, b begin) {
	g.rig.Tell(core.Take{Transfer: t, Domain: b.Domain, Request: b.Request, Tokens: b.Tokens, Prefill: []core.PeerID{1}})
}

// request moves one request and returns how long it took from the grant in hand to verified, in nanoseconds.
func (g *guarded) request(ctx context.Context) (int64, error) {
	b := begin{Transfer: g.transfer(), Request: spec.RequestDigest{1}, Domain: spec.Domain{2}, Tokens: uint32(g.shape.Pages) * pageTokens, Decode: g.rig.Incarnation()}
	if err := g.child.tell(order{Op: "begin", Rig: g.index, Begin: &b}); err != nil {
		return 0, err
	}
	g.take(b.Transfer, b)
	if _, _, err := waitFor[core.Taken](ctx, g.heard); err != nil {
		return 0, err
	}
	g.rig.Tell(core.Go{Transfer: b.Transfer})
	begun, err := g.child.hear()
	if err != nil {
		return 0, err
	}
	g.seals = append(g.seals, begun.SealNs)
	if err := g.child.tell(order{Op: "release", Rig: g.index}); err != nil {
		return 0, err
	}
	_, t1, err := waitFor[core.LeaseReady](ctx, g.heard)
	if err != nil {
		return 0, err
	}
	released, err := g.child.hear()
	if err == nil {
		err = g.check(<-g.verify, begun.Pages)
	}
	if err != nil {
		return 0, err
	}
	g.rig.Tell(core.ReleaseLease{Transfer: b.Transfer})
	_, _, err = waitFor[core.LeaseFreed](ctx, g.heard)
	return t1 - released.T0, err
}

// check compares what landed with what the source pages were stamped with; not timed.
func (g *guarded) check(v core.Verify, from []uint32) error {
	pool, n := g.rig.Memory()[spec.KV], 0
	for _, c := range v.Checks {
		if c.Want.Part == spec.PartLocal {
			continue
		}
		if !stamped(pool.Page(c.Page), from[c.Want.Index]) {
			return fmt.Errorf("%w: page index %d of a verified request is not what was sent", ErrBench, c.Want.Index)
		}
		n++
	}
	if n != len(from) || n != g.shape.Pages {
		return fmt.Errorf("%w: %d pages verified, %d sent, %d asked for", ErrBench, n, len(from), g.shape.Pages)
	}
	return nil
}

// shuffle puts the free lists of both ends into random order; here leases are granted and aborted for it.
func (g *guarded) shuffle(ctx context.Context, r *rand.Rand) error {
	if _, err := g.child.ask(order{Op: "shuffle", Rig: g.index, Seed: r.Uint64()}); err != nil {
		return err
	}
	free := g.rig.Status().Pools[spec.KV].Free
	each := (free + shuffleJobs - 1) / shuffleJobs
	var leases []spec.TransferID
	for left := free; left > 0; left -= min(left, each) {
		t := g.transfer()
		g.take(t, begin{Tokens: min(left, each)*pageTokens - 1})
		if _, _, err := waitFor[core.Taken](ctx, g.heard); err != nil {
			return err
		}
		g.rig.Tell(core.Go{Transfer: t})
		leases = append(leases, t)
	}
	r.Shuffle(len(leases), func(i, j int) { leases[i], leases[j] = leases[j], leases[i] })
	for _, t := range leases {
		g.rig.Tell(core.AbortLease{Transfer: t, Cause: spec.CauseShutdown})
		if _, _, err := waitFor[core.LeaseFreed](ctx, g.heard); err != nil {
			return err
		}
	}
	if now := g.rig.Status().Pools[spec.KV].Free; now != free {
		return fmt.Errorf("%w: %d pages are free after shuffling, %d were", ErrBench, now, free)
	}
	return nil
}

func (g *guarded) close() error { return g.rig.Close() }
