package core

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/spec"
)

// world is both sides with everything between them: connections, writes that land late, notices, copies, kernels. It delivers one
// thing at a time, chosen by its seed, so that every order that the driver's contract allows is possible.
type world struct {
	t    *testing.T
	rng  *rand.Rand
	now  Time
	opts worldOptions

	dl *DecodeLeader
	dr []*DecodeRank
	pl *PrefillLeader
	pr []*PrefillRank

	pending []func() // things that may happen next, in any order
	order   map[string][]func()
	keys    []string // queues that keep their order, by first use
	conns   map[ConnID]*wconn
	last    ConnID
	life    int // of the prefill side
	dlife   int // of the decode side

	dst  []map[cellKey]wcell // decode memory by rank
	src  []map[cellKey]wcell // prefill memory by rank
	data map[dataKey]*wdata

	prompts map[spec.TransferID][]int32
	whose   map[spec.TransferID]string // tenant and adapter, of transfers and of halves
	open    map[RequestID]bool
	halves  map[RequestID]Submit // prefill first: not named yet
	emitted map[RequestID][]int32
	answers map[RequestID]Answer
	steps   int
	work    uint32 // tokens computed
	nonce   byte
	stops   []Stop
	follow  *follower
}

type worldOptions struct {
	decode, prefill       int // ranks
	pull, digests         bool
	pages, sourcePages    uint32
	lose, duplicate, fail float64 // chances
	retries               int
	first                 float64 // chance that prefill has its half first
	slow                  int     // things that happen in one tick; default 16
	sharing               int     // pages that a decode rank may publish
	sources               int     // pages that a prefill rank may publish
}

type wconn struct {
	d, p        int
	life, dlife int
	up          bool
}

type cellKey struct {
	c    spec.Component
	page spec.PageID
	slot spec.PartIndex
}

type wcell struct {
	tag     spec.Tag
	content string // what the bytes mean
}

type dataKey struct{ d, p int }

// wdata is the data path of one link: decode's grant table and what is on its way.
type wdata struct {
	epoch  spec.Epoch
	life   int
	allow  map[spec.LeaseID]bool
	writes []*wwrite // not landed
	open   [2]map[spec.Epoch]int
}

type wwrite struct {
	epoch   spec.Epoch
	lease   spec.LeaseID
	item    PostItem
	content string
	channel uint32
	notice  *Notice
	checked bool
	over    bool
}

const worldPage = 4

func worldInc(role byte, rank, life int) (i spec.Incarnation) {
	i[0], i[1], i[2] = role, byte(rank+1), byte(life+1)
	return i
}

func worldMeaning(c spec.Component) spec.Meaning {
	m := spec.Meaning{ModelRevision: "m", DType: "u8", ByteOrder: "little", HeadDim: 8, ElemBytes: 1, KVs: 2, TokensPerPage: worldPage, Layers: 4, Heads: 4}
	if c != spec.KV {
		m.TokensPerPage, m.KVs, m.Layers, m.Heads, m.HeadDim = 0, 1, 1, 1, 64
	}
	return m
}

func worldLayouts(rank, of int, pages uint32) []spec.Layout {
	heads := uint32(4 / of)
	return []spec.Layout{
		spec.NewDense(spec.KV, worldMeaning(spec.KV), 0, 4, uint32(rank)*heads, uint32(rank+1)*heads, pages, 4),
		spec.NewDense(spec.Aux, worldMeaning(spec.Aux), 0, 1, 0, 1, pages, 1),
	}
}

func worldSide(role byte, n, life int) (side []spec.Incarnation) {
	for k := range n {
		side = append(side, worldInc(role, k, life))
	}
	return side
}

func newWorld(t *testing.T, seed uint64, o worldOptions) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 7)), now: 1, opts: o, order: map[string][]func(){}, conns: map[ConnID]*wconn{},
		data: map[dataKey]*wdata{}, prompts: map[spec.TransferID][]int32{}, whose: map[spec.TransferID]string{}, open: map[RequestID]bool{}, halves: map[RequestID]Submit{}, emitted: map[RequestID][]int32{}, answers: map[RequestID]Answer{}}
	if w.opts.slow == 0 {
		w.opts.slow = 16
	}
	w.startDecode()
	w.startPrefill()
	return w
}

// startDecode starts a life of the decode side: a new process with memory of its own.
func (w *world) startDecode() {
	o, t := w.opts, w.t
	w.dr, w.dst, w.data, w.follow = nil, nil, map[dataKey]*wdata{}, newFollower(w)
	dside := worldSide('d', o.decode, w.dlife)
	var all [][]spec.Layout
	for k := range o.decode {
		cfg := DecodeRankConfig{Identity: spec.Identity{Name: fmt.Sprintf("d%d", k), Role: spec.RoleDecode, Incarnation: dside[k], Rank: spec.Rank(k), Size: uint16(o.decode), Side: dside},
			Layouts: worldLayouts(k, o.decode, o.pages), Window: 1000, Digests: o.digests, Heartbeat: 10, Liveness: 100, ConnectBound: 200, RepeatFirst: 5, RepeatMax: 40, AnswerBound: 400, QuarantineWait: 20, MaxPublished: o.sharing}
		for p := range o.prefill {
			cfg.Peers = append(cfg.Peers, PeerConfig{ID: PeerID(p + 1), Pull: o.pull})
		}
		r, err := NewDecodeRank(cfg)
		require.NoError(t, err)
		w.dr = append(w.dr, r)
		w.dst = append(w.dst, map[cellKey]wcell{})
		all = append(all, cfg.Layouts)
	}
	var peers []PeerID
	for p := range o.prefill {
		peers = append(peers, PeerID(p+1))
	}
	dl, err := NewDecodeLeader(DecodeLeaderConfig{Identity: w.dr[0].cfg.Identity, SideLayouts: all, Revision: "m", Window: 1000, Prefill: [][]PeerID{peers},
		PeerBound: 2000, AskFirst: 5, AskMax: 40, AskBound: 1000, CauseGrace: 20, RetryAfter: 1, MaxRetries: o.retries, Sharing: o.sharing > 0})
	require.NoError(t, err)
	w.dl = dl
}

// startPrefill starts a life of the prefill side and dials every link.
func (w *world) startPrefill() {
	o := w.opts
	side := worldSide('p', o.prefill, w.life)
	var all [][]spec.Layout
	for k := range o.prefill {
		all = append(all, worldLayouts(k, o.prefill, o.sourcePages))
	}
	w.pr, w.src = nil, nil
	for k := range o.prefill {
		r, err := NewPrefillRank(PrefillRankConfig{Identity: spec.Identity{Name: fmt.Sprintf("p%d", k), Role: spec.RolePrefill, Incarnation: side[k], Rank: spec.Rank(k), Size: uint16(o.prefill), Side: side},
			Capabilities: requiredCapabilities(), SideLayouts: all, Window: 1000, Digests: o.digests, Pull: o.pull, MaxPublished: o.sources, Heartbeat: 10, Liveness: 100, AssignBound: 300, OfferFirst: 5, OfferMax: 40})
		require.NoError(w.t, err)
		w.pr = append(w.pr, r)
		w.src = append(w.src, map[cellKey]wcell{})
	}
	pl, err := NewPrefillLeader(PrefillLeaderConfig{Identity: w.pr[0].cfg.Identity, SideLayouts: all, Revision: "m", Vocabulary: 1000, Window: 1000, Adapters: []string{"x"}, Sharing: o.sources > 0,
		ChunkTokens: 6, LinkBound: 1000, GrantBound: 5000, HalfBound: 1000})
	require.NoError(w.t, err)
	w.pl = pl
	w.dialAll()
}

func (w *world) dialAll() {
	for d := range w.opts.decode {
		for p := range w.opts.prefill {
			w.dial(d, p)
		}
	}
}

// pid is prefill's number for a decode rank in its present life; decode finds the rank of a number, and whether it still lives.
func (w *world) pid(d int) PeerID { return PeerID(d + 1 + 100*w.dlife) }

func (w *world) decode(p PeerID) (d int, now bool) {
	return (int(p) - 1) % 100, (int(p)-1)/100 == w.dlife
}

// dmay and dthen are may and then for things that end with the decode process.
func (w *world) dmay(f func()) { w.may(w.alive(f)) }

func (w *world) dthen(key string, f func()) { w.then(key, w.alive(f)) }

func (w *world) alive(f func()) func() {
	life := w.dlife
	return func() {
		if life == w.dlife {
			f()
		}
	}
}

// dial connects a link that has no connection, some time later.
func (w *world) dial(d, p int) {
	life := w.life
	w.dmay(func() {
		if life != w.life {
			return
		}
		for _, c := range w.conns {
			if c.up && c.d == d && c.p == p && c.life == life && c.dlife == w.dlife {
				return
			}
		}
		w.last++
		id := w.last
		w.conns[id] = &wconn{d: d, p: p, life: life, dlife: w.dlife, up: true}
		w.nonce++
		w.stepD(d, Dialed{Peer: PeerID(p + 1), Conn: id, Nonce: spec.Nonce{w.nonce, byte(id)}})
	})
}

func (w *world) may(f func()) { w.pending = append(w.pending, f) }

// then queues f behind what was queued under the same key.
func (w *world) then(key string, f func()) {
	if _, ok := w.order[key]; !ok {
		w.keys = append(w.keys, key)
	}
	w.order[key] = append(w.order[key], f)
}

// turn lets one thing happen, or time pass. false: nothing is on its way.
func (w *world) turn() bool {
	var live []string
	for _, k := range w.keys {
		if len(w.order[k]) > 0 {
			live = append(live, k)
		}
	}
	n := len(w.pending) + len(live)
	if n == 0 {
		return false
	}
	w.steps++
	i := w.rng.IntN(n)
	if i < len(w.pending) {
		f := w.pending[i]
		w.pending = slices.Delete(w.pending, i, i+1)
		f()
	} else {
		k := live[i-len(w.pending)]
		f := w.order[k][0]
		w.order[k] = w.order[k][1:]
		f()
	}
	if w.rng.IntN(w.opts.slow) == 0 {
		w.pass(1)
	}
	return true
}

// pass lets time go by and ticks whoever is due.
func (w *world) pass(d Time) {
	w.now += d
	due := func(m interface{ Deadline() Time }) bool { return m.Deadline() != 0 && m.Deadline() <= w.now }
	if due(w.dl) {
		w.stepDL(Tick{})
	}
	for d := range w.dr {
		if due(w.dr[d]) {
			w.stepD(d, Tick{})
		}
	}
	if due(w.pl) {
		w.stepPL(Tick{})
	}
	for p := range w.pr {
		if due(w.pr[p]) {
			w.stepP(p, Tick{})
		}
	}
}

// run goes on until done, or for a bounded time.
func (w *world) run(done func() bool) {
	for limit := 0; !done(); limit++ {
		require.Less(w.t, limit, 400000, "it does not end: %+v\n%+v", w.dl.Status(), w.dr[0].Status())
		if !w.turn() {
			w.pass(1)
		}
		require.Empty(w.t, w.stops)
	}
}

func (w *world) submit(req RequestID, prompt []int32, maxNew uint32, timeLeft Duration) {
	w.submitAs(Submit{Req: req, Tenant: fmt.Sprint("t", req%3), Prompt: prompt, MaxNew: maxNew, EOS: -1, TimeLeft: timeLeft})
}

func whoseOf(tenant, adapter string) string { return tenant + "/" + adapter }

func (w *world) submitAs(s Submit) {
	w.open[s.Req] = true
	if w.rng.Float64() >= w.opts.first {
		w.stepDL(s)
		return
	}
	w.halves[s.Req] = s
	w.stepPL(s)
}

// idle reports that nothing is held anywhere.
func (w *world) idle() bool {
	for _, r := range w.dr {
		s := r.Status()
		for _, p := range s.Pools {
			if p.Free != p.Total {
				return false
			}
		}
	}
	for _, r := range w.pr {
		for _, led := range r.ledgers {
			if led != nil && led.Counts().Free != led.Counts().Total {
				return false
			}
		}
	}
	return len(w.dl.xfers) == 0 && len(w.open) == 0
}
