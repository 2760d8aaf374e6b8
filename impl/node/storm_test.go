package node

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvfence/impl/config"
	"kvfence/impl/node/api"
)

// storm runs requests of which some are given up, while data paths are cut, control connections are dropped and the prefill node
// is replaced. Every answer is that of one process alone or an honest failure, and every page comes back.
func storm(t *testing.T, change func(*config.Config)) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	dir := shortDir(t)
	shape := func(c *config.Config) {
		change(c)
		c.Transport.SocketDir = dir
		c.Timeouts.Liveness = time.Second
	}
	p := startPair(t, shape)
	addr := p.prefill.Addresses().Control
	var wg sync.WaitGroup
	var mu sync.Mutex
	outcomes := map[api.Code]int{}
	for w := range 8 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(w)))
			for i := range 8 {
				req := testRequest(1+rnd.IntN(120), int32(w*100+i), 1+rnd.IntN(40))
				code := p.attempt(t, rnd, req)
				mu.Lock()
				outcomes[code]++
				mu.Unlock()
			}
		})
	}
	stop, stirred := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stirred)
		p.stir(rand.New(rand.NewPCG(seed, 99)), shape, addr, stop)
	}()
	wg.Wait()
	close(stop)
	<-stirred
	t.Log(fmt.Sprint(outcomes))
	require.Zero(t, outcomes[api.Internal], "nothing of this is an internal error")
	require.Zero(t, outcomes[api.KVMismatch], "nothing of this is corruption")
	p.ready()
	p.idle()
	require.NoError(t, p.decode.Err())
	p.check(testRequest(30, 7, 8))
}

// attempt runs one request, or gives it up on the way, and checks every token that comes.
func (p *pair) attempt(t *testing.T, rnd *rand.Rand, req *api.Request) api.Code {
	want := p.oracle(req).Tokens
	giveUp := -1
	if rnd.IntN(4) == 0 {
		giveUp = rnd.IntN(6)
	}
	s, err := p.client.Open(t.Context(), req)
	if err != nil {
		return api.CodeOf(err)
	}
	defer func() { _ = s.Close() }()
	n := 0
	for k := 0; ; k++ {
		if k == giveUp {
			return api.ClientGone
		}
		e, err := s.Next()
		switch {
		case err != nil:
			if api.CodeOf(err) == api.Internal {
				t.Errorf("request %s: %v", req.ID, err)
			}
			return api.CodeOf(err)
		case e.Kind == api.KindToken:
			if n >= len(want) || want[n] != e.Token.ID {
				t.Errorf("request %s: token %d is %d, one process alone answers %v", req.ID, n, e.Token.ID, want)
				return "wrong"
			}
			n++
		case e.Kind == api.KindDone:
			if n != len(want) {
				t.Errorf("request %s: done after %d of %d tokens", req.ID, n, len(want))
			}
			return ""
		}
	}
}

// stir breaks things, sixteen at most and none after stop: at either end a data path or a control connection, now and then the
// whole prefill node.
func (p *pair) stir(rnd *rand.Rand, shape func(*config.Config), addr string, stop chan struct{}) {
	for i := range 16 {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(40+rnd.IntN(160)) * time.Millisecond):
		}
		d, f := p.decode.decode, p.prefill.prefill
		switch {
		case i%8 == 7:
			require.NoError(p.t, p.prefill.Close())
			p.prefill = startNode(p.t, small(p.t, config.RolePrefill, func(c *config.Config) { shape(c); c.Prefill.Control = addr }))
		case rnd.IntN(2) == 0:
			d.loop.call(func() {
				for _, l := range d.ranks[0].links {
					l.push.stop(everyEpoch, func(bool) {})
					l.pull.stop(everyEpoch, func(bool) {})
				}
			})
		default:
			f.loop.call(func() {
				for _, c := range f.ranks[0].conns {
					c.abort()
				}
			})
		}
	}
}

func TestStorm_CutsRestartsAndAborts_NoWrongAnswerAndNoLeak(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for name, change := range map[string]func(*config.Config){
		"tcp":               func(c *config.Config) { c.Prefill.Chunk = 7 },
		"tcp, 2 x 2":        func(c *config.Config) { c.Prefill.Ranks, c.Decode.Ranks = 2, 2 },
		"tcp, digests off":  func(c *config.Config) { c.Guards.PageDigests = config.Off },
		"shm, 1 x 2":        func(c *config.Config) { c.Transport.Kind, c.Decode.Ranks = "shm", 2 },
		"shm, a small pool": func(c *config.Config) { c.Sizes.Pool, c.Sizes.Window, c.Transport.Kind = 320, 256, "shm" },
	} {
		t.Run(name, func(t *testing.T) { storm(t, change) })
	}
}
