package check

import (
	"slices"
	"strings"

	"kvfence/spec"
)

// harmless are kinds of alterations that leave a behaviour of the specification, and why.
func harmless() map[string]string {
	end := "nothing that comes later in the trace depends on it: the lease, link or machine does nothing more"
	return map[string]string{
		"Did Publish removed":               "where nobody shares the page later, and its publication ends with its lease's finding",
		"generation of Grant":               "of a page of a pulled lease that ends before it is ready: no other line names its generation",
		"generation of TakeSource":          "of a source page that nothing is sealed in, posted from or offered: no other line names its generation",
		"older generation of TakeSource":    "likewise",
		"line dropped: Failure":             "a request that is refused before it has a transfer is one line, and nobody else hears of it",
		"Did Unpublish removed":             "of a page that is not handed out again: to the specification it is published on",
		"Did QuarantineEnd removed":         "its pages stay with it, as if a fence were still out; where it shares or has grown nothing, and a fence of its link comes back, it is due",
		"put-out VoidTags removed":          "of pages that are taken back before they are granted",
		"put-out Send abort removed":        "to a link that is fenced in the same step",
		"put-out Fence removed":             end,
		"put-out Seal removed":              end,
		"put-out ReplyLeader asked removed": end,
	}
}

// alterations are the kinds.
func alterations() (all []alteration) {
	all = append(all, alteredDids()...)
	all = append(all, alteredOuts()...)
	all = append(all, alteredOrder()...)
	for _, name := range []string{"Submit", "Ask", "RecvAsk", "RecvAsked", "Run", "Success", "Failure", "Retry", "Answer", "Grant", "Share", "Grow", "Abort", "RecvComplete", "RecvReceipt", "NoticeIn", "Take",
		"Verify", "BadVerify", "Ready", "Read", "ReadEnd", "Append", "Publish", "Unpublish", "Release", "QuarantineEnd", "Fence", "FenceEnd", "Connect", "RaiseMark", "Accept", "RecvMark", "OwnMark", "Start",
		"TakeSource", "Compute", "Seal", "GiveBack", "Post", "Notice", "Complete", "Break", "RecvAbort", "AbortAck", "Failed", "Gone", "Forget", "PrefillFence", "Offer", "PullBegin", "PullCheck", "SaidRead"} {
		all = append(all, alteration{"Did " + name + " removed", eachDid(name, nil), removeDid})
	}
	for _, kind := range []string{"Send grant", "Send abort", "Send complete", "Send failed", "Send abort_ack", "Send gone", "Send accept", "Send connect", "Send offer", "Allow", "Revoke", "VoidTags", "Fence", "Verify", "ReadPages", "PutTag",
		"Answer", "Post", "Seal", "Notice", "PullCopy", "ReplyLeader asked"} {
		k, message, _ := strings.Cut(kind, " ")
		where := eachOut(k, message, nil)
		if name, ok := answered()[kind]; ok { // what is only said again may be lost like any message
			where = func(lines []spec.TraceLine) []place {
				return slices.DeleteFunc(eachOut(k, message, nil)(lines), func(p place) bool {
					o := &lines[p.line].Out[p.out]
					return !slices.ContainsFunc(lines[p.line].Did, func(d spec.TraceDid) bool {
						return d.Name == name && d.Lease == o.Lease && (d.Peer == 0 || d.Peer == o.Peer)
					})
				})
			}
		}
		all = append(all, alteration{"put-out " + kind + " removed", where, removeOut})
	}
	return all
}

// answered are messages that an action sends, and that may be said again later.
func answered() map[string]string {
	return map[string]string{"Send grant": "Grant", "Send complete": "Complete", "Send failed": "Failed", "Send abort_ack": "AbortAck", "Send gone": "Gone", "Send abort": "Abort", "ReplyLeader asked": "RecvAsk"}
}

func firstPage(ps *spec.TracePages) *spec.TracePage {
	for c := range ps {
		if len(ps[c]) > 0 {
			ps[c] = slices.Clone(ps[c])
			return &ps[c][0]
		}
	}
	return nil
}

func hasPages(l *spec.TraceLine, d *spec.TraceDid) bool { return !d.Pages.IsZero() }

func alteredDids() []alteration {
	page := changeDid(func(d *spec.TraceDid) { firstPage(&d.Pages)[0] += 1000 })
	gen := changeDid(func(d *spec.TraceDid) { firstPage(&d.Pages)[1]++ })
	older := changeDid(func(d *spec.TraceDid) { firstPage(&d.Pages)[1]-- })
	lease := changeDid(func(d *spec.TraceDid) { d.Lease += 1000 })
	var all []alteration
	for _, name := range []string{"Grant", "Grow", "Share", "Publish", "Unpublish", "Append", "TakeSource"} {
		all = append(all, alteration{"page of " + name, eachDid(name, hasPages), page}, alteration{"generation of " + name, eachDid(name, hasPages), gen},
			alteration{"older generation of " + name, eachDid(name, hasPages), older})
	}
	for _, name := range []string{"Grant", "Take", "Verify", "Ready", "Read", "ReadEnd", "Release", "NoticeIn", "RecvComplete", "Start", "Post", "Complete", "Failed", "AbortAck", "Forget", "Abort", "Publish", "Append"} {
		all = append(all, alteration{"lease of " + name, eachDid(name, nil), lease})
	}
	return append(all,
		alteration{"epoch of Fence", eachDid("Fence", nil), changeDid(func(d *spec.TraceDid) { d.Epoch++ })},
		alteration{"epoch of Connect", eachDid("Connect", nil), changeDid(func(d *spec.TraceDid) { d.Epoch++ })},
		alteration{"epoch of RecvComplete", eachDid("RecvComplete", nil), changeDid(func(d *spec.TraceDid) { d.Epoch++ })},
		alteration{"epoch of NoticeIn", eachDid("NoticeIn", nil), changeDid(func(d *spec.TraceDid) { d.Epoch++ })},
		alteration{"epoch of Accept", eachDid("Accept", nil), changeDid(func(d *spec.TraceDid) { d.Epoch += 1000 })},
		alteration{"incarnation of Connect", eachDid("Connect", nil), changeDid(func(d *spec.TraceDid) { d.Inc[3] ^= 1 })},
		alteration{"incarnation of RecvComplete", eachDid("RecvComplete", nil), changeDid(func(d *spec.TraceDid) { d.Inc[3] ^= 1 })},
		alteration{"mark of RaiseMark", eachDid("RaiseMark", nil), changeDid(func(d *spec.TraceDid) { d.Mark += 1000 })},
		alteration{"mark of RecvMark", eachDid("RecvMark", nil), changeDid(func(d *spec.TraceDid) { d.Mark += 1000 })},
		alteration{"filler of Share", eachDid("Share", nil), changeDid(func(d *spec.TraceDid) { d.Filler++ })},
		alteration{"domain of Grant that shares", eachDid("Grant", func(l *spec.TraceLine, d *spec.TraceDid) bool { return says(l, "Share") }), changeDid(func(d *spec.TraceDid) { d.Domain[0] ^= 1 })},
		alteration{"kind of Take: complete for another", eachDid("Take", func(l *spec.TraceLine, d *spec.TraceDid) bool {
			return d.Receipt != "complete" && d.Receipt != "misnamed"
		}), changeDid(func(d *spec.TraceDid) { d.Receipt = "complete" })},
		alteration{"parts of Grant: one is missing", eachDid("Grant", func(l *spec.TraceLine, d *spec.TraceDid) bool { return len(d.Parts) > 1 }), changeDid(func(d *spec.TraceDid) { d.Parts = d.Parts[1:] })},
		alteration{"success for failure", eachDid("Failure", func(l *spec.TraceLine, d *spec.TraceDid) bool { return !d.Transfer.IsZero() }), changeDid(func(d *spec.TraceDid) { d.Name = "Success" })},
		alteration{"success after failure", eachDid("Failure", func(l *spec.TraceLine, d *spec.TraceDid) bool { return !d.Transfer.IsZero() }), successAfter},
		alteration{"transfer of Grant", eachDid("Grant", nil), changeDid(func(d *spec.TraceDid) { d.Transfer.Counter += 5000 })},
		alteration{"transfer of Success", eachDid("Success", nil), changeDid(func(d *spec.TraceDid) { d.Transfer.Counter++ })},
		alteration{"misspelt action", eachDid("", nil), changeDid(func(d *spec.TraceDid) { d.Name += "x" })},
	)
}

func successAfter(lines []spec.TraceLine, at place) []spec.TraceLine {
	l := &lines[at.line]
	d := l.Did[at.did]
	d.Name, d.Cause = "Success", ""
	l.Did = slices.Insert(l.Did, at.did+1, d)
	return lines
}

func item(i int, by uint64) func([]spec.TraceLine, place) []spec.TraceLine {
	return changeOut(func(o *spec.TraceOut) { o.Items = slices.Clone(o.Items); o.Items[0][i] += by })
}

// exchange swaps two pages, with their generations, of the first two items.
func exchange(i int) func([]spec.TraceLine, place) []spec.TraceLine {
	return changeOut(func(o *spec.TraceOut) {
		o.Items = slices.Clone(o.Items)
		for _, j := range []int{i, i + 1} {
			o.Items[0][j], o.Items[1][j] = o.Items[1][j], o.Items[0][j]
		}
	})
}

func items(o *spec.TraceOut) bool { return len(o.Items) > 0 }

func pagesOf(o *spec.TraceOut) bool { return !o.Pages.IsZero() }

func alteredOuts() []alteration {
	return []alteration{
		{"Post: destination page", eachOut("Post", "", items), item(5, 1)},
		{"Post: two pages of one lease exchanged", eachOut("Post", "", func(o *spec.TraceOut) bool { return len(o.Items) > 1 && o.Items[0][0] == o.Items[1][0] }), exchange(5)},
		{"Post: two sources of one lease exchanged", eachOut("Post", "", func(o *spec.TraceOut) bool { return len(o.Items) > 1 && o.Items[0][0] == o.Items[1][0] }), exchange(3)},
		{"PullCopy: two pages of one lease exchanged", eachOut("PullCopy", "", func(o *spec.TraceOut) bool { return len(o.Items) > 1 && o.Items[0][0] == o.Items[1][0] }), exchange(5)},
		{"Post: destination generation", eachOut("Post", "", items), item(6, 1)},
		{"Post: source page", eachOut("Post", "", items), item(3, 1000)},
		{"Post: source generation", eachOut("Post", "", items), item(4, 1)},
		{"Post: epoch", eachOut("Post", "", nil), changeOut(func(o *spec.TraceOut) { o.Epoch++ })},
		{"Post: lease", eachOut("Post", "", nil), changeOut(func(o *spec.TraceOut) { o.Lease++ })},
		{"Seal: source page", eachOut("Seal", "", items), item(3, 1000)},
		{"PullCopy: source page", eachOut("PullCopy", "", items), item(3, 1000)},
		{"PullCopy: source generation", eachOut("PullCopy", "", items), item(4, 1)},
		{"PullCopy: destination page", eachOut("PullCopy", "", items), item(5, 1000)},
		{"Allow: page", eachOut("Allow", "", pagesOf), changeOut(func(o *spec.TraceOut) { firstPage(&o.Pages)[0]++ })},
		{"Allow: generation", eachOut("Allow", "", pagesOf), changeOut(func(o *spec.TraceOut) { firstPage(&o.Pages)[1]++ })},
		{"Allow: epoch", eachOut("Allow", "", nil), changeOut(func(o *spec.TraceOut) { o.Epoch++ })},
		{"ReadPages: page", eachOut("ReadPages", "", pagesOf), changeOut(func(o *spec.TraceOut) { firstPage(&o.Pages)[0]++ })},
		{"ReadPages: generation", eachOut("ReadPages", "", pagesOf), changeOut(func(o *spec.TraceOut) { firstPage(&o.Pages)[1]++ })},
		{"VoidTags: page", eachOut("VoidTags", "", pagesOf), changeOut(func(o *spec.TraceOut) { firstPage(&o.Pages)[0] += 1000 })},
		{"Fence: epoch", eachOut("Fence", "", nil), changeOut(func(o *spec.TraceOut) { o.Old++ })},
		{"receipt: epoch of its grant", eachOut("Send", "complete", nil), changeOut(func(o *spec.TraceOut) { o.Grant++ })},
		{"receipt: a channel is missing", eachOut("Send", "complete", func(o *spec.TraceOut) bool { return len(o.Channels) > 1 }), changeOut(func(o *spec.TraceOut) { o.Channels = o.Channels[1:] })},
		{"answer: success for failure", eachOut("Answer", "", func(o *spec.TraceOut) bool { return o.Cause != "" }), changeOut(func(o *spec.TraceOut) { o.Cause = "" })},
		{"answer: failure for success", eachOut("Answer", "", func(o *spec.TraceOut) bool { return o.Cause == "" }), changeOut(func(o *spec.TraceOut) { o.Cause = spec.CauseDeadline })},
		{"answer: of another request", eachOut("Answer", "", nil), changeOut(func(o *spec.TraceOut) { o.Req += 1000 })},
		{"message: epoch of its header", eachOut("Send", "grant", nil), changeOut(func(o *spec.TraceOut) { o.Epoch++ })},
		{"message: mark of its header", eachOut("Send", "grant", nil), changeOut(func(o *spec.TraceOut) { o.Mark += 1000 })},
		{"message: a receipt of another kind", eachOut("Send", "failed", nil), changeOut(func(o *spec.TraceOut) { o.Message = "abort_ack" })},
		{"message: a receipt that is not said", eachOut("Send", "failing", nil), changeOut(func(o *spec.TraceOut) { o.Message = "failed" })},
		{"step: a lease that is no one's", eachOut("ReadPages", "", nil), changeOut(func(o *spec.TraceOut) { o.Lease += 1000 })},
	}
}

// alteredOrder are lines that are dropped, doubled, or come too early.
func alteredOrder() []alteration {
	start := func(l *spec.TraceLine) bool { return l.Event.Kind == "Start" }
	says1 := func(names ...string) func(l *spec.TraceLine) bool {
		return func(l *spec.TraceLine) bool { return says(l, names...) }
	}
	sameNode := func(names ...string) func(l, moved *spec.TraceLine) bool {
		return func(l, moved *spec.TraceLine) bool {
			return l.Node == moved.Node && l.Machine == moved.Machine && slices.ContainsFunc(l.Did, func(d spec.TraceDid) bool {
				return slices.Contains(names, d.Name) && slices.ContainsFunc(moved.Did, func(m spec.TraceDid) bool { return m.Lease == d.Lease && m.Transfer == d.Transfer })
			})
		}
	}
	var all []alteration
	for _, name := range []string{"Grant", "Take", "NoticeIn", "Verify", "Read", "ReadEnd", "Release", "Fence", "Connect", "Start", "Post", "Notice", "Complete", "TakeSource", "Compute", "GiveBack", "RecvAsk", "RecvAsked", "Ask", "Run", "Success", "Failure"} {
		all = append(all, alteration{"line dropped: " + name, eachLine(says1(name)), drop}, alteration{"line doubled: " + name, eachLine(says1(name)), double})
	}
	return append(all,
		alteration{"line dropped: Start of a machine", eachLine(start), drop},
		alteration{"line dropped: Posted", eachLine(func(l *spec.TraceLine) bool { return l.Event.Kind == "Posted" && !l.Event.Failed && len(l.Did) == 0 }), drop},
		alteration{"line dropped: Noticed", eachLine(func(l *spec.TraceLine) bool { return l.Event.Kind == "Noticed" && !l.Event.Failed }), drop},
		alteration{"early: Grant heard before it was sent", eachLine(hears("grant", "Start")), before(sender("grant"))},
		alteration{"early: Complete heard before it was sent", eachLine(hears("complete", "RecvComplete")), before(sender("complete"))},
		alteration{"early: Failed heard before it was sent", eachLine(hears("failed", "RecvReceipt")), before(sender("failed"))},
		alteration{"early: AbortAck heard before it was sent", eachLine(hears("abort_ack", "RecvReceipt")), before(sender("abort_ack"))},
		alteration{"early: Abort heard before it was sent", eachLine(hears("abort", "RecvAbort")), before(sender("abort"))},
		alteration{"early: Read heard before it was said", eachLine(hears("read", "GiveBack")), before(sender("read"))},
		alteration{"early: verified before the last receipt", eachLine(says1("Verify")), before(sameNode("Take", "SaidRead"))},
		alteration{"early: read before it is ready", eachLine(says1("Read")), before(sameNode("Ready"))},
		alteration{"early: released before its last read ended", eachLine(says1("Release")), before(sameNode("ReadEnd"))},
		alteration{"early: released before its last hold ended", eachLine(says1("Release")), before(sameNode("Take"))},
		alteration{"early: posted before it is sealed", eachLine(says1("Post")), before(sameNode("Start"))},
		alteration{"early: an answer before its drain", eachLine(func(l *spec.TraceLine) bool { return says(l, "Complete") && l.Event.Kind == "Posted" }), before(sameNode("Post"))},
		alteration{"early: success before the last step ended", eachLine(says1("Success")), before(func(l, moved *spec.TraceLine) bool {
			return says(l, "Read") && l.Did[0].Transfer == moved.Did[0].Transfer
		})},
	)
}
