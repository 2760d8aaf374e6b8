package trace

import (
	"kvfence/impl/core"
	"kvfence/spec"
)

// out is what is said of an action that is no Did.
func out(a core.Action) spec.TraceOut {
	switch a := a.(type) {
	case core.Send:
		t, l, grant, cs := body(a.Env.Body)
		o := spec.TraceOut{Kind: "Send", Message: a.Env.Body.Kind().String(), Peer: uint32(a.Peer), To: a.Env.To, Transfer: spec.TraceTransfer(t), Lease: l,
			Epoch: a.Env.Epoch, Grant: grant, Mark: a.Env.Mark, Channels: cs}
		if g, ok := a.Env.Body.(spec.Grant); ok {
			o.Checks = len(g.Parts)
		}
		return o
	case core.Count:
		return spec.TraceOut{Kind: "Count", Refusal: a.Refusal, Message: about(a.About), Peer: uint32(a.Peer)}
	case core.Fence:
		return spec.TraceOut{Kind: "Fence", Peer: uint32(a.Peer), Old: a.Old, Epoch: a.New}
	case core.Allow:
		return spec.TraceOut{Kind: "Allow", Peer: uint32(a.Peer), Epoch: a.Epoch, Transfer: spec.TraceTransfer(a.Grant.Transfer), Lease: a.Grant.Lease, Pages: pages(a.Grant.Pages)}
	case core.Revoke:
		return spec.TraceOut{Kind: "Revoke", Peer: uint32(a.Peer), Lease: a.Lease}
	case core.VoidTags:
		o := spec.TraceOut{Kind: "VoidTags"}
		for _, p := range a.Pages {
			o.Pages[a.Component] = append(o.Pages[a.Component], spec.TracePage{uint64(p)})
		}
		return o
	case core.PutTag:
		o := spec.TraceOut{Kind: "PutTag", Lease: a.Tag.Lease}
		o.Pages[a.Component] = []spec.TracePage{{uint64(a.Page), uint64(a.Tag.Gen)}}
		return o
	case core.Verify:
		return spec.TraceOut{Kind: "Verify", Lease: a.Lease, Checks: len(a.Checks) + len(a.Void)}
	case core.Stop:
		return spec.TraceOut{Kind: "Stop", Broken: a.Invariant}
	case core.ToRank:
		name, t := sideMessage(a.Msg)
		return spec.TraceOut{Kind: "ToRank", Message: name, Rank: a.Rank, Transfer: spec.TraceTransfer(t)}
	case core.ToLeader:
		name, t := sideMessage(a.Msg)
		o := spec.TraceOut{Kind: "ToLeader", Message: name, Transfer: spec.TraceTransfer(t)}
		if m, ok := a.Msg.(core.Taken); ok {
			o.Lease = m.Lease
		}
		return o
	}
	return outWork(a)
}

// outWork is what drivers and clients are asked for.
func outWork(a core.Action) spec.TraceOut {
	switch a := a.(type) {
	case core.Post:
		o := spec.TraceOut{Kind: "Post", Peer: uint32(a.Peer), Epoch: a.Epoch, ID: a.Batch, Lease: a.Lease, Items: make([]spec.TraceItem, 0, len(a.Items))}
		for _, it := range a.Items {
			o.Items = append(o.Items, spec.TraceItem{uint64(it.Part.Component), uint64(it.Part.Index), uint64(it.Index), uint64(it.Src.Page), uint64(it.Src.Gen), uint64(it.Dst.Page), uint64(it.Dst.Gen)})
		}
		return o
	case core.Seal:
		o := spec.TraceOut{Kind: "Seal", Peer: uint32(a.Lease.Peer), Lease: a.Lease.Lease, ID: a.Seal, Items: make([]spec.TraceItem, 0, len(a.Items))}
		for _, it := range a.Items {
			o.Items = append(o.Items, spec.TraceItem{uint64(it.Part.Component), uint64(it.Part.Index), uint64(it.Index), uint64(it.Src.Page), uint64(it.Src.Gen)})
		}
		return o
	case core.PullCopy:
		o := spec.TraceOut{Kind: "PullCopy", Peer: uint32(a.Peer), Epoch: a.Epoch, ID: a.Job, Lease: a.Lease, Items: make([]spec.TraceItem, 0, len(a.Items))}
		for _, it := range a.Items {
			o.Items = append(o.Items, spec.TraceItem{uint64(it.Part.Component), uint64(it.Part.Index), uint64(it.Index), uint64(it.Src.Page), uint64(it.Src.Gen), uint64(it.Dst.Page), uint64(it.Dst.Gen)})
		}
		return o
	case core.Notice:
		return spec.TraceOut{Kind: "Notice", Peer: uint32(a.Peer), Epoch: a.Epoch, Lease: a.Lease, Number: a.Number}
	case core.OpenData:
		return spec.TraceOut{Kind: "OpenData", Peer: uint32(a.Peer), Epoch: a.Epoch, To: a.Info.Prefill}
	case core.ExpectData:
		return spec.TraceOut{Kind: "ExpectData", Peer: uint32(a.Peer), Epoch: a.Epoch, To: a.Info.Decode}
	case core.ReadRefused:
		return spec.TraceOut{Kind: "ReadRefused", Lease: a.Lease, Cause: a.Cause}
	case core.Alarm:
		return spec.TraceOut{Kind: "Alarm", Lease: a.Lease, Peer: uint32(a.Peer)}
	case core.SendLeader:
		t, _, _, _ := body(a.Body)
		return spec.TraceOut{Kind: "SendLeader", Message: a.Body.Kind().String(), Peer: uint32(a.Peer), Transfer: spec.TraceTransfer(t)}
	case core.ReplyLeader:
		t, _, _, _ := body(a.Body)
		return spec.TraceOut{Kind: "ReplyLeader", Message: a.Body.Kind().String(), Peer: uint32(a.Peer), Transfer: spec.TraceTransfer(t)}
	case core.OpenStream:
		return spec.TraceOut{Kind: "OpenStream", Req: uint64(a.Req)}
	case core.Emit:
		return spec.TraceOut{Kind: "Emit", Req: uint64(a.Req)}
	case core.Answer:
		return spec.TraceOut{Kind: "Answer", Req: uint64(a.Req), Cause: a.Cause}
	case core.ReadFirst:
		return spec.TraceOut{Kind: "ReadFirst", Transfer: spec.TraceTransfer(a.Transfer), Leases: a.Leases}
	case core.RunStep:
		return spec.TraceOut{Kind: "RunStep", Transfer: spec.TraceTransfer(a.Transfer), Leases: a.Leases}
	case core.Compute:
		return spec.TraceOut{Kind: "Compute", Transfer: spec.TraceTransfer(a.Transfer)}
	}
	return spec.TraceOut{Kind: short(a)}
}

func readPages(a core.ReadPages) spec.TraceOut {
	o := spec.TraceOut{Kind: "ReadPages", Lease: a.Lease, Checks: len(a.Checks)}
	for _, c := range a.Copies {
		o.Copies = append(o.Copies, spec.TraceItem{uint64(c.Component), 0, uint64(c.Index), uint64(c.From.Page), uint64(c.From.Gen), uint64(c.To.Page), uint64(c.To.Gen)})
	}
	return o
}

func about(k spec.Kind) string {
	if k == 0 {
		return ""
	}
	return k.String()
}
