//go:build verbs

package verbs

// #include "shim.h"
import "C"

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"kvfence/impl/device"
	"kvfence/impl/transport"
	"kvfence/impl/transport/tcp"
	"kvfence/spec"
)

// Adapter is one node's rails with its pools registered on them, once, for all links and epochs. Safe for concurrent use.
type Adapter struct {
	opts   Options
	mem    device.Memory
	leases Leases // what enforces them: not auto
	why    string
	rails  []*rail
	pin    runtime.Pinner
	wg     sync.WaitGroup // watchers of rails, readers of streams of kept links
	counts counters
	keys   atomic.Uint32 // of windows

	mu    sync.Mutex
	links map[member]struct{}
	kept  map[linkKey][]*queue // in error until the peer says that its end is shut
	open  map[linkKey]bool     // prefill's ends that are not destroyed
	ends  map[linkKey]func()   // closes a kept link's stream
}

// member is a link's end that must hear of the loss of a rail.
type member interface {
	uses(rail int) bool
	lose(err error)
}

type linkKey struct {
	prefill, decode spec.Incarnation
	epoch           spec.Epoch
}

func keyOf(i transport.LinkInfo) linkKey { return linkKey{i.Prefill, i.Decode, i.Epoch} }

type counters struct {
	writes, requests, signalled, notices, bytes, opened, takenBack, fences, wakes, reminders atomic.Uint64
}

// rail is one opened port.
type rail struct {
	adapter *Adapter
	index   int
	cfg     Rail
	hca     *hca
	sges    int // pieces of one request
	gid     [16]byte
	gidType string
	sgid    int
	pools   [spec.ComponentCount]struct{ pages, tags region }
	events  *waiter

	mu      sync.Mutex
	flusher *flusher
}

// maxPieces is the most pieces of one request that are used, if the device has as many.
const maxPieces = 16

// Open opens the rails and registers the pools. It refuses what would fail later: a limit of locked memory that is too small, a device or port that is
// not there, windows that were demanded and are not to be had. Ports that are down are no error: their rails are used once they are up.
func Open(opts Options, mem device.Memory) (a *Adapter, err error) {
	if opts, err = opts.withDefaults(); err != nil {
		return nil, err
	}
	if err := library(); err != nil {
		return nil, err
	}
	limit, limited := Memlock()
	pinned, need := Pinned(), PoolBytes(mem)*uint64(len(opts.Rails))
	if err := checkMemlock(need, pinned, limit, limited); err != nil {
		return nil, err
	}
	a = &Adapter{opts: opts, mem: mem, links: map[member]struct{}{}, kept: map[linkKey][]*queue{}, open: map[linkKey]bool{}, ends: map[linkKey]func(){}}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
			a = nil
		}
	}()
	for _, p := range mem {
		if p != nil {
			a.pin.Pin(&p.Bytes[0])
			a.pin.Pin(&p.Tags[0])
		}
	}
	for i, cfg := range opts.Rails {
		r := &rail{adapter: a, index: i, cfg: cfg}
		a.rails = append(a.rails, r)
		if err := r.open(); err != nil {
			return a, fmt.Errorf("rail %d: %w", i, err)
		}
	}
	if err := a.chooseLeases(); err != nil {
		return a, err
	}
	if a.leases == LeasesRegions {
		if err := checkMemlock(2*need, pinned, limit, limited); err != nil {
			return a, fmt.Errorf("%w (leases are regions, which lock their pages once more)", err)
		}
	}
	for _, r := range a.rails {
		if err := r.register(); err != nil {
			return a, fmt.Errorf("rail %d (%s): %w", r.index, r.cfg.Device, err)
		}
		a.wg.Add(1)
		go func() {
			defer a.wg.Done()
			r.watch()
		}()
	}
	return a, nil
}

// chooseLeases settles what enforces leases, and keeps why. A capability bit is not believed: windows are tried.
func (a *Adapter) chooseLeases() error {
	a.leases = LeasesOff
	if !a.opts.Target {
		a.why = "prefill's memory is not open to peers"
		return nil
	}
	if a.opts.Leases == LeasesOff {
		a.why = "off by configuration: the adapter enforces epochs, leases rest on the writer"
		return nil
	}
	if a.opts.Leases == LeasesRegions {
		a.leases, a.why = LeasesRegions, "by configuration"
		return nil
	}
	lacking := ""
	for _, r := range a.rails {
		if err := r.tryWindows(); err != nil {
			lacking = fmt.Sprintf("%s: %v", r.cfg.Device, err)
		}
	}
	switch {
	case lacking == "":
		a.leases, a.why = LeasesWindows, "every device has type 2B, and held their bounds when tried"
	case a.opts.Leases == LeasesWindows:
		return fmt.Errorf("%w: memory windows are demanded; %s", ErrNoDevice, lacking)
	default:
		a.leases, a.why = LeasesRegions, "no windows: "+lacking
	}
	return nil
}

// Leases reports what enforces leases in this adapter, and why.
func (a *Adapter) Leases() (by Leases, why string) { return a.leases, a.why }

func (r *rail) open() (err error) {
	if r.hca, err = openHCA(r.cfg.Device); err != nil {
		return err
	}
	r.sges = max(1, min(maxPieces, int(r.hca.limits.max_sge)))
	if _, err = r.hca.port(r.cfg.Port); err != nil {
		return fmt.Errorf("%w: %s port %d: %w", ErrNoDevice, r.cfg.Device, r.cfg.Port, err)
	}
	r.events, err = newWaiter(C.kv_async_fd(r.hca.ctx), "device events")
	return err
}

// register registers the pools: with the right of peers to write only where leases are off, and none at all at a source.
func (r *rail) register() error {
	rights := C.int(localWrite)
	switch {
	case r.adapter.leases == LeasesWindows:
		rights |= bindWindows
	case r.adapter.opts.Target && r.adapter.leases == LeasesOff:
		rights |= remoteWrite
	}
	for c, p := range r.adapter.mem {
		if p == nil {
			continue
		}
		var err error
		if r.pools[c].pages, err = r.hca.register(p.Bytes, rights); err != nil {
			return err
		}
		if r.pools[c].tags, err = r.hca.register(p.Tags, rights); err != nil {
			return err
		}
	}
	return nil
}

// watch hears the device's events until the adapter closes: a port or device that goes down ends the links on it at once.
func (r *rail) watch() {
	for {
		var what, port C.uint32_t
		if err := r.events.take(func() C.int { return C.kv_async(r.hca.ctx, &what, &port) }); err != nil {
			r.adapter.lost(r, fmt.Errorf("%s: its events cannot be heard: %w", r.cfg.Device, err)) // or the adapter is closing, and there is nobody
			return
		}
		down := what == C.IBV_EVENT_DEVICE_FATAL || what == C.IBV_EVENT_PORT_ERR && (port == 0 || uint8(port) == r.cfg.Port)
		if down {
			r.adapter.lost(r, fmt.Errorf("%s port %d: %s", r.cfg.Device, r.cfg.Port, C.GoString(C.kv_event_name(what))))
		}
	}
}

// lost tells every link that uses the rail.
func (a *Adapter) lost(r *rail, err error) {
	a.mu.Lock()
	var ms []member
	for m := range a.links {
		if m.uses(r.index) {
			ms = append(ms, m)
		}
	}
	a.mu.Unlock()
	for _, m := range ms {
		m.lose(fmt.Errorf("%w: rail %d: %w", transport.ErrStream, r.index, err))
	}
}

func (a *Adapter) join(m member) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.links[m] = struct{}{}
}

func (a *Adapter) leave(m member) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.links, m)
}

// up refreshes what is known of a port, and says whether it can be used now.
func (r *rail) up() (mtu int, err error) {
	p, err := r.hca.port(r.cfg.Port)
	if err != nil {
		return 0, err
	}
	if p.state != portActive {
		return 0, fmt.Errorf("%w: %s port %d is not active (state %d)", ErrNoDevice, r.cfg.Device, r.cfg.Port, uint32(p.state))
	}
	mtu = mtuBytes(uint32(p.active_mtu))
	if want := r.adapter.opts.MTU; want != 0 {
		if want > mtu {
			return 0, fmt.Errorf("%w: %s port %d has an MTU of %d, %d is demanded", ErrNoDevice, r.cfg.Device, r.cfg.Port, mtu, want)
		}
		mtu = want
	}
	gid := r.cfg.GID
	if gid == GIDAuto {
		gid = bestGID(sysfs, r.cfg.Device, r.cfg.Port)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gid, err = r.hca.gid(r.cfg.Port, gid); err != nil {
		return 0, fmt.Errorf("%w: GID %d of %s port %d: %w", ErrNoDevice, gid, r.cfg.Device, r.cfg.Port, err)
	}
	if r.gid == [16]byte{} {
		return 0, fmt.Errorf("%w: GID %d of %s port %d is empty", ErrNoDevice, gid, r.cfg.Device, r.cfg.Port)
	}
	r.gidType = gidType(sysfs, r.cfg.Device, r.cfg.Port, gid, r.gid)
	r.sgid = gid
	return mtu, nil
}

// end is what a peer must know of one of our queue pairs.
func (r *rail) end(q *queue) railEnd {
	var psn [4]byte
	_, _ = rand.Read(psn[:]) // never fails since Go 1.24
	p, err := r.hca.port(r.cfg.Port)
	if err != nil {
		return railEnd{Index: r.index}
	}
	mtu := mtuBytes(uint32(p.active_mtu))
	if want := r.adapter.opts.MTU; want != 0 {
		mtu = min(mtu, want)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return railEnd{
		Index: r.index, Device: r.cfg.Device, QueuePair: uint32(C.kv_qpn(q.qp)), PSN: binary.LittleEndian.Uint32(psn[:]) & (1<<24 - 1),
		LID: uint16(p.lid), GID: hex.EncodeToString(r.gid[:]), GIDType: r.gidType, MTU: mtu,
	}
}

// connect brings a queue pair to where it sends and takes.
func (q *queue) connect(own, peer railEnd) error {
	gid, err := peer.gid()
	if err != nil {
		return err
	}
	r, o := q.rail, q.rail.adapter.opts
	c := C.kv_conn{
		qpn: C.uint32_t(peer.QueuePair), psn: C.uint32_t(peer.PSN), own_psn: C.uint32_t(own.PSN), mtu: C.uint32_t(mtuCode(own.MTU)),
		lid: C.uint16_t(peer.LID), port: C.uint8_t(r.cfg.Port), sgid: C.uint8_t(r.sgid), is_global: C.uint8_t(bit(own.GIDType != gidIB)),
		timeout: C.uint8_t(o.Timeout), retry: C.uint8_t(o.RetryCount), rnr_retry: C.uint8_t(o.RNRRetry), min_rnr: 12, hop: 64,
	}
	for i, b := range gid {
		c.gid[i] = C.uint8_t(b)
	}
	return result("connect queue pair", C.kv_qp_connect(q.qp, &c))
}

// flush orders everything that this rail's device has placed so far before what the CPU reads next. On a port that is down no read can go out: then the order
// of the device's own writes stands for it (A9), since the completions that a fence has seen are such writes, behind the bytes. Whatever else keeps the read
// from coming back leaves the question open.
func (r *rail) flush() error {
	r.mu.Lock()
	f := r.flusher
	r.flusher = nil // one flush at a time; a failed one is not used again
	r.mu.Unlock()
	for begin := time.Now(); ; f = nil {
		err := r.flushWith(f)
		if err == nil {
			return nil
		}
		if p, e := r.hca.port(r.cfg.Port); e == nil && p.state != portActive {
			return nil
		}
		if time.Since(begin) > flushBound {
			return err
		}
		time.Sleep(flushAgain) // a port that has just come up again needs a moment to have its address
		_, _ = r.up()
	}
}

// flushBound is how long a flush read is tried again on a port that is up; each try is bounded, too.
const (
	flushBound = 2 * time.Second
	flushAgain = 20 * time.Millisecond
)

func (r *rail) flushWith(f *flusher) (err error) {
	if f == nil {
		if f, err = newFlusher(r, r.adapter.firstBytes()); err != nil {
			return err
		}
	}
	if err := f.flush(); err != nil {
		return errors.Join(err, f.free())
	}
	r.mu.Lock()
	spare := r.flusher
	r.flusher = f
	r.mu.Unlock()
	if spare != nil {
		return spare.free()
	}
	return nil
}

func (a *Adapter) firstBytes() []byte {
	for _, p := range a.mem {
		if p != nil {
			return p.Bytes
		}
	}
	return nil
}

// Stats counts what was done since Open.
func (a *Adapter) Stats() Stats {
	a.mu.Lock()
	kept := 0
	for _, qs := range a.kept {
		kept += len(qs)
	}
	a.mu.Unlock()
	c := &a.counts
	return Stats{
		Writes: c.writes.Load(), Requests: c.requests.Load(), Signalled: c.signalled.Load(), Notices: c.notices.Load(), Bytes: c.bytes.Load(),
		Opened: c.opened.Load(), TakenBack: c.takenBack.Load(), Fences: c.fences.Load(), Wakes: c.wakes.Load(), Reminders: c.reminders.Load(), Kept: kept,
	}
}

// Close gives the rails back. All links must have been fenced; queue pairs that were kept for peers are destroyed now: the process, or its memory, is about to end.
func (a *Adapter) Close() (err error) {
	a.mu.Lock()
	ends, kept := a.ends, a.kept
	a.ends, a.kept = map[linkKey]func(){}, map[linkKey][]*queue{}
	a.mu.Unlock()
	for _, end := range ends {
		end()
	}
	for _, qs := range kept {
		for _, q := range qs {
			err = errors.Join(err, q.free())
		}
	}
	for _, r := range a.rails {
		if r.events != nil {
			r.events.close()
		}
	}
	a.wg.Wait()
	for _, r := range a.rails {
		err = errors.Join(err, r.free())
	}
	a.rails = nil
	a.pin.Unpin()
	return err
}

func (r *rail) free() (err error) {
	if r.flusher != nil {
		err = r.flusher.free()
	}
	for _, p := range r.pools {
		err = errors.Join(err, p.pages.free(), p.tags.free())
	}
	if r.hca != nil {
		err = errors.Join(err, r.hca.close())
	}
	return err
}

// Listener waits for the streams of all links of one prefill node.
type Listener struct {
	*tcp.Listener
	adapter *Adapter
}

// Listen binds addr for the streams that open links. Announce Addr.
func (a *Adapter) Listen(addr string) (*Listener, error) {
	l, err := tcp.Listen(addr, a.mem, a.opts.Stream)
	if err != nil {
		return nil, err
	}
	return &Listener{l, a}, nil
}
