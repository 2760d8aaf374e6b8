package core

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kvfence/spec"
)

// leaderChaos drives one decode leader with ranks that keep the order of their words and otherwise do anything, a prefill that says
// anything, clients that come and go.
type leaderChaos struct {
	t        *rapid.T
	l        *DecodeLeader
	now      Time
	req      RequestID
	open     map[RequestID]*client
	holds    []map[spec.TransferID]bool // by rank: what it holds
	ready    map[spec.TransferID]int
	work     []Event // what runs at the driver and has not come back
	sent     []spec.TransferID
	ok, fail int
}

type client struct {
	opened bool
	tokens int
	max    int
}

func (c *leaderChaos) step(ev Event) {
	acts, err := c.l.Step(c.now, ev)
	require.NoError(c.t, err)
	for _, a := range acts {
		c.act(a)
	}
}

func (c *leaderChaos) act(a Action) {
	switch a := a.(type) {
	case Stop:
		c.t.Fatalf("stopped: %+v", a)
	case ToRank:
		c.atRank(int(a.Rank), a.Msg)
	case SendLeader:
		if m, ok := a.Body.(spec.Ask); ok && !slices.Contains(c.sent, m.Transfer) {
			c.sent = append(c.sent, m.Transfer)
		}
	case ReadFirst:
		c.work = append(c.work, FirstRead{Transfer: a.Transfer, OK: true, Tokens: uint32(len(c.l.find(a.Transfer).req.sub.Prompt)), First: Token{ID: 1}})
	case RunStep:
		for k := range c.holds {
			require.True(c.t, c.holds[k][a.Transfer], "a step without a lease")
		}
		c.work = append(c.work, StepDone{Transfer: a.Transfer, OK: true, Next: Token{ID: 2}})
	case OpenStream:
		require.False(c.t, c.open[a.Req].opened)
		c.open[a.Req].opened = true
	case Emit:
		require.True(c.t, c.open[a.Req].opened, "a token before the stream")
		c.open[a.Req].tokens++
	case Answer:
		q := c.open[a.Req]
		require.NotNil(c.t, q, "answered twice, or never asked")
		delete(c.open, a.Req)
		if a.Cause != "" {
			require.True(c.t, a.Cause.Known() && a.Cause != spec.CausePreempted)
			c.fail++
			return
		}
		c.ok++
		require.True(c.t, q.opened)
		require.Equal(c.t, q.max, q.tokens, "a 200 has all its tokens")
	}
}

// atRank is what a rank does with a word of its leader: its answers come later, in order.
func (c *leaderChaos) atRank(k int, m SideMsg) {
	switch m := m.(type) {
	case Take:
		require.False(c.t, c.holds[k][m.Transfer], "taken twice")
		for t := range c.holds[k] {
			require.NotZero(c.t, c.ready[t]&(1<<(8+k)), "two takes at once")
		}
		c.holds[k][m.Transfer] = true
		c.ready[m.Transfer] &^= 1<<(8+k) | 1<<k
	case Go:
		c.ready[m.Transfer] |= 1 << (8 + k)
	case AbortLease:
		c.ready[m.Transfer] |= 1<<(8+k) | 1<<(16+k)
	case ReleaseLease:
		c.ready[m.Transfer] |= 1<<(8+k) | 1<<(16+k)
	}
}

// transfer is mostly one that lives.
func (c *leaderChaos) transfer() spec.TransferID {
	if len(c.l.order) == 0 || rapid.IntRange(0, 9).Draw(c.t, "dead") == 0 {
		return spec.TransferID{Leader: c.l.own, Counter: rapid.Uint64Range(0, c.l.counter+1).Draw(c.t, "counter")}
	}
	return rapid.SampledFrom(c.l.order).Draw(c.t, "x").id
}

func (c *leaderChaos) say(k int, m SideMsg) { c.step(Side{Rank: spec.Rank(k), Msg: m}) }

// rankSays is one word of a rank about a transfer that its state allows.
func (c *leaderChaos) rankSays() {
	k, t := rapid.IntRange(0, len(c.holds)-1).Draw(c.t, "rank"), c.transfer()
	x := c.l.find(t)
	if x == nil || !c.holds[k][t] {
		return
	}
	granted, over := c.ready[t]&(1<<(8+k)) != 0, c.ready[t]&(1<<(16+k)) != 0
	switch {
	case over:
		delete(c.holds[k], t)
		c.ready[t] &^= 1 << (16 + k)
		c.say(k, LeaseFreed{Transfer: t})
		c.say(k, PagesFreed{})
	case !granted && c.ready[t]&(1<<k) == 0:
		c.ready[t] |= 1 << k
		switch rapid.IntRange(0, 5).Draw(c.t, "answer") {
		case 0:
			delete(c.holds[k], t)
			c.say(k, NoRoom{Transfer: t})
			c.say(k, PagesFreed{})
		case 1:
			delete(c.holds[k], t)
			c.say(k, NoPlan{Transfer: t, Cause: spec.CausePeerLost})
		default:
			c.say(k, Taken{Transfer: t, Lease: 1})
		}
	case granted && x.state == xFilling:
		if rapid.IntRange(0, 5).Draw(c.t, "fails") == 0 {
			c.say(k, LeaseFailed{Transfer: t, Cause: rapid.SampledFrom([]spec.Cause{spec.CauseFenced, spec.CauseCompute}).Draw(c.t, "cause")})
		} else {
			c.say(k, LeaseReady{Transfer: t})
		}
	case granted && x.state == xGrowing:
		if rapid.IntRange(0, 2).Draw(c.t, "room") == 0 {
			c.say(k, GrowNoRoom{Transfer: t})
		} else {
			c.say(k, Grown{Transfer: t})
		}
	}
}

func (c *leaderChaos) workDone(good bool) {
	if len(c.work) == 0 {
		return
	}
	i := rapid.IntRange(0, len(c.work)-1).Draw(c.t, "work")
	ev := c.work[i]
	c.work = slices.Delete(c.work, i, i+1)
	if !good {
		switch e := ev.(type) {
		case StepDone:
			e.OK = false
			ev = e
		case FirstRead:
			e.Tokens++
			ev = e
		}
	}
	c.step(ev)
}

func (c *leaderChaos) up(s int, life int) {
	inc := worldInc('p', s, life)
	for k := range c.holds {
		c.say(k, PeerUp{Peer: PeerID(s + 1), Layouts: worldLayouts(0, 1, 30), Identity: spec.Identity{Incarnation: inc, Size: 1, Side: []spec.Incarnation{inc}}})
	}
}

func (c *leaderChaos) actions() map[string]func(*rapid.T) {
	submit := func(*rapid.T) {
		c.req++
		n := rapid.IntRange(0, 12).Draw(c.t, "new")
		c.open[c.req] = &client{max: n}
		tokens := rapid.IntRange(0, 30).Draw(c.t, "tokens")
		if n == 0 {
			c.open[c.req].max = 80 - tokens
		}
		c.step(Submit{Req: c.req, Tenant: string(rune('a' + c.req%3)), Prompt: make([]int32, tokens), MaxNew: uint32(n), EOS: -1,
			TimeLeft: Duration(rapid.SampledFrom([]int{0, 0, 0, 200}).Draw(c.t, "left"))})
	}
	asked := func(*rapid.T) {
		t := c.transfer()
		if x := c.l.find(t); x != nil {
			c.say(0, PeerSaid{Peer: x.side.peers[0], Body: spec.Asked{Transfer: t, Tokens: uint32(len(x.req.sub.Prompt))}})
		}
	}
	return map[string]func(*rapid.T){
		"submit": submit, "submit2": submit, "asked": asked, "asked2": asked,
		"rank": func(*rapid.T) { c.rankSays() }, "rank2": func(*rapid.T) { c.rankSays() }, "rank3": func(*rapid.T) { c.rankSays() }, "rank4": func(*rapid.T) { c.rankSays() },
		"work": func(*rapid.T) { c.workDone(true) }, "work2": func(*rapid.T) { c.workDone(true) },
		"bad work": func(*rapid.T) {
			if rapid.IntRange(0, 5).Draw(c.t, "bad") == 0 {
				c.workDone(false)
			}
		},
		"gone": func(*rapid.T) {
			if rapid.IntRange(0, 3).Draw(c.t, "gone") == 0 {
				c.step(ClientGone{Req: RequestID(rapid.Uint64Range(1, uint64(c.req)+1).Draw(c.t, "req"))})
			}
		},
		"time": func(*rapid.T) { c.now += Time(rapid.IntRange(0, 10).Draw(c.t, "dt")); c.step(Tick{}) },
		"peer": func(*rapid.T) {
			s := rapid.IntRange(0, 1).Draw(c.t, "side")
			if rapid.IntRange(0, 3).Draw(c.t, "down") == 0 {
				c.say(rapid.IntRange(0, len(c.holds)-1).Draw(c.t, "rank"), PeerDown{Peer: PeerID(s + 1)})
			} else {
				c.up(s, rapid.IntRange(0, 1).Draw(c.t, "life"))
			}
		},
		"stray": func(*rapid.T) {
			t := c.transfer()
			m := rapid.SampledFrom([]SideMsg{PeerSaid{Peer: 1, Body: spec.AskFailed{Transfer: t, Cause: "odd"}}, PeerSaid{Peer: 2, Body: spec.Asked{Transfer: t}}, PeerSaid{Peer: 1, Body: spec.Ping{}},
				PeerRefused{Peer: 1, Detail: "d"}, PeerRefused{Peer: 9}, PeerDown{Peer: 9}, PeerUp{Peer: 9}, PagesFreed{}, Grow{}, LeaseFailed{Transfer: t, Cause: spec.CauseFenced}}).Draw(c.t, "stray")
			c.say(0, m)
		},
		"late": func(*rapid.T) {
			t := spec.TransferID{Leader: c.l.own, Counter: c.l.counter + 7}
			c.step(rapid.SampledFrom([]Event{StepDone{Transfer: t, OK: true}, FirstRead{Transfer: t, OK: true}, Side{Msg: LeaseReady{Transfer: t}}, Side{Msg: Taken{Transfer: t}}}).Draw(c.t, "late"))
		},
	}
}

// Any course of events: one answer a request, tokens only in between, a 200 only with all tokens, one take at a time, and at the end,
// with all leases freed, nothing is left.
func TestDecodeLeader_AnyEvents_OneAnswerNoFalseSuccess(t *testing.T) {
	ok, fail, preempted := 0, 0, uint64(0)
	rapid.Check(t, func(t *rapid.T) {
		ranks := rapid.IntRange(1, 2).Draw(t, "ranks")
		cfg := dlConfig(ranks, 2, 20)
		cfg.MaxActive, cfg.MaxQueue = 4, 5
		l, err := NewDecodeLeader(cfg)
		require.NoError(t, err)
		c := &leaderChaos{t: t, l: l, now: 1, open: map[RequestID]*client{}, ready: map[spec.TransferID]int{}}
		for range ranks {
			c.holds = append(c.holds, map[spec.TransferID]bool{})
		}
		c.up(0, 0)
		for range 6 {
			t.Repeat(c.actions())
		}
		c.step(Drain{})
		for _, r := range slices.Sorted(maps.Keys(c.open)) {
			c.step(ClientGone{Req: r})
		}
		require.Empty(t, c.open)
		for len(c.work) > 0 {
			ev := c.work[0]
			c.work = c.work[1:]
			c.step(ev)
		}
		for k := range c.holds {
			for _, x := range slices.Clone(l.order) {
				if c.holds[k][x.id] {
					c.say(k, LeaseFreed{Transfer: x.id})
				}
			}
		}
		require.Empty(t, l.order)
		require.Empty(t, l.xfers)
		require.Empty(t, l.waiting)
		require.Empty(t, l.growers)
		require.Empty(t, l.again)
		require.Empty(t, l.tenants)
		ok, fail, preempted = ok+c.ok, fail+c.fail, preempted+l.preempted
	})
	t.Logf("%d succeeded, %d failed, %d preempted", ok, fail, preempted)
	require.NotZero(t, ok)
}
