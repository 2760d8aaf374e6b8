package trace

import (
	"kvfence/impl/core"
	"kvfence/spec"
)

// Machine makes the lines of one machine in one life. Use it from one goroutine.
type Machine struct {
	node  spec.Incarnation
	kind  spec.TraceMachine
	views map[spec.LeaseID]*[spec.ComponentCount][]spec.GrantedPage // block tables that were said, by lease
}

// NewMachine is for a machine of a node; a leader's node is its rank 0.
func NewMachine(node spec.Incarnation, kind spec.TraceMachine) *Machine {
	return &Machine{node: node, kind: kind, views: map[spec.LeaseID]*[spec.ComponentCount][]spec.GrantedPage{}}
}

// Start is the machine's first line.
func (m *Machine) Start(at core.Time, s spec.TraceStart) spec.TraceLine {
	s.Version = spec.TraceVersion
	return spec.TraceLine{At: int64(at), Node: m.node, Machine: m.kind, Event: spec.TraceEvent{Kind: "Start", Start: &s}}
}

// Step is the line of one step. false: the step did nothing that is worth a line (a Tick without actions). The line shares slices with
// actions, which machines never change once given.
func (m *Machine) Step(at core.Time, ev core.Event, actions []core.Action) (spec.TraceLine, bool) {
	if _, tick := ev.(core.Tick); tick && len(actions) == 0 {
		return spec.TraceLine{}, false
	}
	l := spec.TraceLine{At: int64(at), Node: m.node, Machine: m.kind, Event: event(ev)}
	dids := 0
	for _, a := range actions {
		if _, ok := a.(core.Did); ok {
			dids++
		}
	}
	if dids > 0 {
		l.Did = make([]spec.TraceDid, 0, dids)
	}
	if n := len(actions) - dids; n > 0 {
		l.Out = make([]spec.TraceOut, 0, n)
	}
	for _, a := range actions {
		switch a := a.(type) {
		case core.Did:
			l.Did = append(l.Did, did(a))
			if a.Name == "Release" || a.Name == "QuarantineEnd" {
				delete(m.views, a.Lease)
			}
		case core.ReadPages:
			o := readPages(a)
			if m.views[a.Lease] != a.Pages {
				m.views[a.Lease] = a.Pages
				o.Pages = pages(*a.Pages)
			}
			o.After = len(l.Did)
			l.Out = append(l.Out, o)
		default:
			o := out(a)
			o.After = len(l.Did)
			l.Out = append(l.Out, o)
		}
	}
	return l, true
}

// StartOf is what a start line says of a rank's layouts.
func StartOf(id spec.Identity, layouts []spec.Layout) spec.TraceStart {
	s := spec.TraceStart{Name: id.Name, Rank: id.Rank, Side: id.Side}
	for _, l := range layouts {
		s.Pages[l.Component] = l.Shape.Pages
		if l.Component == spec.KV {
			s.Tokens = l.Equal.TokensPerPage
		}
	}
	return s
}

func did(d core.Did) spec.TraceDid {
	t := spec.TraceDid{Name: d.Name, Transfer: spec.TraceTransfer(d.Transfer), Root: spec.TraceTransfer(d.Root), After: spec.TraceTransfer(d.After),
		Job: spec.TraceTransfer(d.Job), Lease: d.Lease, Filler: d.Filler, Peer: uint32(d.Peer), Inc: d.Inc, Epoch: d.Epoch, Mark: d.Mark,
		Receipt: d.Receipt, Cause: d.Cause, Pages: pages(d.Pages), Shared: d.Shared, To: d.To, Last: d.Last, Fresh: d.Fresh, Req: uint64(d.Req)}
	copy(t.Domain[:], d.Domain[:])
	if d.Mark != 0 {
		t.Lease = 0
	}
	for _, p := range d.Parts {
		t.Parts = append(t.Parts, spec.TracePart{uint64(p.Peer), uint64(p.Component), uint64(p.Part), uint64(p.Lo), uint64(p.Hi)})
	}
	if d.Channel != (spec.Channel{}) {
		t.Channel = &spec.TraceChannel{uint64(d.Channel.ID), d.Channel.Notice}
	}
	return t
}

func pages(ps [spec.ComponentCount][]spec.GrantedPage) (out spec.TracePages) {
	for c := range ps {
		if len(ps[c]) == 0 {
			continue
		}
		out[c] = make([]spec.TracePage, len(ps[c]))
		for i, p := range ps[c] {
			out[c][i] = spec.TracePage{uint64(p.Page), uint64(p.Gen)}
		}
	}
	return out
}

func channels(cs []spec.Channel) (out []spec.TraceChannel) {
	for _, c := range cs {
		out = append(out, spec.TraceChannel{uint64(c.ID), c.Notice})
	}
	return out
}

func bad(bs []core.BadPart) (out []spec.TracePart) {
	for _, b := range bs {
		digest := uint64(0)
		if b.Digest {
			digest = 1
		}
		out = append(out, spec.TracePart{0, uint64(b.Component), uint64(b.Part), uint64(b.Index), digest})
	}
	return out
}

// body says what is said of a message: transfer, lease, epoch of the grant, channels.
func body(m spec.Message) (t spec.TransferID, l spec.LeaseID, grant spec.Epoch, cs []spec.TraceChannel) {
	switch m := m.(type) {
	case spec.Ask:
		t = m.Transfer
	case spec.Asked:
		t = m.Transfer
	case spec.AskFailed:
		t = m.Transfer
	case spec.Drop:
		t = m.Transfer
	case spec.Grant:
		t, l = m.Transfer, m.Lease
	case spec.Offer:
		t, l = m.Transfer, m.Lease
	case spec.Complete:
		t, l, grant, cs = m.Transfer, m.Lease, m.GrantEpoch, channels(m.Channels)
	case spec.Failing:
		t, l = m.Transfer, m.Lease
	case spec.Failed:
		t, l, grant, cs = m.Transfer, m.Lease, m.GrantEpoch, channels(m.Channels)
	case spec.Abort:
		t, l = m.Transfer, m.Lease
	case spec.AbortAck:
		t, l, grant, cs = m.Transfer, m.Lease, m.GrantEpoch, channels(m.Channels)
	case spec.Gone:
		t, l, grant = m.Transfer, m.Lease, m.GrantEpoch
	case spec.Read:
		t, l = m.Transfer, m.Lease
	case spec.Fenced:
		grant = m.Old
	case spec.Refused:
		l = m.Lease
	}
	return t, l, grant, cs
}
