package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"kvfence/impl/config"
	"kvfence/impl/core"
	"kvfence/impl/device"
	"kvfence/impl/trace"
	"kvfence/impl/transport/tcp"
	"kvfence/impl/transport/verbs"
	"kvfence/impl/workload"
	"kvfence/spec"
)

// decodeSide is the decode leader and all its ranks in one process. Fields below loop are touched on the loop only, unless said
// otherwise.
type decodeSide struct {
	*loop
	cfg     config.Config
	log     *slog.Logger
	metrics *metrics
	creds   *credentials
	model   workload.Model
	fail    func(core.Stop, string)

	layouts  [][]spec.Layout
	device   device.Device // nil: host memory
	inc      []spec.Incarnation
	ranks    []*decodeRank
	leader   *core.DecodeLeader
	lead     *host
	peers    []peerAddr // by PeerID-1
	sides    [][]core.PeerID
	requests map[core.RequestID]*request

	api    net.Listener    // nil without an API
	ctx    context.Context // of dialers and the model; ends at close
	cancel context.CancelFunc
	step   *pool
	work   *pool // verify
	conns  atomic.Uint64
	nextID atomic.Uint64
	inside atomic.Int64 // requests in Generate: the leader's own bounds and a margin, so that it is the leader who refuses
	ready  atomic.Bool  // machines exist and run
	drain  atomic.Bool
	halted atomic.Bool // a machine stopped: nothing is served any more
	wg     sync.WaitGroup

	starting    context.Context // of start's goroutine
	stopStart   context.CancelFunc
	startedOnce sync.WaitGroup
}

// peerAddr is one configured prefill rank.
type peerAddr struct {
	id   core.PeerID
	addr string
	name string // of the side; empty: any
	rank uint16
	size int
	// shared says that one address stands for the whole side, which then says how many ranks it has.
	shared bool
}

// decodeRank is one rank: its machine, memory, connections and links.
type decodeRank struct {
	side  *decodeSide
	rank  spec.Rank
	inc   spec.Incarnation
	m     *core.DecodeRank
	host  *host
	mem   device.Memory
	free  func() error
	push  pushDialer
	verbs *verbs.Adapter // nil unless verbs
	conns map[core.ConnID]*outConn
	links map[core.PeerID]*targetLink
	up    map[core.PeerID]core.PeerUp // open links
	asked *read                       // the read whose ReadBegin is being stepped
}

// newDecodeSide binds the API's address. start learns the peers, makes the machines and lets them run.
func newDecodeSide(cfg config.Config, log *slog.Logger, epoch time.Time, t *trace.Writer, m *metrics, creds *credentials, on device.Device, fail func(core.Stop, string)) (_ *decodeSide, err error) {
	d := emptyDecodeSide(cfg, log, epoch, t, m, creds, fail)
	d.device = on
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()
	if d.model, err = newModel(cfg); err != nil {
		return nil, err
	}
	if d.layouts, err = layouts(cfg, d.model, cfg.Decode.Ranks, cfg.Decode.Split, cfg.Sizes.DecodePool); err != nil {
		return nil, fmt.Errorf("decode.ranks = %d: %w", cfg.Decode.Ranks, err)
	}
	if err = d.makePools(); err != nil {
		return nil, err
	}
	if cfg.Decode.API != "" {
		d.api, err = listen("decode.api", cfg.Decode.API)
	}
	return d, err
}

// emptyDecodeSide has workers and a loop that does not run yet, no layouts and no ranks.
func emptyDecodeSide(cfg config.Config, log *slog.Logger, epoch time.Time, t *trace.Writer, m *metrics, creds *credentials, fail func(core.Stop, string)) *decodeSide {
	d := &decodeSide{
		cfg: cfg, log: log.With("role", "decode"), metrics: m, creds: creds,
		requests: map[core.RequestID]*request{}, step: newPool(cfg.Decode.Workers), work: newPool(2),
	}
	d.fail = func(s core.Stop, who string) {
		d.halt()
		fail(s, who)
	}
	d.loop = newLoop(epoch, t, func(err error) { d.fail(core.Stop{Broken: err.Error()}, "decode") })
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.starting, d.stopStart = context.WithCancel(d.ctx)
	return d
}

// makePools draws the incarnations and gives each rank its memory; layouts are set.
func (d *decodeSide) makePools() (err error) {
	if d.inc, err = newIncarnations(len(d.layouts)); err != nil {
		return err
	}
	for k := range d.layouts {
		r := &decodeRank{side: d, rank: spec.Rank(k), inc: d.inc[k], conns: map[core.ConnID]*outConn{}, links: map[core.PeerID]*targetLink{}, up: map[core.PeerID]core.PeerUp{}}
		d.ranks = append(d.ranks, r)
		if r.mem, _, r.free, err = makeMemory(d.device, d.layouts[k], false); err != nil {
			return err
		}
		if err = r.openFabric(); err != nil {
			return err
		}
	}
	return nil
}

// openFabric chooses what pushed pages come by.
func (r *decodeRank) openFabric() (err error) {
	r.push = tcpDialer{}
	if !isVerbs(r.side.cfg) {
		return nil
	}
	if r.verbs, err = openVerbs(r.side.cfg, r.mem, true, tcp.Options{}); err != nil {
		return err
	}
	r.push = r.verbs
	by, why := r.verbs.Leases()
	r.side.log.Info("RDMA is open", "rank", r.rank, "leases", by, "because", why)
	return nil
}

// start lets the side run: it learns how many ranks each prefill side has (which may take until they are up), makes the
// machines, and dials. Until then requests are answered with peer_lost.
func (d *decodeSide) start(peers []config.Peer) {
	d.startedOnce.Go(func() {
		err := d.learn(peers)
		if err == nil {
			err = d.makeMachines()
		}
		if d.starting.Err() != nil {
			return
		}
		if err != nil {
			d.fatal(err)
			return
		}
		d.goLive()
	})
}

// goLive runs the loop and dials every peer from every rank.
func (d *decodeSide) goLive() {
	d.wg.Go(d.run)
	d.ready.Store(true)
	for _, r := range d.ranks {
		for _, p := range d.peers {
			d.wg.Go(func() { r.keepDialing(p) })
		}
	}
}

func (d *decodeSide) makeMachines() error {
	if err := d.makeRanks(); err != nil {
		return err
	}
	return d.makeLeader()
}

// makeRanks makes the machine of each rank; peers are known.
func (d *decodeSide) makeRanks() error {
	pull := d.cfg.Transport.Kind == "shm"
	var peers []core.PeerConfig
	for _, p := range d.peers {
		rank := spec.Rank(p.rank)
		pc := core.PeerConfig{ID: p.id, Rank: &rank, Pull: pull}
		if p.name != "" {
			pc.Name = nodeName(p.name, int(p.rank), p.size)
		}
		peers = append(peers, pc)
	}
	t := d.cfg.Timeouts
	for k, r := range d.ranks {
		m, err := core.NewDecodeRank(core.DecodeRankConfig{
			Identity: d.identity(k), Layouts: d.layouts[k], Window: d.cfg.Sizes.Window, Digests: d.cfg.Guards.PageDigests.Enabled(),
			NoStepChecks: !d.cfg.Guards.StepTagCheck.Enabled(), Peers: peers, MaxPublished: maxPublished(d.cfg.Decode.Sharing),
			Heartbeat: core.Duration(t.Liveness / 5), Liveness: core.Duration(t.Liveness), ConnectBound: core.Duration(2 * t.Liveness),
			RepeatFirst: core.Duration(t.Repeat), RepeatMax: core.Duration(max(t.Repeat, t.Progress/4)), AnswerBound: core.Duration(t.Progress),
		})
		if err != nil {
			return err
		}
		r.m, r.host = m, &host{name: fmt.Sprintf("decode/%d", k), m: m, act: r.act}
		d.introduce(r.host, spec.TraceDecode, d.identity(k), d.layouts[k], peers...)
		d.hosts = append(d.hosts, r.host)
	}
	return nil
}

// mostPublished bounds what a rank remembers of pages that may be shared: some hundred bytes each.
const mostPublished = 1 << 16

// maxPublished is how many pages each rank may publish; 0 without sharing.
func maxPublished(sharing config.Switch) int {
	if !sharing.Enabled() {
		return 0
	}
	return mostPublished
}

func (d *decodeSide) makeLeader() error {
	t := d.cfg.Timeouts
	leader, err := core.NewDecodeLeader(core.DecodeLeaderConfig{
		Identity: d.identity(0), SideLayouts: d.layouts, Revision: revision(d.cfg, d.model), Vocabulary: uint32(d.model.Geometry().Vocab),
		Window: d.cfg.Sizes.Window, Prefill: d.sides, MaxQueue: d.cfg.Bounds.Queue, MaxActive: d.cfg.Bounds.Running,
		PeerBound: core.Duration(2 * t.Liveness), AskFirst: core.Duration(t.Repeat), AskMax: core.Duration(max(t.Repeat, 2*time.Second)),
		AskBound: core.Duration(2 * t.Liveness), Sharing: d.cfg.Decode.Sharing.Enabled(),
	})
	if err != nil {
		return err
	}
	d.leader, d.lead = leader, &host{name: "decode/leader", m: leader, act: d.act}
	d.introduce(d.lead, spec.TraceDecodeLeader, d.identity(0), nil)
	d.hosts = append(d.hosts, d.lead)
	return nil
}

func (d *decodeSide) identity(k int) spec.Identity {
	return spec.Identity{
		Name: nodeName(d.cfg.Decode.Name, k, len(d.inc)), Role: spec.RoleDecode, Incarnation: d.inc[k],
		Rank: spec.Rank(k), Size: uint16(len(d.inc)), Side: d.inc,
	}
}
