package lockstep

// Stimulus is what one action of the specification is to the engine. Until, if not "", says how long the event may lie in a machine's
// box: the specification's step has happened when it lies there, and the machine is told later, at the latest with the step named.
type Stimulus struct {
	Action, What string
	Until, Why   string
}

// Stimuli is the table of atomicity, in the order of the TLA+ text.
func Stimuli() []Stimulus { return append(decodeStimuli(), prefillStimuli()...) }

func decodeStimuli() []Stimulus {
	return []Stimulus{
		{"Submit", "core.Submit at the decode leader", "until Ask or Refuse", "The leader judges and asks in one step. Where its side is not there yet it queues the request itself."},
		{"Refuse", "the request leaves the leader's box; the answer is on its way", "", ""},
		{"Ask", "the request leaves the leader's box, or the leader hears that its side is there", "", ""},
		{"RecvAsk", "the Ask arrives at prefill's rank 0 and goes to its leader", "", ""},
		{"RecvAsked", "the Asked arrives at decode's rank and goes to its leader", "", ""},
		{"Run", "LeaseReady reaches the leader", "", ""},
		{"Success", "FirstRead ends: the last token has passed its second check", "", ""},
		{"Failure", "ClientGone (original), or LeaseFailed reaches the leader (derived)", "", ""},
		{"Recause", "ClientGone after a failure of derived cause", "", ""},
		{"Retry", "LeaseFreed reaches the leader: the last lease of the failed transfer is over", "", ""},
		{"Answer", "the leader's Answer reaches the client; of a derived cause, after its grace", "", ""},
		{"Grant", "Take and Go at decode's rank, said by the leader", "", ""},
		{"Grow", "core.Grow at decode's rank", "", ""},
		{"Abort", "core.AbortLease at decode's rank", "", ""},
		{"RecvComplete", "a Complete arrives", "until Take", "The rank takes a receipt in the step in which it has it and all its notices. One that it cannot take yet it gets at once, unless the world is lazy."},
		{"RecvReceipt", "an AbortAck, Failed or Gone arrives", "until Take", "As RecvComplete."},
		{"NoticeIn", "a notice is at the end of its channel", "until Take", "The event means more to the engine: what came before is visible, too. It is told when that is so, and when it completes no receipt."},
		{"Take", "the rank gets what it lacks: the last notices, or the receipt", "", ""},
		{"Verify", "the check of the lease ends well", "until Ready", "The rank makes a lease ready in the step in which it hears that."},
		{"BadVerify", "the check finds something: core.Verified with it", "", ""},
		{"Ready", "core.Verified reaches the rank", "", ""},
		{"Read", "core.ReadBegin, and the check of its tags is good", "", ""},
		{"BadRead", "core.ReadBegin, the check finds something, core.ReadEnd with it", "", ""},
		{"ReadEnd", "the tags are checked again, core.ReadEnd", "", ""},
		{"Append", "core.ReadBegin behind the prompt, core.ReadEnd", "", ""},
		{"Release", "core.ReleaseLease; of a lease given up while it was checked, core.Verified", "", ""},
		{"Fence", "core.Dialed: a new connection, and a Connect goes out", "", ""},
		{"FenceEnd", "core.FenceDone of every fence of the link", "", ""},
		{"Connect", "the Accept arrives, and the data path is up at both ends", "", ""},
		{"RaiseMark", "time for a heartbeat: a Ping goes out with the mark of now", "", "Marks in other messages are hidden on their way: a message with a lower mark lowers nothing."},
		{"DecodeCrash", "a new decode rank, which dials; its first fence, of nothing, is no step", "", ""},
	}
}

func prefillStimuli() []Stimulus {
	return []Stimulus{
		{"Accept", "older connections are lost, the Connect arrives", "", ""},
		{"RecvMark", "a Ping arrives with a mark that was said", "", ""},
		{"Start", "the leader's Assign, then the Grant arrives", "", ""},
		{"TakeSource", "core.TakeSource at the rank, said by the leader", "", ""},
		{"Compute", "a kernel stores into the source page; the rank hears nothing of it", "", ""},
		{"Seal", "the event of its stream; with the last page of a prompt, ChunkDone", "", ""},
		{"Post", "core.Sealed ends the seal that runs; the write goes to a channel", "", ""},
		{"Notice", "the transport puts the notice on one channel", "", ""},
		{"Complete", "core.Posted and core.Noticed reach the rank", "", "Both wait for it: a source that was read says so when it is needed."},
		{"Break", "core.Break", "until Failed, if nothing was posted", "The rank answers in the step in which it stops a lease of which nothing was posted."},
		{"RecvAbort", "the Abort arrives", "until AbortAck, if nothing was posted", "As Break."},
		{"AbortAck", "what lies in the box, core.Posted, core.Noticed", "", ""},
		{"Failed", "as AbortAck", "", ""},
		{"Gone", "a Grant arrives again below the mark", "", ""},
		{"GiveBack", "core.Sealed and core.Posted that are still out, core.ComputeOver", "", ""},
		{"PrefillFence", "core.ConnLost if decode's end is closed, else core.DataLost; its own fence is back at once", "", ""},
		{"PrefillCrash", "a new prefill rank", "", ""},
		{"Launch, Check, Drop", "a write moves in the world's fabric", "", ""},
		{"Copy, Visible", "a write lands in the world's memory", "", ""},
		{"Lose", "core.Posted with an error; the write goes on", "", ""},
		{"Stray, Torn, Flip", "the world's memory or a write is changed", "", ""},
	}
}

// Chain is steps of the specification that the engine takes in one of its own.
type Chain struct{ Steps, Why string }

// Chains is what chain.go computes: behind the first step the others are due, in any order, without a stimulus.
func Chains() []Chain {
	return []Chain{
		{"Grant, Share...", "shares are taken with the pages, from the longest published prefix"},
		{"Grant or Grow, Unpublish", "a publication ends when its page is handed out"},
		{"Ready, Publish...", "full pages are published in the step in which they are verified"},
		{"..., Release", "a revoked lease is free in the step in which its last hold ends"},
		{"Release, Release", "a grown page goes with its lease"},
		{"BadVerify or BadRead, Fence...", "a link that is down or owes nothing is fenced with the finding; another with the end of its last hold"},
		{"FenceEnd, QuarantineEnd", "pages come back in the step in which the last fence is back"},
		{"RecvMark or OwnMark, Forget", "what a mark passes is forgotten at once"},
		{"Complete..., OwnMark", "the oldest answer goes when a rank keeps too many"},
		{"TakeSource, TakeSource", "a job takes all its source pages at once"},
		{"GiveBack, GiveBack", "and gives all back at once"},
		{"Lose, PrefillFence", "a failed post fences its link"},
		{"Retry, Ask", "a request is asked for again at once when its side is there"},
		{"Failure, Recause", "an original cause of the last transfer is the request's"},
	}
}

// Source says where variables of the projection come from.
type Source struct{ Variables, From string }

// Sources is the table of project.go.
func Sources() []Source {
	return []Source{
		{"lead, cause", "DecodeLeader.Inspect; of what it has forgotten, its last state and its Answer; the leader's box for submitted"},
		{"root, succ", "the request of each transfer at the leader, in the order of their names"},
		{"http", "answers that reached the client"},
		{"pask", "PrefillLeader.Known"},
		{"own, gen, app, pubs, shr", "the ledger (DecodeRank.Detail, Inspect); a generation counts those that were granted"},
		{"dst, hold, got", "DecodeRank.Inspect; the box of a lease's check for verified; the last state of a lease that is free for its end"},
		{"rec, nin", "receipts and notices that came, in the boxes or at the rank"},
		{"qep", "the grant tables' epochs when the rank raised its Alarm"},
		{"krn, tok", "the world's kernels, and the bytes that stood there when one ended well"},
		{"ep, up, fencing, linc", "DecodeRank.Inspect; ep must be the grant table's"},
		{"dmark, pmark", "the mark of a Ping that was said; PrefillRank.Inspect"},
		{"nextL, dinc, pinc", "grants sent, processes started"},
		{"gpage, owes, gep, ginc", "DecodeRank.Inspect at the grant"},
		{"dof, tof, ten, ada, pre", "what was asked for"},
		{"ans, nsent, acc", "messages that prefill sent"},
		{"pst, pview", "PrefillRank.Inspect; closing while an Abort or Break lies in the box; closed for what ended with its epoch"},
		{"pfenced", "epochs that the rank accepted and has fenced"},
		{"sown", "the source ledger (PrefillRank.Detail) by its jobs"},
		{"sdat, sst, sent, src", "the world's source memory, writes that were put on a channel"},
		{"queued ... unseen, lost, pay", "the world's fabric"},
		{"mem, tagl, spent", "the world's memory"},
	}
}

// Known is what the engine does and the specification does not have, each with a test that shows it (known_test.go): a change of either
// side must look there.
type Known struct{ What, Why string }

// Knowns is all that is known of it. Pinned settings are such that it does not show.
func Knowns() []Known {
	return []Known{
		{"Of a lease that is found bad, the pages that are good come back at once.", "The specification keeps all pages of the lease until the fences; the engine those that the finding is about."},
		{"What a check finds in a lease that was given up while it ran is quarantined.", "The specification checks leases that fill only; the lease would just be released there."},
		{"Pages that are taken and given back before a grant is sent raise their generation and lose their tags.", "The specification takes pages with the grant; the projection counts granted generations only."},
	}
}
