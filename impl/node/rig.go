package node

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"kvfence/impl/config"
	"kvfence/impl/core"
	"kvfence/impl/device"
	"kvfence/spec"
)

// A rig is one rank of one side as it runs in production (machine, loop, workers, control link, transport), with the caller in
// its leader's place. impl/bench measures with it. There is no model, API or gateway.

// RigConfig is what a rig is made of.
type RigConfig struct {
	// Config gives transport, TLS, digests, timeouts and addresses; it has its defaults. Model and sizes but the window are unused.
	Config config.Config
	// Layouts are the pools of the one rank.
	Layouts []spec.Layout
	Log     *slog.Logger
	// Leader hears what the rank says to its leader, in order, on the rig's loop: it must not block, nor call Close.
	Leader func(core.SideMsg)
	// Verify, if set, hears what a decode rank is about to verify, on the loop.
	Verify func(core.Verify)
	// Stopped is told why the rig cannot go on.
	Stopped func(error)
}

func (c RigConfig) fail(s core.Stop, who string) {
	c.Stopped(fmt.Errorf("%w: %s: invariant %d: %s", ErrStopped, who, s.Invariant, s.Broken))
}

// rigLeader is the caller in a leader's place.
type rigLeader struct{ hear func(core.SideMsg) }

func (l rigLeader) Step(_ core.Time, ev core.Event) ([]core.Action, error) {
	s, ok := ev.(core.Side)
	if !ok {
		return nil, fmt.Errorf("%w: a rig's leader takes no %T", core.ErrContract, ev)
	}
	l.hear(s.Msg)
	return nil, nil
}

func (rigLeader) Deadline() core.Time { return 0 }

func noLeaderActions(a core.Action) error { return fmt.Errorf("a rig's leader has no action %T", a) }

// PrefillRig is a prefill rank. Safe for concurrent use.
type PrefillRig struct {
	p    *prefillSide
	gate *sealGate
}

// sealGate keeps what ends a seal from the machine until it is opened: the pages are sealed, the grant is in hand, nothing moves.
type sealGate struct {
	machine
	held []core.Sealed
	told func()
}

func (g *sealGate) Step(now core.Time, ev core.Event) ([]core.Action, error) {
	if s, ok := ev.(core.Sealed); ok {
		g.held = append(g.held, s)
		g.told()
		return nil, nil
	}
	return g.machine.Step(now, ev)
}

// NewPrefillRig binds the rig's addresses and runs it. sealed is called on the loop whenever a seal has ended and waits.
func NewPrefillRig(c RigConfig, sealed func()) (_ *PrefillRig, err error) {
	creds, err := loadCredentials(c.Config.TLS, c.Log)
	if err != nil {
		return nil, err
	}
	p := emptyPrefillSide(c.Config, c.Log, time.Now(), nil, newMetrics(), creds, c.fail)
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	p.layouts = [][]spec.Layout{c.Layouts}
	if p.control, err = listen("prefill.control", c.Config.Prefill.Control); err != nil {
		return nil, err
	}
	side, err := newIncarnations(1)
	if err != nil {
		return nil, err
	}
	if err = p.makeRanks(side); err != nil {
		return nil, err
	}
	g := &sealGate{machine: p.ranks[0].host.m, told: sealed}
	p.ranks[0].host.m = g
	p.lead = &host{name: "prefill/rig", m: rigLeader{c.Leader}, act: noLeaderActions}
	p.start()
	return &PrefillRig{p, g}, nil
}

// Control is the address for the decode rig.
func (r *PrefillRig) Control() string { return r.p.control.Addr().String() }

// Memory is the source pools. What is computed is the caller's to store.
func (r *PrefillRig) Memory() device.Memory { return r.p.ranks[0].mem }

// Tell sends the rank a message of its leader.
func (r *PrefillRig) Tell(m core.SideMsg) { r.p.post(r.p.ranks[0].host, core.Side{Msg: m}) }

// Release lets every seal that waits end; begin is called on the loop right before: this is the moment at which the grant is in
// hand and the pages are sealed.
func (r *PrefillRig) Release(begin func()) {
	r.p.box.put(func() {
		held := r.gate.held
		r.gate.held = nil
		h := *r.p.ranks[0].host
		h.m = r.gate.machine
		begin()
		for _, s := range held {
			r.p.deliver(&h, s)
		}
	})
}

// Status is the rank's.
func (r *PrefillRig) Status() (s core.PrefillRankStatus) {
	r.p.call(func() { s = r.p.ranks[0].m.Status() })
	return s
}

// Close ends the rig, as a node ends.
func (r *PrefillRig) Close() error { return r.p.close() }

// DecodeRig is a decode rank. Safe for concurrent use.
type DecodeRig struct{ d *decodeSide }

// NewDecodeRig runs a rig that dials the prefill rig at control. Its leader hears PeerUp when the link is open.
func NewDecodeRig(c RigConfig, control string) (_ *DecodeRig, err error) {
	creds, err := loadCredentials(c.Config.TLS, c.Log)
	if err != nil {
		return nil, err
	}
	d := emptyDecodeSide(c.Config, c.Log, time.Now(), nil, newMetrics(), creds, c.fail)
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()
	d.layouts = [][]spec.Layout{c.Layouts}
	if err = d.makePools(); err != nil {
		return nil, err
	}
	if err = d.learn([]config.Peer{{Name: c.Config.Prefill.Name, Addresses: []string{control}, Ranks: 1}}); err != nil {
		return nil, err
	}
	if err = d.makeRanks(); err != nil {
		return nil, err
	}
	if r := d.ranks[0]; c.Verify != nil {
		r.host.act = func(a core.Action) error {
			if v, ok := a.(core.Verify); ok {
				c.Verify(v)
			}
			return r.act(a)
		}
	}
	d.lead = &host{name: "decode/rig", m: rigLeader{c.Leader}, act: noLeaderActions}
	d.hosts = append(d.hosts, d.lead)
	d.goLive()
	return &DecodeRig{d}, nil
}

// Incarnation is the rank's, for Assign.
func (r *DecodeRig) Incarnation() spec.Incarnation { return r.d.inc[0] }

// Memory is the destination pools.
func (r *DecodeRig) Memory() device.Memory { return r.d.ranks[0].mem }

// Tell sends the rank a message of its leader.
func (r *DecodeRig) Tell(m core.SideMsg) { r.d.post(r.d.ranks[0].host, core.Side{Msg: m}) }

// Status is the rank's.
func (r *DecodeRig) Status() (s core.DecodeRankStatus) {
	r.d.call(func() { s = r.d.ranks[0].m.Status() })
	return s
}

// Close ends the rig, as a node ends.
func (r *DecodeRig) Close() error { return r.d.close() }
