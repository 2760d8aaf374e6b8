package node

import (
	"fmt"
	"strconv"

	"kvfence/impl/core"
	"kvfence/spec"
)

// Status is what /status shows and `kvfence status` prints: counts and states, no contents and no keys.
type Status struct {
	Role     string         `json:"role"`
	Ready    bool           `json:"ready"`
	Reason   string         `json:"reason,omitempty"` // why not ready
	Draining bool           `json:"draining"`
	Stopped  string         `json:"stopped,omitempty"` // the broken invariant or failed fence
	Prefill  *PrefillStatus `json:"prefill,omitempty"`
	Decode   *DecodeStatus  `json:"decode,omitempty"`
}

// PrefillStatus is a prefill side's.
type PrefillStatus struct {
	Name    string                   `json:"name"`
	Control string                   `json:"control"`
	Leader  core.PrefillLeaderStatus `json:"leader"`
	Ranks   []PrefillRankStatus      `json:"ranks"`
}

// PrefillRankStatus is one rank's. Pools holds the components that it has, by name, and stands in JSON for the machine's own list.
type PrefillRankStatus struct {
	Incarnation string                     `json:"incarnation"`
	Pools       map[string]core.PoolStatus `json:"pools"`
	core.PrefillRankStatus
}

// DecodeStatus is a decode side's.
type DecodeStatus struct {
	Name   string                  `json:"name"`
	API    string                  `json:"api"`
	Leader core.DecodeLeaderStatus `json:"leader"`
	Ranks  []DecodeRankStatus      `json:"ranks"`
}

// DecodeRankStatus is one rank's. Pools is as in PrefillRankStatus.
type DecodeRankStatus struct {
	Incarnation string                     `json:"incarnation"`
	Pools       map[string]core.PoolStatus `json:"pools"`
	core.DecodeRankStatus
}

// poolsByName names the pools that exist.
func poolsByName(pools [spec.ComponentCount]core.PoolStatus) map[string]core.PoolStatus {
	out := map[string]core.PoolStatus{}
	for c, p := range pools {
		if p.Total > 0 {
			out[spec.Component(c).String()] = p
		}
	}
	return out
}

// status asks the loop.
func (p *prefillSide) status() *PrefillStatus {
	s := &PrefillStatus{Name: p.cfg.Prefill.Name, Control: p.control.Addr().String()}
	p.loop.call(func() {
		s.Leader = p.leader.Status()
		for _, r := range p.ranks {
			m := r.m.Status()
			s.Ranks = append(s.Ranks, PrefillRankStatus{r.inc.Hex(), poolsByName(m.Pools), m})
		}
	})
	return s
}

// status asks the loop; empty until the prefill side was reached.
func (d *decodeSide) status() *DecodeStatus {
	s := &DecodeStatus{Name: d.cfg.Decode.Name}
	if d.api != nil {
		s.API = d.api.Addr().String()
	}
	if !d.ready.Load() {
		return s
	}
	d.loop.call(func() {
		s.Leader = d.leader.Status()
		for _, r := range d.ranks {
			m := r.m.Status()
			s.Ranks = append(s.Ranks, DecodeRankStatus{r.inc.Hex(), poolsByName(m.Pools), m})
		}
	})
	return s
}

// pair is the smallest prefill pool of the sides that are up with all their links, and why the pair cannot serve, if so.
func (d *decodeSide) pair() (prefillTokens int, reason string) {
	if !d.ready.Load() {
		return 0, "the prefill side has not been reached yet"
	}
	reason = "no prefill side has all its links"
	ok := d.loop.call(func() {
		for _, side := range d.sides {
			if tokens, up := d.capacityOf(side); up && (prefillTokens == 0 || tokens < prefillTokens) {
				prefillTokens, reason = tokens, ""
			}
		}
	})
	if !ok {
		return 0, "the node is ending"
	}
	if reason == "" && !d.cfg.Sizes.AllowWindowOverPool {
		if err := windowFits(d.cfg.Sizes.Window, d.cfg.Sizes.Page, "prefill", uint32(prefillTokens)); err != nil {
			reason = err.Error()
		}
	}
	return prefillTokens, reason
}

// capacityOf is the smallest KV pool of a prefill side, in tokens; up is false while a link of it is missing. Loop only.
func (d *decodeSide) capacityOf(side []core.PeerID) (tokens int, up bool) {
	least := 0
	for _, r := range d.ranks {
		for _, p := range side {
			m, ok := r.up[p]
			if !ok {
				return 0, false
			}
			for _, l := range m.Layouts {
				if l.Component == spec.KV {
					if n := int(l.Shape.Pages) * int(l.Equal.TokensPerPage); least == 0 || n < least {
						least = n
					}
				}
			}
		}
	}
	return least, true
}

// observe notes which links are open, and logs when a peer's pool does not hold the window. Loop only.
func (r *decodeRank) observe(m core.SideMsg) {
	d := r.side
	switch m := m.(type) {
	case core.PeerUp:
		r.up[m.Peer] = m
		for _, c := range r.conns {
			if c.peer.id == m.Peer {
				c.opened.Store(true)
			}
		}
		d.log.Info("link open", "rank", r.rank, "peer", m.Identity.Name, "incarnation", m.Identity.Incarnation)
		if tokens, up := d.capacityOf([]core.PeerID{m.Peer}); up {
			if err := windowFits(d.cfg.Sizes.Window, d.cfg.Sizes.Page, "prefill", uint32(tokens)); err != nil {
				d.log.Warn("peer's pool", "peer", m.Identity.Name, "err", err)
			}
		}
	case core.PeerDown:
		if _, was := r.up[m.Peer]; was {
			d.log.Warn("link down", "rank", r.rank, "peer", r.up[m.Peer].Identity.Name, "why", m.Why)
		}
		delete(r.up, m.Peer)
	}
}

// gauge sets the gauges from a status.
func (m *metrics) gauge(s Status) {
	m.pages.Reset()
	m.links.Reset()
	m.leases.Reset()
	m.transfers.Reset()
	if s.Prefill != nil {
		for k, r := range s.Prefill.Ranks {
			m.pools("prefill", k, r.Pools)
			for _, l := range r.Links {
				m.links.WithLabelValues("prefill", strconv.Itoa(k), l.State).Inc()
			}
		}
	}
	if s.Decode == nil {
		return
	}
	for k, r := range s.Decode.Ranks {
		rank := strconv.Itoa(k)
		m.pools("decode", k, r.Pools)
		for _, l := range r.Links {
			m.links.WithLabelValues("decode", rank, l.State).Inc()
		}
		for state, n := range map[string]int{
			"taken": r.Leases.Taken, "filling": r.Leases.Filling, "verifying": r.Leases.Verifying, "ready": r.Leases.Ready, "revoking": r.Leases.Revoking,
		} {
			m.leases.WithLabelValues(rank, state).Set(float64(n))
		}
	}
	l := s.Decode.Leader
	for state, n := range map[string]int{
		"queued": l.Queued, "asking": l.Asking, "waiting": l.Waiting, "filling": l.Filling, "running": l.Running, "ending": l.Ending,
	} {
		m.transfers.WithLabelValues(state).Set(float64(n))
	}
}

func (m *metrics) pools(role string, rank int, pools map[string]core.PoolStatus) {
	for component, p := range pools {
		for state, n := range map[string]uint32{"free": p.Free, "held": p.Held, "revoking": p.Revoking, "quarantined": p.Quarantined} {
			m.pages.WithLabelValues(role, strconv.Itoa(rank), component, state).Set(float64(n))
		}
	}
}

// Text is the status for people.
func (s Status) Text() string {
	out := fmt.Sprintf("role %s  ready %t", s.Role, s.Ready)
	if s.Reason != "" {
		out += "  (" + s.Reason + ")"
	}
	if s.Stopped != "" {
		out += "\nSTOPPED: " + s.Stopped
	}
	out += "\n"
	if p := s.Prefill; p != nil {
		out += fmt.Sprintf("\nprefill %s  control %s  admitted %d  waiting %d\n", p.Name, p.Control, p.Leader.Admitted, p.Leader.Waiting)
		if l := p.Leader; l.Tokens > 0 {
			out += fmt.Sprintf("  computed %d of %d prompt tokens, of the oldest %d of %d\n", l.Computed, l.Tokens, l.OldestComputed, l.OldestTokens)
		}
		for k, r := range p.Ranks {
			out += fmt.Sprintf("  rank %d  incarnation %s  jobs %d  fences %d  refused %d\n%s", k, r.Incarnation, r.Jobs, r.Fences, r.Refused, poolText(r.Pools))
			for _, l := range r.Links {
				out += fmt.Sprintf("    link %-20s %-8s epoch %d  working %d  answers %d  offered %d\n", l.Name, l.State, l.Epoch, l.Working, l.Answers, l.Offered)
			}
		}
	}
	if d := s.Decode; d != nil {
		l, api := d.Leader, d.API
		if api == "" {
			api = "none"
		}
		out += fmt.Sprintf("\ndecode %s  api %s  queued %d  asking %d  waiting %d  filling %d  running %d  ending %d  succeeded %d  failed %d\n",
			d.Name, api, l.Queued, l.Asking, l.Waiting, l.Filling, l.Running, l.Ending, l.Succeeded, l.Failed)
		for k, r := range d.Ranks {
			out += fmt.Sprintf("  rank %d  incarnation %s  fences %d  quarantine %d  alarms %d  refused %d\n%s", k, r.Incarnation, r.Fences, r.Quarantine, r.Alarms, r.Refused, poolText(r.Pools))
			n := r.Leases
			out += fmt.Sprintf("    leases taken %d  filling %d  verifying %d  ready %d  revoking %d\n", n.Taken, n.Filling, n.Verifying, n.Ready, n.Revoking)
			for _, l := range r.Links {
				out += fmt.Sprintf("    link %-20s %-10s epoch %d  holds %d  fencing %d  %s\n", l.Name, l.State, l.Epoch, l.Holds, l.Fencing, l.Refusal)
			}
		}
	}
	return out
}

func poolText(pools map[string]core.PoolStatus) (out string) {
	for c := range spec.ComponentCount {
		if p, ok := pools[c.String()]; ok {
			out += fmt.Sprintf("    pool %-5s free %d  held %d  revoking %d  quarantined %d  of %d pages\n", c, p.Free, p.Held, p.Revoking, p.Quarantined, p.Total)
		}
	}
	return out
}
