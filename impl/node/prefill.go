package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kvfence/impl/config"
	"kvfence/impl/core"
	"kvfence/impl/device"
	"kvfence/impl/trace"
	"kvfence/impl/transport/shm"
	"kvfence/impl/transport/verbs"
	"kvfence/impl/workload"
	"kvfence/spec"
)

// maxPeers bounds the decode incarnations that a prefill side knows at a time.
const maxPeers = 1 << 16

// prefillSide is the prefill leader and all its ranks in one process. Fields below loop are touched on the loop only, unless said
// otherwise.
type prefillSide struct {
	*loop
	cfg     config.Config
	log     *slog.Logger
	metrics *metrics
	creds   *credentials
	device  device.Device // nil: host memory
	model   workload.Model
	fail    func(core.Stop, string)

	layouts [][]spec.Layout
	ranks   []*prefillRank
	leader  *core.PrefillLeader
	lead    *host
	peers   map[spec.Incarnation]core.PeerID
	spoken  map[core.PeerID]int // control connections of each, at all ranks
	named   core.PeerID         // last number given; none is given twice

	control net.Listener
	ctx     context.Context // of the model's computation; ends at close
	cancel  context.CancelFunc
	compute *pool // one worker: the model
	work    *pool // seals
	conns   atomic.Uint64
	open    atomic.Int64 // control connections, for the bound
	running atomic.Bool
	wg      sync.WaitGroup

	computing computing // loop only
}

// prefillRank is one rank: its machine, memory, connections and links.
type prefillRank struct {
	side  *prefillSide
	rank  spec.Rank
	inc   spec.Incarnation
	m     *core.PrefillRank
	host  *host
	mem   device.Memory
	free  func() error   // gives the memory back
	data  dataListener   // nil where decode pulls
	verbs *verbs.Adapter // nil unless verbs
	shm   *shm.Exporter  // nil unless shm
	conns map[core.ConnID]*conn
	links map[core.PeerID]*sourceLink
	// shutExports are pull paths that this end has given up and whose reader may still read.
	shutExports []*exporterSink
}

// newPrefillSide binds the addresses and makes the machines; start lets them run.
func newPrefillSide(cfg config.Config, log *slog.Logger, epoch time.Time, t *trace.Writer, m *metrics, creds *credentials, on device.Device, fail func(core.Stop, string)) (_ *prefillSide, err error) {
	p := emptyPrefillSide(cfg, log, epoch, t, m, creds, fail)
	p.device = on
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	if p.model, err = newModel(cfg); err != nil {
		return nil, err
	}
	if p.layouts, err = layouts(cfg, p.model, cfg.Prefill.Ranks, cfg.Prefill.Split, cfg.Sizes.PrefillPool); err != nil {
		return nil, fmt.Errorf("prefill.ranks = %d: %w", cfg.Prefill.Ranks, err)
	}
	if p.control, err = listen("prefill.control", cfg.Prefill.Control); err != nil {
		return nil, err
	}
	err = p.makeMachines()
	return p, err
}

// emptyPrefillSide has workers and a loop that does not run yet, no layouts and no ranks.
func emptyPrefillSide(cfg config.Config, log *slog.Logger, epoch time.Time, t *trace.Writer, m *metrics, creds *credentials, fail func(core.Stop, string)) *prefillSide {
	p := &prefillSide{
		cfg: cfg, log: log.With("role", "prefill"), metrics: m, creds: creds, fail: fail, peers: map[spec.Incarnation]core.PeerID{}, spoken: map[core.PeerID]int{},
		compute: newPool(1), work: newPool(2), computing: computing{every: sayEvery},
	}
	p.loop = newLoop(epoch, t, func(err error) { fail(core.Stop{Broken: err.Error()}, "prefill") })
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

func (p *prefillSide) makeMachines() error {
	side, err := newIncarnations(len(p.layouts))
	if err != nil {
		return err
	}
	if err := p.makeRanks(side); err != nil {
		return err
	}
	return p.makeLeader(side)
}

// makeRanks makes each rank of the side with its memory, data listener and machine; layouts are set.
func (p *prefillSide) makeRanks(side []spec.Incarnation) (err error) {
	for k := range p.layouts {
		r := &prefillRank{side: p, rank: spec.Rank(k), inc: side[k], conns: map[core.ConnID]*conn{}, links: map[core.PeerID]*sourceLink{}}
		p.ranks = append(p.ranks, r)
		id := p.identity(k, side)
		if err := r.bindData(); err != nil {
			return err
		}
		if r.m, err = core.NewPrefillRank(core.PrefillRankConfig{
			Identity: id, Capabilities: capabilities(), SideLayouts: p.layouts, Window: p.cfg.Sizes.Window,
			Digests: p.cfg.Guards.PageDigests.Enabled(), Pull: p.cfg.Transport.Kind == "shm",
			Heartbeat: core.Duration(p.cfg.Timeouts.Liveness / 5), Liveness: core.Duration(p.cfg.Timeouts.Liveness),
			OfferFirst: core.Duration(p.cfg.Timeouts.Repeat), MaxPublished: maxPublished(p.cfg.Prefill.Sharing),
		}.WithDefaults()); err != nil {
			return err
		}
		r.host = &host{name: fmt.Sprintf("prefill/%d", k), m: r.m, act: r.act}
		p.introduce(r.host, spec.TracePrefill, id, p.layouts[k])
		p.hosts = append(p.hosts, r.host)
	}
	return nil
}

func (p *prefillSide) makeLeader(side []spec.Incarnation) (err error) {
	if p.leader, err = core.NewPrefillLeader(core.PrefillLeaderConfig{
		Identity: p.identity(0, side), SideLayouts: p.layouts, Revision: revision(p.cfg, p.model), Vocabulary: uint32(p.model.Geometry().Vocab),
		Window: p.cfg.Sizes.Window, ChunkTokens: p.cfg.Prefill.Chunk, LinkBound: core.Duration(2 * p.cfg.Timeouts.Liveness),
		Sharing: p.cfg.Prefill.Sharing.Enabled(),
	}.WithDefaults()); err != nil {
		return err
	}
	p.lead = &host{name: "prefill/leader", m: p.leader, act: p.act}
	p.introduce(p.lead, spec.TracePrefillLeader, p.identity(0, side), nil)
	p.hosts = append(p.hosts, p.lead)
	return nil
}

func (p *prefillSide) identity(k int, side []spec.Incarnation) spec.Identity {
	return spec.Identity{
		Name: nodeName(p.cfg.Prefill.Name, k, len(side)), Role: spec.RolePrefill, Incarnation: side[k],
		Rank: spec.Rank(k), Size: uint16(len(side)), Side: side,
	}
}

// newIncarnations draws one for each rank.
func newIncarnations(n int) ([]spec.Incarnation, error) {
	side := make([]spec.Incarnation, n)
	for i := range side {
		if _, err := rand.Read(side[i][:]); err != nil {
			return nil, err
		}
	}
	return side, nil
}

func capabilities() []string { return []string{spec.CapDrainReceipts, spec.CapMarks, spec.CapTags} }

// start runs the loop and takes connections.
func (p *prefillSide) start() {
	p.running.Store(true)
	p.wg.Go(p.run)
	p.wg.Go(p.acceptAll)
	p.wg.Go(p.sweep)
}

// sweep gives back what only time uncovers: exports of links that nobody reads any more, decode incarnations of which nothing is
// left. It ends no hold.
func (p *prefillSide) sweep() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-tick.C:
			p.box.put(func() {
				for _, r := range p.ranks {
					r.sweepExports()
				}
				p.forgetPeers()
			})
		}
	}
}

// acceptWait is the pause after an accept that failed: out of descriptors, most likely. The listener itself is whole.
const acceptWait = 20 * time.Millisecond

// acceptAll takes control connections, at most Bounds.Connections at a time.
func (p *prefillSide) acceptAll() {
	for {
		nc, err := p.control.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			select {
			case <-p.ctx.Done():
				return
			case <-time.After(acceptWait):
			}
			continue
		}
		if p.open.Add(1) > int64(p.cfg.Bounds.Connections) {
			p.open.Add(-1)
			p.metrics.stranger("prefill", strangeFull)
			_ = nc.Close() // nobody is known yet, there is nothing to say
			continue
		}
		p.wg.Go(func() {
			if err := p.take(nc); err != nil {
				p.open.Add(-1)
				p.metrics.stranger("prefill", strangeGreeting)
				p.log.Warn("control connection refused", "from", nc.RemoteAddr(), "err", err)
				_ = nc.Close() // the reason is logged
			}
		})
	}
}

// take greets a connection and hands its messages to the loop.
func (p *prefillSide) take(nc net.Conn) error {
	nc = serverSide(nc, p.creds)
	rank, err := welcome(nc, len(p.ranks), p.cfg.Timeouts.Liveness)
	if err != nil {
		return err
	}
	c := newConn(nc, p.cfg.Bounds.WriteQueue)
	in := &incoming{side: p, rank: p.ranks[rank], conn: c, id: core.ConnID(p.conns.Add(1))}
	if err := nc.SetReadDeadline(time.Now().Add(p.cfg.Timeouts.Liveness)); err != nil { // until its Connect
		return err
	}
	c.start(in.recv, in.refused, in.lost)
	return nil
}

// incoming is a control connection at a prefill rank. peer and known are touched on the loop only.
type incoming struct {
	side  *prefillSide
	rank  *prefillRank
	conn  *conn
	id    core.ConnID
	peer  core.PeerID
	known bool
}

func (in *incoming) refused(error) {
	in.side.metrics.unknownKind("prefill")
}

func (in *incoming) recv(env spec.Envelope, release func()) {
	if !in.side.box.put(func() { in.onLoop(env); release() }) {
		release()
	}
}

// onLoop tells the rank's machine. The first message must be a Connect by the node that the certificate vouches for.
func (in *incoming) onLoop(env spec.Envelope) {
	m, isConnect := env.Body.(spec.Connect)
	if in.known {
		if isConnect { // one a connection: its epoch is the connection's
			in.conn.abort()
			return
		}
		in.side.deliver(in.rank.host, core.Recv{Peer: in.peer, Conn: in.id, Env: env})
		return
	}
	if !isConnect {
		in.side.metrics.stranger("prefill", strangeStart)
		in.conn.abort()
		return
	}
	err := vouches(in.conn.leaf, m.Identity.Name)
	if allowed := in.side.cfg.Prefill.Decodes; err == nil && len(allowed) > 0 {
		err = anyName(in.conn.leaf, allowed)
	}
	if err != nil {
		in.side.metrics.stranger("prefill", strangeIdentity)
		in.side.log.Warn("control connection refused", "from", in.conn.nc.RemoteAddr(), "err", err)
		in.conn.abort()
		return
	}
	peer, ok := in.side.peerOf(env.From)
	if !ok {
		in.side.metrics.stranger("prefill", strangeFull)
		in.conn.abort()
		return
	}
	ev := core.ConnectIn{Peer: peer, Conn: in.id, Env: env}
	if _, err := rand.Read(ev.Key[:]); err != nil {
		in.conn.abort()
		return
	}
	ev.DataAddress = in.rank.dataAddress()
	if err := in.conn.nc.SetReadDeadline(time.Time{}); err != nil {
		in.conn.abort()
		return
	}
	in.peer, in.known = peer, true
	in.side.spoken[peer]++
	in.rank.conns[in.id] = in.conn
	in.side.deliver(in.rank.host, ev)
}

func (in *incoming) lost(err error) {
	in.side.open.Add(-1)
	in.side.box.put(func() {
		if !in.known {
			return
		}
		in.side.log.Debug("control connection ended", "rank", in.rank.rank, "peer", in.peer, "err", err)
		delete(in.rank.conns, in.id)
		if in.side.spoken[in.peer]--; in.side.spoken[in.peer] == 0 {
			delete(in.side.spoken, in.peer)
		}
		in.side.deliver(in.rank.host, core.ConnLost{Peer: in.peer, Conn: in.id})
	})
}

// peerOf numbers decode incarnations, the same at all ranks.
func (p *prefillSide) peerOf(inc spec.Incarnation) (core.PeerID, bool) {
	if id, ok := p.peers[inc]; ok {
		return id, true
	}
	if inc.IsZero() || len(p.peers) >= maxPeers {
		return 0, false
	}
	p.named++
	p.peers[inc] = p.named
	return p.named, true
}

// forgetPeers drops decode incarnations that no rank's machine knows and that no connection or data path is of: they were refused, or
// succeeded. A decode node that starts again and again would fill the table in the end. On the loop.
func (p *prefillSide) forgetPeers() {
	for inc, id := range p.peers {
		if p.spoken[id] == 0 && !slices.ContainsFunc(p.ranks, func(r *prefillRank) bool { return r.has(id) }) {
			delete(p.peers, inc)
			for _, r := range p.ranks {
				delete(r.links, id)
			}
		}
	}
}

// has reports whether anything of a peer is left at this rank.
func (r *prefillRank) has(id core.PeerID) bool {
	l := r.links[id]
	return r.m.Knows(id) || l != nil && len(l.push.list)+len(l.pull.list) > 0 ||
		slices.ContainsFunc(r.shutExports, func(s *exporterSink) bool { return s.peer == id })
}
