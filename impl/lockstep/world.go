package lockstep

import (
	"errors"
	"fmt"

	"kvfence/impl/core"
	"kvfence/model"
	"kvfence/spec"
)

// ErrWorld is wrapped by everything that the world finds wrong by itself: a machine that broke or refused what it may not refuse,
// an action of a machine that nobody asked for, an action of the specification that the world has no stimulus for.
var ErrWorld = errors.New("lockstep: the engine does something else")

// World is both sides of a Setting with everything that lies between them in explicit boxes. Nothing moves by itself: Do carries
// out one action of the specification. Not safe for concurrent use.
type World struct {
	set *Setting
	tw  *model.Settings
	lens
	lazy  bool // receipts and notices stay in their boxes as long as they may
	now   core.Time
	err   error
	d     *core.DecodeRank
	p     []*core.PrefillRank
	dinc  uint8
	pinc  [model.MaxRanks]uint8
	conns core.ConnID

	lease [model.MaxLeases + 1]lease
	next  uint8 // next number of a lease
	links [model.MaxRanks]link
	fabric
	leaders
	checks  []core.TagCheck                   // of the step that runs
	gens    [model.MaxPages][]spec.Generation // that were granted, in decode's present life
	accepts map[acceptKey]core.Send           // answers to connects that were sent
	answers map[answerKey]core.Send           // receipts that were sent
	notices map[noticeKey]bool                // notices that were sent
	arrived map[noticeKey]bool                // notices that came in, by whether the rank was told
	rec     map[answerKey]bool                // receipts that came, by whether the rank was told
	pmark   [model.MaxRanks]uint8
	fenced  map[[3]uint8]bool // rank, decode incarnation, epoch
	kernels map[[4]uint8]bool
	tokens  map[[3]uint8]bool
	dead    [model.MaxTransfers + 1]bool // transfers whose decode leader's process is over
}

type acceptKey struct{ k, i, d, e uint8 }
type answerKey struct{ c, l, k, i uint8 }
type noticeKey struct{ l, k, c, i uint8 }

// lease is what the world knows of one lease of the specification: at decode, and at each prefill rank.
type lease struct {
	t, dinc  uint8
	id       spec.LeaseID // decode's number; 0: none yet, or it grew out of parent
	parent   uint8        // the lease that it is a grown page of; 0: none
	grown    uint8        // that page
	gpage    [model.MaxPages]uint8
	table    []uint8 // its KV pages in order, shared ones first, then its records
	owes     [model.MaxRanks]bool
	gep      [model.MaxRanks]uint8
	ginc     [model.MaxRanks]uint8
	ten      uint8
	ada, pre uint8
	got      [model.MaxRanks]bool
	qep      [model.MaxRanks]uint8
	dst      uint8 // as last seen
	grant    [model.MaxRanks]*core.Send
	abort    [model.MaxRanks]*core.Send
	verify   *core.Verify
	checked  *core.Verified // its outcome, in the rank's box
	at       [model.MaxRanks]source
}

// source is one lease at one prefill rank, in its present life.
type source struct {
	view     uint8
	known    bool // its leader has told the rank
	pst      uint8
	killed   bool // ended with its epoch: no receipt
	own      bool
	pages    []uint8 // source pages, in order of the plan's parts
	taken    bool
	chunk    bool // ChunkDone was said
	over     bool // ComputeOver was said
	seal     *core.Seal
	post     *core.Post
	posts    []core.Post // not over
	writes   []*write    // of posts
	posted   bool
	notice   *core.Notice
	noticed  bool
	aborting bool // an Abort lies in the rank's box
	breaking bool // a Break lies in the rank's box
}

// link is what lies between decode and one prefill rank.
type link struct {
	table   spec.Epoch // of decode's grant table: what the placers compare
	fences  []spec.Epoch
	connect *core.Send // the connect that is out
	conn    core.ConnID
	opening spec.Epoch
	linc    uint8
	ping    *core.Send
	dmark   uint8
	marks   [model.MaxLeases + 2]spec.LeaseID // decode's number of each mark that was said in this life of decode; 0: not said
	told    [model.MaxLeases + 2]bool         // of them, those that prefill was told
	peers   [model.MaxDInc + 1]peer           // prefill's ends, by decode incarnation
}

type peer struct {
	conn core.ConnID
	lost bool // decode's end is closed
}

// New makes the world of a setting in the initial state: every link is open in its first epoch.
func New(set *Setting, lazy bool) (*World, error) {
	w := &World{set: set, tw: &set.Twin, lens: set.lens, lazy: lazy, now: 1, next: 1, accepts: map[acceptKey]core.Send{}, answers: map[answerKey]core.Send{}, notices: map[noticeKey]bool{},
		arrived: map[noticeKey]bool{}, rec: map[answerKey]bool{}, fenced: map[[3]uint8]bool{}, kernels: map[[4]uint8]bool{}, tokens: map[[3]uint8]bool{}}
	for k := range ranks(w.tw) {
		w.p = append(w.p, nil)
		w.startPrefill(k)
	}
	if set.Leaders {
		w.startLeaders()
	}
	w.startDecode()
	for k := range ranks(w.tw) {
		w.accept(k)
		w.connect(k, 0, 0, 0)
	}
	if set.Leaders {
		w.pump()
		if !w.tw.Asking {
			w.openAll()
		}
	}
	return w, w.err
}

// fail keeps the first thing that was wrong.
func (w *World) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf("%w: %s", ErrWorld, fmt.Sprintf(format, args...))
	}
}

const never = core.Duration(1) << 60

func inc(role byte, rank, life uint8) (i spec.Incarnation) {
	i[0], i[1], i[2] = role, rank+1, life+1
	return i
}

func meaning(c spec.Component) spec.Meaning {
	m := spec.Meaning{ModelRevision: "m", DType: "u8", ByteOrder: "little", HeadDim: 8, ElemBytes: 1, KVs: 2, TokensPerPage: tokensPerPage, Layers: 4, Heads: 4}
	if c != spec.KV {
		m.TokensPerPage, m.KVs, m.Layers, m.Heads, m.HeadDim = 0, 1, 1, 1, 64
	}
	return m
}

// layouts are the pools of one rank of so many: the KV heads are split, the auxiliary record is rank 0's.
func layouts(rank, of, kv, aux uint32) []spec.Layout {
	heads := 4 / of
	out := []spec.Layout{spec.NewDense(spec.KV, meaning(spec.KV), 0, 4, rank*heads, (rank+1)*heads, kv, 4)}
	if aux > 0 && rank == 0 {
		out = append(out, spec.NewDense(spec.Aux, meaning(spec.Aux), 0, 1, 0, 1, aux, 1))
	}
	return out
}

func (w *World) prefillSide() (side []spec.Incarnation) {
	for k := range ranks(w.tw) {
		side = append(side, inc('p', k, w.pinc[k]))
	}
	return side
}

func (w *World) startDecode() {
	id := spec.Identity{Name: "d", Role: spec.RoleDecode, Incarnation: inc('d', 0, w.dinc), Size: 1, Side: []spec.Incarnation{inc('d', 0, w.dinc)}}
	cfg := core.DecodeRankConfig{Identity: id, Layouts: layouts(0, 1, w.set.KV, w.set.Aux), Window: 1000, Digests: true, Heartbeat: 1, Liveness: never, ConnectBound: never,
		RepeatFirst: never, RepeatMax: never, AnswerBound: never, QuarantineWait: never, MaxPublished: w.set.Published}
	for k := range ranks(w.tw) {
		cfg.Peers = append(cfg.Peers, core.PeerConfig{ID: core.PeerID(k + 1)})
	}
	r, err := core.NewDecodeRank(cfg)
	if err != nil {
		w.fail("%v", err)
		return
	}
	w.d, w.gens = r, [model.MaxPages][]spec.Generation{}
	for k := range ranks(w.tw) {
		l := &w.links[k]
		l.table, l.fences, l.connect, l.ping = 0, nil, nil, nil
		l.marks, l.told = [model.MaxLeases + 2]spec.LeaseID{}, [model.MaxLeases + 2]bool{}
		w.dial(k)
		w.fenceEnd(k) // of nothing: a new process
	}
}

func (w *World) startPrefill(k uint8) {
	side := w.prefillSide()
	n := uint32(ranks(w.tw))
	var all [][]spec.Layout
	for r := range n {
		all = append(all, layouts(r, n, w.set.Source, min(w.set.Aux, 1)))
	}
	r, err := core.NewPrefillRank(core.PrefillRankConfig{Identity: spec.Identity{Name: fmt.Sprint("p", k), Role: spec.RolePrefill, Incarnation: side[k], Rank: spec.Rank(k), Size: uint16(n), Side: side},
		Capabilities: []string{spec.CapDrainReceipts, spec.CapMarks, spec.CapTags}, SideLayouts: all, Window: 1000, Digests: true, Heartbeat: never, Liveness: never, AssignBound: never,
		MaxAnswers: w.set.Answers, MaxSealItems: 1, MaxPostItems: 1})
	if err != nil {
		w.fail("%v", err)
		return
	}
	w.p[k] = r
}

// transfer is the engine's name of a transfer of the decode incarnation that a lease is of.
func (w *World) transfer(t, dinc uint8) spec.TransferID {
	if w.set.Leaders {
		return w.tr[t].id
	}
	return spec.TransferID{Leader: inc('d', 0, dinc), Counter: uint64(t)}
}

// number finds the specification's number of a lease of decode incarnation d; 0: it has none.
func (w *World) number(d uint8, id spec.LeaseID) uint8 {
	for l := uint8(1); l < w.next; l++ {
		if w.lease[l].dinc == d && w.lease[l].id == id && id != 0 {
			return l
		}
	}
	return 0
}

// pid is prefill's number for a decode incarnation; decode's number for a prefill rank is rank + 1.
func pid(d uint8) core.PeerID { return core.PeerID(d + 1) }

// page is the specification's place of a page, id the engine's number of it.
func (w *World) page(c spec.Component, p spec.PageID) uint8 {
	if c == spec.Aux {
		return uint8(w.set.KV) + uint8(p)
	}
	return uint8(p)
}

func (w *World) id(p uint8) (spec.Component, spec.PageID) {
	if uint32(p) >= w.set.KV {
		return spec.Aux, spec.PageID(uint32(p) - w.set.KV)
	}
	return spec.KV, spec.PageID(p)
}

// sourcePage is the specification's number of a source page.
func (w *World) sourcePage(c spec.Component, p spec.PageID) uint8 {
	if c == spec.Aux {
		return uint8(w.set.Source) + uint8(p) + 1
	}
	return uint8(p) + 1
}

// epochOf is the specification's number of an engine's epoch: the first connect of a life opens epoch 0 there.
func epochOf(e spec.Epoch) uint8 {
	if e == 0 {
		return 0
	}
	return uint8(e) - 1
}

func (w *World) ep(k uint8) uint8 { return epochOf(w.links[k].table) }

// gen is the specification's generation of a page: how many of its generations were granted. One that was handed out and taken back
// before a grant was sent is not the specification's.
func (w *World) gen(p uint8) uint8 { return w.genOf(p, w.d.Detail(w.id(p)).Gen) }

func (w *World) genOf(p uint8, g spec.Generation) (n uint8) {
	for _, x := range w.gens[p] {
		if x <= g {
			n++
		}
	}
	return n
}
