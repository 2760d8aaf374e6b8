package core

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/spec"
)

func worldPrompt(seed, n int) []int32 {
	p := make([]int32, n)
	for i := range p {
		p[i] = int32((seed*37 + i*11) % 900)
	}
	return p
}

// prompt is a request's prompt; where prefixes are shared there are few of them, of many lengths.
func (w *world) prompt(r RequestID, n int) []int32 {
	if w.opts.sharing > 0 || w.opts.sources > 0 {
		return worldPrompt(int(r%2), n)
	}
	return worldPrompt(int(r), n)
}

// expect is what one process alone would answer.
func expect(prompt []int32, n uint32) (out []int32) {
	for i := range n {
		out = append(out, sample(prompt, i))
	}
	return out
}

func shapes() []worldOptions {
	return []worldOptions{
		{decode: 1, prefill: 1, pages: 40, sourcePages: 40},
		{decode: 1, prefill: 1, pages: 40, sourcePages: 40, digests: true},
		{decode: 2, prefill: 1, pages: 40, sourcePages: 40, digests: true},
		{decode: 1, prefill: 2, pages: 40, sourcePages: 40},
		{decode: 2, prefill: 4, pages: 40, sourcePages: 40, digests: true},
		{decode: 1, prefill: 1, pages: 40, sourcePages: 40, pull: true},
		{decode: 1, prefill: 2, pages: 40, sourcePages: 40, pull: true, digests: true},
		{decode: 1, prefill: 1, pages: 40, sourcePages: 40, digests: true, sharing: 40},
		{decode: 2, prefill: 2, pages: 30, sourcePages: 40, sharing: 7},
		{decode: 1, prefill: 2, pages: 40, sourcePages: 40, pull: true, digests: true, sharing: 40},
		{decode: 1, prefill: 1, pages: 40, sourcePages: 40, digests: true, sources: 40},
		{decode: 2, prefill: 2, pages: 30, sourcePages: 20, digests: true, sharing: 12, sources: 9},
	}
}

func TestJoint_CleanNetwork_EveryRequestIsTokenExact(t *testing.T) {
	for i, o := range shapes() {
		for seed := range uint64(6) {
			t.Run(fmt.Sprintf("shape %d seed %d", i, seed), func(t *testing.T) {
				o.first = float64(seed%2) / 2
				w := newWorld(t, seed, o)
				const n = 8
				prompts := map[RequestID][]int32{}
				for r := RequestID(1); r <= n; r++ {
					prompts[r] = w.prompt(r, 1+int(r*5)%23)
					w.submit(r, prompts[r], 5, 0)
				}
				w.run(func() bool { return len(w.open) == 0 })
				for r := RequestID(1); r <= n; r++ {
					require.Equal(t, "length", w.answers[r].Finish, "%+v", w.answers[r])
					require.Equal(t, expect(prompts[r], 5), w.emitted[r])
				}
				w.run(w.idle)
			})
		}
	}
}

// A small pool: transfers wait for pages, grow, are preempted, and still every answer is exact.
func TestJoint_SmallPool_PreemptedRequestsAreTokenExact(t *testing.T) {
	preempted := uint64(0)
	for seed := range uint64(20) {
		w := newWorld(t, seed, worldOptions{decode: 1 + int(seed%2), prefill: 1, pages: 9, sourcePages: 12, sharing: int(seed%3) * 4})
		prompts := map[RequestID][]int32{}
		for r := RequestID(1); r <= 6; r++ {
			prompts[r] = w.prompt(r, 6+int(r))
			w.submit(r, prompts[r], 17, 0)
		}
		w.run(func() bool { return len(w.open) == 0 })
		for r := RequestID(1); r <= 6; r++ {
			require.Equal(t, "length", w.answers[r].Finish, "seed %d: %+v", seed, w.answers[r])
			require.Equal(t, expect(prompts[r], 17), w.emitted[r], "seed %d", seed)
		}
		w.run(w.idle)
		preempted += w.dl.Status().Preempted
	}
	require.NotZero(t, preempted)
}

// Loss, repeats, broken streams, cut connections, restarts of prefill, clients that leave, deadlines: every request is answered,
// every 200 is exact, every page comes back.
func TestJoint_Faults_NoFalseSuccessAndNoLeak(t *testing.T) {
	succeeded, failed := 0, 0
	for i, o := range shapes() {
		for seed := range worldSeeds(12) {
			t.Run(fmt.Sprintf("shape %d seed %d", i, seed), func(t *testing.T) {
				o.lose, o.duplicate, o.fail, o.retries, o.slow = 0.05, 0.1, 0.01, 2, 2<<(seed%4)
				o.first = float64(seed%3) / 4
				w := newWorld(t, 1000*seed+uint64(i), o)
				prompts := map[RequestID][]int32{}
				const n = 24
				for r := RequestID(1); r <= n; r++ {
					prompts[r] = w.prompt(r, 1+w.rng.IntN(30))
					left := Duration(0)
					if w.rng.IntN(6) == 0 {
						left = Duration(1 + w.rng.IntN(300))
					}
					w.submit(r, prompts[r], uint32(1+w.rng.IntN(12)), left)
					for range w.rng.IntN(80) {
						w.turn()
					}
					w.fault(RequestID(1 + w.rng.IntN(int(r))))
				}
				w.opts.lose, w.opts.fail = 0.02, 0
				w.run(func() bool { return len(w.open) == 0 })
				for r := RequestID(1); r <= n; r++ {
					a := w.answers[r]
					if a.Cause == "" {
						succeeded++
						require.Equal(t, expect(prompts[r], a.NewTokens), w.emitted[r])
					} else {
						failed++
						require.True(t, a.Cause.Known())
						require.Equal(t, expect(prompts[r], uint32(len(w.emitted[r]))), w.emitted[r])
					}
				}
				w.run(w.idle)
			})
		}
	}
	t.Logf("%d succeeded, %d failed", succeeded, failed)
	require.Greater(t, succeeded, 100)
	require.Greater(t, failed, 100)
}

// fault does one thing that goes wrong, by chance.
func (w *world) fault(r RequestID) {
	switch w.rng.IntN(12) {
	case 0, 1:
		if w.dl.requests[r] != nil { // a half that is not at decode yet is abandoned by its deadline
			w.stepDL(ClientGone{Req: r})
		}
	case 2:
		for id := w.last; id > 0; id-- {
			if w.conns[id].up {
				w.cut(id)
				return
			}
		}
	case 3:
		if w.rng.IntN(3) == 0 {
			w.restart()
		}
	case 4:
		d, p := w.rng.IntN(len(w.dr)), w.rng.IntN(len(w.pr))
		w.stepD(d, DataLost{Peer: PeerID(p + 1), Epoch: w.dr[d].links[p].epoch})
	case 5:
		w.pass(Time(w.rng.IntN(150)))
	case 6:
		if w.rng.IntN(4) == 0 {
			w.restartDecode()
		}
	}
}

// restartDecode replaces the decode side: its clients lose their connections, its memory is another's.
func (w *world) restartDecode() {
	for d := range w.dr {
		for p := range w.pr {
			pid, life := w.pid(d), w.life
			w.may(func() { // the pidfd of the reader's process
				if life == w.life {
					w.stepP(p, ReaderEnded{Peer: pid})
				}
			})
		}
	}
	w.dlife++
	for id := ConnID(1); id <= w.last; id++ {
		if c := w.conns[id]; c.up {
			w.cut(id)
		}
	}
	for r := range w.open {
		delete(w.open, r)
		w.answers[r] = Answer{Req: r, Cause: spec.CauseClientGone}
	}
	w.startDecode()
	w.dialAll()
}

// restart replaces the prefill side by a new life at the same addresses. Writes on their way still land.
func (w *world) restart() {
	w.life++
	for id := ConnID(1); id <= w.last; id++ {
		if c := w.conns[id]; c.up {
			c.up = false
			w.dmay(func() { w.stepD(c.d, ConnLost{Peer: PeerID(c.p + 1), Conn: id}) })
		}
	}
	w.startPrefill()
}

// worldSeeds is how many seeds a test runs; KVFENCE_SEEDS multiplies it.
func worldSeeds(n uint64) uint64 {
	if k, err := strconv.ParseUint(os.Getenv("KVFENCE_SEEDS"), 10, 32); err == nil {
		return n * k
	}
	return n
}
