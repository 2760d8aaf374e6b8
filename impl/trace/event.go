package trace

import (
	"fmt"
	"strings"

	"kvfence/impl/core"
	"kvfence/spec"
)

// event is what is said of an event.
func event(ev core.Event) spec.TraceEvent {
	switch e := ev.(type) {
	case core.Tick:
		return spec.TraceEvent{Kind: "Tick"}
	case core.Dialed:
		return spec.TraceEvent{Kind: "Dialed", Peer: uint32(e.Peer)}
	case core.ConnectIn:
		return received(spec.TraceEvent{Kind: "ConnectIn", Peer: uint32(e.Peer)}, e.Env)
	case core.Recv:
		return received(spec.TraceEvent{Kind: "Recv", Peer: uint32(e.Peer)}, e.Env)
	case core.ConnLost:
		return spec.TraceEvent{Kind: "ConnLost", Peer: uint32(e.Peer)}
	case core.DataUp:
		return spec.TraceEvent{Kind: "DataUp", Peer: uint32(e.Peer), Epoch: e.Epoch, Failed: e.Err != ""}
	case core.DataLost:
		return spec.TraceEvent{Kind: "DataLost", Peer: uint32(e.Peer), Epoch: e.Epoch}
	case core.FenceDone:
		return spec.TraceEvent{Kind: "FenceDone", Peer: uint32(e.Peer), Epoch: e.Old, Failed: !e.OK}
	case core.Side:
		return sided(e)
	case core.SideLost:
		return spec.TraceEvent{Kind: "SideLost", Rank: e.Rank}
	case core.SayFor:
		t, l, _, _ := body(e.Body)
		return spec.TraceEvent{Kind: "SayFor", Message: e.Body.Kind().String(), Peer: uint32(e.Peer), Transfer: spec.TraceTransfer(t), Lease: l}
	}
	return worked(ev)
}

// worked is the ends of work, and what leaders are given.
func worked(ev core.Event) spec.TraceEvent {
	switch e := ev.(type) {
	case core.NoticeIn:
		return spec.TraceEvent{Kind: "NoticeIn", Peer: uint32(e.Peer), Epoch: e.Epoch, Lease: e.Lease, Channels: []spec.TraceChannel{{uint64(e.Channel), e.Number}}}
	case core.Verified:
		return spec.TraceEvent{Kind: "Verified", Lease: e.Lease, Bad: bad(e.Bad)}
	case core.PullDone:
		return spec.TraceEvent{Kind: "PullDone", Peer: uint32(e.Peer), Epoch: e.Epoch, ID: e.Job, Lease: e.Lease, Bad: bad(e.Bad), Failed: e.Err != ""}
	case core.ReadBegin:
		return spec.TraceEvent{Kind: "ReadBegin", Lease: e.Lease, Pos: e.Pos}
	case core.ReadEnd:
		return spec.TraceEvent{Kind: "ReadEnd", Lease: e.Lease, Bad: bad(e.Bad), Failed: !e.Copied}
	case core.Sealed:
		return spec.TraceEvent{Kind: "Sealed", Peer: uint32(e.Lease.Peer), Lease: e.Lease.Lease, ID: e.Seal}
	case core.Posted:
		return spec.TraceEvent{Kind: "Posted", Peer: uint32(e.Peer), Epoch: e.Epoch, ID: e.Batch, Failed: e.Err != ""}
	case core.Noticed:
		return spec.TraceEvent{Kind: "Noticed", Peer: uint32(e.Peer), Epoch: e.Epoch, Lease: e.Lease, Number: e.Number, Channels: channels(e.Channels), Failed: e.Err != ""}
	case core.ReaderEnded:
		return spec.TraceEvent{Kind: "ReaderEnded", Peer: uint32(e.Peer)}
	case core.Submit:
		return spec.TraceEvent{Kind: "Submit", Req: uint64(e.Req)}
	case core.ClientGone:
		return spec.TraceEvent{Kind: "ClientGone", Req: uint64(e.Req)}
	case core.FirstRead:
		return spec.TraceEvent{Kind: "FirstRead", Transfer: spec.TraceTransfer(e.Transfer), Failed: !e.OK}
	case core.StepDone:
		return spec.TraceEvent{Kind: "StepDone", Transfer: spec.TraceTransfer(e.Transfer), Failed: !e.OK}
	case core.ComputeDone:
		return spec.TraceEvent{Kind: "ComputeDone", Transfer: spec.TraceTransfer(e.Transfer), Failed: e.Err != ""}
	case core.Drain:
		return spec.TraceEvent{Kind: "Drain"}
	}
	return spec.TraceEvent{Kind: short(ev)}
}

// received is a message of a peer with what is said of its header.
func received(t spec.TraceEvent, env spec.Envelope) spec.TraceEvent {
	t.From, t.Epoch, t.Mark = env.From, env.Epoch, env.Mark
	if env.Body == nil {
		return t
	}
	t.Message = env.Body.Kind().String()
	x, l, grant, cs := body(env.Body)
	t.Transfer, t.Lease, t.Grant, t.Channels = spec.TraceTransfer(x), l, grant, cs
	if c, ok := env.Body.(spec.Connect); ok {
		t.Epoch = c.Epoch
	}
	return t
}

// sided is a message within a side.
func sided(e core.Side) spec.TraceEvent {
	name, x := sideMessage(e.Msg)
	t := spec.TraceEvent{Kind: "Side", Message: name, Rank: e.Rank, Transfer: spec.TraceTransfer(x)}
	switch m := e.Msg.(type) {
	case core.Taken:
		t.Lease = m.Lease
	case core.Bind:
		t.Job = spec.TraceTransfer(m.Source)
	case core.PeerUp:
		t.Peer = uint32(m.Peer)
	case core.PeerDown:
		t.Peer = uint32(m.Peer)
	}
	return t
}

// sideMessage is the name of a message within a side, and the transfer that it is about.
func sideMessage(m core.SideMsg) (string, spec.TransferID) {
	switch m := m.(type) {
	case core.Take:
		return "Take", m.Transfer
	case core.Go:
		return "Go", m.Transfer
	case core.AbortLease:
		return "AbortLease", m.Transfer
	case core.ReleaseLease:
		return "ReleaseLease", m.Transfer
	case core.Grow:
		return "Grow", m.Transfer
	case core.Fork:
		return "Fork", m.Transfer
	case core.Taken:
		return "Taken", m.Transfer
	case core.NoRoom:
		return "NoRoom", m.Transfer
	case core.NoPlan:
		return "NoPlan", m.Transfer
	case core.LeaseReady:
		return "LeaseReady", m.Transfer
	case core.LeaseFailed:
		return "LeaseFailed", m.Transfer
	case core.LeaseFreed:
		return "LeaseFreed", m.Transfer
	case core.Grown:
		return "Grown", m.Transfer
	case core.GrowNoRoom:
		return "GrowNoRoom", m.Transfer
	case core.PeerSaid:
		t, _, _, _ := body(m.Body)
		return "PeerSaid " + m.Body.Kind().String(), t
	}
	return prefillMessage(m)
}

func prefillMessage(m core.SideMsg) (string, spec.TransferID) {
	switch m := m.(type) {
	case core.Assign:
		return "Assign", m.Transfer
	case core.Bind:
		return "Bind", m.Transfer
	case core.TakeSource:
		return "TakeSource", m.Transfer
	case core.UntakeSource:
		return "UntakeSource", m.Transfer
	case core.ChunkDone:
		return "ChunkDone", m.Transfer
	case core.ComputeOver:
		return "ComputeOver", m.Transfer
	case core.Break:
		return "Break", m.Transfer
	case core.Granted:
		return "Granted", m.Transfer
	case core.SourceTaken:
		return "SourceTaken", m.Transfer
	case core.SourceNoRoom:
		return "SourceNoRoom", m.Transfer
	case core.JobStopped:
		return "JobStopped", m.Transfer
	case core.JobOver:
		return "JobOver", m.Transfer
	}
	return short(m), spec.TransferID{}
}

// short is a type's name without its package.
func short(v any) string {
	name := fmt.Sprintf("%T", v)
	return name[strings.LastIndexByte(name, '.')+1:]
}
