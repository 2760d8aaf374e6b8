package node

import (
	"context"
	"fmt"
	"sync"
	"time"

	"kvfence/impl/config"
	"kvfence/impl/core"
	"kvfence/spec"
)

// learn fills peers and sides.
func (d *decodeSide) learn(peers []config.Peer) error {
	sizes, err := d.sizes(peers)
	if err != nil {
		return err
	}
	for i, p := range peers {
		n := sizes[i]
		if len(p.Addresses) > 1 && n != len(p.Addresses) {
			return fmt.Errorf("%w: a prefill side of %d ranks has %d addresses", config.ErrConfig, n, len(p.Addresses))
		}
		var side []core.PeerID
		for k := range n {
			addr := p.Addresses[min(k, len(p.Addresses)-1)]
			id := core.PeerID(len(d.peers) + 1)
			d.peers = append(d.peers, peerAddr{id: id, addr: addr, name: p.Name, rank: uint16(k), size: n, shared: len(p.Addresses) == 1})
			side = append(side, id)
		}
		d.sides = append(d.sides, side)
	}
	return nil
}

// learned is what one prefill side said of its number of ranks.
type learned struct {
	at, ranks int
	err       error
}

// sizes finds the number of ranks of each prefill side. All that do not say it in the configuration are asked at once. Once one is
// known the others have the liveness time: one that is down must not keep the rest from serving, and is taken to be like them.
func (d *decodeSide) sizes(peers []config.Peer) ([]int, error) {
	ctx, cancel := context.WithCancel(d.starting)
	var wg sync.WaitGroup
	defer func() { cancel(); wg.Wait() }()
	sizes, answers, open := make([]int, len(peers)), make(chan learned, len(peers)), 0
	for i, p := range peers {
		if sizes[i] = max(len(p.Addresses), p.Ranks); sizes[i] > 1 || p.Ranks > 0 {
			continue
		}
		sizes[i] = 0
		open++
		wg.Go(func() {
			n, err := d.askRanks(ctx, p)
			answers <- learned{i, n, err}
		})
	}
	patience := time.NewTimer(d.cfg.Timeouts.Liveness)
	defer patience.Stop()
	if open == len(peers) {
		patience.Stop() // nothing to go by yet
	}
	for open > 0 {
		select {
		case a := <-answers:
			if a.err != nil {
				return nil, a.err
			}
			if open == len(peers) {
				patience.Reset(d.cfg.Timeouts.Liveness)
			}
			sizes[a.at] = a.ranks
			open--
		case <-patience.C:
			d.assume(peers, sizes)
			open = 0
		}
	}
	return sizes, nil
}

// assume fills the sizes that are not known (0) with the first one that is.
func (d *decodeSide) assume(peers []config.Peer, sizes []int) {
	like := 1
	for _, n := range sizes {
		if n > 0 {
			like = n
			break
		}
	}
	for i, p := range peers {
		if sizes[i] == 0 {
			sizes[i] = like
			d.log.Warn("a prefill side does not answer; it is taken to have as many ranks as another one (decode.peers[].ranks says it for sure)",
				"address", p.Addresses[0], "ranks", like)
		}
	}
}

// askRanks asks the one address of a side for the number of its ranks, again until it answers.
func (d *decodeSide) askRanks(ctx context.Context, p config.Peer) (int, error) {
	wait := newBackoff(d.cfg.Timeouts.Repeat, d.cfg.Timeouts.Liveness)
	for n := 0; ; n++ {
		c, ranks, err := dialControl(ctx, p.Addresses[0], p.Name, 0, d.creds, d.cfg.Timeouts.Liveness, 16)
		if err == nil {
			c.abort()
			if ranks > spec.MaxRanks {
				return 0, fmt.Errorf("%w: %s says that it has %d ranks", ErrGreeting, p.Addresses[0], ranks)
			}
			return int(ranks), nil
		}
		if n%8 == 0 && ctx.Err() == nil {
			d.log.Info("waiting for the prefill side", "address", p.Addresses[0], "err", err)
		}
		if !wait.sleep(ctx) {
			return 0, ctx.Err()
		}
	}
}
