package fuzz

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"kvfence/impl/core"
	"kvfence/spec"
)

// helloWorld is a prefill rank, a decode rank and a network of bytes between them that does what the tape says: it delivers, doubles, keeps
// and replays messages, changes their fields, makes some up, and breaks connections. Both drivers keep their contract.
type helloWorld struct {
	t    *testing.T
	tape *Tape
	now  core.Time

	p        *core.PrefillRank
	d        *core.DecodeRank
	peers    map[spec.Incarnation]core.PeerID // prefill's numbers for decode incarnations
	said     map[core.PeerID][]spec.Connect   // what prefill was asked
	opened   map[core.PeerID]spec.Epoch       // of each peer's last data path
	conns    []*helloConn
	lastConn core.ConnID
	nonces   uint64
	lives    byte
	heard    []spec.Envelope // everything that was ever sent
	answers  []spec.Accept   // what decode was answered
	epoch    spec.Epoch      // of decode's last fence
	work     []func()        // what a device will end: data paths, fences
}

// helloConn is one control connection: what is under way in both directions.
type helloConn struct {
	id        core.ConnID
	nonce     spec.Nonce // that decode said on it
	peer      core.PeerID
	toP, toD  []spec.Envelope
	pUp, dUp  bool // each end knows the connection
	introduce bool // the first message to prefill is still to come
}

func helloLayouts(pages uint32) []spec.Layout {
	m := spec.Meaning{ModelRevision: "r1", DType: "u8", ByteOrder: "little", HeadDim: 4, ElemBytes: 1, KVs: 2, TokensPerPage: 4, Layers: 2, Heads: 2}
	aux := spec.Meaning{ModelRevision: "r1", DType: "u8", ByteOrder: "little", HeadDim: 16, ElemBytes: 1, KVs: 1, Layers: 1, Heads: 1}
	return []spec.Layout{spec.NewDense(spec.KV, m, 0, 2, 0, 2, pages, 4), spec.NewDense(spec.Aux, aux, 0, 1, 0, 1, pages, 4)}
}

func (w *helloWorld) incarnation(role byte) spec.Incarnation {
	w.lives++
	return spec.Incarnation{role, w.lives}
}

func (w *helloWorld) startPrefill() {
	inc := w.incarnation(1)
	var err error
	w.p, err = core.NewPrefillRank(core.PrefillRankConfig{Identity: spec.Identity{Name: "p", Role: spec.RolePrefill, Incarnation: inc, Size: 1, Side: []spec.Incarnation{inc}},
		Capabilities: []string{spec.CapDrainReceipts, spec.CapMarks, spec.CapTags}, SideLayouts: [][]spec.Layout{helloLayouts(8)}, Window: 64, Digests: true, MaxLinks: 3}.WithDefaults())
	require.NoError(w.t, err)
	w.peers, w.said, w.opened = map[spec.Incarnation]core.PeerID{}, map[core.PeerID][]spec.Connect{}, map[core.PeerID]spec.Epoch{}
	for _, c := range w.conns {
		c.pUp, c.toD = false, nil
	}
	w.work = nil // of a process that is gone, and decode's fences begin anew
}

func (w *helloWorld) startDecode() {
	inc, rank := w.incarnation(2), spec.Rank(0)
	var err error
	w.d, err = core.NewDecodeRank(core.DecodeRankConfig{Identity: spec.Identity{Name: "d", Role: spec.RoleDecode, Incarnation: inc, Size: 1, Side: []spec.Incarnation{inc}},
		Layouts: helloLayouts(8), Window: 64, Digests: true, Peers: []core.PeerConfig{{ID: 1, Name: "p", Rank: &rank}}}.WithDefaults())
	require.NoError(w.t, err)
	w.epoch = 0
	for _, c := range w.conns {
		c.dUp, c.toP = false, nil
	}
}

// step gives one machine an event. Whatever a peer sent, it is no error, breaks no invariant and costs a bounded number of actions.
func (w *helloWorld) step(machine interface {
	Step(core.Time, core.Event) ([]core.Action, error)
	Check() error
}, ev core.Event) {
	acts, err := machine.Step(w.now, ev)
	require.NoError(w.t, err, "%T", ev)
	require.NoError(w.t, machine.Check())
	require.Less(w.t, len(acts), 64, "%T", ev)
	for _, a := range acts {
		stop, is := a.(core.Stop)
		require.False(w.t, is, "after %T: %+v", ev, stop)
		if machine == any(w.p) {
			w.prefillActs(a)
		} else {
			w.decodeActs(a)
		}
	}
}

func (w *helloWorld) conn(id core.ConnID) *helloConn {
	for _, c := range w.conns {
		if c.id == id {
			return c
		}
	}
	return nil
}

// later is work of a device, which ends when the tape says so; that of a machine that has been replaced ends nowhere.
func (w *helloWorld) later(machine any, f func()) {
	w.work = append(w.work, func() {
		if machine == any(w.p) || machine == any(w.d) {
			f()
		}
	})
}

// prefillActs carries out what prefill does. It opens a data path only for a connect of an equal layout that raises epoch and counter.
func (w *helloWorld) prefillActs(a core.Action) {
	p := w.p
	switch a := a.(type) {
	case core.Send:
		w.heard = append(w.heard, a.Env)
		if c := w.conn(a.Conn); c != nil && c.dUp {
			c.toD = append(c.toD, a.Env)
		}
	case core.CloseConn:
		if c := w.conn(a.Conn); c != nil && c.pUp {
			c.pUp = false
			w.later(p, func() { w.step(p, core.ConnLost{Peer: c.peer, Conn: c.id}) })
		}
	case core.ExpectData:
		require.Greater(w.t, a.Epoch, w.opened[a.Peer], "an epoch only rises")
		w.opened[a.Peer] = a.Epoch
		require.True(w.t, slices.ContainsFunc(w.said[a.Peer], func(c spec.Connect) bool {
			return c.Epoch == a.Epoch && c.Identity.Incarnation == a.Info.Decode && c.Window == 64 && c.Digests && !c.Pull && c.Version == spec.Version && len(c.Capabilities) == 3 && sameLayouts(c.Layouts)
		}), "a data path that no connect asked for as it must")
		w.later(p, func() { w.step(p, core.DataUp{Peer: a.Peer, Epoch: a.Epoch}) })
	case core.Fence:
		w.later(p, func() { w.step(p, core.FenceDone{Peer: a.Peer, Old: a.Old, OK: true}) })
	}
}

// decodeActs carries out what decode does. It opens a data path only behind an Accept with the nonce of this connection and equal layouts.
func (w *helloWorld) decodeActs(a core.Action) {
	d := w.d
	switch a := a.(type) {
	case core.Send:
		w.heard = append(w.heard, a.Env)
		if c := w.conn(a.Conn); c != nil && c.pUp {
			c.toP = append(c.toP, a.Env)
		}
	case core.CloseConn:
		if c := w.conn(a.Conn); c != nil && c.dUp {
			c.dUp = false
			w.later(d, func() { w.step(d, core.ConnLost{Peer: 1, Conn: c.id}) })
		}
	case core.OpenData:
		last := w.conns[len(w.conns)-1]
		for _, c := range w.conns { // the connection that decode dialed last and still knows
			if c.dUp {
				last = c
			}
		}
		require.True(w.t, slices.ContainsFunc(w.answers, func(m spec.Accept) bool {
			return m.Nonce == last.nonce && m.Identity.Incarnation == a.Info.Prefill && m.Window == 64 && m.Version == spec.Version && len(m.Capabilities) == 3 && sameLayouts(m.Layouts) && m.DataAddress != ""
		}), "a link opens behind no answer to its nonce, or one that differs")
		require.Equal(w.t, w.epoch, a.Epoch, "a data path of a fenced epoch")
		w.later(d, func() {
			w.step(d, core.DataUp{Peer: 1, Epoch: a.Epoch, Err: []string{"", "", "refused"}[w.tape.N(3)]})
		})
	case core.Fence:
		require.Greater(w.t, a.New, w.epoch, "an epoch only rises")
		w.epoch = a.New
		w.later(d, func() { w.step(d, core.FenceDone{Peer: 1, Old: a.Old, OK: true}) })
	}
}

// sameLayouts: what decides the meaning of bytes is equal to ours.
func sameLayouts(theirs []spec.Layout) bool {
	for _, ours := range helloLayouts(8) {
		for _, l := range theirs {
			if l.Component == ours.Component && (ours.Equal != l.Equal || l.Validate() != nil) {
				return false
			}
		}
	}
	return slices.ContainsFunc(theirs, func(l spec.Layout) bool { return l.Component == spec.KV })
}

// dial makes a connection and lets decode say its Connect.
func (w *helloWorld) dial() {
	if len(w.conns) > 0 && w.conns[len(w.conns)-1].dUp && !w.tape.One(2) {
		return
	}
	w.lastConn++
	w.nonces++
	c := &helloConn{id: w.lastConn, dUp: true, pUp: true, introduce: true}
	binary.LittleEndian.PutUint64(c.nonce[:], w.nonces)
	for _, old := range w.conns {
		if old.dUp { // a driver has one connection a peer
			old.dUp = false
			w.step(w.d, core.ConnLost{Peer: 1, Conn: old.id})
		}
	}
	w.conns = append(w.conns, c)
	w.step(w.d, core.Dialed{Peer: 1, Conn: c.id, Nonce: c.nonce})
}

// toPrefill delivers an envelope on a connection.
func (w *helloWorld) toPrefill(c *helloConn, e spec.Envelope) {
	if !c.pUp {
		return
	}
	connect, is := e.Body.(spec.Connect)
	if !c.introduce {
		if !is {
			w.step(w.p, core.Recv{Peer: c.peer, Conn: c.id, Env: e})
		}
		return
	}
	if !is || e.From.IsZero() {
		return // the driver closes a connection that begins with anything else
	}
	c.introduce = false
	if w.peers[e.From] == 0 {
		w.peers[e.From] = core.PeerID(len(w.peers) + 1)
	}
	c.peer = w.peers[e.From]
	w.said[c.peer] = append(w.said[c.peer], connect)
	before := len(w.p.Status().Links)
	w.step(w.p, core.ConnectIn{Peer: c.peer, Conn: c.id, Env: e, Key: [32]byte{1}, DataAddress: "127.0.0.1:1"})
	require.LessOrEqual(w.t, len(w.p.Status().Links), max(3, before), "more links than the bound")
}

// toDecode delivers an envelope on a connection.
func (w *helloWorld) toDecode(c *helloConn, e spec.Envelope) {
	if !c.dUp {
		return
	}
	if a, is := e.Body.(spec.Accept); is {
		w.answers = append(w.answers, a)
	}
	w.step(w.d, core.Recv{Peer: 1, Conn: c.id, Env: e})
}

// mutate changes one field of a message of the handshake, or the header.
func (w *helloWorld) mutate(e spec.Envelope) spec.Envelope {
	t := w.tape
	identity := func(id *spec.Identity) {
		id.Side = slices.Clone(id.Side)
		switch t.N(6) {
		case 0:
			id.Incarnation[2] ^= t.Byte()
		case 1:
			id.Role = []string{spec.RolePrefill, spec.RoleDecode, ""}[t.N(3)]
		case 2:
			id.Size, id.Rank = uint16(t.Byte()), spec.Rank(t.Byte())
		case 3:
			id.Side = append(id.Side, spec.Incarnation{t.Byte()})
		case 4:
			id.Name = string(t.Bytes(2))
		case 5:
			id.Side = nil
		}
	}
	layouts := func(ls []spec.Layout) []spec.Layout {
		ls = slices.Clone(ls)
		if len(ls) == 0 {
			return ls
		}
		l := &ls[t.N(len(ls))]
		switch t.N(7) {
		case 0:
			l.Equal.ModelRevision = "r2"
		case 1:
			l.Equal.HeadDim = uint32(t.Byte())
		case 2:
			l.Shape.HeadHi = uint32(t.Byte())
		case 3:
			l.Shape.PageBytes = uint32(t.Uint64())
		case 4:
			l.Component = spec.Component(t.N(4))
		case 5:
			return ls[1:]
		case 6:
			return append(ls, ls[0])
		}
		return ls
	}
	switch m := e.Body.(type) {
	case spec.Connect:
		switch t.N(7) {
		case 0:
			m.Nonce[9] ^= t.Byte()
		case 1:
			m.Counter = uint64(t.Byte())
		case 2:
			m.Epoch = spec.Epoch(t.Byte())
		case 3:
			identity(&m.Identity)
		case 4:
			m.Layouts = layouts(m.Layouts)
		case 5:
			m.Window, m.Digests = uint32(t.Byte()), t.One(2)
		case 6:
			m.Capabilities, m.Pull, m.Version = nil, t.One(2), uint16(t.N(3))
		}
		e.Body = m
	case spec.Accept:
		switch t.N(6) {
		case 0:
			m.Nonce[9] ^= t.Byte()
		case 1:
			identity(&m.Identity)
		case 2:
			m.Layouts = layouts(m.Layouts)
		case 3:
			m.Window = uint32(t.Byte())
		case 4:
			m.Capabilities, m.Version = m.Capabilities[:min(len(m.Capabilities), t.N(4))], uint16(t.N(3))
		case 5:
			m.DataAddress = ""
		}
		e.Body = m
	}
	switch t.N(8) {
	case 0:
		e.From[3] ^= t.Byte()
	case 1:
		e.To[3] ^= t.Byte()
	case 2:
		e.Epoch, e.Mark = spec.Epoch(t.Byte()), spec.LeaseID(t.Byte())
	}
	return e
}

// wire sends an envelope through the codec; false: it cannot be said.
func (w *helloWorld) wire(e spec.Envelope) (spec.Envelope, bool) {
	b, err := spec.AppendEnvelope(nil, e)
	if err != nil {
		return e, false
	}
	again, err := spec.ParseEnvelope(b)
	require.NoError(w.t, err)
	return again, true
}

// move is one decision of the tape.
func (w *helloWorld) move() {
	t := w.tape
	choice := t.N(12)
	if choice == 0 || len(w.conns) == 0 {
		w.dial()
		return
	}
	c := w.conns[max(0, len(w.conns)-1-t.N(3))]
	towardsP := len(c.toP) > 0 && (len(c.toD) == 0 || t.One(2))
	deliver := func(e spec.Envelope, toP bool) {
		if e, ok := w.wire(e); ok && toP {
			w.toPrefill(c, e)
		} else if ok {
			w.toDecode(c, e)
		}
	}
	switch choice {
	case 1, 2, 3, 4, 5: // the next message, as it is, or changed
		from := &c.toD
		if towardsP {
			from = &c.toP
		}
		if len(*from) == 0 {
			return
		}
		e := (*from)[0]
		if !t.One(8) { // else it arrives twice
			*from = (*from)[1:]
		}
		if choice == 5 {
			e = w.mutate(e)
		}
		deliver(e, towardsP)
	case 6, 7:
		if len(w.work) > 0 {
			i := t.N(min(len(w.work), 256))
			f := w.work[i]
			w.work = slices.Delete(w.work, i, i+1)
			f()
		}
	case 8: // something old comes once more, perhaps to the wrong end
		if len(w.heard) > 0 {
			deliver(w.heard[len(w.heard)-1-t.N(min(len(w.heard), 256))], t.One(2))
		}
	case 9: // anything that the codec takes
		if e, err := spec.ParseEnvelope(t.Bytes(int(t.Byte()))); err == nil {
			deliver(e, t.One(2))
		}
	case 10:
		w.lose(c)
	case 11:
		w.pass()
	}
}

// lose breaks a connection at one end, or replaces a node.
func (w *helloWorld) lose(c *helloConn) {
	switch w.tape.N(6) {
	case 0, 1:
		if c.dUp {
			c.dUp = false
			w.step(w.d, core.ConnLost{Peer: 1, Conn: c.id})
		}
	case 2, 3:
		if c.pUp && !c.introduce {
			c.pUp = false
			w.step(w.p, core.ConnLost{Peer: c.peer, Conn: c.id})
		}
	case 4:
		w.startDecode()
	case 5:
		w.startPrefill()
		for _, c := range w.conns {
			if c.dUp {
				c.dUp = false
				w.step(w.d, core.ConnLost{Peer: 1, Conn: c.id})
			}
		}
	}
}

// pass lets time pass: challenges, connects and silence have their bounds.
func (w *helloWorld) pass() {
	w.now += core.Time(1+w.tape.N(30)) * 200_000_000
	w.step(w.p, core.Tick{})
	w.step(w.d, core.Tick{})
}

// open reports whether decode says that its link is open.
func (w *helloWorld) open() bool { return w.d.Status().Links[0].State == "open" }

func newHelloWorld(t *testing.T, tape *Tape) *helloWorld {
	w := &helloWorld{t: t, tape: tape, now: 1}
	w.startPrefill()
	w.startDecode()
	return w
}

// FuzzHandshake: two real ranks and a network that lies. No message makes a machine fail; a link opens at decode only behind the answer to
// its own nonce, at prefill only for a connect that raises the epoch, at both only for equal layouts; and when the network is honest
// again, and nothing is left of before, the link opens.
func FuzzHandshake(f *testing.F) {
	f.Add([]byte{0, 1, 0, 6, 0, 1, 0, 6, 0})
	f.Add([]byte{0, 1, 0, 1, 1, 0, 1, 5, 0, 0, 0, 0, 0, 7, 3, 8, 1, 0, 11, 20, 10, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		tape := NewTape(b[:min(len(b), 1024)])
		w := newHelloWorld(t, tape)
		for !tape.Over() {
			w.move()
		}
		w.settle()
		require.True(t, w.open(), "the network is honest again and the link does not open: %+v", w.d.Status().Links[0])
	})
}

// settle is an honest network: both begin anew, and everything arrives in order.
func (w *helloWorld) settle() {
	w.conns = nil
	w.startPrefill()
	w.startDecode()
	w.dial()
	for range 40 {
		c := w.conns[0]
		switch {
		case len(w.work) > 0:
			f := w.work[0]
			w.work = w.work[1:]
			f()
		case len(c.toP) > 0:
			e := c.toP[0]
			c.toP = c.toP[1:]
			w.toPrefill(c, e)
		case len(c.toD) > 0:
			e := c.toD[0]
			c.toD = c.toD[1:]
			w.toDecode(c, e)
		}
	}
}

// The fuzzer's world can tell: an answer to another nonce configures nothing, and opens nothing.
func TestHandshake_AnswerToAnotherNonce_OpensNothing(t *testing.T) {
	w := newHelloWorld(t, NewTape(nil))
	w.dial()
	c := w.conns[0]
	w.toPrefill(c, c.toP[0])
	require.Len(t, c.toD, 1)
	e := c.toD[0]
	a := e.Body.(spec.Accept)
	a.Nonce[0]++
	e.Body = a
	for len(w.work) > 0 {
		f := w.work[0]
		w.work = w.work[1:]
		f()
	}
	w.toDecode(c, e)
	require.Empty(t, w.work, "no data path is opened")
	require.False(t, w.open())
	w.settle()
	require.True(t, w.open())
}

// Fixed tapes of noise, so that every run of the tests goes through some thousand worlds.
func TestHandshake_Noise_NothingBreaks(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	for range 400 {
		b := make([]byte, r.IntN(400))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		w := newHelloWorld(t, NewTape(b))
		for !w.tape.Over() {
			w.move()
		}
		w.settle()
		require.True(t, w.open(), "%x", b)
	}
}
